"""Journal: the write-ahead log that makes appends to many partitions durable with one fsync."""
