"""The studies that come along: a folder each, whole from its data to its page."""
