"""What survives a deletion."""
