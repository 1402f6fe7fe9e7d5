"""Tables of any paired study: rates of two correctness labels per fact, and their differences.

Differences are between flips and noise, between groups, and between models.
"""

import functools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from surface_consistency import metrics
from surface_consistency.engine.design import Design, Report
from surface_consistency.engine.paired.answers import answer_agreement
from surface_consistency.engine.plan import check_target_columns
from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.matching.rules import rule_in_file
from surface_consistency.metrics.paired.effect_sizes import kappa_of_counts
from surface_consistency.report.texts import Texts
from surface_consistency.runs.frames import read_frame
from surface_consistency.runs.loader import Run
from surface_consistency.runs.processes import map_processes
from surface_consistency.schemas._record import Record
from surface_consistency.tables.columns import COLUMNS
from surface_consistency.tables.numbers import is_missing
from surface_consistency.tables.sentences import detectable_difference, detectable_note
from surface_consistency.tables.table import Column, Table
from surface_consistency.tables.tabulation import describe

TEXTS: Final = Texts("surface_consistency.engine.paired")
"""Captions, notes, checks and method of any paired study."""

COUNTS: Final = ("both", "first_only", "second_only", "neither")
"""Columns of the four cells."""

VERDICTS: Final = ("first_correct", "second_correct")
"""Columns of both correctness labels."""

_MOST_GROUPS: Final = 6
"""Maximum number of groups that are compared in pairs."""
_MOST_MODELS: Final = 4
"""Maximum number of models that are compared in pairs."""


class _Correct(Record):
    """A correctness label without its reasons."""

    target_id: str
    correct: bool | None


