"""Rates of facts that survive deletion or unlearning."""
