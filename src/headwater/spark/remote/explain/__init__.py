"""A parser for the explain text of a Spark Connect server: its plans, expressions and types."""
