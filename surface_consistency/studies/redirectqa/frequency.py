"""Does accuracy go with how often a corpus names the entity, or with how often by this very name?

Section 4 and appendices B.3 and B.4 of RedirectQA (arXiv 2604.21882), from one's own runs.
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
from surface_consistency.errors import (
    DataError,
    SurfaceConsistencyWarning,
)
from surface_consistency.metrics import (
    corrected_frequency_analysis,
    frequency_analysis,
    frequency_curves,
    surface_accuracy,
)
from surface_consistency.report.page import Block, Check, Lines, Point, Prose, Series
from surface_consistency.report.wording import Wording
from surface_consistency.runs.counts import read_counts
from surface_consistency.runs.loader import Run
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Settings
from surface_consistency.studies.redirectqa.instances import surface_id
from surface_consistency.tables.columns import COLUMNS, catalogue
from surface_consistency.tables.numbers import interval_value
from surface_consistency.tables.table import Column, Table, interval_column
from surface_consistency.tables.tabulation import describe

_WORDING: Final = Wording("surface_consistency.studies.redirectqa")
_KEYS: Final = ["model", "subset"]
_COUNTS: Final = ["n", "n_clusters", "n_zero", "n_below", "n_missing"]
_NEEDED: Final = (
    *("fact_id", "surface_id", "is_canonical", "entity_frequency", "surface_frequency"),
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
_CORRELATIONS: Final = {
    "entity": "Entity",
    "surface": "This name",
    "entity_minus_surface": "Difference",
    "entity_given_surface": "Entity, given this name",
    "surface_given_entity": "This name, given entity",
    "first_given_surface": "First, given this name",
    "surface_given_first": "This name, given first",
    "pageviews": "Pageviews",
    "pageviews_given_frequencies": "Pageviews, given both frequencies",
}
_P_VALUES: Final = {"p_value": "p", "p_value_independent": "p, rows independent"}
_COLUMNS: Final = COLUMNS | catalogue(
    Column(key="subset", title="Names", labels=_SUBSETS),
    Column(key="n", title="Rows", kind="count"),
    Column(key="n_zero", title="Zero", kind="count", on_phones=False),
    Column(key="n_missing", title="No count", kind="count", on_phones=False),
    Column(key="transform", title="Frequency"),
    Column(key="first", title="First", labels=_FIRSTS),
    Column(key="held", title="Held constant", labels={"pair_documents": "pair"}),
    Column(key="frequency", title="Frequency of", labels={"surface": "this name"}),
    Column(key="frequency_min", title="From", kind="number"),
    Column(key="frequency_max", title="To", kind="number"),
    interval_column("accuracy", "Right", "rate", "%"),
    *(interval_column(key, title, "number") for key, title in _CORRELATIONS.items()),
    *(
        Column(key=f"{key}_{name}", title=title, kind="p_value", on_phones=False)
        for key in _CORRELATIONS
        for name, title in _P_VALUES.items()
    ),
    *(
        Column(key=f"{key}_plain", title=f"{_CORRELATIONS[key]}: as counted", kind="number")
        for key in _PARTIAL
    ),
    Column(key="entity_given_surface_reliability", title="Reliability, entity", kind="number"),
    Column(key="surface_given_entity_reliability", title="Reliability, this name", kind="number"),
)


class FrequencySettings(Settings):
    """Which counts are held against the answers."""

    frequencies: Items[Path] = Field(min_length=1, max_length=2)
    """Folder of `count mentions` or `count pairs`, or a Parquet file with the columns of its
    instances.parquet; give the option again for a second measurement, with which errors of counting
    are taken out."""

    measure: Items[str] = Field(default=("longest",), min_length=1, max_length=2)
    """Which count is taken, of those in the column `measure`; give the option again where the
    second measurement is another one."""

    bins: int = Field(default=20, ge=1)
    """Bins of about equally many names in the curves."""

    above: float = Field(default=10.0, ge=0)
    """Frequency of the name that frequent redirects exceed."""


class FrequencyAnalysis(Analysis):
    """Accuracy against how often a corpus names the entity and the asked name."""

    name = "frequency"
    title = "Frequency and accuracy"
    settings = FrequencySettings
    studies = ("redirectqa",)
    caveat = (
        "Counts of strings are no counts of mentions: what is spelled alike counts whoever is "
        "meant. A partial correlation holds constant what was counted; errors of counting alone "
        "let the entity seem to matter beyond the name."
    )
    figure_only = ("frequency_bins",)

    def tables(self, report: Report, settings: FrequencySettings) -> Mapping[str, Table]:
        """Correlate the accuracy of each fact under each name with how often a corpus holds them.

        Returns:
            "frequency_correlations" (tables 5 and 6 of the paper and its Steiger tests),
            "frequency_partial" (tables 2 and 6), "frequency_others" (the other names in the
            entity's place, zeros kept, pairs held constant) and "frequency_bins" (figure 3), one
            row a model and subset (and variant, or bin); "frequency_pageviews" where the counts
            have pageviews, and "frequency_corrected" with a second measurement. Correlations are in
            [-1, 1], intervals and `p_value` take the report's clusters whole and agree,
            `p_value_independent` takes rows for independent, as the paper does.

        Raises:
            DataError: If the counts cannot be read, lack the measure, or are of other questions.
            ColumnNotFoundError: If a file of counts lacks a column.
        """
        counts = _measurements(settings)
        joined = [_joined(run, counts[0], report.cluster) for run in report.runs]
        frame = pd.concat(joined, ignore_index=True)
        options: dict[str, Any] = {
            "by": "model",
            "cluster": report.cluster,
            "high_frequency_above": settings.above,
        }
        rows = frequency_analysis(frame, **options)
        made = {
            "frequency_correlations": _correlations(rows, settings),
            "frequency_partial": _partial(rows, settings),
            "frequency_others": _variants(frame, options),
            "frequency_bins": _bins(frame, options, settings.bins),
        }
        if _is_known(frame, "pageviews"):
            made["frequency_pageviews"] = _pageviews(frame, options)
        if len(counts) > 1:
            second = counts[1].add_suffix("_2").rename(columns={"surface_id_2": "surface_id"})
            names = ["entity_frequency_2", "surface_frequency_2"]
            both = frame.merge(second[["surface_id", *names]], on="surface_id", how="left")
            made["frequency_corrected"] = _corrected(both, options, settings)
        return made

    def figures(self, report: Report, tables: Mapping[str, Table]) -> Iterator[Block]:
        """Say what is shown, and draw the paper's figure 3; see `Analysis.figures`."""
        rows = tables["frequency_partial"].frame.to_dict("records")
        if parts := _WORDING.sentence("frequency", rows=rows):
            yield Prose(parts=parts)
        yield from _curves(tables["frequency_bins"].frame, report.index)

    def checks(self, report: Report, tables: Mapping[str, Table]) -> list[Check]:
        """Say where most names have no logarithm; see `Analysis.checks`.

        Args:
            report: The runs.
            tables: The tables.

        Returns:
            A check where half of the names of a run or more were counted 0 times.
        """
        rows = tables["frequency_correlations"].frame
        rows = rows[rows["subset"] == "overall"]
        counted = [
            (row, row["n"] + row["n_zero"] + row["n_below"]) for row in rows.to_dict("records")
        ]
        mostly = [(row, n) for row, n in counted if n and 2 * row["n_zero"] >= n]
        return _WORDING.checks("uncounted", rows=mostly)


def _measurements(settings: FrequencySettings) -> list[pd.DataFrame]:
    """Read one or two measurements of the same surface instances."""
    files, measures = list(settings.frequencies), list(settings.measure)
    n_measured = max(len(files), len(measures))
    pairs = [(files[min(k, len(files) - 1)], measures[min(k, len(measures) - 1)]) for k in (0, 1)]
    pairs = pairs[:n_measured]
    if n_measured == 2 and pairs[0] == pairs[1]:
        raise DataError(
            f"--frequencies names {files[0]} twice; a second measurement has errors of its own: "
            "count another half of the corpus, or in another way"
        )
    if n_measured == 2 and files[0] == files[-1] and {*measures} == {"longest", "bounded"}:
        raise DataError(
            "--measure longest and bounded find the same strings, so they have their errors in "
            "common and correct nothing; give a second --frequencies"
        )
    return [_read(path, measure) for path, measure in pairs]


def _read(path: Path, measure: str) -> pd.DataFrame:
    """Read the frequencies of surface instances, one row an instance."""
    place, rows = read_counts(
        path,
        "instances.parquet",
        needed=_NEEDED,
        what="instances",
        uncounted="--frequencies takes a folder of `count`, or a Parquet file of instances",
        unmerged="count the names of the questions with --data, and `count merge` where shards "
        "were counted apart",
    )
    held = rows[rows["measure"] == measure]
    if held.empty:
        known = ", ".join(sorted(rows["measure"].astype(str).unique())) or "no rows"
        raise DataError(f"{place} holds no counts of --measure {measure}; it holds {known}")
    repeated = held["surface_id"].duplicated()
    if repeated.any():
        raise DataError(
            f"{place} holds {held.loc[repeated, 'surface_id'].iloc[0]!r} twice under measure "
            f"{measure!r}; give each instance one row"
        )
    return held.assign(others_frequency=held["entity_frequency"] - held["surface_frequency"])


def _joined(run: Run, counts: pd.DataFrame, cluster: str) -> pd.DataFrame:
    """Put the accuracy of each surface instance of a run beside its frequencies."""
    shared = ["fact_id", "template", *dict.fromkeys(c for c in (cluster,) if c != "fact_id")]
    sides = [
        run.outcomes[shared].assign(
            surface=run.outcomes[f"{side}_surface"], is_right=run.outcomes[f"{side}_correct"]
        )
        for side in ("first", "second")
    ]
    names = pd.concat(sides, ignore_index=True)
    named = zip(names["fact_id"], names.pop("surface"), strict=True)
    names["surface_id"] = [surface_id(fact, surface) for fact, surface in named]
    names = names.drop_duplicates(["surface_id", "template"])
    known = names["surface_id"].isin(counts["surface_id"])
    if not known.any():
        raise DataError(
            f"the counts hold none of the {names['surface_id'].nunique()} names of {run.label}, "
            f"such as {names['surface_id'].iloc[0]!r}; count the names of the same questions "
            "(`count mentions --data`)"
        )
    _check_version(run, names, counts)
    shared_columns = [column for column in shared if column != "template"]
    scored = surface_accuracy(
        names, instance="surface_id", correct="is_right", keep=shared_columns, missing="drop"
    )
    columns = [column for column in counts.columns if column not in {*shared_columns, "measure"}]
    joined = scored.merge(counts[columns], on="surface_id", how="left")
    titles = {
        surface_id(*pair)
        for pair in zip(run.outcomes["fact_id"], run.outcomes["first_surface"], strict=True)
    }
    return joined.assign(model=run.label, is_canonical=joined["surface_id"].isin(titles))


def _check_version(run: Run, names: pd.DataFrame, counts: pd.DataFrame) -> None:
    """Refuse counts in which a fact is about another entity, and tell of names without a count."""
    by_id = names.drop_duplicates("surface_id").set_index("surface_id")
    lacking = by_id.index[~by_id.index.isin(counts["surface_id"])]
    if len(lacking):
        warnings.warn(
            f"{run.label}: {len(lacking)} of {len(by_id)} asked names have no count, such as "
            f"{lacking[0]!r}; they are left out. The counts may be of another version of the "
            "questions: count those of this run",
            SurfaceConsistencyWarning,
            stacklevel=4,
        )
    if "subject_id" not in counts or "subject_id" not in run.outcomes:
        return
    counted = counts.drop_duplicates("fact_id").set_index("fact_id")["subject_id"]
    subjects = run.outcomes.drop_duplicates("fact_id").set_index("fact_id")["subject_id"].dropna()
    both = pd.concat([subjects, counted], axis=1, join="inner", keys=["asked", "counted"]).dropna()
    # An entity without an item is counted under its name.
    both = both[~both["counted"].str.startswith("name:")]
    other = both.index[both["asked"] != both["counted"]]
    if len(other):
        asked_id, counted_id = both.loc[other[0]]
        raise DataError(
            f"the counts are of another version of the questions of {run.label}: "
            f"{len(other)} facts are about another entity, such as {other[0]!r} about {asked_id} "
            f"there and {counted_id} in the counts; count the names of the run's own questions"
        )


def _is_known(frame: pd.DataFrame, column: str) -> bool:
    """Tell whether any instance has a further frequency."""
    return column in frame and bool(frame[column].notna().any())


def _wide(
    rows: pd.DataFrame, statistics: Sequence[str], keys: Sequence[str] = _KEYS
) -> pd.DataFrame:
    """Put the statistics of a subset side by side."""
    chosen = rows[rows["statistic"].isin(statistics)]
    parts = []
    for statistic in statistics:
        of_it = chosen[chosen["statistic"] == statistic].set_index(list(keys))
        values = of_it[[c for c in _VALUES if c in of_it]]
        values.columns = [f"{statistic}_{c}".replace("_estimate", "") for c in values.columns]
        parts.append(values)
    counts = chosen.drop_duplicates([*keys]).set_index(list(keys))[_COUNTS]
    return pd.concat([counts, *parts], axis=1).reset_index()


_VALUES: Final = (
    *("estimate", "estimate_low", "estimate_high", "p_value", "p_value_independent"),
    *("plain", "reliability"),
)


def _columns(settings: FrequencySettings) -> dict[str, Column]:
    """Word the frequent redirects with what they exceed."""
    names = _SUBSETS | {"redirect_high_frequency": f"redirects above {settings.above:g}"}
    return _COLUMNS | catalogue(Column(key="subset", title="Names", labels=names))


def _correlations(rows: pd.DataFrame, settings: FrequencySettings) -> Table:
    """Make the paper's table 5, with its Steiger tests."""
    return describe(
        _wide(rows, ["entity", "surface", "entity_minus_surface"]),
        "Correlation of accuracy with the log frequency of the entity and of this name",
        "model subset n n_zero n_missing entity entity_p_value surface surface_p_value "
        "entity_minus_surface entity_minus_surface_p_value "
        "entity_minus_surface_p_value_independent",
        _columns(settings),
        note="Rows without a logarithm are left out (zero). p is of the interval before it, by "
        "clusters; with rows independent, as in the paper, that of Steiger’s test.",
        cluster_column="n_clusters",
    )


def _partial(rows: pd.DataFrame, settings: FrequencySettings) -> Table:
    """Make the paper's tables 2 and 6."""
    return describe(
        _wide(rows, _PARTIAL),
        "Partial correlation of accuracy with either log frequency, given the other",
        ["model subset n", *(f"{k} {k}_p_value {k}_p_value_independent" for k in _PARTIAL)],
        _columns(settings),
        note="p is of the interval before it, by clusters. The paper takes rows for independent; "
        "its stars are p < 0.01.",
        cluster_column="n_clusters",
    )


def _variants(frame: pd.DataFrame, options: Mapping[str, Any]) -> Table:
    """Make the partial correlations anew: of other names, with zeros, given the pair."""
    parts = []
    for transform in ("log", "log1p"):
        for held in ("", "pair_documents"):
            if held and not _is_known(frame, held):
                continue
            rows = frequency_analysis(
                frame,
                others_frequency="others_frequency",
                controls=[held] if held else [],
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
                parts.append(wide.assign(transform=transform, first=first, held=held))
    made = pd.concat(parts, ignore_index=True)
    lead = [*_KEYS, "transform", "first", "held"]
    made = made[[*lead, *(c for c in made.columns if c not in lead)]]
    order = {name: place for place, name in enumerate(dict.fromkeys(made["model"]))}
    made = made.sort_values(
        ["model", "subset"],
        key=lambda c: c.map(order if c.name == "model" else {s: k for k, s in enumerate(_SUBSETS)}),
        kind="stable",
    ).reset_index(drop=True)
    return describe(
        made,
        "The same of the entity’s other names, with zeros kept, and given how often subject and "
        "object stand together",
        "model subset transform first held n n_zero n_missing first_given_surface "
        "first_given_surface_p_value surface_given_first surface_given_first_p_value",
        _COLUMNS,
        note="Other names: mentions of the entity less those under this name, which the "
        "entity’s frequency holds. log leaves zeros out; log1p, of 1 + frequency, keeps them. Zero "
        "counts the rows that have one.",
        cluster_column="n_clusters",
    )


def _pageviews(frame: pd.DataFrame, options: Mapping[str, Any]) -> Table:
    """Hold pageviews, which need no corpus, against what was counted."""
    rows = frequency_analysis(frame, controls="pageviews", **options)
    names = ["pageviews", "entity", "pageviews_given_frequencies"]
    return describe(
        _wide(rows, names),
        "Pageviews of the subject’s article in place of its frequency",
        ["model subset n n_zero n_missing", *(f"{name} {name}_p_value" for name in names)],
        _COLUMNS,
        note="On the rows whose three frequencies are known and above zero.",
        cluster_column="n_clusters",
    )


def _corrected(
    frame: pd.DataFrame, options: Mapping[str, Any], settings: FrequencySettings
) -> Table:
    """Take errors of counting out, by two measurements."""
    rows = corrected_frequency_analysis(
        frame,
        entity_frequency=("entity_frequency", "entity_frequency_2"),
        surface_frequency=("surface_frequency", "surface_frequency_2"),
        **options,
    )
    shown = [f"{name}_plain {name} {name}_p_value {name}_reliability" for name in _PARTIAL]
    return describe(
        _wide(rows, _PARTIAL),
        "Partial correlations with errors of counting taken out",
        ["model subset n", *shown],
        _columns(settings),
        titles=dict.fromkeys(_PARTIAL, "corrected"),
        note="By two measurements; what both get wrong alike stays in. Halves of one corpus "
        "correct for sampling only.",
        cluster_column="n_clusters",
    )


def _bins(frame: pd.DataFrame, options: Mapping[str, Any], n_bins: int) -> Table:
    """Make the points of the paper's figure 3."""
    return describe(
        frequency_curves(frame, n_bins=n_bins, **options),
        "Accuracy by frequency",
        "model subset frequency frequency_min frequency_max n accuracy",
        _COLUMNS,
        cluster_column="n_clusters",
    )


def _curves(bins: pd.DataFrame, place: Mapping[str, int]) -> Iterator[Lines]:
    """Draw accuracy over frequency, a figure a subset and frequency."""
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
    """Place a bin at the middle of its frequencies, by the logarithm."""
    middle = (np.log10(row["frequency_min"]) + np.log10(row["frequency_max"])) / 2
    return Point(x=round(float(middle), 3), value=interval_value(row, "accuracy"), n=row["n"])
