"""Short against long queries: alignment, momentum, position."""

__all__: list[str] = []
