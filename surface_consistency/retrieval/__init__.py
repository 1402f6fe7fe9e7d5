"""Stores of facts: triplet databases, deletion, retrievers and their traces."""

__all__: list[str] = []
