"""Judges: a rule, a model, people; their prompts, labels and quality."""
