"""Popularity of words in training data, memorization, and effects of perturbations."""
