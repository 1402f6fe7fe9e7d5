"""Tables and page of any paired study: two correctness labels per fact."""
