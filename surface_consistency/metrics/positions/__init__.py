"""Slots, momentum and alignment of long queries."""
