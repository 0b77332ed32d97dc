"""Reading: where the input comes from: segments, brokers, remote files, a lake."""
