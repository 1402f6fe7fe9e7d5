"""Builder class of SLAQ."""
