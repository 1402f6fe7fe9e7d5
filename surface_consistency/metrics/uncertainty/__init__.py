"""Intervals, resampling and many tests at once."""

__all__: list[str] = []
