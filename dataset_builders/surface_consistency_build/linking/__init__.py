"""Count linked entities: DBpedia Spotlight, DBpedia URIs, rows of linkers, entity maps."""
