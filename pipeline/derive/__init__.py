"""Tables made of tables: one file for each question, in the built-in functions of Spark SQL."""
