"""Derived tables: one file per question, in the built-in functions of Spark SQL."""
