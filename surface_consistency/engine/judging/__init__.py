"""Scoring by a rule, an LLM judge or human labels, with prompts, labels and validation."""
