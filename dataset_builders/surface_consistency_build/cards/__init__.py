"""Data sets as folders with a card, and their way to the hub."""
