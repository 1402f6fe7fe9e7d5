"""Popularity of wordings, memorization, and effects of perturbations."""
