"""The columns that tables of several studies share, each described once.

A study adds its own: `COLUMNS | catalogue(Column(key="rank", title="Rank", kind="number"))`.
"""

from typing import Final

from surface_consistency.tables.table import Column, interval_column


def catalogue(*columns: Column) -> dict[str, Column]:
    """Index descriptions of columns by their keys.

    Args:
        columns: Descriptions, each of another key.

    Returns:
        The descriptions by key, in the order given.

    Raises:
        ValueError: If two of them describe the same key.
    """
    by_key = {column.key: column for column in columns}
    if len(by_key) < len(columns):
        keys = [column.key for column in columns]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(
            f"a catalogue describes a column once, got {twice!r} twice; leave one out, or give the "
            "tables that differ a heading of their own by `titles` of `describe`"
        )
    return by_key


COLUMNS: Final = catalogue(
    Column(key="model", title="Model"),
    Column(key="judge", title="Judge"),
    Column(key="kind", title="Kind"),
    Column(key="label", title="Of"),
    Column(key="pairs", title="Pairs"),
    Column(key="state", title="State"),
    Column(key="task", title="Task"),
    Column(key="template", title="Template"),
    Column(key="n", title="Pairs", kind="count"),
    Column(key="n_clusters", title="Facts", kind="count"),
    Column(key="n_missing", title="Without", kind="count", on_phones=False),
    interval_column("accuracy", "Right", "rate", "%", direction="higher"),
    interval_column("accuracy_difference", "Difference", "difference", "points"),
    interval_column("difference", "Difference", "difference", "points"),
    interval_column("flip_rate", "Flips", "rate", "%"),
    interval_column("auc", "AUC", "number", "0.5 is chance"),
    interval_column("kappa", "Kappa", "number"),
    interval_column("coefficient", "Coefficient", "number"),
    Column(key="p_value", title="p", kind="p_value"),
    Column(key="adjusted_p_value", title="p", kind="p_value", unit="Holm"),
)
"""Title, kind, unit and interval of each statistic by the name that results and frames give it."""
