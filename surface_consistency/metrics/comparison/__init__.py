"""Scores of several models on the same items: differences, ranks, one test of all."""
