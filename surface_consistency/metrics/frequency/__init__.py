"""Correlation of accuracy with frequency in a corpus."""
