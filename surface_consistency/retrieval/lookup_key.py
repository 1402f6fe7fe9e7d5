"""The text by which an entry of a store is found."""

__all__ = ["lookup_key"]


def lookup_key(entity: str, relation: str) -> str:
    """Return the text of a lookup, or of an entry, that retrievers compare.

    Entity and relation, each in lower case, with underscores as spaces and without surrounding
    white space, joined by one space; the value is no part of it (limited-memory LMs, published
    retriever).

    Args:
        entity: Entity of a lookup, or subject of an entry.
        relation: Relation of either.

    Returns:
        The key; a single space when both parts are blank.

    Examples:
        >>> lookup_key(" New_York", "Capital Of ")
        'new york capital of'
    """
    return f"{_plain(entity)} {_plain(relation)}"


def _plain(text: str) -> str:
    """Return a part of the key."""
    return text.lower().replace("_", " ").strip()
