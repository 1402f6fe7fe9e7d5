"""Identifiers of types, categories and relations in the wording and order for people."""

from collections.abc import Mapping

from surface_consistency.taxonomy import CATEGORIES, TEMPLATES, TYPES, parse_category, parse_type

__all__ = ["category_title", "display", "rank", "type_title"]

_ORDERS: Mapping[str, tuple[str, ...]] = {
    "template": TEMPLATES,
    "type": tuple(TYPES),
    "category": tuple(CATEGORIES),
}


def type_title(name: str) -> str:
    """Give the paper's wording of a redirect type; other names stay as they are."""
    kind = parse_type(name)
    return kind.title if kind else name


def category_title(label: str) -> str:
    """Give the short spelling of a redirect category; unknown ones lose their underscores."""
    category = parse_category(label)
    return category.name if category else label.replace("_", " ")


def display(column: str, value: str) -> str:
    """Word an identifier of the named column for people."""
    if column == "type":
        return type_title(value)
    if column == "category":
        return category_title(value)
    return value.replace("_", " ") if column == "relation" else value


def rank(column: str, value: str) -> tuple[int, str]:
    """Order values as the paper does; unknown values follow in alphabetical order."""
    order = _ORDERS.get(column, ())
    return (order.index(value) if value in order else len(order), value)
