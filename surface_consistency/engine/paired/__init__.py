"""Tables and page of any paired study: two verdicts on one fact."""
