"""Are instances with common n-grams solved better, and do other words make them rarer?

Section 4 of the study of lexical popularity, with table 3 and figures 1 and 4 of the paper.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field

from surface_consistency.engine.design import Report
from surface_consistency.engine.paired_tables import model_dots, paired_columns
from surface_consistency.engine.study import Analysis
from surface_consistency.errors import DataError
from surface_consistency.metrics import (
    PopularityScale,
    adjust_p_values,
    fit_popularity_scale,
    instance_popularity,
    paired_by,
    popularity_shift,
    relative_difference,
    split_accuracy,
)
from surface_consistency.report.page import Dot, Dots, Lines, Series
from surface_consistency.report.table import Column, Table, interval_column
from surface_consistency.runs.loader import Run
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Settings
from surface_consistency.studies.lexical.quality import points_of
from surface_consistency.studies.redirectqa.frequency import read_counts

__all__ = ["PopularityAnalysis", "PopularitySettings", "text_id"]

_WORDINGS: Final = {"first": "original", "second": "other words"}
_PAIRS: Final = {"all": "all", "lost": "right, then wrong"}
_SPLITS: Final = {
    "popularity": "popularity in the original words",
    "fall": "popularity fell",
}


def text_id(target_id: str, option: int) -> str:
    """Name a text of a run, as `texts.jsonl` and the counts of its n-grams do.

    Args:
        target_id: The instance in one wording.
        option: Place of the option that stands in the text.

    Returns:
        "TARGET/OPTION".
    """
    return f"{target_id}/{option}"


class PopularitySettings(Settings):
    """Which counts popularity is computed from."""

    counts: Items[Path] = Field(min_length=1)
    """Folder of `count ngrams` or `count lookup`, or its ngrams.parquet: counts of the n-grams of
    the run's texts.jsonl. With several runs one for all, or one a run, in their order."""

    bins: int = Field(default=10, ge=2)
    """Bins of counts: 10 for deciles."""


class PopularityAnalysis(Analysis):
    """Accuracy, flips and shifts by how common the n-grams of an instance are in a corpus."""

    name = "popularity"
    title = "Lexical popularity"
    settings = PopularitySettings
    studies = ("lexical",)
    reading = (
        "Popularity is the mean decile of the counts of a text’s n-grams. Common texts can be "
        "easier for other reasons: the control of the run, the same words replaced by synonyms "
        "about as frequent and by rarer ones, changes nothing but how frequent words are."
    )
    drawn = ("popularity_distribution",)

    def tables(self, report: Report, settings: PopularitySettings) -> Mapping[str, Table]:
        """Score the popularity of all texts and hold it against the verdicts.

        Returns:
            "popularity_accuracy" (figures 1 and A of the paper), "popularity_shift" (table 3, with
            Wilcoxon's test), "popularity_paired" (both verdicts, by popularity and by whether it
            fell, with McNemar's test) and "popularity_distribution" (figure 4). The scale of a task
            is that of all texts in the original words.

        Raises:
            DataError: If the counts cannot be read or are of other texts.
            ColumnNotFoundError: If a file of counts lacks a column.
        """
        places = list(settings.counts)
        if len(places) not in (1, len(report.runs)):
            raise DataError(
                f"--counts names {len(places)} counts for {len(report.runs)} runs; give one for "
                "all, or one a run"
            )
        read = [_read(place) for place in places]
        frames = [
            _scored(run, read[min(number, len(read) - 1)], places[min(number, len(places) - 1)],
                    settings.bins)
            for number, run in enumerate(report.runs)
        ]  # fmt: skip
        frame = pd.concat(frames, ignore_index=True)
        return {
            "popularity_accuracy": _accuracy(frame, report),
            "popularity_shift": _shift(frame),
            "popularity_paired": _paired(frame, report),
            "popularity_distribution": _distribution(frame, settings.bins),
        }

    def figures(self, report: Report, tables: Mapping[str, Table]) -> Iterator[Dots | Lines]:
        """Draw the paper's figures 1 and 4; see `Analysis.figures`."""
        yield from _halves(tables["popularity_accuracy"].frame, report.index)
        yield from _curves(tables["popularity_distribution"].frame, report.index)


