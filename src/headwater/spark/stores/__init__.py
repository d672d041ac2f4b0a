"""Kinds of relations: which datasets each reads or writes, one file a kind."""
