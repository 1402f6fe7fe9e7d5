"""Paired metrics of two conditions: tables, rates, tests and contrasts."""
