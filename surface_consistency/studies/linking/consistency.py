"""Analyse whether a model that links two names also answers consistently under both names.

The paper compares categories by inspection; this analysis joins the two studies pair by pair.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.engine.design import Report
from surface_consistency.engine.study import Analysis
from surface_consistency.errors import DataError
from surface_consistency.metrics import clustered_auc
from surface_consistency.metrics.uncertainty.bootstrap import group_values
from surface_consistency.metrics.uncertainty.cluster_bounds import Part, of_shares
from surface_consistency.metrics.uncertainty.intervals import Intervals
from surface_consistency.reading import shown
from surface_consistency.report.page import Prose
from surface_consistency.runs.loader import Run, load_runs, study_name
from surface_consistency.schemas.settings import Settings
from surface_consistency.studies.linking.page import TEXTS
from surface_consistency.studies.linking.records import LinkingOutcome
from surface_consistency.tables.sentences import difference, paragraph
from surface_consistency.tables.table import Table
from surface_consistency.tables.tabulation import tabulate

_NAMES: Final = ["first_surface", "second_surface"]


class LinkingConsistencySettings(Settings):
    """Run folders of the linking probe."""

    linking: tuple[Path, ...]
    """Run folder of the linking probe, one per model of the runs; repeat the option for further
    models."""


class LinkingConsistency(Analysis):
    """Compare the flips of pairs whose two names the model links with those of the other pairs."""

    name = "linking_vs_consistency"
    title = "Linking and consistency"
    settings = LinkingConsistencySettings
    studies = ("redirectqa",)

    def figures(self, report: Report, tables: Mapping[str, Table]) -> Iterator[Prose]:
        """Report whether pairs with linked names flip less often; see `Analysis.figures`."""
        sentences = [
            difference(
                row | {"n": row["n_linked"] + row["n_not_linked"]},
                "difference",
                f"flip rate of {row['model']} (template: {row['template']})",
                "pairs whose names are not linked",
                "pairs whose names are linked",
                p=None,
                **report.words,
            )
            for row in tables[self.name].frame.to_dict("records")
            if row["pairs"] == "all"
        ]
        yield Prose(parts=paragraph(sentences))

    def tables(self, report: Report, settings: LinkingConsistencySettings) -> Mapping[str, Table]:
        """Compare the flip rates of pairs with linked names and of pairs without.

        Returns:
            "linking_vs_consistency", one row per model, template and set of pairs (all, and those
            correct under the title): numbers of pairs, flip rates in [0, 1] of linked and not
            linked pairs, their difference with its interval, and the area under the ROC curve with
            which low log-odds of yes predict a flip.

        Raises:
            ValueError: If a folder is not a run of the linking probe.
            DataError: If a model has no linking run, or they have no pair of names in common.
        """
        probes = _probes(settings.linking)
        frame = pd.concat([_joined(run, probes) for run in report.runs], ignore_index=True)

        def rates(part: pd.DataFrame) -> Iterator[dict[str, object]]:
            known = part[part["first_correct"].astype(bool)]
            for label, rows in (("all", part), ("right under the title", known)):
                yield {"pairs": label, **_rates(rows, report.cluster, report.intervals)}

        rows = tabulate(frame, ["model", "template"], rates)
        return {self.name: TEXTS.table(self.name, rows)}


def _probes(folders: tuple[Path, ...]) -> dict[str, pd.DataFrame]:
    """Read the true pairs of linking runs, by model."""
    study = study_name(folders)
    if study != "linking":
        raise ValueError(f"`linking` must name runs of the linking probe; got runs of {study}")
    probes: dict[str, pd.DataFrame] = {}
    for run in load_runs(folders, outcome=LinkingOutcome):
        rows = run.outcomes
        own = rows[(rows["kind"] == "positive") & rows["is_main"] & rows["first_correct"].notna()]
        if run.manifest.model in probes:
            raise ValueError(
                f"`linking` names two runs of {shown(run.manifest.model)}; pass one run per model"
            )
        probes[run.manifest.model] = own.assign(is_linked=own["first_correct"].astype(bool))[
            [*_NAMES, "is_linked", "first_log_odds"]
        ]
    return probes


def _joined(run: Run, probes: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Join the answers of the linking probe with the outcomes of the pairs of names."""
    model = run.manifest.model
    if model not in probes:
        raise DataError(
            f"linking run of {shown(model)} not found; pass one by `linking`. Models with a "
            f"linking run: {', '.join(sorted(probes))}"
        )
    scored = run.outcomes.dropna(subset=["first_correct", "second_correct"])
    joined = scored.merge(probes[model].drop_duplicates(_NAMES), on=_NAMES, how="inner")
    if joined.empty:
        raise DataError(
            f"the linking run of {shown(model)} has no pair of names in common with {run.label}; "
            "run the linking probe on the same data"
        )
    flips = joined["first_correct"].astype(bool) != joined["second_correct"].astype(bool)
    return joined.assign(model=run.label, is_flip=flips)


def _rates(part: pd.DataFrame, cluster: str, intervals: Intervals) -> dict[str, object]:
    """Compute the flip rates of some pairs, and the area under the curve of the log-odds."""
    linked, flips = part["is_linked"].to_numpy(), part["is_flip"].to_numpy()
    cells = pd.DataFrame(np.stack([linked & flips, linked, ~linked & flips, ~linked], axis=1))
    counts = cells.groupby(part[cluster].to_numpy(), sort=False).sum().to_numpy(float)
    linked_flips, n_linked, other_flips, n_others = counts.sum(axis=0)
    row: dict[str, object] = {
        "n_linked": int(n_linked),
        "n_not_linked": int(n_others),
        "n_clusters": len(counts),
        "flip_rate_linked": linked_flips / n_linked if n_linked else math.nan,
        "flip_rate_not_linked": other_flips / n_others if n_others else math.nan,
    }
    compared = group_values(counts, {"difference": _difference}, intervals)["difference"]
    row |= {"difference": compared.value, "not_inferred": compared.not_inferred}
    row |= {"difference_low": compared.low, "difference_high": compared.high}
    known = part[part["first_log_odds"].notna()]
    area = clustered_auc(
        -known["first_log_odds"].to_numpy(dtype=float),
        known["is_flip"].to_numpy(dtype=float),
        known[cluster].to_numpy(dtype=object),
        confidence=intervals.confidence,
    )
    return row | {name: area[name] for name in ("auc", "auc_low", "auc_high")}


@of_shares(Part(1.0, (1, 0, 0, 0), (0, 1, 0, 0)), Part(-1.0, (0, 0, 1, 0), (0, 0, 0, 1)))
def _difference(sums: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the flip rate of linked pairs minus that of pairs not linked."""
    flips, linked, other_flips, others = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    with np.errstate(invalid="ignore"):
        return np.asarray(flips / linked - other_flips / others)
