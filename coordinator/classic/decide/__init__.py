"""One file per question. Each reads a view and answers with an Outcome; none of them writes."""
