"""Rates of facts that are still answered correctly after deletion or unlearning."""
