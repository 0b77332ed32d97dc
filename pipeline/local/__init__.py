"""Local engine: the rules of derive/ on DuckDB, without Spark and without Java."""
