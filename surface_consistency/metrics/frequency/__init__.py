"""How accuracy goes with frequency."""
