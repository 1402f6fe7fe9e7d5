"""Does accuracy correlate with the corpus frequency of the entity, or with that of the name?

The analysis is that of section 4 and appendices B.3 and B.4 of RedirectQA (arXiv 2604.21882).
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from surface_consistency.engine.design import Report
from surface_consistency.engine.study import Analysis
from surface_consistency.errors import DataError, SurfaceConsistencyWarning
from surface_consistency.metrics import frequency_analysis, frequency_curves, surface_accuracy
from surface_consistency.reading import shown
from surface_consistency.report.page import Block, Check, Lines, Point, Prose, Series
from surface_consistency.report.texts import Texts
from surface_consistency.runs.counts import read_counts
from surface_consistency.runs.loader import Run
from surface_consistency.schemas.settings import Settings
from surface_consistency.studies.redirectqa.instances import surface_id
from surface_consistency.tables.numbers import interval_value
from surface_consistency.tables.sentences import paragraph, rate
from surface_consistency.tables.table import Table

_TEXTS: Final = Texts("surface_consistency.studies.redirectqa")
_KEYS: Final = ["model", "subset"]
_COUNTS: Final = ["n", "n_clusters", "n_zero", "n_below", "n_missing"]
_NEEDED: Final = (
    *("item", "surface_id", "is_canonical", "entity_frequency", "surface_frequency"),
    "measure",
)
_SUBSETS: Final = {
    "overall": "all names",
    "canonical": "titles",
    "redirect": "redirects",
    "redirect_high_frequency": "frequent redirects",
}
_FIRSTS: Final = {"entity": "entity", "others": "other names"}
_PARTIAL: Final = ("entity_given_surface", "surface_given_entity")
_QUANTITIES: Final = (
    (_PARTIAL[0], "the frequency of the entity", "that of the name"),
    (_PARTIAL[1], "the frequency of the name", "that of the entity"),
)
_LABELS: Final = {
    "first": _FIRSTS,
    "held": {"pair_documents": "pair"},
    "frequency": {"surface": "this name"},
}
"""Labels by column."""


class FrequencySettings(Settings):
    """Counts that are correlated with accuracy."""

    frequencies: Path
    """Folder of `count names` or `count pairs`, or a Parquet file with the columns of its
    instances.parquet."""

    measure: str = "longest"
    """Kind of counts to use: a value of the column "measure", such as longest."""

    bins: int = Field(default=20, ge=1)
    """Number of bins in the curves, each with about the same number of names."""

    above: float = Field(default=10.0, ge=0)
    """Frequency above which a redirect is in the subset of frequent redirects."""


class FrequencyAnalysis(Analysis):
    """Compute accuracy by the corpus frequencies of the entity and of the name in the question."""

    name = "frequency"
    title = "Frequency and accuracy"
    settings = FrequencySettings
    studies = ("redirectqa",)
    caveat = (
        "Counts of strings are not counts of mentions: other entities of the same spelling are "
        "included. A partial correlation controls for the counts, not for the true frequencies; "
        "errors of counting alone can let the entity seem to matter beyond the name."
    )
    figure_only = ("frequency_bins",)

    def tables(self, report: Report, settings: FrequencySettings) -> Mapping[str, Table]:
        """Correlate the accuracy of each fact under each name with corpus frequencies.

        Returns:
            "frequency_correlations" (tables 5 and 6 of the paper and its Steiger tests),
            "frequency_partial" (tables 2 and 6), "frequency_others" (variants: the other names
            instead of the entity, counts of zero included, and controlled for pairs) and
            "frequency_bins" (figure 3). Each has one row per model and subset (and variant, or
            bin). "frequency_pageviews" is included if the counts have pageviews. Correlations are
            in [-1, 1]; intervals and `p_value` are clustered by the report's clusters and are
            consistent with each other; `p_value_independent` assumes independent rows, as in the
            paper.

        Raises:
            DataError: If the counts cannot be read, lack the measure, or are of other questions.
            ColumnNotFoundError: If a file of counts lacks a column.
        """
        counts = _read(settings.frequencies, settings.measure)
        joined = [_joined(run, counts, report.cluster) for run in report.runs]
        frame = pd.concat(joined, ignore_index=True)
        options: dict[str, Any] = {
            "by": "model",
            "cluster": report.cluster,
            "high_frequency_above": settings.above,
            "intervals": report.intervals,
        }
        rows = frequency_analysis(frame, **options)
        made = {
            "frequency_correlations": _described(
                "frequency_correlations",
                _wide(rows, ["entity", "surface", "entity_minus_surface"]),
                settings,
            ),
            "frequency_partial": _described("frequency_partial", _wide(rows, _PARTIAL), settings),
            "frequency_others": _variants(frame, options),
            "frequency_bins": _described(
                "frequency_bins", frequency_curves(frame, n_bins=settings.bins, **options)
            ),
        }
        if _is_known(frame, "pageviews"):
            made["frequency_pageviews"] = _pageviews(frame, options)
        return made

    def figures(self, report: Report, tables: Mapping[str, Table]) -> Iterator[Block]:
        """Summarize the partial correlations, and draw figure 3; see `Analysis.figures`."""
        rows = tables["frequency_partial"].frame.to_dict("records")
        sentences = [
            rate(
                row,
                name,
                f"partial correlation of accuracy of {row['model']} with {counted}, given {given}",
                kind="decimal",
                null=0.0,
                unit="names",
                **report.words,
            )
            for row in rows
            if row["subset"] == "overall"
            for name, counted, given in _QUANTITIES
        ]
        yield Prose(parts=paragraph(sentences))
        yield from _curves(tables["frequency_bins"].frame, report.index)

    def checks(self, report: Report, tables: Mapping[str, Table]) -> list[Check]:
        """Report runs in which most names have no logarithm; see `Analysis.checks`.

        Args:
            report: The runs.
            tables: The tables.

        Returns:
            A check per run in which at least half of the names have a count of 0.
        """
        rows = tables["frequency_correlations"].frame
        rows = rows[rows["subset"] == "overall"]
        counted = [
            (row, row["n"] + row["n_zero"] + row["n_below"]) for row in rows.to_dict("records")
        ]
        return [
            _TEXTS.check(
                "uncounted",
                label=row["model"],
                n_zero=int(row["n_zero"]),
                n_counted=int(n),
                n=int(row["n"]),
            )
            for row, n in counted
            if n and 2 * row["n_zero"] >= n
        ]


def _read(path: Path, measure: str) -> pd.DataFrame:
    """Read the frequencies of surface instances, one row per instance."""
    place, rows = read_counts(
        path,
        "instances.parquet",
        needed=_NEEDED,
        what="instances",
        uncounted="`frequencies` takes a folder of `count`, or a Parquet file of instances",
        unmerged="count the names of the questions with `count names`, and `count merge` "
        "if shards were counted separately",
    )
    counts = rows[rows["measure"] == measure]
    if counts.empty:
        known = ", ".join(sorted(rows["measure"].astype(str).unique())) or "no rows"
        raise DataError(f"{place} has no counts of `measure` {measure}; it has {known}")
    repeated = counts["surface_id"].duplicated()
    if repeated.any():
        raise DataError(
            f"{place} has {shown(counts.loc[repeated, 'surface_id'].iloc[0])} twice under measure "
            f"{shown(measure)}; give each instance one row"
        )
    return counts.assign(others_frequency=counts["entity_frequency"] - counts["surface_frequency"])


def _joined(run: Run, counts: pd.DataFrame, cluster: str) -> pd.DataFrame:
    """Join the accuracy of each surface instance of a run with its frequencies."""
    shared = ["item", "template", *dict.fromkeys(c for c in (cluster,) if c != "item")]
    sides = [
        run.outcomes[shared].assign(
            surface=run.outcomes[f"{side}_surface"], is_right=run.outcomes[f"{side}_correct"]
        )
        for side in ("first", "second")
    ]
    names = pd.concat(sides, ignore_index=True)
    named = zip(names["item"], names.pop("surface"), strict=True)
    names["surface_id"] = [surface_id(fact, surface) for fact, surface in named]
    names = names.drop_duplicates(["surface_id", "template"])
    known = names["surface_id"].isin(counts["surface_id"])
    if not known.any():
        raise DataError(
            f"the counts contain none of the {names['surface_id'].nunique()} names of "
            f"{run.label}, such as {shown(names['surface_id'].iloc[0])}; count the names of the "
            "same questions (`count names --data`)"
        )
    _check_version(run, names, counts)
    shared_columns = [column for column in shared if column != "template"]
    scored = surface_accuracy(
        names, instance="surface_id", score="is_right", keep=shared_columns, missing="drop"
    )
    columns = [column for column in counts.columns if column not in {*shared_columns, "measure"}]
    joined = scored.merge(counts[columns], on="surface_id", how="left")
    titles = {
        surface_id(*pair)
        for pair in zip(run.outcomes["item"], run.outcomes["first_surface"], strict=True)
    }
    return joined.assign(model=run.label, is_canonical=joined["surface_id"].isin(titles))


def _check_version(run: Run, names: pd.DataFrame, counts: pd.DataFrame) -> None:
    """Reject counts in which a fact has another entity, and warn of names without a count."""
    by_id = names.drop_duplicates("surface_id").set_index("surface_id")
    lacking = by_id.index[~by_id.index.isin(counts["surface_id"])]
    if len(lacking):
        warnings.warn(
            f"{run.label}: {len(lacking)} of {len(by_id)} names have no count, such as "
            f"{shown(lacking[0])}, and are excluded. The counts may be of another version of the "
            "questions: count those of this run",
            SurfaceConsistencyWarning,
            stacklevel=4,
        )
    if "subject_id" not in counts or "subject_id" not in run.outcomes:
        return
    counted = counts.drop_duplicates("item").set_index("item")["subject_id"]
    subjects = run.outcomes.drop_duplicates("item").set_index("item")["subject_id"].dropna()
    both = pd.concat([subjects, counted], axis=1, join="inner", keys=["run", "counted"]).dropna()
    # An entity without an item is counted under its name.
    both = both[~both["counted"].str.startswith("name:")]
    other = both.index[both["run"] != both["counted"]]
    if len(other):
        run_id, counted_id = both.loc[other[0]]
        raise DataError(
            f"the counts are of another version of the questions of {run.label}: "
            f"{len(other)} facts are about another entity, such as {shown(other[0])} about "
            f"{run_id} in the run and {counted_id} in the counts; count the names of the questions "
            "of this run"
        )


def _is_known(frame: pd.DataFrame, column: str) -> bool:
    """Return whether any instance has a value of the column."""
    return column in frame and bool(frame[column].notna().any())


def _wide(
    rows: pd.DataFrame, statistics: Sequence[str], keys: Sequence[str] = _KEYS
) -> pd.DataFrame:
    """Reshape the statistics to one row per subset."""
    chosen = rows[rows["statistic"].isin(statistics)]
    parts = []
    for statistic in statistics:
        of_it = chosen[chosen["statistic"] == statistic].set_index(list(keys))
        values = of_it[[c for c in _VALUES if c in of_it]]
        values.columns = [f"{statistic}_{c}".replace("_estimate", "") for c in values.columns]
        parts.append(values)
    counts = chosen.drop_duplicates([*keys]).set_index(list(keys))[_COUNTS]
    return pd.concat([counts, *parts], axis=1).reset_index()


_VALUES: Final = ("estimate", "estimate_low", "estimate_high", "p_value", "p_value_independent")


def _described(name: str, frame: pd.DataFrame, settings: FrequencySettings | None = None) -> Table:
    """Describe a table; the label of frequent redirects contains their threshold."""
    above = "" if settings is None else f"redirects above {settings.above:g}"
    subsets = _SUBSETS | ({"redirect_high_frequency": above} if above else {})
    return _TEXTS.table(name, frame, labels=_LABELS | {"subset": subsets})


def _variants(frame: pd.DataFrame, options: Mapping[str, Any]) -> Table:
    """Compute variants of the partial correlations: other names, with zeros, given the pair."""
    parts = []
    for transform in ("log", "log1p"):
        for control in ("", "pair_documents"):
            if control and not _is_known(frame, control):
                continue
            rows = frequency_analysis(
                frame,
                others_frequency="others_frequency",
                controls=[control] if control else [],
                transform=transform,
                **options,
            )
            for first in _FIRSTS:
                names = [f"{first}_given_surface", f"surface_given_{first}"]
                wide = _wide(rows, names)
                wide.columns = [
                    c.replace(names[0], "first_given_surface").replace(
                        names[1], "surface_given_first"
                    )
                    for c in wide.columns
                ]
                parts.append(wide.assign(transform=transform, first=first, held=control))
    made = pd.concat(parts, ignore_index=True)
    lead = [*_KEYS, "transform", "first", "held"]
    made = made[[*lead, *(c for c in made.columns if c not in lead)]]
    order = {name: place for place, name in enumerate(dict.fromkeys(made["model"]))}
    made = made.sort_values(
        ["model", "subset"],
        key=lambda c: c.map(order if c.name == "model" else {s: k for k, s in enumerate(_SUBSETS)}),
        kind="stable",
    ).reset_index(drop=True)
    return _described("frequency_others", made)


def _pageviews(frame: pd.DataFrame, options: Mapping[str, Any]) -> Table:
    """Correlate accuracy with pageviews, which need no corpus, and with the counted frequencies."""
    rows = frequency_analysis(frame, controls="pageviews", **options)
    names = ["pageviews", "entity", "pageviews_given_frequencies"]
    return _described("frequency_pageviews", _wide(rows, names))


def _curves(bins: pd.DataFrame, place: Mapping[str, int]) -> Iterator[Lines]:
    """Draw accuracy by frequency, one figure per subset and frequency."""
    for subset in ("overall", "canonical", "redirect"):
        for kind, title in (("entity", "the entity"), ("surface", "this name")):
            chosen = bins[(bins["subset"] == subset) & (bins["frequency"] == kind)]
            series = [
                Series(label=model, model=place[model], points=[_point(row) for row in points])
                for model in place
                if (points := chosen[chosen["model"] == model].to_dict("records"))
            ]
            if series:
                yield Lines(
                    name=f"frequency-{kind}-{subset}",
                    title=f"Accuracy by the frequency of {title}, {_SUBSETS[subset]}",
                    x_title=f"log10 of how often the corpus names {title}",
                    series=series,
                )


def _point(row: Mapping[Any, Any]) -> Point:
    """Place a bin at the middle of its log frequencies."""
    middle = (np.log10(row["frequency_min"]) + np.log10(row["frequency_max"])) / 2
    return Point(x=round(float(middle), 3), value=interval_value(row, "accuracy"), n=row["n"])
