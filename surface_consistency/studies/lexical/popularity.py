"""Accuracy by the popularity of the n-grams of an instance, and its shift in other words.

It implements section 4 of the study of lexical popularity, with table 3 and figures 1 and 4 of the
paper.
"""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field

from surface_consistency.engine.design import Report
from surface_consistency.engine.paired.page import model_dots
from surface_consistency.engine.paired.tables import score_table
from surface_consistency.engine.study import Analysis
from surface_consistency.errors import DataError
from surface_consistency.metrics import (
    PopularityScale,
    adjust_p_values,
    fit_popularity_scale,
    instance_popularity,
    mean_by,
    paired_by,
    popularity_shift,
    relative_difference,
    split_accuracy,
)
from surface_consistency.reading import shown
from surface_consistency.report.page import Block, Dot, ForestPlot, Lines, Prose
from surface_consistency.report.texts import Texts
from surface_consistency.runs.counts import read_counts
from surface_consistency.runs.loader import Run
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Settings
from surface_consistency.studies.lexical.quality import proportion_curves
from surface_consistency.studies.lexical.records import text_id
from surface_consistency.tables.columns import COLUMNS
from surface_consistency.tables.sentences import Sentence, difference, paragraph
from surface_consistency.tables.table import Table
from surface_consistency.tables.tabulation import tabulate

_TEXTS: Final = Texts("surface_consistency.studies.lexical")
_WORDINGS: Final = {"first": "original", "second": "other words"}
_TASKS: Final = ["model", "task"]
_SPLIT: Final = (
    *("n_low", "n_high", "n_clusters", "threshold"),
    *(f"{of}_accuracy{end}" for of in ("low", "high") for end in ("", "_low", "_high")),
    *("difference", "difference_low", "difference_high"),
)
_SHIFT: Final = {
    "original_mean": "original",
    "perturbed_mean": "perturbed",
    **{name: name for name in ("n_unchanged", "rank_biserial", "p_value")},
}
_CHANGE: Final = {
    **{f"mean{end}": f"change{end}" for end in ("", "_low", "_high")},
    **{"p_value": "clustered_p_value", "n_clusters": "n_clusters", "not_inferred": "not_inferred"},
}
_SPLITS: Final = {"popularity": "popularity in the original words", "fall": "popularity fell"}


class PopularitySettings(Settings):
    """Counts of n-grams from which popularity is computed."""

    counts: Items[Path] = Field(min_length=1)
    """Folder of `count ngrams`, or its ngrams.parquet: counts of the n-grams of the run's
    texts.jsonl. For several runs, pass one for all, or one per run in the same order."""

    bins: int = Field(default=10, ge=2)
    """Number of bins of counts: 10 for deciles."""


class PopularityAnalysis(Analysis):
    """Compute accuracy, flips and shifts by the popularity of an instance's n-grams in a corpus."""

    name = "popularity"
    title = "Lexical popularity"
    settings = PopularitySettings
    studies = ("lexical",)
    caveat = (
        "Popularity is the mean decile of the counts of a text’s n-grams. Common texts can be "
        "easier for other reasons: a run with `control` replaces the same words by synonyms of "
        "about the same frequency and by rarer ones, so its two wordings differ in word frequency."
    )
    figure_only = ("popularity_distribution",)

    def tables(self, report: Report, settings: PopularitySettings) -> Mapping[str, Table]:
        """Compute the popularity of all texts and its relation to correctness.

        Returns:
            "popularity_accuracy" (figures 1 and A of the paper), "popularity_shift" (table 3, with
            Wilcoxon's test, which assumes independent instances, and a clustered test of the mean
            change), "popularity_paired" (paired correctness, by popularity and by whether
            popularity decreased, with McNemar's test) and "popularity_distribution" (figure 4). The
            scale of a task is computed from all its texts in the original words.

        Raises:
            DataError: If the counts cannot be read or are of other texts.
            ColumnNotFoundError: If a file of counts lacks a column.
        """
        places = list(settings.counts)
        if len(places) not in (1, len(report.runs)):
            raise DataError(
                f"`counts` names {len(places)} counts for {len(report.runs)} runs; give one for "
                "all, or one per run"
            )
        counts = {place: _read(place) for place in places}
        of_runs = places if len(places) > 1 else places * len(report.runs)
        frame = pd.concat(
            [
                _scored(run, counts[place], place, settings.bins)
                for run, place in zip(report.runs, of_runs, strict=True)
            ],
            ignore_index=True,
        )
        return {
            "popularity_accuracy": _accuracy(frame, report),
            "popularity_shift": _shift(frame, report, settings.bins),
            "popularity_paired": _paired(frame, report),
            "popularity_distribution": _distribution(frame, settings.bins),
        }

    def figures(self, report: Report, tables: Mapping[str, Table]) -> Iterator[Block]:
        """Summarize the results, and draw the paper's figures 1 and 4; see `Analysis.figures`."""
        yield Prose(parts=paragraph(_sentences(report, tables)))
        yield from _halves(tables["popularity_accuracy"].frame, report.index)
        yield from _curves(tables["popularity_distribution"].frame, report.index)


