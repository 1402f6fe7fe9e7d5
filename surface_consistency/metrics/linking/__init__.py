"""Whether a model links two names of one entity."""

__all__: list[str] = []