def _read(path: Path) -> dict[str, npt.NDArray[np.float64]]:
    """Read counts of n-grams by text."""
    place, rows = read_counts(
        path,
        "ngrams.parquet",
        needed=("instance_id", "counts"),
        what="counts",
        uncounted="--counts takes a folder of `count ngrams --data RUN/texts.jsonl`, or its "
        "ngrams.parquet",
        unmerged="it is written when all shards are counted; `count merge` where they were counted "
        "apart",
    )
    repeated = rows["instance_id"].duplicated()
    if repeated.any():
        raise DataError(
            f"{place} holds {rows.loc[repeated, 'instance_id'].iloc[0]!r} twice; give each text "
            "one row"
        )
    counts: dict[str, npt.NDArray[np.float64]] = {}
    for name, values in zip(rows["instance_id"], rows["counts"], strict=True):
        # A count that is not known, such as one that a server only estimated, is left out.
        told = np.asarray([] if values is None else values, dtype=np.float64)
        counts[str(name)] = told[~np.isnan(told)]
        if (told < 0).any() or np.isinf(told).any():
            raise DataError(f"{place}: the counts of {name!r} must be finite and at least 0")
    return counts


def _scored(
    run: Run, counts: Mapping[str, npt.NDArray[np.float64]], place: Path, bins: int
) -> pd.DataFrame:
    """Score the popularity of each pair of a run in both wordings."""
    targets, pairs = run.folder.read_plan()
    texts = targets[["target_id", "fact_id", "correct"]].assign(n_options=targets["texts"].map(len))
    names = [text_id(target, 0) for target in texts["target_id"]]
    if not any(name in counts for name in names):
        raise DataError(
            f"{place} holds counts of none of the {len(names)} texts of {run.label}, such as "
            f"{names[0]!r}; count those of its own texts: count ngrams --data "
            f"{run.folder.path / 'texts.jsonl'}"
        )
    tasks = pairs.drop_duplicates("fact_id").set_index("fact_id")["task"]
    texts = texts.assign(
        task=texts["fact_id"].map(tasks),
        is_original=texts["target_id"].isin(set(pairs["first_target"])),
    )
    parts = []
    for _, of_task in texts.groupby("task", sort=False):
        rows = of_task.to_dict("records")
        of_texts = [
            [counts.get(text_id(row["target_id"], k), np.empty(0)) for k in range(row["n_options"])]
            for row in rows
        ]
        originals = [
            values
            for row, options in zip(rows, of_texts, strict=True)
            if row["is_original"]
            for values in options
        ]
        joined = np.concatenate(originals) if originals else np.empty(0)
        if not joined.size:
            continue
        scale = fit_popularity_scale(joined, n_bins=bins)
        parts += [
            _of_target(row, options, scale) for row, options in zip(rows, of_texts, strict=True)
        ]
    told = pd.DataFrame(parts, columns=["target_id", "popularity", "lead"]).set_index("target_id")
    named = pairs.set_index("pair_id")
    frame = run.outcomes.copy()
    for side in ("first", "second"):
        of_side = frame["pair_id"].map(named[f"{side}_target"])
        frame[f"{side}_popularity"] = of_side.map(told["popularity"]).astype(float)
        frame[f"{side}_lead"] = of_side.map(told["lead"]).astype(float)
    return frame


def _of_target(
    row: Mapping[Any, Any], options: Sequence[npt.NDArray[np.float64]], scale: PopularityScale
) -> tuple[str, float, float]:
    """Score one instance: the text with the right option, and its lead over the others."""
    scores = [
        float(instance_popularity([counts], scale=scale)[0]) if counts.size else math.nan
        for counts in options
    ]
    own = scores.pop(int(row["correct"]))
    lead = own
    if scores:
        lead = float(relative_difference([own], [float(np.mean(scores))])[0])
    return row["target_id"], own, lead


