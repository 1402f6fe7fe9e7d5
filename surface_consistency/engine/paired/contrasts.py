"""Tables of differences: flips less noise, groups against groups, models against models."""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.engine.design import Report
from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics import PAIRED_RATES, adjust_p_values, contrast, contrasts_by
from surface_consistency.report.table import Column, Table, interval_column
from surface_consistency.runs.frames import read_frame
from surface_consistency.runs.loader import Run
from surface_consistency.schemas._record import Record

__all__ = ["COUNTS", "ContrastTables"]

COUNTS: Final = ("both", "first_only", "second_only", "neither")
"""Columns of the four cells."""

_VERDICTS: Final = ("first_correct", "second_correct")
_MOST_GROUPS: Final = 6
"""Groups of which every two are compared."""
_MOST_MODELS: Final = 4
"""Models of which every two are compared."""
_CONTRAST_NOTE: Final = (
    "The difference is taken within the same clusters, and of models on the same pairs; interval "
    "and p rest on how far the two rates go together there, p corrected by Holm's method. Two "
    "intervals that overlap say nothing of a difference."
)

# Half an interval of 95 % is 1.96 standard errors; a difference of 1.96 + 0.84 of them is found in
# 80 % of data sets.
_FOUND_BY_HALF: Final = (1.959964 + 0.841621) / 1.959964


def _contrast_note(frame: pd.DataFrame) -> str:
    """Say how a table of contrasts was made, and what its rows could have shown."""
    halves = (frame["difference_high"] - frame["difference_low"]).dropna() / 2.0
    if halves.empty:
        return _CONTRAST_NOTE
    ends = [f"{100 * _FOUND_BY_HALF * end:.1f}" for end in (halves.min(), halves.max())]
    span = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}, by row"
    return (
        f"{_CONTRAST_NOTE} A true difference of about this many points is found with a probability "
        f"of 80 %, before the correction: {span}."
    )


