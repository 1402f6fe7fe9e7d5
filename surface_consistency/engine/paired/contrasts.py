"""Tables of differences: flips minus noise, groups against groups, models against models."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from surface_consistency.engine.design import Design, Report
from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import PAIRED_RATES, adjust_p_values, contrast, contrasts_by
from surface_consistency.report.texts import Texts
from surface_consistency.runs.frames import read_frame
from surface_consistency.runs.loader import Run
from surface_consistency.schemas._record import Record
from surface_consistency.tables.sentences import detectable_note
from surface_consistency.tables.table import Column, Table

TEXTS: Final = Texts("surface_consistency.engine.paired")
"""Captions, notes, checks and method of any paired study."""

COUNTS: Final = ("both", "first_only", "second_only", "neither")
"""Columns of the four cells."""

VERDICTS: Final = ("first_correct", "second_correct")
"""Columns of both verdicts."""

_MOST_GROUPS: Final = 6
"""Maximum number of groups that are compared in pairs."""
_MOST_MODELS: Final = 4
"""Maximum number of models that are compared in pairs."""


class _Correct(Record):
    """A verdict without its reasons."""

    target_id: str
    is_correct: bool | None


def scored_pairs(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Exclude the pairs that lack a verdict.

    Args:
        outcomes: One row per pair.

    Returns:
        The rows with both verdicts.
    """
    return outcomes.dropna(subset=list(VERDICTS))


def label_columns(design: Design, keys: Iterable[str]) -> list[Column]:
    """Describe columns of labels.

    Args:
        design: The design, with the study's wording of the labels.
        keys: Columns of the outcomes, or their names in tables.

    Returns:
        Their descriptions.
    """
    names = [design.shown(key) for key in keys]
    return [
        Column(
            key=name,
            title=name.replace("_", " ").capitalize(),
            labels=design.labels.get(name, {}),
        )
        for name in names
    ]


def contrast_tables(report: Report) -> dict[str, Table]:
    """Compare flips with the noise floor, groups with each other, and models within groups.

    Args:
        report: The runs.

    Returns:
        "above_noise": the flip rate minus that of identical prompts. "contrasts_<grouping>": each
        pair of groups of a grouping of at most six. "contrasts": each pair of models on the pairs
        that both answered, and "models_<grouping>" the same within groups; with more than four
        models, each against the first. Differences are `a` minus `b`, within the same clusters, as
        of `metrics.contrast`; a table without rows is omitted.
    """
    tables = {"above_noise": _above_noise(report)}
    for name, columns in report.design.groupings.items():
        if report.frame[columns[-1]].explode().nunique() <= _MOST_GROUPS:
            tables[f"contrasts_{name}"] = _contrasts(
                report,
                f"Groups against each other, {name.replace('_', ' ')}",
                between=columns[-1],
                within=report.design.keys(*columns[:-1]),
                rates=["flip_rate"],
            )
    tables["contrasts"] = compare_models(report)
    for name, columns in report.design.groupings.items():
        tables[f"models_{name}"] = compare_models(report, name, columns)
    return {name: table for name, table in tables.items() if table is not None}


def compare_models(
    report: Report, name: str = "", columns: Sequence[str] = (), *, is_pooled: bool = False
) -> Table | None:
    """Compare each pair of models on the pairs that both answered.

    Args:
        report: The runs.
        name: Name of a grouping within which they are compared; none by default.
        columns: Its columns.
        is_pooled: Whether all panels are compared together.

    Returns:
        The table; None for a single model, or if no two models share a pair.
    """
    if len(report.runs) < 2:
        return None
    return _contrasts(
        report,
        "Models on the pairs that both answered"
        + (f", {name.replace('_', ' ')}" if name else ", all together" if is_pooled else ""),
        between="model",
        within=[] if is_pooled else report.design.keys(*columns)[1:],
        rates=["flip_rate"] if name else ["flip_rate", "first_accuracy", "accuracy_difference"],
    )