def _accuracy(frame: pd.DataFrame, report: Report) -> Table:
    """Compare accuracy at low and high popularity: figure 1."""
    rows = []
    for (model, task), of_task in frame.groupby(["model", "task"], sort=False):
        for side, wording in _WORDINGS.items():
            part = of_task.drop_duplicates("fact_id") if side == "first" else of_task
            known = part[part[f"{side}_lead"].notna() & part[f"{side}_correct"].notna()]
            row: dict[str, Any] = {
                "model": model,
                "task": task,
                "wording": wording,
                "n_missing": len(part) - len(known),
            }
            if known.empty:
                continue
            found = split_accuracy(
                known[f"{side}_lead"],
                known[f"{side}_correct"].astype(bool),
                clusters=known[report.cluster],
                n_resamples=report.settings.resamples,
                rng=report.settings.bootstrap_seed,
            )
            row |= {"n_low": found.n_low, "n_high": found.n_high, "threshold": found.threshold}
            for name in ("low_accuracy", "high_accuracy", "difference"):
                bounds = getattr(found, f"{name}_interval")
                row |= {
                    name: getattr(found, name),
                    f"{name}_low": bounds.low,
                    f"{name}_high": bounds.high,
                }
            rows.append(row)
    names = ["low_accuracy", "high_accuracy", "difference"]
    columns = [
        *("model", "task", "wording", "n_missing", "n_low", "n_high", "threshold"),
        *(f"{name}{end}" for name in names for end in ("", "_low", "_high")),
    ]
    return Table(
        frame=pd.DataFrame(rows, columns=columns),
        caption="Accuracy on rare and on common instances, cut at the median",
        note="Where there are two options, common means that the right one is the more popular, "
        "relative to its own popularity. Without a text of n tokens there is no popularity.",
        columns=[
            Column(key="model", title="Model"),
            Column(key="task", title="Task"),
            Column(key="wording", title="Wording"),
            Column(key="n_low", title="Rare", kind="count"),
            Column(key="n_high", title="Common", kind="count"),
            Column(key="n_missing", title="Without", kind="count", on_phones=False),
            interval_column("low_accuracy", "Rare", "rate", "right, %"),
            interval_column("high_accuracy", "Common", "rate", "right, %"),
            interval_column("difference", "Difference", "difference", "points"),
        ],
    )


def _shift(frame: pd.DataFrame) -> Table:
    """Test whether other words are less popular: table 3, draws of a fact averaged."""
    is_lost = frame["first_correct"].fillna(False).astype(bool) & ~frame["second_correct"].fillna(
        True
    ).astype(bool)
    rows = []
    for (model, task), of_task in frame.groupby(["model", "task"], sort=False):
        for pairs in _PAIRS:
            part = of_task[is_lost.loc[of_task.index]] if pairs == "lost" else of_task
            sides = ["first_popularity", "second_popularity"]
            mean = part.dropna(subset=sides).groupby("fact_id", sort=False)[sides].mean()
            row: dict[str, Any] = {"model": model, "task": task, "pairs": pairs, "n": len(mean)}
            if len(mean):
                found = popularity_shift(mean[sides[0]], mean[sides[1]])
                row |= {
                    "original": found.original_mean,
                    "original_deviation": float(mean[sides[0]].std()),
                    "perturbed": found.perturbed_mean,
                    "perturbed_deviation": float(mean[sides[1]].std()),
                    "n_unchanged": found.n_unchanged,
                    "rank_biserial": found.rank_biserial,
                    "p_value": found.p_value,
                }
            rows.append(row)
    keys = [
        *("model", "task", "pairs", "n", "original", "original_deviation", "perturbed"),
        *("perturbed_deviation", "n_unchanged", "rank_biserial", "p_value"),
    ]
    made = pd.DataFrame(rows, columns=keys)
    made["adjusted_p_value"] = adjust_p_values(made["p_value"].astype(float))
    return Table(
        frame=made,
        caption="Popularity in the original and in other words",
        note="Of the text with the right option; several draws of an instance are averaged. "
        "Wilcoxon’s signed ranks; effect: rank-biserial, -1 where every change is a fall. "
        "Instances that were chosen for being lost say nothing of those that were not: compare "
        "with all.",
        columns=[
            Column(key="model", title="Model"),
            Column(key="task", title="Task"),
            Column(key="pairs", title="Instances", labels=_PAIRS),
            Column(key="n", title="Number", kind="count"),
            Column(key="original", title="Original", kind="number", unit="mean"),
            Column(key="original_deviation", title="Original", kind="number", unit="SD"),
            Column(key="perturbed", title="Other words", kind="number", unit="mean"),
            Column(key="perturbed_deviation", title="Other words", kind="number", unit="SD"),
            Column(key="rank_biserial", title="Effect", kind="number"),
            Column(key="adjusted_p_value", title="p", kind="p_value", unit="Holm"),
        ],
    )