class _Correct(Record):
    """What a verdict says, without its reasons."""

    target_id: str
    is_correct: bool | None


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
        frame = self.frame
        for name, columns in self.design.groupings.items():
            within = ["model", *filter(None, (self.design.facet,)), *columns[:-1]]
            if frame[columns[-1]].explode().nunique() <= _MOST_GROUPS:
                tables[f"contrasts_{name}"] = self._contrasts(
                    f"Groups against each other, {name.replace('_', ' ')}",
                    between=columns[-1],
                    within=within,
                    rates=["flip_rate"],
                )
        tables["contrasts"] = self.compare_models()
        for name, columns in self.design.groupings.items():
            tables[f"models_{name}"] = self.compare_models(name, columns)
        return {name: table for name, table in tables.items() if table is not None}

    def compare_models(self, name: str = "", columns: Sequence[str] = ()) -> Table | None:
        """Compare every two models on the pairs that both answered.

        Args:
            name: Name of a grouping within which they are compared; none by default.
            columns: Its columns.

        Returns:
            The table; None for a single model, or where no two share a pair.
        """
        if len(self.labels) < 2:
            return None
        return self._contrasts(
            "Models on the pairs that both answered"
            + (f", {name.replace('_', ' ')}" if name else ""),
            between="model",
            within=[*filter(None, (self.design.facet,)), *columns],
            rates=["flip_rate"] if name else ["flip_rate", "first_accuracy", "accuracy_difference"],
        )

    def _contrasts(
        self, caption: str, *, between: str, within: list[str], rates: list[str]
    ) -> Table | None:
        """Compare every two groups of a column within those of others."""
        is_models = between == "model"
        wanted = [*within, between, self.report.cluster, *_VERDICTS, "pair_id"]
        frame = self.frame[list(dict.fromkeys(wanted))]
        scored = frame[frame["first_correct"].notna() & frame["second_correct"].notna()]
        if scored.empty:
            return None
        reference = self.labels[0] if is_models and len(self.labels) > _MOST_MODELS else None
        if reference is not None and reference not in set(scored["model"]):
            return None
        table = contrasts_by(
            # Labels are sorted by `contrasts_by`; models are compared in the order given.
            scored.assign(model=scored["model"].map(self.index)) if is_models else scored,
            between=between,
            within=within,
            reference=None if reference is None else self.index[reference],
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
        inner = [name for name in within if name in table or name in self.design.exploded_names]
        key = self.design.shown(between)
        titles = {} if is_models else self.design.labels.get(key, {})
        return Table(
            frame=table,
            caption=caption,
            model="model" if "model" in within else None,
            columns=[
                *self.label_columns(inner),
                Column(key="a", title=key.replace("_", " ").capitalize(), labels=titles),
                Column(key="b", title="Against", labels=titles),
                *self._contrast_columns(),
            ],
            note=_contrast_note(table),
        )

    def _contrast_columns(self) -> list[Column]:
        """Describe the numbers of a contrast."""
        shown = [
            Column(
                key="rate",
                title="Rate",
                labels={name: name.replace("_", " ") for name in PAIRED_RATES},
            ),
            Column(key="n_a", title="Pairs", kind="count"),
            Column(key="n_clusters", title=self.clusters.capitalize(), kind="count"),
            interval_column("difference", "Difference", "difference", "points"),
            Column(key="p_value_holm", title="p", kind="p_value", unit="Holm"),
        ]
        if self.report.settings.margin is not None:
            shown.append(
                Column(
                    key="p_equivalent",
                    title="p",
                    kind="p_value",
                    unit=f"of {100 * self.report.settings.margin:g} points or more",
                )
            )
        return shown

    def above_noise_by(self, columns: Sequence[str]) -> pd.Series:
        """Test the flip rate of each group against that of identical prompts.

        Args:
            columns: Columns of the outcomes that make the groups besides model and panel.

        Returns:
            The one-sided p-value of no more flips than by noise, the largest of the strata, after
            Holm's correction over the groups of a model and panel; indexed by model, panel where
            there is one, and labels as tables name them. Empty without a noise floor.
        """
        keys = ["model", *filter(None, (self.design.facet,)), *columns]
        found: dict[tuple[str, ...], float] = {}
        for run in self.report.runs:
            noise = self.noise_counts(run)
            for panel, part in self._panels(run.outcomes):
                scored = part[part["first_correct"].notna() & part["second_correct"].notna()]
                for name in columns:
                    scored = scored.explode(name)
                own: dict[tuple[str, ...], float] = {}
                for labels, rows in scored.groupby(list(columns), sort=False, dropna=False):
                    told = [self._one_sided(rows, flips) for flips in self._strata(noise, panel)]
                    if not told:
                        continue
                    missing = [pd.isna(label) for label in labels]  # type: ignore[call-overload]
                    shown = [
                        "none" if is_missing else str(label)
                        for label, is_missing in zip(labels, missing, strict=True)
                    ]
                    own[run.label, *filter(None, (panel,)), *shown] = max(told)
                adjusted = adjust_p_values(list(own.values()))
                found |= dict(zip(own, adjusted.tolist(), strict=True))
        names = [self.design.shown(key) for key in keys]
        index = pd.MultiIndex.from_tuples(list(found), names=names) if found else None
        return pd.Series(list(found.values()), index=index, dtype=np.float64)

    def _one_sided(self, scored: pd.DataFrame, noise: pd.DataFrame) -> float:
        """Test whether pairs flip more than identical prompts do."""
        found = self.against_noise(scored, noise)
        half = found["p_value"] / 2.0
        return float(half if found["difference"] > 0 else 1.0 - half)

    def _strata(self, noise: Mapping[str, pd.DataFrame], panel: str | None) -> list[pd.DataFrame]:
        """Choose the strata of the noise that pairs of a panel are held against."""
        is_same = panel is not None and self.design.stratum == self.design.facet
        return [flips for name, flips in noise.items() if not is_same or name == panel]

    def _above_noise(self) -> Table | None:
        """Hold the flip rate of each model and panel against that of identical prompts."""
        rows = []
        for run in self.report.runs:
            noise = self.noise_counts(run)
            for panel, part in self._panels(run.outcomes):
                scored = part[part["first_correct"].notna() & part["second_correct"].notna()]
                for stratum, flips in noise.items():
                    is_other = self.design.stratum == self.design.facet and stratum != panel
                    if scored.empty or (panel is not None and is_other):
                        continue
                    rows.append(
                        {"model": run.label}
                        | ({} if panel is None else {str(self.facet): panel})
                        | {"noise": stratum}
                        | self.against_noise(scored, flips)
                    )
        if not rows:
            return None
        frame = pd.DataFrame(rows)
        frame["p_value_holm"] = adjust_p_values(frame["p_value"].to_numpy(dtype=np.float64))
        labels = ["model", *filter(None, (self.facet,))]
        return Table(
            frame=frame,
            caption="Flips between conditions less flips of identical prompts",
            columns=[
                *self.label_columns(labels),
                Column(key="noise", title="Asked twice"),
                *self._contrast_columns(),
            ],
            note=_contrast_note(frame),
        )

    def against_noise(
        self, scored: pd.DataFrame, noise: pd.DataFrame, rate: str = "flip_rate"
    ) -> dict[str, Any]:
        """Compare a rate of pairs with the flips of identical prompts, within the same clusters.

        Args:
            scored: Outcomes with both verdicts.
            noise: Prompts that were asked twice: cluster, n and n_flips, as of `noise_counts`.
            rate: "flip_rate" or "first_accuracy".

        Returns:
            rate and the numbers of a row of `metrics.contrasts_by`, `b` being the noise.
        """
        right = [scored[name].astype(bool) for name in _VERDICTS]
        cells = pd.DataFrame(
            {
                "both": right[0] & right[1],
                "first_only": right[0] & ~right[1],
                "second_only": ~right[0] & right[1],
                "neither": ~right[0] & ~right[1],
            }
        ).astype(float)
        pairs = cells.groupby(scored[self.report.cluster].astype(str).to_numpy()).sum()
        repeated = noise.groupby("cluster")[["n", "n_flips"]].sum()
        clusters = pairs.index.union(repeated.index)
        repeated = repeated.reindex(clusters, fill_value=0.0)
        # A flip stands where the rate counts it: with one verdict right, or with both.
        flipped = "first_only" if rate == "flip_rate" else "both"
        counts = pd.DataFrame(0.0, index=clusters, columns=list(COUNTS))
        counts[flipped] = repeated["n_flips"]
        counts["neither"] = repeated["n"] - repeated["n_flips"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            found = contrast(
                pairs.reindex(clusters, fill_value=0.0)[list(COUNTS)].to_numpy(),
                counts.to_numpy(),
                rate=rate,
                margin=self.report.settings.margin,
            )
        return {
            "rate": rate,
            "value_a": found.value_a,
            "value_b": found.value_b,
            "difference": found.difference,
            "difference_low": found.difference_interval.low,
            "difference_high": found.difference_interval.high,
            "p_value": found.p_value,
            "margin": math.nan if found.margin is None else found.margin,
            "p_equivalent": found.p_equivalent,
            "n_a": found.n_a,
            "n_b": found.n_b,
            "n_clusters": found.n_clusters,
        }

    def noise_counts(self, run: Run) -> dict[str, pd.DataFrame]:
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
        found = self._repeated(run, stratum)
        if found is not None:
            return {str(name): part for name, part in found.groupby("stratum", sort=False)}
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
        both = both[both["is_correct_1"].notna() & both["is_correct_2"].notna()]
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

    def _panels(self, outcomes: pd.DataFrame) -> Iterator[tuple[str | None, pd.DataFrame]]:
        """Part outcomes by panel."""
        if self.design.facet is None:
            yield None, outcomes
            return
        for value, part in outcomes.groupby(self.design.facet, sort=False):
            yield str(value), part
