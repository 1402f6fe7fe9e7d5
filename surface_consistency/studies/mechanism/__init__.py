"""Analysis of finished runs: whether two answers to one fact use the same parts of the model."""

__all__: list[str] = []