def _paired(frame: pd.DataFrame, report: Report) -> Table:
    """Compare both verdicts on common and on rare instances, and where popularity fell."""
    parts = []
    for split in _SPLITS:
        labelled = frame.assign(split=split, part=_part_of(frame, split))
        parts.append(labelled[labelled["part"].notna()])
    known = pd.concat(parts, ignore_index=True)
    by = ["model", "task", "split", "part"]
    found = paired_by(
        known,
        by=by,
        cluster=report.cluster,
        n_resamples=report.settings.resamples,
        rng=report.settings.bootstrap_seed,
    )
    found["adjusted_p_value"] = adjust_p_values(found["mcnemar_p_value"].astype(float))
    labels = [
        Column(key="model", title="Model"),
        Column(key="task", title="Task"),
        Column(key="split", title="By", labels=_SPLITS),
        Column(key="part", title="Instances"),
    ]
    return Table(
        frame=found,
        caption="Both verdicts, by popularity and by whether other words lowered it",
        columns=paired_columns(
            ("original", "other words"), labels, cluster="instances", adjusted=True
        ),
        few="n_clusters",
    )


def _part_of(frame: pd.DataFrame, split: str) -> pd.Series:
    """Name the part of each pair: rare or common, fell or not."""
    if split == "fall":
        change = frame["second_popularity"] - frame["first_popularity"]
        named = pd.Series(np.where(change < 0.0, "fell", "did not fall"), index=frame.index)
        return named.where(change.notna())
    medians = (
        frame.drop_duplicates(["model", "fact_id"])
        .groupby(["model", "task"])["first_lead"]
        .median()
    )
    keys = pd.MultiIndex.from_frame(frame[["model", "task"]])
    cut = pd.Series(medians.reindex(keys).to_numpy(), index=frame.index)
    named = pd.Series(np.where(frame["first_lead"] > cut, "common", "rare"), index=frame.index)
    return named.where(frame["first_lead"].notna())


def _distribution(frame: pd.DataFrame, bins: int) -> Table:
    """Count the instances up to each popularity in both wordings: figure 4."""
    grid = np.linspace(1.0, bins, 4 * (bins - 1) + 1)
    rows = []
    for (model, task), of_task in frame.groupby(["model", "task"], sort=False):
        for side, wording in _WORDINGS.items():
            part = of_task.drop_duplicates("fact_id") if side == "first" else of_task
            values = part[f"{side}_popularity"].dropna().to_numpy(float)
            if not values.size:
                continue
            shares = (values[:, None] <= grid + 1e-9).mean(axis=0)
            rows += [
                {
                    "model": model,
                    "task": task,
                    "wording": wording,
                    "popularity": float(at),
                    "share": float(share),
                    "n": values.size,
                }
                for at, share in zip(grid, shares, strict=True)
            ]
    columns = ["model", "task", "wording", "popularity", "share", "n"]
    return Table(
        frame=pd.DataFrame(rows, columns=columns),
        caption="Instances up to a popularity",
        columns=[
            Column(key="model", title="Model"),
            Column(key="task", title="Task"),
            Column(key="wording", title="Wording"),
            Column(key="popularity", title="Popularity", kind="number"),
            Column(key="share", title="Instances up to it", kind="rate", unit="%"),
        ],
    )


def _halves(rows: pd.DataFrame, place: Mapping[str, int]) -> Iterator[Dots]:
    """Draw accuracy on rare and on common instances in the original words."""
    chosen = rows[rows["wording"] == "original"]
    lines: list[tuple[str, int, list[Dot]]] = []
    for task, of_task in chosen.groupby("task", sort=False):
        lines.append((str(task).replace("_", " "), 0, []))
        for key, n, label in (
            ("low_accuracy", "n_low", "rare"),
            ("high_accuracy", "n_high", "common"),
        ):
            lines.append((label, 1, model_dots(of_task, key, place, n=n)))
    if lines:
        yield Dots(
            name="popularity-accuracy",
            title="Accuracy on rare and on common instances, original words",
            axis="right, %",
            rows=lines,
            clusters="instances",
        )


def _curves(rows: pd.DataFrame, place: Mapping[str, int]) -> Iterator[Lines]:
    """Draw the distribution of popularity in both wordings, a chart a model and task."""
    for (model, task), part in rows.groupby(["model", "task"], sort=False):
        yield Lines(
            name=f"popularity-{task}" + (f"-{place[str(model)]}" if len(place) > 1 else ""),
            title=f"Popularity of {str(task).replace('_', ' ')}, share of instances up to it, %"
            + (f" ({model})" if len(place) > 1 else ""),
            x_title="popularity",
            series=[
                Series(
                    label=str(wording),
                    model=None if wording == _WORDINGS["first"] else place[str(model)],
                    points=points_of(of_wording["popularity"], of_wording["share"]),
                )
                for wording, of_wording in part.groupby("wording", sort=False)
            ],
        )
