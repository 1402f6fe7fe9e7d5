"""Rows of data files: a reader of each format, cells to values, and columns to fields."""
