"""Models that look facts up in a store while they write."""
