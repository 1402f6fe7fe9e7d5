"""Metrics of items with any number of forms."""
