"""Reading what a model that judges has replied."""

__all__: list[str] = []