def _sentences(report: Report, tables: Mapping[str, Table]) -> Iterator[Sentence]:
    """Report accuracy on rare and common instances, and the shift of popularity."""
    for row in tables["popularity_accuracy"].frame.to_dict("records"):
        if row["wording"] == "original":
            yield difference(
                row | {"n": row["n_low"] + row["n_high"]},
                "difference",
                f"accuracy of {row['model']} on {row['task'].replace('_', ' ')} in original words",
                "rare instances",
                "common instances",
                p=None,
                unit="instances",
                **report.words,
            )
    for row in tables["popularity_shift"].frame.to_dict("records"):
        if row["pairs"] == "all" and row["n"]:
            yield difference(
                row | {"p_value": row["clustered_p_value"]},
                "change",
                f"popularity of the texts of {row['task'].replace('_', ' ')} ({row['model']})",
                "the original words",
                "other words",
                "in {}",
                p="clustered_p_value_holm",
                correction="Holm",
                kind="number",
                unit="instances",
                reach=math.inf,
                **report.words,
            )


def _read(path: Path) -> dict[str, npt.NDArray[np.float64]]:
    """Read counts of n-grams by text."""
    place, rows = read_counts(
        path,
        "ngrams.parquet",
        needed=("instance_id", "counts"),
        what="counts",
        uncounted="`counts` is a folder of `count ngrams --data RUN/texts.jsonl`, or its "
        "ngrams.parquet",
        unmerged="it is written when all shards are counted; run `count merge` if they were "
        "counted separately",
    )
    repeated = rows["instance_id"].duplicated()
    if repeated.any():
        raise DataError(
            f"{place} has {shown(rows.loc[repeated, 'instance_id'].iloc[0])} twice; give each "
            "text one row"
        )
    counts: dict[str, npt.NDArray[np.float64]] = {}
    for name, values in zip(rows["instance_id"], rows["counts"], strict=True):
        # An unknown count, such as one that a server only estimated, is excluded.
        of_text = np.asarray([] if values is None else values, dtype=np.float64)
        counts[str(name)] = of_text[~np.isnan(of_text)]
        if (of_text < 0).any() or np.isinf(of_text).any():
            raise DataError(f"{place}: the counts of {shown(name)} must be finite and at least 0")
    return counts


