"""Wikis and what the construction has to know about each."""

from surface_consistency.wikimedia.wikis.config import UNCATEGORISED_LABEL, WikiConfig
from surface_consistency.wikimedia.wikis.load import WIKIS, load_wiki

__all__ = ["UNCATEGORISED_LABEL", "WIKIS", "WikiConfig", "load_wiki"]
