"""What the families share: input checks, groups, ranks."""

__all__: list[str] = []
