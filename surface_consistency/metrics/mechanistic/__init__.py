"""Whether two answers come from the same parts of a model."""

__all__: list[str] = []
