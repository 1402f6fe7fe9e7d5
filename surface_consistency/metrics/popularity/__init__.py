"""Popularity of wordings, perturbation, memorisation scores."""

__all__: list[str] = []
