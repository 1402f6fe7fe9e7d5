"""What survives the deletion of a fact, and by which way."""

__all__: list[str] = []
