"""Linked entities: DBpedia Spotlight, DBpedia URIs, rows of linkers, published entity maps."""
