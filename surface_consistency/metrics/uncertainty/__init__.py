"""Confidence intervals, resampling and cluster-robust inference."""
