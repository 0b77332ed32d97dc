"""Record batches: the bytes of one batch, read, checked, written and rewritten."""
