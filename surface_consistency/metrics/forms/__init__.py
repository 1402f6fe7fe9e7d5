"""More than two forms of a fact."""

__all__: list[str] = []
