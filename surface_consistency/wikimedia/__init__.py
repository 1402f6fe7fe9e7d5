"""Wikimedia dumps: readers of their files, and the construction of RedirectQA from them."""

__all__: list[str] = []
