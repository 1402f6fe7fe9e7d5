"""Lexical popularity: the same instance in the original words and in synonyms."""