def _contrasts(
    report: Report, caption: str, *, between: str, within: list[str], rates: list[str]
) -> Table | None:
    """Compare each pair of groups of a column within those of others."""
    is_models, design = between == "model", report.design
    scored = scored_pairs(report.frame)
    places = scored["model"].map(report.index).to_numpy(dtype=np.int64)
    if is_models:
        # Labels are sorted by `contrasts_by`; models are compared in the order given.
        scored = scored.assign(model=places)
    reference = 0 if is_models and len(report.runs) > _MOST_MODELS else None
    if scored.empty or (reference is not None and not (places == reference).any()):
        return None
    # Numbers are faster to group than texts.
    names = {report.cluster, "pair_id"} - {*within, between}
    table = contrasts_by(
        scored.assign(**{name: pd.factorize(scored[name])[0] for name in names}),
        between=between,
        within=within,
        reference=reference,
        rate=rates,
        cluster=report.cluster,
        pair_id="pair_id" if is_models else None,
        margin=report.settings.margin,
    )
    if table.empty:
        return None
    if is_models:
        labels = dict(enumerate(report.labels))
        table = table.assign(a=table["a"].map(labels), b=table["b"].map(labels))
    table = table.rename(columns=dict(design.exploded_names))
    key = design.shown(between)
    titles = {} if is_models else design.labels.get(key, {})
    return _described(
        report,
        table,
        caption,
        [
            *label_columns(design, within),
            Column(key="a", title=key.replace("_", " ").capitalize(), labels=titles),
            Column(key="b", title="Compared with", labels=titles),
        ],
        model="model" if "model" in within else None,
    )


def _described(
    report: Report, frame: pd.DataFrame, caption: str, first: list[Column], model: str | None
) -> Table:
    """Describe a table of contrasts, with the test of equivalence if there is a margin."""
    table = TEXTS.table(
        "contrasts",
        frame,
        first,
        titles={"n_clusters": report.clusters.capitalize()},
        labels={"rate": {name: name.replace("_", " ") for name in PAIRED_RATES}},
        model=model,
        cluster_column=None,
        caption=caption,
        detectable=detectable_note(frame, "difference"),
    )
    if (margin := report.settings.margin) is None:
        return table
    unit = f"of {100 * margin:g} points or more"
    test = Column(key="p_equivalent", title="p", kind="p_value", unit=unit)
    return replace(table, columns=[*table.columns, test])


def above_noise_by(report: Report, columns: Sequence[str]) -> pd.Series:
    """Test the flip rate of each group against that of identical prompts.

    Args:
        report: The runs.
        columns: Columns of the outcomes that make the groups, besides model and panel.

    Returns:
        The one-sided p-value of no more flips than by noise, the largest of the strata,
        Holm-corrected over the groups of a model and panel; indexed by model, panel if there is
        one, and labels as tables name them. Empty without a noise floor.
    """
    rows = pd.DataFrame(_noise_contrasts(report, columns))
    if rows.empty:
        return pd.Series(dtype=np.float64)
    names = [report.design.shown(key) for key in report.design.keys(*columns)]
    halves = rows["p_value"] / 2.0
    rows["p_value"] = halves.where(rows["difference"] > 0, 1.0 - halves)
    largest = rows.groupby(names, sort=False)["p_value"].max()
    return largest.groupby(level=names[: -len(columns)], sort=False).transform(
        lambda part: adjust_p_values(part.to_numpy())
    )


def _above_noise(report: Report) -> Table | None:
    """Compare the flip rate of each model and panel with that of identical prompts."""
    frame = pd.DataFrame(_noise_contrasts(report))
    if frame.empty:
        return None
    frame["p_value_holm"] = adjust_p_values(frame["p_value"].to_numpy(dtype=np.float64))
    return _described(
        report,
        frame,
        "Flips between conditions minus flips of identical prompts",
        [
            *label_columns(report.design, report.design.keys()),
            Column(key="noise", title="Repeated prompts"),
        ],
        model="model",
    )


def _noise_contrasts(report: Report, columns: Sequence[str] = ()) -> Iterator[dict[str, object]]:
    """Compare the flips of each model, panel and group with each stratum of the noise."""
    design = report.design
    keys = [*filter(None, (design.facet,)), *columns]
    shown = [design.shown(key) for key in keys]
    for run in report.runs:
        if not (noise := noise_counts(report, run)):
            continue
        scored = scored_pairs(run.outcomes[[*keys, report.cluster, *VERDICTS]])
        for name in columns:
            scored = scored.explode(name)
        groups = scored.groupby(keys, sort=False, dropna=False) if keys else [((), scored)]
        for labels, rows in groups:
            group = dict(zip(shown, map(_label, labels), strict=True))
            for stratum, flips in noise.items():
                is_own = design.facet is None or design.facet != design.stratum
                if len(rows) and (is_own or group[shown[0]] == stratum):
                    compared = against_noise(report, rows, flips)
                    yield {"model": run.label} | group | {"noise": stratum} | compared


