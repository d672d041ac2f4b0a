"""Columns of a plan: what each expression makes of the columns it is given."""
