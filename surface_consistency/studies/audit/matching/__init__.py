"""Remove lookups from the outputs of an audit, clean the answers and score them."""
