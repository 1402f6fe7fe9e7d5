"""Prompts to generations: the runner protocol, reference runners, the resumable run log."""
