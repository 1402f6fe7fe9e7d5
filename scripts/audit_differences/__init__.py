"""Comparison of the audit databases with the published ones."""
