"""RedirectQA in the release's columns, from any source that the loader reads."""