def _scored(
    run: Run, counts: Mapping[str, npt.NDArray[np.float64]], place: Path, bins: int
) -> pd.DataFrame:
    """Compute the popularity of each pair of a run in both wordings."""
    targets, pairs = run.folder.read_plan()
    names = [text_id(target, 0) for target in targets["target_id"]]
    if not any(name in counts for name in names):
        raise DataError(
            f"{place} lacks the counts of all {len(names)} texts of {run.label}, such as "
            f"{shown(names[0])}; count the texts of this run: count ngrams --data "
            f"{run.folder.path / 'texts.jsonl'}"
        )
    tasks = pairs.drop_duplicates("item").set_index("item")["task"]
    originals = set(pairs["first_target"])
    scores: dict[str, tuple[float, float]] = {}
    for _, of_task in targets.groupby(targets["item"].map(tasks), sort=False):
        ngrams = {
            target: [counts.get(text_id(target, k), np.empty(0)) for k in range(len(texts))]
            for target, texts in zip(of_task["target_id"], of_task["texts"], strict=True)
        }
        joined = [of_text for target in ngrams if target in originals for of_text in ngrams[target]]
        if sum(of_text.size for of_text in joined):
            scale = fit_popularity_scale(np.concatenate(joined), n_bins=bins)
            places = zip(ngrams.items(), of_task["correct"], strict=True)
            scores |= {name: _popularity(texts, int(k), scale) for (name, texts), k in places}
    by_target = pd.DataFrame(scores, index=["popularity", "lead"], dtype=float).T
    named = pairs.set_index("pair")
    frame = run.outcomes.copy()
    for side in _WORDINGS:
        of_side = frame["pair"].map(named[f"{side}_target"])
        for name in by_target:
            frame[f"{side}_{name}"] = of_side.map(by_target[name]).astype(float)
    return frame


def _popularity(
    texts: Sequence[npt.NDArray[np.float64]], correct: int, scale: PopularityScale
) -> tuple[float, float]:
    """Compute the popularity of the text with the correct option, and its lead over the others."""
    scores = [
        float(instance_popularity([counts], scale=scale)[0]) if counts.size else math.nan
        for counts in texts
    ]
    own = scores.pop(correct)
    if not scores:
        return own, own
    return own, float(relative_difference([own], [float(np.mean(scores))])[0])


def _by_wording(frame: pd.DataFrame) -> pd.DataFrame:
    """List the texts: the original ones once, those in other words for each draw."""
    texts = {"first": frame.drop_duplicates(["model", "item"]), "second": frame}
    parts = []
    for side, wording in _WORDINGS.items():
        names = {f"{side}_{name}": name for name in ("popularity", "lead", "correct")}
        parts.append(texts[side].rename(columns=names).assign(wording=wording))
    return pd.concat(parts, ignore_index=True)


def _accuracy(frame: pd.DataFrame, report: Report) -> Table:
    """Compare accuracy at low and high popularity: figure 1."""

    def split(part: pd.DataFrame) -> dict[str, object] | None:
        known = part.dropna(subset=["lead", "correct"])
        if known.empty:
            return None
        result = split_accuracy(
            known["lead"], known["correct"].astype(bool), clusters=known[report.cluster],
            intervals=report.intervals,
        )  # fmt: skip
        return {"n_missing": len(part) - len(known)} | {name: result[name] for name in _SPLIT}

    rows = tabulate(_by_wording(frame), [*_TASKS, "wording"], split)
    return _TEXTS.table("popularity_accuracy", rows)


def _shift(frame: pd.DataFrame, report: Report, bins: int) -> Table:
    """Test whether other words are less popular: table 3, draws of a fact averaged."""
    rows = tabulate(frame, _TASKS, partial(_shifts, report=report, reach=bins - 1.0))
    for name in ("p_value", "clustered_p_value"):
        rows[f"{name}_holm"] = adjust_p_values(rows[name].astype(float))
    return _TEXTS.table("popularity_shift", rows)


def _shifts(part: pd.DataFrame, report: Report, reach: float) -> Iterator[dict[str, object]]:
    """Test the shift of a task's instances, and of those that became incorrect."""
    clusters = part.drop_duplicates("item").set_index("item", drop=False)[report.cluster]
    is_lost = part["first_correct"].eq(True) & part["second_correct"].eq(False)
    for pairs, rows in (("all", part), ("lost", part[is_lost.fillna(False)])):
        sides = ["first_popularity", "second_popularity"]
        means = rows.dropna(subset=sides).groupby("item", sort=False)[sides].mean()
        first, second = means[sides[0]], means[sides[1]]
        result: Mapping[str, float] = {}
        inferred: Mapping[Hashable, Any] = {}
        if len(means):
            result = popularity_shift(first, second)
            change = pd.DataFrame({"score": second - first, "cluster": clusters[means.index]})
            of_all = mean_by(
                change, cluster="cluster", scale=(-reach, reach), intervals=report.intervals
            )
            (inferred,) = of_all.to_dict("records")
        yield {
            "pairs": pairs,
            "n": len(means),
            **{column: result.get(name, math.nan) for name, column in _SHIFT.items()},
            **{column: inferred.get(name, math.nan) for name, column in _CHANGE.items()},
            "original_deviation": first.std(),
            "perturbed_deviation": second.std(),
        }


