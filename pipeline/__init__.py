"""Pipeline: analyses of commit logs and group history, on Spark."""
