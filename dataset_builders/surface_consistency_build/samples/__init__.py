"""How the bundled samples and the small wiki of the tests are made."""
