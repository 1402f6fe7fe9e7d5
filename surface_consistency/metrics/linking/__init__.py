"""The linking probe: whether a model links names to their entities."""
