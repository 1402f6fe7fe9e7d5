"""Correlations, partial and dependent, with intervals."""
