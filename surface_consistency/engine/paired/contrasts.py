"""Tables of differences: flips less noise, groups against groups, models against models."""

import functools
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd

from surface_consistency.engine.design import Report
from surface_consistency.engine.paired.wording import note
from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import PAIRED_RATES, adjust_p_values, contrast, contrasts_by
from surface_consistency.runs.frames import read_frame
from surface_consistency.runs.loader import Run
from surface_consistency.schemas._record import Record
from surface_consistency.tables.columns import COLUMNS
from surface_consistency.tables.numbers import least_found, shown_sign
from surface_consistency.tables.table import Column, Table
from surface_consistency.tables.tabulation import spread

COUNTS: Final = ("both", "first_only", "second_only", "neither")
"""Columns of the four cells."""

VERDICTS: Final = ("first_correct", "second_correct")
"""Columns of both verdicts."""

_MOST_GROUPS: Final = 6
"""Groups of which every two are compared."""
_MOST_MODELS: Final = 4
"""Models of which every two are compared."""


class _Correct(Record):
    """What a verdict says, without its reasons."""

    target_id: str
    is_correct: bool | None


def scored_pairs(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Leave out the pairs that lack a verdict.

    Args:
        outcomes: One row a pair.

    Returns:
        The rows with both verdicts.
    """
    return outcomes.dropna(subset=list(VERDICTS))


def detectable_note(frame: pd.DataFrame, name: str = "accuracy_difference") -> str:
    """Say what the rows of a table could have shown.

    Args:
        frame: The table, with the bounds of a difference.
        name: The difference.

    Returns:
        Sentences to stand below it; nothing for a table without rows.
    """
    bounds = [frame[f"{name}_{end}"].astype(float) for end in ("low", "high")]
    least = [least_found(low, high) for low, high in zip(*bounds, strict=True)]
    known = [f"{100 * one:.1f}" for one in sorted(least) if one < 1.0]
    n_without = sum(
        not (one < 1.0 or shown_sign(row, name))
        for one, row in zip(least, frame.to_dict("records"), strict=True)
    )
    span = " to ".join(dict.fromkeys((known[0], known[-1]))) if known else ""
    return note("detectable_note", span=span, n_without=n_without, n=len(frame))


class ContrastTables:
    """Compares rates within the same clusters, where two intervals side by side would not.

    Args:
        report: The runs.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self.design = report.design
        self.labels = [run.label for run in report.runs]
        self.index = report.index
        self.clusters = self.design.clusters[report.cluster]
        self.facet = self.design.shown(self.design.facet) if self.design.facet else None
        self.frame = report.frame
        self._noise: dict[str, dict[str, pd.DataFrame]] = {}

    @functools.cached_property
    def _scored(self) -> pd.DataFrame:
        """The pairs with both verdicts; `place` is that of their model."""
        frame = scored_pairs(self.frame)
        return frame.assign(place=frame["model"].map(self.index).to_numpy(dtype=np.int64))

    @functools.cached_property
    def _numbered(self) -> pd.DataFrame:
        """Clusters and ids of these pairs as numbers, which are faster to group than text."""
        names = dict.fromkeys([self.report.cluster, "pair_id"])
        scored = self._scored
        return pd.DataFrame(
            {name: pd.factorize(scored[name])[0] for name in names}, index=scored.index
        )

    def label_columns(self, keys: Iterable[str]) -> list[Column]:
        """Describe columns of labels.

        Args:
            keys: Columns of the outcomes, or their names in tables.

        Returns:
            Their specs, with the study's wording of the labels.
        """
        names = [self.design.shown(key) for key in keys]
        return [
            Column(
                key=name,
                title=name.replace("_", " ").capitalize(),
                labels=self.design.labels.get(name, {}),
            )
            for name in names
        ]

    def contrasts(self) -> dict[str, Table]:
        """Compare flips with the noise floor, groups with each other, and models within groups.

        Returns:
            "above_noise": the flip rate less that of identical prompts. "contrasts_<grouping>":
            every two groups of a grouping of at most six. "contrasts": every two models on the
            pairs that both answered, and "models_<grouping>" the same within groups; with more than
            four models, each against the first. Differences are `a` less `b`, within the same
            clusters, as of `metrics.contrast`; a table without rows is left out.
        """
        tables = {"above_noise": self._above_noise()}
        for name, columns in self.design.groupings.items():
            if self.frame[columns[-1]].explode().nunique() <= _MOST_GROUPS:
                tables[f"contrasts_{name}"] = self._contrasts(
                    f"Groups against each other, {name.replace('_', ' ')}",
                    between=columns[-1],
                    within=self.design.keys(*columns[:-1]),
                    rates=["flip_rate"],
                )
        tables["contrasts"] = self.compare_models()
        for name, columns in self.design.groupings.items():
            tables[f"models_{name}"] = self.compare_models(name, columns)
        return {name: table for name, table in tables.items() if table is not None}

    def compare_models(
        self, name: str = "", columns: Sequence[str] = (), *, is_pooled: bool = False
    ) -> Table | None:
        """Compare every two models on the pairs that both answered.

        Args:
            name: Name of a grouping within which they are compared; none by default.
            columns: Its columns.
            is_pooled: Whether all panels are compared together.

        Returns:
            The table; None for a single model, or where no two share a pair.
        """
        if len(self.labels) < 2:
            return None
        return self._contrasts(
            "Models on the pairs that both answered"
            + (f", {name.replace('_', ' ')}" if name else ", all together" if is_pooled else ""),
            between="model",
            within=[] if is_pooled else self.design.keys(*columns)[1:],
            rates=["flip_rate"] if name else ["flip_rate", "first_accuracy", "accuracy_difference"],
        )

    def _contrasts(
        self, caption: str, *, between: str, within: list[str], rates: list[str]
    ) -> Table | None:
        """Compare every two groups of a column within those of others."""
        is_models = between == "model"
        scored = self._scored
        if is_models:
            # Labels are sorted by `contrasts_by`; models are compared in the order given.
            scored = scored.assign(model=scored["place"])
        reference = 0 if is_models and len(self.labels) > _MOST_MODELS else None
        if scored.empty or (reference is not None and not (scored["place"] == reference).any()):
            return None
        numbered = self._numbered[
            [name for name in self._numbered if name not in (*within, between)]
        ]
        table = contrasts_by(
            scored.assign(**{str(name): column for name, column in numbered.items()}),
            between=between,
            within=within,
            reference=reference,
            rate=rates,
            cluster=self.report.cluster,
            pair_id="pair_id" if is_models else None,
            margin=self.report.settings.margin,
        )
        if table.empty:
            return None
        if is_models:
            names = dict(enumerate(self.labels))
            table = table.assign(a=table["a"].map(names), b=table["b"].map(names))
        table = table.rename(columns=dict(self.design.exploded_names))
        key = self.design.shown(between)
        titles = {} if is_models else self.design.labels.get(key, {})
        return Table(
            frame=table,
            caption=caption,
            model="model" if "model" in within else None,
            columns=[
                *self.label_columns(within),
                Column(key="a", title=key.replace("_", " ").capitalize(), labels=titles),
                Column(key="b", title="Against", labels=titles),
                *self._contrast_columns(),
            ],
            note=note("contrast_note", detectable=detectable_note(table, "difference")),
        )

    def _contrast_columns(self) -> Iterator[Column]:
        """Describe the numbers of a contrast."""
        names = {name: name.replace("_", " ") for name in PAIRED_RATES}
        yield Column(key="rate", title="Rate", labels=names)
        yield Column(key="n_a", title="Pairs", kind="count")
        yield Column(key="n_clusters", title=self.clusters.capitalize(), kind="count")
        yield COLUMNS["difference"]
        yield Column(key="p_value_holm", title="p", kind="p_value", unit="Holm")
        if (margin := self.report.settings.margin) is not None:
            unit = f"of {100 * margin:g} points or more"
            yield Column(key="p_equivalent", title="p", kind="p_value", unit=unit)

    def above_noise_by(self, columns: Sequence[str]) -> pd.Series:
        """Test the flip rate of each group against that of identical prompts.

        Args:
            columns: Columns of the outcomes that make the groups besides model and panel.

        Returns:
            The one-sided p-value of no more flips than by noise, the largest of the strata, after
            Holm's correction over the groups of a model and panel; indexed by model, panel where
            there is one, and labels as tables name them. Empty without a noise floor.
        """
        rows = pd.DataFrame(self._noise_contrasts(columns))
        if rows.empty:
            return pd.Series(dtype=np.float64)
        names = [self.design.shown(key) for key in self.design.keys(*columns)]
        halves = rows["p_value"] / 2.0
        rows["p_value"] = halves.where(rows["difference"] > 0, 1.0 - halves)
        largest = rows.groupby(names, sort=False)["p_value"].max()
        return largest.groupby(level=names[: -len(columns)], sort=False).transform(
            lambda part: adjust_p_values(part.to_numpy())
        )

    def _above_noise(self) -> Table | None:
        """Hold the flip rate of each model and panel against that of identical prompts."""
        frame = pd.DataFrame(self._noise_contrasts())
        if frame.empty:
            return None
        frame["p_value_holm"] = adjust_p_values(frame["p_value"].to_numpy(dtype=np.float64))
        return Table(
            frame=frame,
            caption="Flips between conditions less flips of identical prompts",
            columns=[
                *self.label_columns(self.design.keys()),
                Column(key="noise", title="Asked twice"),
                *self._contrast_columns(),
            ],
            note=note("contrast_note", detectable=detectable_note(frame, "difference")),
        )

    def _noise_contrasts(self, columns: Sequence[str] = ()) -> Iterator[dict[str, object]]:
        """Hold the flips of each model, panel and group against each stratum of the noise."""
        facet = self.design.facet
        keys = [*filter(None, (facet,)), *columns]
        shown = [self.design.shown(key) for key in keys]
        for run in self.report.runs:
            if not (noise := self.noise_counts(run)):
                continue
            scored = scored_pairs(run.outcomes[[*keys, self.report.cluster, *VERDICTS]])
            for name in columns:
                scored = scored.explode(name)
            groups = scored.groupby(keys, sort=False, dropna=False) if keys else [((), scored)]
            for labels, rows in groups:
                group = dict(zip(shown, map(_label, labels), strict=True))
                for stratum, flips in noise.items():
                    is_own = facet is None or facet != self.design.stratum
                    if len(rows) and (is_own or group[shown[0]] == stratum):
                        yield (
                            {"model": run.label}
                            | group
                            | {"noise": stratum}
                            | self.against_noise(rows, flips)
                        )

    def against_noise(
        self, scored: pd.DataFrame, noise: pd.DataFrame, rate: str = "flip_rate"
    ) -> dict[str, object]:
        """Compare a rate of pairs with the flips of identical prompts, within the same clusters.

        Args:
            scored: Outcomes with both verdicts.
            noise: Prompts that were asked twice: cluster, n and n_flips, as of `noise_counts`.
            rate: "flip_rate" or "first_accuracy".

        Returns:
            rate and the numbers of a row of `metrics.contrasts_by`, `b` being the noise.
        """
        clusters = pd.concat([scored[self.report.cluster].astype(str), noise["cluster"]])
        codes, names = pd.factorize(clusters)
        first, second = (scored[name].to_numpy(dtype=bool) for name in VERDICTS)
        cells = 4 * codes[: len(scored)] + 2 * ~first + ~second
        pairs = np.bincount(cells, minlength=4 * len(names)).reshape(-1, 4)
        n, n_flips = (
            np.bincount(codes[len(scored) :], weights=noise[name], minlength=len(names))
            for name in ("n", "n_flips")
        )
        # A flip stands where the rate counts it: with one verdict right, or with both.
        repeated = np.zeros((len(names), 4))
        repeated[:, COUNTS.index("first_only" if rate == "flip_rate" else "both")] = n_flips
        repeated[:, COUNTS.index("neither")] = n - n_flips
        margin = self.report.settings.margin
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            result = contrast(pairs, repeated, rate=rate, margin=margin)
        row = {"rate": rate} | spread(result)
        return row | {"margin": math.nan if margin is None else margin}

    def noise_counts(self, run: Run) -> Mapping[str, pd.DataFrame]:
        """Count verdicts and flips of prompts asked twice.

        Args:
            run: The run.

        Returns:
            By stratum a frame with cluster, n and n_flips; empty where nothing was asked twice.
            Where the run folder lacks the second verdicts, each verdict of its noise floor is a
            cluster.
        """
        if run.label not in self._noise:
            self._noise[run.label] = self._count_noise(run)
        return self._noise[run.label]

    def _count_noise(self, run: Run) -> dict[str, pd.DataFrame]:
        """Count what `noise_counts` keeps."""
        floor = run.checks.get("noise_floor")
        if floor is None or floor.empty:
            return {}
        stratum = self.design.stratum if self.design.stratum in floor else None
        repeated = self._repeated(run, stratum)
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

    def _repeated(self, run: Run, stratum: str | None) -> pd.DataFrame | None:
        """Read the prompts asked twice: stratum, cluster, n and n_flips, one row a target."""
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
        if self.report.cluster in targets:
            wanted.append(self.report.cluster)
        both = second.merge(first, on="target_id", suffixes=("_2", "_1")).merge(
            targets[list(dict.fromkeys(wanted))], on="target_id", validate="many_to_one"
        )
        both = both.dropna(subset=["is_correct_1", "is_correct_2"])
        if self.report.cluster in both:
            clusters = both[self.report.cluster]
        else:
            of_fact = run.outcomes.drop_duplicates("fact_id").set_index("fact_id")
            clusters = both["fact_id"].map(of_fact[self.report.cluster])
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
