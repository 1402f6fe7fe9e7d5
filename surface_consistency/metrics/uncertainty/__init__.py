"""Confidence intervals, resampling and cluster-robust inference of means and other statistics."""
