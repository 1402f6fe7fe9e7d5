"""Decompress files, for dumps and corpora."""
