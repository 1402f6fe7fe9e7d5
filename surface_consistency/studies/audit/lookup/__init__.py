"""Models that look facts up in a store during generation."""
