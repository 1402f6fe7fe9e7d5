"""Linked entities: DBpedia Spotlight, DBpedia URIs, rows of linkers, published entity maps."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
