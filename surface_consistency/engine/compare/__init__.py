"""Verdicts side by side, of files or of two runs: table, text and page."""
