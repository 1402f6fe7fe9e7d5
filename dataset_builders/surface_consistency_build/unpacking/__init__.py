"""Packed files as plain bytes: one unpacker for dumps and corpora."""
