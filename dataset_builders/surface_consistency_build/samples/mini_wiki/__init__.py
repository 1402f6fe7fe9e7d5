"""A wiki of sixty invented entities, written in the formats of Wikimedia's dumps."""
