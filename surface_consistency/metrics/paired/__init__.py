"""Verdicts under two conditions: the table, its rates and its tests."""

__all__: list[str] = []
