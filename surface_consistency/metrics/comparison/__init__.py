"""Scores of several models on the same items: differences, ranks and an omnibus test."""
