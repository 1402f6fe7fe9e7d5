"""Comparison of scores of files or runs: tables, sentences and page."""
