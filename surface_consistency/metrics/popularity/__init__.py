"""Popularity of wordings, and what goes with it."""
