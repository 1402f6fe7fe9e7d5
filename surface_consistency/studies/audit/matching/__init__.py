"""Answers of an audit of forgetting: lookups taken out, answers cleaned, verdicts given."""
