"""Tables in the form of a paper, made from the tables of a study.

An entry of `papers` in the `page.toml` of a study describes such a table:

- `caption`, which begins with the name of the table, `needs`, the requirements of a run for it,
  and `note`;
- `of`: the tables that it is made from, joined by the columns that name their rows;
- `derive`: further columns, as expressions of the columns of the table;
- `where`: values of columns, which select rows;
- `rows`: the columns that name its rows, with their headings; `model?` is shown only if it has
  several values;
- `lines`: lines of each row, with the word that replaces `{line}` in `cells`, and `line_title`;
- `spread`: the column whose values are groups of columns, and `columns`, their headings in order
  (all values by default);
- `cells`: the columns of each group: `of`, `title`, `kind`, `star`, `beside` (see
  `surface_consistency.tables.table.Column`), and `only`, the groups that have it;
- `labels`: wordings of values by column, which also give the order of the rows.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from surface_consistency.tables.table import Column, Table


def paper_table(name: str, spec: Mapping[str, Any], tables: Mapping[str, Table]) -> Table | None:
    """Make a table in the form of a paper.

    Args:
        name: Name of the entry, for the label in LaTeX.
        spec: The entry; see the module.
        tables: The tables of the study by name.

    Returns:
        The table, with the rows and columns that exist in `tables`. A cell from several rows is
        their mean, or for a count their sum. None if a table is missing or no row is selected.
    """
    keys = [key.removesuffix("?") for key in spec["rows"]]
    frame = _source(spec, keys, tables)
    if frame.empty:
        return None
    spread = pd.Series("", index=frame.index)
    if "spread" in spec:
        spread = frame[spec["spread"]].astype(str)
    titles: Mapping[str, str] = spec.get("columns", {})
    groups = [one for one in titles or dict.fromkeys(spread) if (spread == one).any()]
    columns = [
        (group, *_column(group, titles.get(group, group), cell))
        for group in groups
        for cell in spec["cells"]
        if group in cell.get("only", groups)
    ]
    rows = []
    for values, part in frame.groupby(keys, sort=False):
        parts = {group: part[spread[part.index] == group] for group in groups}
        for line, word in spec.get("lines", {"": ""}).items():
            row: dict[str, Any] = dict(zip(keys, values, strict=True)) | {"line": line}
            for group, _, sources in columns:
                for key, (source, kind) in sources.items():
                    row[key] = _cell(parts[group], source.replace("{line}", word), kind)
            rows.append(row)
    made = pd.DataFrame(rows)
    heads = [
        Column(key=key, title=title, labels=spec.get("labels", {}).get(key, {}))
        for key, (shown, title) in zip(keys, spec["rows"].items(), strict=True)
        if not shown.endswith("?") or made[key].nunique() > 1
    ]
    if "lines" in spec:
        heads.append(Column(key="line", title=spec["line_title"]))
    return Table(
        frame=made if "lines" in spec else made.drop(columns="line"), caption=spec["caption"],
        columns=[*heads, *(column for _, column, _ in columns)],
        note=" ".join(spec.get("note", "").split()),
        model="model" if "model" in keys else None, label="tab:" + name.replace("_", "-"),
    )  # fmt: skip


def _source(spec: Mapping[str, Any], keys: list[str], tables: Mapping[str, Table]) -> pd.DataFrame:
    """Join the tables of an entry, and select and sort its rows; empty if a table is missing."""
    if not {*spec["of"]} <= {*tables} or tables[spec["of"][0]].frame.empty:
        return pd.DataFrame()
    frame, *others = (tables[name].frame for name in spec["of"])
    for other in others:
        shared = [name for name in (*keys, spec.get("spread")) if name in frame and name in other]
        added = [name for name in other if name in shared or name not in frame]
        frame = frame.merge(other[added], on=shared, how="left")
    for column, wanted in spec.get("where", {}).items():
        frame = frame[frame[column].isin(wanted)]
    for column, expression in spec.get("derive", {}).items():
        derived: Any = frame.eval(expression, engine="python")
        frame = frame.assign(**{column: derived})
    for key in reversed(keys):
        values = frame[key].astype(str)
        known = dict.fromkeys([*spec.get("labels", {}).get(key, ()), *values])
        places = values.map({value: place for place, value in enumerate(known)})
        frame = frame.assign(**{key: values}).loc[places.sort_values(kind="stable").index]
    return frame


def _column(
    group: str, title: str, cell: Mapping[str, Any]
) -> tuple[Column, dict[str, tuple[str, str]]]:
    """Describe a column of a group, and name the columns that it is taken from with their kinds."""
    name = cell["of"].replace("{line}", "").strip("_")
    key = "_".join(filter(None, (group, name))) or "value"
    kind = cell.get("kind", "decimal")
    sources = {key: (cell["of"], kind)}
    star = f"{key}_p_value" if "star" in cell else None
    if star is not None:
        sources[star] = (cell["star"], "p_value")
    beside = None
    if "beside" in cell:
        beside = (f"{key}_beside", *cell["beside"][1:])
        sources[beside[0]] = (cell["beside"][0], beside[1])
    return Column(
        key=key, title=cell.get("title", title), kind=kind, unit=cell.get("unit", ""), star=star,
        beside=beside, group=title if "title" in cell else "",
    ), sources  # fmt: skip


def _cell(rows: pd.DataFrame, name: str, kind: str) -> Any:  # noqa: ANN401 - any cell
    """Return a cell: the value of the only row, the sum of counts, or otherwise the mean."""
    values = rows[name] if name in rows else pd.Series(dtype=float)
    if len(values) > 1:
        return values.sum() if kind == "count" else values.mean()
    return values.iloc[0] if len(values) else float("nan")
