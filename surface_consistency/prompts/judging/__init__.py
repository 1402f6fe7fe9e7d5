"""Prompts that ask a model to judge answers."""

__all__: list[str] = []
