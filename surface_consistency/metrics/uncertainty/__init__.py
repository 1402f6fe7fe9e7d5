"""Intervals, resamples, corrections for many tests."""
