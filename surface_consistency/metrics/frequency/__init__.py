"""How accuracy goes with the frequency of names."""

__all__: list[str] = []
