"""What a reader of Wikidata dumps has seen."""

from dataclasses import dataclass, field

__all__ = ["WikidataCounts"]


@dataclass(slots=True, kw_only=True)
class WikidataCounts:
    """Counts that grow while a Wikidata dump is read."""

    n_items: int = 0
    """Items read so far."""

    skipped: dict[str, int] = field(default_factory=dict)
    """Entities of other types passed over so far, such as properties and lexemes, by type."""
