"""What a run leaves on disk: its log, its lock, and files that appear whole or not at all."""

__all__: list[str] = []