def scored_pairs(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Exclude the pairs that lack a correctness label.

    Args:
        outcomes: One row per pair.

    Returns:
        The rows with both labels.
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
            key=name, title=name.replace("_", " ").capitalize(), labels=design.labels.get(name, {})
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
                f"Comparison of groups, {name.replace('_', ' ')}",
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
    names = {report.cluster, "pair"} - {*within, between}
    table = metrics.contrasts_by(
        scored.assign(**{name: pd.factorize(scored[name])[0] for name in names}),
        between=between,
        within=within,
        reference=reference,
        rate=rates,
        cluster=report.cluster,
        pair="pair" if is_models else None,
        margin=report.settings.margin,
        confidence=report.settings.confidence,
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
        labels={"rate": {name: name.replace("_", " ") for name in metrics.PAIRED_RATES}},
        model=model,
        cluster_column=None,
        caption=caption,
        detectable=detectable_note(frame, "difference", confidence=report.settings.confidence),
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
        columns: Columns of the outcomes that make the groups, in addition to model and panel.

    Returns:
        One-sided p-values of the null hypothesis that flips are not more frequent than by noise,
        Holm-corrected over the groups of a model and panel. Each is the maximum over the strata,
        and NaN if a stratum has no test. The index is the model, the panel if there is one, and
        labels as tables name them. Empty without a noise floor.
    """
    rows = pd.DataFrame(_noise_contrasts(report, columns))
    if rows.empty:
        return pd.Series(dtype=np.float64)
    names = [report.design.shown(key) for key in report.design.keys(*columns)]
    halves = rows["p_value"] / 2.0
    rows["p_value"] = halves.where(rows["difference"] > 0, 1.0 - halves)
    largest = rows.groupby(names, sort=False)["p_value"].agg(lambda part: part.max(skipna=False))
    return largest.groupby(level=names[: -len(columns)], sort=False).transform(
        lambda part: metrics.adjust_p_values(part.to_numpy())
    )


def _above_noise(report: Report) -> Table | None:
    """Compare the flip rate of each model and panel with that of identical prompts."""
    frame = pd.DataFrame(_noise_contrasts(report))
    if frame.empty:
        return None
    frame["p_value_holm"] = metrics.adjust_p_values(frame["p_value"].to_numpy(dtype=np.float64))
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
        scored: Outcomes with both correctness labels.
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
    # A flip counts in the cell that the rate counts: one label is 1, or both.
    repeated = np.zeros((len(names), 4))
    repeated[:, COUNTS.index("first_only" if rate == "flip_rate" else "both")] = n_flips
    repeated[:, COUNTS.index("neither")] = n - n_flips
    margin, level = report.settings.margin, report.settings.confidence
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        row = metrics.contrast(pairs, repeated, rate=rate, margin=margin, confidence=level)
    return {"rate": rate} | row


def noise_counts(report: Report, run: Run) -> Mapping[str, pd.DataFrame]:
    """Count correctness labels and flips of repeated prompts.

    Args:
        report: The runs.
        run: One of them.

    Returns:
        By stratum a frame with cluster, n and n_flips; empty if no prompt was repeated. Those of
        several samples per prompt, if there are any, are the flips between two samples. If the run
        folder lacks the second labels, each label of its noise floor is a cluster.
    """
    key = ("noise", run.label)
    if key not in report.memo:
        report.memo[key] = _count_noise(report, run)
    counts: Mapping[str, pd.DataFrame] = report.memo[key]
    return counts


def _count_noise(report: Report, run: Run) -> dict[str, pd.DataFrame]:
    """Compute the counts of `noise_counts`."""
    has_samples = "sample" in run.outcomes and run.outcomes["sample"].nunique() > 1
    if has_samples and len(sampled := _sampled(report, run)):
        return {"samples": sampled}
    floor = run.checks.get("noise_floor")
    if floor is None or floor.empty:
        return {}
    stratum = report.design.stratum if report.design.stratum in floor else None
    repeated = _repeated(report, run, stratum)
    if repeated is not None:
        return {str(name): part for name, part in repeated.groupby("stratum", sort=False)}
    by_stratum = {}
    for row in floor.to_dict("records"):
        n, n_flips = int(row["n_repeated"]), int(row["n_verdict_flips"])
        name = "all" if stratum is None else str(row[stratum])
        by_stratum[name] = pd.DataFrame(
            {
                "cluster": [f"\x1f{name}\x1f{place}" for place in range(n)],
                "n": 1.0,
                "n_flips": (np.arange(n) < n_flips).astype(float),
            }
        )
    return by_stratum


def _sampled(report: Report, run: Run) -> pd.DataFrame:
    """Count flips between two samples of a prompt, drawn without replacement; one row each."""
    prompt = [*dict.fromkeys(("item", report.cluster)), "condition"]
    sides = []
    for side in ("first", "second"):
        names = {f"{side}_{name}": name for name in ("condition", "correct")}
        sides.append(run.outcomes[[*prompt[:-1], "sample", *names]].rename(columns=names))
    # An item has its reference form in each of its pairs.
    answers = pd.concat(sides).dropna(subset="correct").drop_duplicates([*prompt, "sample"])
    of_prompts = answers.astype({"correct": float}).groupby(prompt, sort=False)["correct"]
    n, n_right = of_prompts.size(), of_prompts.sum()
    flips = (2.0 * n_right * (n - n_right) / (n * (n - 1.0)))[n > 1].rename("n_flips").reset_index()
    return flips[["n_flips"]].assign(cluster=flips[report.cluster].astype(str), n=1.0)


def _repeated(report: Report, run: Run, stratum: str | None) -> pd.DataFrame | None:
    """Read the repeated prompts: stratum, cluster, n and n_flips, one row per target."""
    folder = run.folder
    if not (folder.repeat_verdicts.is_file() and folder.verdicts.is_file()):
        return None
    remedy = "score the run again with `surface-consistency score`"
    first, second = (
        read_frame(path, _Correct, remedy=remedy, only=True)
        for path in (folder.verdicts, folder.repeat_verdicts)
    )
    targets = folder.read_plan()[0]
    check_target_columns(targets, report.design, str(folder.targets))
    wanted = ["target_id", "item", *filter(None, (stratum,))]
    if report.cluster in targets:
        wanted.append(report.cluster)
    both = second.merge(first, on="target_id", suffixes=("_2", "_1")).merge(
        targets[list(dict.fromkeys(wanted))], on="target_id", validate="many_to_one"
    )
    both = both.dropna(subset=["correct_1", "correct_2"])
    if report.cluster in both:
        clusters = both[report.cluster]
    else:
        of_fact = run.outcomes.drop_duplicates("item").set_index("item")
        clusters = both["item"].map(of_fact[report.cluster])
    flips = both["correct_1"].astype(bool) != both["correct_2"].astype(bool)
    return pd.DataFrame(
        {
            "stratum": both[stratum].astype(str) if stratum else "all",
            "cluster": clusters.fillna(both["item"]).astype(str),
            "n": 1.0,
            "n_flips": flips.astype(float),
        }
    )


def _label(value: object) -> str:
    """Name a group as tables do."""
    return "none" if pd.isna(value) else str(value)  # type: ignore[call-overload]


TEST_NAMES: Final[Mapping[str, str]] = {
    "t": "t, clustered",
    "obuchowski": "Obuchowski",
    "durkalski": "Durkalski",
    "exact": "McNemar, exact",
    "corrected": "McNemar, corrected",
}
"""Names of tests in tables."""

_FEW_ROWS: Final = 50_000
"""Number of pairs below which further processes do not save time."""
_GENERALISED: Final = ("flip_rate", "accuracy_difference")
"""Rates whose intervals are computed for each kind of cluster."""
_LOW_ACCURACY: Final = 0.05

Rates = Callable[[Report, list[str], bool], pd.DataFrame]
"""Computes the rates of the groups of some columns, optionally with kappa."""


def is_hardly_right(row: Mapping[Any, Any]) -> bool:
    """Return whether so few answers are correct that pairs agree mostly in being incorrect.

    Args:
        row: A row of `metrics.paired_by`.

    Returns:
        Whether both accuracies are below 5 %; False for a row without pairs.
    """
    return bool(row["n"]) and max(row["first_accuracy"], row["second_accuracy"]) < _LOW_ACCURACY


def table_of_runs(
    runs: Sequence[Run], caption: str, tables: Mapping[str, pd.DataFrame | None]
) -> Table:
    """Concatenate one table of each run; columns are described only by their types.

    Args:
        runs: The runs.
        caption: Heading of the table.
        tables: A table by the run's label; None if there is none.

    Returns:
        The rows with the column `model` first. A table that names models itself keeps its names,
        except for the name of the run, which becomes its label. If the catalogue describes all
        numbers with decimals, they have its units and intervals; else they are fractions.
    """
    parts = []
    for run in runs:
        table = tables.get(run.label)
        if table is None:
            continue
        labels = [run.label] * len(table)
        if "model" in table:
            labels = [run.label if m == run.manifest.model else m for m in table["model"]]
        rest = table.drop(columns="model", errors="ignore")
        rest.insert(0, "model", pd.Series(labels, index=rest.index, dtype="object"))
        parts.append(rest)
    frame = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    kinds: Mapping[str, Literal["count", "number"]] = {"i": "count", "u": "count", "f": "number"}
    floats = [str(name) for name in frame.columns if frame[name].dtype.kind == "f"]
    bounds = {name for name in floats if {re.sub("_(low|high)$", "", name)} & {*floats} - {name}}
    is_known = all(name in COLUMNS for name in floats if name not in bounds)
    columns: list[str | Column] = []
    for name in map(str, frame.columns):
        title = name.removeprefix("n_").replace("_", " ").replace("verdict", "label")
        kind = kinds.get(frame[name].dtype.kind)
        if not (is_known and name in floats):
            title = title[:1].upper() + title[1:] if title != "n" else title
            columns.append(Column(key=name, title=title, kind=kind or "label"))
        elif name not in bounds:
            columns.append(name)
    return describe(frame, caption, columns, cluster_column=None)


def with_detectable(
    table: pd.DataFrame, name: str = "accuracy_difference", *, confidence: float = 0.95
) -> pd.DataFrame:
    """Add the minimum detectable difference of each row.

    Args:
        table: A table with the bounds of a difference.
        name: The difference.
        confidence: Level of the bounds.

    Returns:
        The table with `detectable_difference`: the true difference that the test finds with a
        probability of 80 %; NaN without an interval.
    """
    low, high = (table[f"{name}_{end}"] for end in ("low", "high"))
    return table.assign(detectable_difference=detectable_difference(low, high, confidence))


def paired_tables(
    report: Report,
    *,
    rates: Rates | None = None,
    texts: Texts = TEXTS,
    answers: Mapping[str, Table] | None = None,
) -> dict[str, Table]:
    """Compute the tables of any paired study.

    Args:
        report: The runs.
        rates: Computes the rates of groups; `paired_rates` by default.
        texts: Texts whose entries "overall" and "group" describe the tables of rates.
        answers: Tables of pairs with the same answer, of `same_answers`; made by default.

    Returns:
        Tables by name. "overall" and one table per grouping have the columns of
        `metrics.paired_by` and detectable_difference (`with_detectable`). "overall" also has kappa
        with its interval and odds_ratio (first_only / second_only), the groupings have
        p_value_holm, Holm-corrected over the groups of a model. Also "same_answer", the tables of
        `contrast_tables`, and "generalisation" if the study has several clusters.
    """
    rates = rates or paired_rates
    tables = {"overall": _overall(report, rates, texts)}
    for name, columns in report.design.groupings.items():
        tables[name] = _grouped(report, name, columns, rates, texts)
    same = same_answers(report) if answers is None else answers
    return tables | _generalisation(report) | contrast_tables(report) | dict(same)


def score_table(
    report: Report,
    entry: str,
    frame: pd.DataFrame,
    labels: Sequence[Column | str],
    *,
    texts: Texts = TEXTS,
    name: str = "",
) -> Table:
    """Describe a table of rates of pairs.

    Args:
        report: The runs, for the names of conditions and clusters.
        entry: Entry of `texts`: "overall", or "group" with Holm-corrected p-values.
        frame: The numbers.
        labels: Columns before the numbers.
        texts: Texts with these entries.
        name: Name of the grouping, for the caption of "group".

    Returns:
        The table.
    """
    first, second = (name[:1].upper() + name[1:] for name in report.design.conditions)
    table = texts.table(
        entry,
        frame,
        labels,
        titles={"n_clusters": report.clusters.capitalize()},
        labels={"test": TEST_NAMES},
        detectable=detectable_note(frame, confidence=report.settings.confidence),
        name=name,
    )
    titles = {COLUMNS["first_accuracy"].title: first, COLUMNS["second_accuracy"].title: second}
    columns = [replace(one, title=titles.get(one.title, one.title)) for one in table.columns]
    return replace(table, columns=columns)


def _overall(report: Report, rates: Rates, texts: Texts = TEXTS) -> Table:
    """Compute the rates of all pairs, by model and panel."""
    keys = report.design.keys()
    frame = rates(report, keys, True)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = frame["first_only"].to_numpy(float) / frame["second_only"].to_numpy(float)
    frame = frame.assign(odds_ratio=odds)
    return score_table(report, "overall", frame, label_columns(report.design, keys), texts=texts)


def _grouped(
    report: Report, name: str, columns: Sequence[str], rates: Rates, texts: Texts
) -> Table:
    """Compute the rates of groups of pairs."""
    keys = report.design.keys(*columns)
    frame = rates(report, keys, False)
    labels = [report.design.shown(key) for key in keys]
    heads = labels[: len(keys) - len(columns)]
    adjusted = np.full(len(frame), np.nan)
    for places in frame.reset_index(drop=True).groupby(heads, sort=False).indices.values():
        adjusted[places] = metrics.adjust_p_values(frame["p_value"].to_numpy()[places])
    frame = frame.assign(p_value_holm=adjusted)
    above = above_noise_by(report, columns)
    if len(above):
        places = pd.MultiIndex.from_frame(frame[list(above.index.names)].astype(str))
        frame = frame.assign(above_noise_p_value=above.reindex(places).to_numpy())
    order = label_columns(report.design, [*labels[len(heads) :], *heads])
    title = name.replace("_", " ").capitalize()
    table = score_table(report, "group", frame, order, texts=texts, name=title)
    if frame["n"].sum() > len(scored_pairs(report.frame)):
        table = replace(table, note=" ".join([table.note, *TEXTS.paragraphs("overlap")]))
    return table


def _generalisation(report: Report) -> dict[str, Table]:
    """Compute the intervals of the rates for other facts, subjects or relations.

    Returns:
        "generalisation", one row per model, panel and cluster of the study; nothing if the
        outcomes have a single kind of cluster.
    """
    design = report.design
    complete = [name for name in design.clusters if report.frame[name].notna().all()]
    scored = scored_pairs(report.frame)
    if len(complete) < 2 or scored.empty:
        return {}
    keys = design.keys()
    parts = []
    for name in complete:
        with warnings.catch_warnings():
            # A single cluster has no interval; the table shows that.
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            table = metrics.paired_by(
                scored,
                by=keys,
                cluster=name,
                rates={rate: metrics.PAIRED_RATES[rate] for rate in _GENERALISED},
                intervals=report.intervals,
            )
        table = sorted_rows(report, table.rename(columns=dict(design.exploded_names)), keys)
        table.insert(len(keys), "cluster", design.clusters[name])
        parts.append(table)
    kinds = ", ".join(design.clusters[name] for name in complete)
    frame = pd.concat(parts, ignore_index=True)
    return {
        "generalisation": TEXTS.table(
            "generalisation", frame, label_columns(design, keys), kinds=kinds
        )
    }


Answers = Callable[[Run], tuple[Sequence[str | None], Sequence[str | None]]]
"""Returns the answers of each pair that are compared with each other."""


def same_answers(
    report: Report, texts: Answers | None = None, rule: str | None = None
) -> dict[str, Table]:
    """Compute how often both answers of a pair are the same.

    Args:
        report: The runs.
        texts: Returns the answers of a run under both conditions; the scored parts by default.
        rule: Rule by which two answers are the same; the rule of the run by default, and token_f1
            if it was not scored by a registered rule.

    Returns:
        "same_answer", with the columns of `answer_agreement`; nothing for outcomes without answers.
    """
    keys = report.design.keys()
    rules = [rule or _answer_rule(run) for run in report.runs]
    parts = []
    for run, of_run in zip(report.runs, rules, strict=True):
        if {"first_prediction", "second_prediction"} <= {*run.outcomes}:
            first, second = (texts or answer_texts)(run)
            outcomes = run.outcomes.assign(
                first_prediction=pd.Series(first, dtype=object),
                second_prediction=pd.Series(second, dtype=object),
            )
            options: dict[str, Any] = {"cluster": report.cluster, "intervals": report.intervals}
            parts.append(answer_agreement(outcomes, by=keys, rule=of_run, **options))
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if frame.empty:
        return {}
    return {
        "same_answer": TEXTS.table(
            "same_answer",
            sorted_rows(report, frame.rename(columns=dict(report.design.exploded_names)), keys),
            label_columns(report.design, keys),
            rules=" / ".join(dict.fromkeys(rules)),
        )
    }


def answer_texts(run: Run) -> tuple[list[str | None], list[str | None]]:
    """Return the scored part of both answers of each pair.

    Args:
        run: A run whose outcomes contain answers.

    Returns:
        The texts under the first and the second condition, pair by pair.
    """
    return tuple(  # type: ignore[return-value]
        [None if is_missing(text) else text for text in run.outcomes[name].to_numpy(dtype=object)]
        for name in ("first_prediction", "second_prediction")
    )


def _answer_rule(run: Run) -> str:
    """Name the rule by which two answers are the same."""
    settings = {} if run.scoring is None else run.scoring.settings
    return rule_in_file(str(settings.get("rule") or "token_f1"), run.folder.scoring)


def paired_rates(report: Report, keys: list[str], has_kappa: bool = False) -> pd.DataFrame:
    """Compute the rates of pairs by some columns, sorted for reading.

    Args:
        report: The runs.
        keys: Columns of the outcomes.
        has_kappa: Whether kappa is computed.

    Returns:
        The columns of `metrics.paired_by`, and detectable_difference.
    """
    cluster = cluster_within(report, keys)
    wanted = list(dict.fromkeys([*keys, cluster, *VERDICTS]))
    frames = [run.outcomes[wanted] for run in report.runs]
    kappa = {"kappa": kappa_of_counts} if has_kappa else {}
    compute = functools.partial(
        metrics.paired_by, by=keys, cluster=cluster, rates={**metrics.PAIRED_RATES, **kappa},
        intervals=report.intervals,
    )  # fmt: skip
    is_large = sum(map(len, frames)) > _FEW_ROWS
    parts = map_processes(compute, frames, n_workers=None if is_large else 1)
    table = pd.concat(parts, ignore_index=True)
    table = with_detectable(table, confidence=report.settings.confidence)
    return sorted_rows(report, table.rename(columns=dict(report.design.exploded_names)), keys)


def cluster_within(report: Report, keys: Sequence[str]) -> str:
    """Return the clustering column within groups: within a relation it cannot be the relation.

    Args:
        report: The runs.
        keys: Columns that make groups.

    Returns:
        The cluster of the report, or another of the study if the groups are those clusters.
    """
    if report.cluster not in keys:
        return report.cluster
    others = [name for name in report.design.clusters if name not in keys]
    return next((name for name in others if report.frame[name].notna().all()), "item")


def sorted_rows(report: Report, table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Sort the rows of a table for reading: the models of a group next to each other.

    Args:
        report: The runs.
        table: The table.
        keys: Columns of the outcomes that make its groups.

    Returns:
        The rows in the order of the study's labels and of the runs; other labels follow by name.
    """
    names = [report.design.shown(key) for key in keys]
    names = [*names[1:], names[0]]

    def rank(column: pd.Series) -> list[tuple[int, str]]:
        order = (
            report.index
            if column.name == "model"
            else report.design.labels.get(str(column.name), {})
        )
        places = {value: place for place, value in enumerate(order)}
        return [(places.get(value, len(places)), str(value)) for value in column]

    places = list(zip(*(rank(table[name]) for name in names), strict=True))
    rows = sorted(range(len(table)), key=places.__getitem__)
    return table.iloc[rows].reset_index(drop=True)
