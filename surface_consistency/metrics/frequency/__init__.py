"""Relation of accuracy to frequency in a corpus."""
