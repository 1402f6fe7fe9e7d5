"""What all retrievers share: the distinct keys of a store, masks, the best keys, ranks."""

__all__: list[str] = []
