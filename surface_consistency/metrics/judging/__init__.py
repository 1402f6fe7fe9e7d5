"""How good a judge is, and what its errors do to rates."""

__all__: list[str] = []
