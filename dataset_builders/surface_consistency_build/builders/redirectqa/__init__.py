"""Builder classes of RedirectQA in the release's columns."""
