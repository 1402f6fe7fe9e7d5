"""The catalogue of columns: title, kind, unit and interval of every column that tables show.

`columns.tsv` has one row per column, so that each is described once for all studies and results. A
column of a frame with a general name, such as `n`, can be shown by another entry, such as `slots`,
if it is written `n:slots`; see `surface_consistency.tables.tabulation.describe`.
"""

from importlib import resources
from typing import Final

from surface_consistency.tables.table import Column

_SQUARE: Final = ("both", "first_only", "second_only", "neither")


def catalogue(text: str) -> dict[str, Column]:
    r"""Read descriptions of columns.

    Args:
        text: Tab-separated rows under a line of headings: key, title, kind, unit, options and
            group. Options are "interval" (bounds in `<key>_low` and `<key>_high`), "higher" or
            "lower" (which values are better) and "wide" (not shown on narrow screens).

    Returns:
        The descriptions by key, in the order given.

    Raises:
        ValueError: If two rows describe the same key.

    Examples:
        >>> rows = ["key title kind unit options", "flip_rate Flips rate % interval"]
        >>> column = catalogue("\n".join(row.replace(" ", "\t") for row in rows))["flip_rate"]
        >>> column.low, column.direction
        ('flip_rate_low', 'neither')
    """
    columns: dict[str, Column] = {}
    for line in text.splitlines()[1:]:
        key, title, kind, unit, options, group = (line.split("\t") + [""] * 3)[:6]
        if key in columns:
            raise ValueError(
                f"a catalogue describes a column once, got {key!r} twice; remove one row, or give "
                "the second a key of its own and show it as `column:key`"
            )
        flags = options.split()
        ends = (f"{key}_low", f"{key}_high") if "interval" in flags else (None, None)
        columns[key] = Column(
            key=key,
            title=title,
            kind=kind,  # type: ignore[arg-type]
            unit=unit,
            low=ends[0],
            high=ends[1],
            cells=_SQUARE if kind == "square" else None,
            group=group,
            direction=next((one for one in ("higher", "lower") if one in flags), "neither"),
            on_phones="wide" not in flags,
        )
    return columns


COLUMNS: Final = catalogue(
    resources.files("surface_consistency.tables").joinpath("columns.tsv").read_text("utf-8")
)
"""Description of each column by its key."""
