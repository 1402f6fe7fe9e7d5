"""How good a judge is, and rates corrected for it."""
