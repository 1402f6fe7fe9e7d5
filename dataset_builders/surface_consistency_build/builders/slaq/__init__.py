"""SLAQ: the builder class, and the making of such data from articles with any runner."""
