"""Entity linking probe: whether a model affirms that two names denote one entity."""