def _paired(frame: pd.DataFrame, report: Report) -> Table:
    """Compare correctness in both wordings by popularity, and by whether popularity fell."""
    parts = [frame.assign(split=split, part=_part_of(frame, split)) for split in _SPLITS]
    rows = paired_by(
        pd.concat(parts, ignore_index=True).dropna(subset=["part"]),
        by=[*_TASKS, "split", "part"],
        cluster=report.cluster,
        intervals=report.intervals,
    )
    rows["p_value_holm"] = adjust_p_values(rows["p_value"].astype(float))
    return score_table(
        report,
        "group",
        rows,
        ["model task", replace(COLUMNS["split"], labels=_SPLITS), "part:instance_part"],
        name="Correctness in both wordings, by popularity and by whether other words lowered it",
    )


def _part_of(frame: pd.DataFrame, split: str) -> pd.Series:
    """Name the part of each pair: rare or common, fell or not."""
    if split == "fall":
        change = frame["second_popularity"] - frame["first_popularity"]
        named = pd.Series(np.where(change < 0.0, "fell", "did not fall"), index=frame.index)
        return named.where(change.notna())
    facts = frame.drop_duplicates(["model", "item"])
    medians = facts.groupby(_TASKS)["first_lead"].median()
    cut = medians.reindex(pd.MultiIndex.from_frame(frame[_TASKS])).to_numpy()
    named = pd.Series(np.where(frame["first_lead"] > cut, "common", "rare"), index=frame.index)
    return named.where(frame["first_lead"].notna())


def _distribution(frame: pd.DataFrame, bins: int) -> Table:
    """Count the instances up to each popularity in both wordings: figure 4."""
    grid = np.linspace(1.0, bins, 4 * (bins - 1) + 1)
    texts = _by_wording(frame).dropna(subset=["popularity"])

    def proportions(part: pd.DataFrame) -> Iterator[dict[str, object]]:
        values = part["popularity"].to_numpy(float)
        for at in grid.tolist():
            proportion = float((values <= at + 1e-9).mean())
            yield {"popularity": at, "share": proportion, "n": len(values)}

    rows = tabulate(texts, [*_TASKS, "wording"], proportions)
    return _TEXTS.table("popularity_distribution", rows)


def _halves(rows: pd.DataFrame, place: Mapping[str, int]) -> Iterator[ForestPlot]:
    """Draw accuracy on rare and on common instances in the original words."""
    chosen = rows[rows["wording"] == "original"]
    lines: list[tuple[str, int, list[Dot]]] = []
    for task, of_task in chosen.groupby("task", sort=False):
        lines.append((str(task).replace("_", " "), 0, []))
        for part, label in (("low", "rare"), ("high", "common")):
            dots = model_dots(of_task, f"{part}_accuracy", place, n=f"n_{part}")
            lines.append((label, 1, dots))
    if lines:
        yield ForestPlot(
            name="popularity-accuracy",
            title="Accuracy on rare and on common instances, original words",
            axis="correct, %",
            rows=lines,
            clusters="instances",
        )


def _curves(rows: pd.DataFrame, place: Mapping[str, int]) -> Iterator[Lines]:
    """Draw the distribution of popularity in both wordings, one chart per model and task."""
    for (model, task), part in rows.groupby(_TASKS, sort=False):
        is_one = len(place) == 1
        yield proportion_curves(
            f"popularity-{task}" + ("" if is_one else f"-{place[str(model)]}"),
            f"Popularity of {str(task).replace('_', ' ')}, instances up to it, %"
            + ("" if is_one else f" ({model})"),
            "popularity",
            {
                str(wording): (of_wording["popularity"], of_wording["share"])
                for wording, of_wording in part.groupby("wording", sort=False)
            },
            model=place[str(model)],
        )
