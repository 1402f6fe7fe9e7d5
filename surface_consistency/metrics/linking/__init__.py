"""Whether names are linked to their entities."""
