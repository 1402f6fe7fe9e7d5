"""Rows of data files: readers of formats, conversion of cells, and mapping of columns to fields."""