def against_noise(
    report: Report, scored: pd.DataFrame, noise: pd.DataFrame, rate: str = "flip_rate"
) -> dict[str, object]:
    """Compare a rate of pairs with the flips of identical prompts, within the same clusters.

    Args:
        report: The runs.
        scored: Outcomes with both verdicts.
        noise: Repeated prompts: cluster, n and n_flips, as of `noise_counts`.
        rate: "flip_rate" or "first_accuracy".

    Returns:
        rate and the numbers of a row of `metrics.contrasts_by`; `b` is the noise.
    """
    clusters = pd.concat([scored[report.cluster].astype(str), noise["cluster"]])
    codes, names = pd.factorize(clusters)
    first, second = (scored[name].to_numpy(dtype=bool) for name in VERDICTS)
    cells = 4 * codes[: len(scored)] + 2 * ~first + ~second
    pairs = np.bincount(cells, minlength=4 * len(names)).reshape(-1, 4)
    n, n_flips = (
        np.bincount(codes[len(scored) :], weights=noise[name], minlength=len(names))
        for name in ("n", "n_flips")
    )
    # A flip counts in the cell that the rate counts: one verdict correct, or both.
    repeated = np.zeros((len(names), 4))
    repeated[:, COUNTS.index("first_only" if rate == "flip_rate" else "both")] = n_flips
    repeated[:, COUNTS.index("neither")] = n - n_flips
    margin = report.settings.margin
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return {"rate": rate} | contrast(pairs, repeated, rate=rate, margin=margin)


def noise_counts(report: Report, run: Run) -> Mapping[str, pd.DataFrame]:
    """Count verdicts and flips of repeated prompts.

    Args:
        report: The runs.
        run: One of them.

    Returns:
        By stratum a frame with cluster, n and n_flips; empty if no prompt was repeated. If the run
        folder lacks the second verdicts, each verdict of its noise floor is a cluster.
    """
    key = ("noise", run.label)
    if key not in report.memo:
        report.memo[key] = _count_noise(report, run)
    counts: Mapping[str, pd.DataFrame] = report.memo[key]
    return counts


def _count_noise(report: Report, run: Run) -> dict[str, pd.DataFrame]:
    """Count what `noise_counts` returns."""
    floor = run.checks.get("noise_floor")
    if floor is None or floor.empty:
        return {}
    stratum = report.design.stratum if report.design.stratum in floor else None
    repeated = _repeated(report, run, stratum)
    if repeated is not None:
        return {str(name): part for name, part in repeated.groupby("stratum", sort=False)}
    counts = {}
    for row in floor.to_dict("records"):
        n, n_flips = int(row["n_repeated"]), int(row["n_verdict_flips"])
        name = "all" if stratum is None else str(row[stratum])
        counts[name] = pd.DataFrame(
            {
                "cluster": [f"\x1f{name}\x1f{place}" for place in range(n)],
                "n": 1.0,
                "n_flips": (np.arange(n) < n_flips).astype(float),
            }
        )
    return counts


def _repeated(report: Report, run: Run, stratum: str | None) -> pd.DataFrame | None:
    """Read the repeated prompts: stratum, cluster, n and n_flips, one row per target."""
    folder = run.folder
    if not (folder.repeat_verdicts.is_file() and folder.verdicts.is_file()):
        return None
    remedy = "judge the run again with `surface-consistency score`"
    first, second = (
        read_frame(path, _Correct, remedy=remedy, only=True)
        for path in (folder.verdicts, folder.repeat_verdicts)
    )
    targets = folder.read_plan()[0]
    wanted = ["target_id", "fact_id", *filter(None, (stratum,))]
    if report.cluster in targets:
        wanted.append(report.cluster)
    both = second.merge(first, on="target_id", suffixes=("_2", "_1")).merge(
        targets[list(dict.fromkeys(wanted))], on="target_id", validate="many_to_one"
    )
    both = both.dropna(subset=["is_correct_1", "is_correct_2"])
    if report.cluster in both:
        clusters = both[report.cluster]
    else:
        of_fact = run.outcomes.drop_duplicates("fact_id").set_index("fact_id")
        clusters = both["fact_id"].map(of_fact[report.cluster])
    flips = both["is_correct_1"].astype(bool) != both["is_correct_2"].astype(bool)
    return pd.DataFrame(
        {
            "stratum": both[stratum].astype(str) if stratum else "all",
            "cluster": clusters.fillna(both["fact_id"]).astype(str),
            "n": 1.0,
            "n_flips": flips.astype(float),
        }
    )


def _label(value: object) -> str:
    """Name a group as tables do."""
    return "none" if pd.isna(value) else str(value)  # type: ignore[call-overload]
