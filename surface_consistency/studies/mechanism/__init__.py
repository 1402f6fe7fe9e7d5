"""Do two answers to one fact use the same parts of the model? An analysis of finished runs."""

__all__: list[str] = []
