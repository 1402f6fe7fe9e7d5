"""A comparison of models as plain values for programs, and in Markdown."""

import re
from collections.abc import Iterator
from typing import Any, Final

import pandas as pd

from surface_consistency.analysis.compare import ComparedResults
from surface_consistency.engine.compare.results_report import (
    MOST_LISTED,
    ComparisonReport,
    first_rows,
    listed_changes,
)
from surface_consistency.tables.numbers import format_cell, json_value, sentence_text
from surface_consistency.tables.table import Table
from surface_consistency.text import one_line

_MOST_PRINTED: Final = 45
_TAG: Final = re.compile(r"<(?!\s)")


def group_tables(compared: ComparedResults) -> Iterator[Table]:
    """Describe the groups of a comparison that were named, and those of tasks and forms.

    Args:
        compared: The comparison.

    Yields:
        A table per metric and column.
    """
    asked = {f"by_{name}" for name in ("task", "form", "condition", *compared.table.by)}
    for metric in compared.metrics:
        for name, table in ComparisonReport(compared, metric).tables().items():
            if name in asked:
                yield first_rows(table, _MOST_PRINTED)


def comparison_details(compared: ComparedResults) -> Iterator[dict[str, Any]]:
    """Write all numbers of a comparison as plain values.

    Args:
        compared: The comparison.

    Yields:
        A dictionary per metric: metric, finding, n_items, n_items_of_any, scale, clusters,
        equality, models, differences, groups, means (of tasks and slices), noise (test-retest flip
        rates), flips (between repeats of two models), notes. Undefined numbers are
        None.
    """
    for metric, result in compared.metrics.items():
        report = ComparisonReport(compared, metric)
        equality = result.equality
        yield {
                "metric": metric,
                "finding": sentence_text(report.finding()).replace("\u00a0", " "),
                "n_items": result.n_items,
                "n_items_of_any": result.n_items_of_any,
                "scale": [json_value(end) for end in result.scale],
                "clusters": compared.cluster_note,
                "equality": equality and {"statistic": json_value(equality["statistic"]),
                                          "p_value": json_value(equality["p_value"]),
                                          "df": list(equality["df"])},
                "models": _records(result.models),
                "differences": _records(report.differences),
                "groups": _records(report.groups),
                "means": _records(result.means),
                "noise": _records(_of_metric(compared.noise, metric)),
                "flips": _records(_of_metric(compared.flips, metric)),
                "notes": [*compared.missing, *compared.notes],
        }  # fmt: skip


def _of_metric(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Keep the rows of a metric."""
    return frame[frame["metric"] == metric].drop(columns="metric")


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Write the rows of a frame as JSON has them."""
    return [
        {str(key): json_value(value) for key, value in row.items()}
        for row in frame.to_dict("records")
    ]


def comparison_markdown(compared: ComparedResults) -> str:
    """Write a comparison as a comment of a pull request.

    Args:
        compared: The comparison.

    Returns:
        Of each metric the finding, the differences as a table (of a single model the mean), and the
        first items that were lost, with both answers.
    """
    parts = []
    for metric in compared.metrics:
        report = ComparisonReport(compared, metric)
        sentences = map(sentence_text, (report.finding(), report.few(), report.summary()))
        finding, *others = map(_markdown_text, sentences)
        parts += [
            *filter(None, (f"**{finding}**", *others)),
            _markdown(first_rows(next(iter(report.tables().values())), _MOST_PRINTED)),
        ]
        lists = [one[one["change"] == "lost"] for one in compared.changed(metric)]
        lost = pd.concat(lists) if lists else pd.DataFrame()
        if len(lost):
            listed = listed_changes(lost.head(MOST_LISTED), f"{len(lost):,} items lost")
            left = len(lost) - len(listed.frame)
            more = f"\n\n… {left:,} more, which `out` contains" if left else ""
            parts.append(f"<details><summary>{listed.caption}</summary>\n\n{_markdown(listed)}{more}"
                         "\n\n</details>")  # fmt: skip
    parts += [f"- {_markdown_text(note)}" for note in (*compared.missing, *compared.notes)]
    return "\n\n".join(parts).replace("\u00a0", " ")


def _markdown(table: Table) -> str:
    """Set a table in Markdown."""
    heads = [f"{one.title} ({one.unit})" if one.unit else one.title for one in table.columns]
    rows = [
        [" ".join(filter(None, format_cell(row, column))) for column in table.columns]
        for row in table.frame.to_dict("records")
    ]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(_markdown_cell, line))} |" for line in lines)


def _markdown_cell(text: str) -> str:
    """Set a cell so that nothing of it is markup."""
    return _markdown_text(one_line(text)[:200])


def _markdown_text(text: str) -> str:
    """Set text, which may hold a label of anyone's, so that nothing of it is markup."""
    plain = one_line(text).replace("\\", "\\\\").replace("|", "\\|")
    return _TAG.sub("&lt;", plain).replace("`", "\\`")
