"""Tables made of tables: one file per question, each a function of data frames, in Spark's own SQL."""
