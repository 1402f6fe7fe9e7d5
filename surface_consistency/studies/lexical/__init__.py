"""Lexical popularity: the same instance in original and in other words."""
