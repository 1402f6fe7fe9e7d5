"""Does a model that links two names also answer alike under both?

The paper compares categories by eye; this joins the two studies pair by pair.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.engine.design import Report
from surface_consistency.engine.study import Analysis
from surface_consistency.errors import DataError
from surface_consistency.metrics import cluster_bootstrap, clustered_auc
from surface_consistency.metrics.uncertainty.intervals import Part, of_shares
from surface_consistency.report.table import Column, Table, interval_column
from surface_consistency.runs.loader import Run, load_runs, study_name
from surface_consistency.schemas.settings import Settings
from surface_consistency.studies.linking.records import LinkingOutcome

__all__ = ["LinkingConsistency", "LinkingConsistencySettings"]

_NAMES = ["first_surface", "second_surface"]


class LinkingConsistencySettings(Settings):
    """Which answers of the linking probe are read."""

    linking: tuple[Path, ...]
    """Run folder of the linking probe, one for each model of the runs; give the option again for
    further models."""


class LinkingConsistency(Analysis):
    """Flips of a pair against whether the model links its two names."""

    name = "linking_vs_consistency"
    title = "Linking and consistency"
    settings = LinkingConsistencySettings
    studies = ("redirectqa",)

    def tables(self, report: Report, settings: LinkingConsistencySettings) -> Mapping[str, Table]:
        """Compare flips of pairs whose names are linked with flips of those whose are not.

        Returns:
            "linking_vs_consistency", one row a model, template and set of pairs (all, and those
            right under the title): numbers of pairs, flip rates in [0, 1] of linked and not linked
            pairs, their difference with its interval, and the area under the curve with which low
            log-odds of yes foretell a flip.

        Raises:
            ValueError: If a folder is no run of the linking probe.
            DataError: If a model has no linking run, or they have no pair of names in common.
        """
        probes = _probes(settings.linking)
        rows = []
        for run in report.runs:
            if run.manifest.model not in probes:
                raise DataError(
                    f"no linking run of {run.manifest.model!r} among those of "
                    f"{', '.join(sorted(probes))}; name one by --linking"
                )
            joined = _joined(run, probes[run.manifest.model])
            for template, of_template in joined.groupby("template", sort=False):
                known = of_template[of_template["first_correct"].astype(bool)]
                for label, part in (("all", of_template), ("right under the title", known)):
                    row = _row(part, report)
                    rows.append({"model": run.label, "template": template, "pairs": label, **row})
        return {
            self.name: Table(
                frame=pd.DataFrame(rows),
                caption="Flips of pairs whose two names the model links, and of the others",
                note="Linked: yes, with the redirect first, to the pair’s own question. An area "
                "under the curve of 0.5 says that the log-odds of yes foretell no flip.",
                few="n_clusters",
                columns=[
                    Column(key="model", title="Model"),
                    Column(key="template", title="Template"),
                    Column(key="pairs", title="Pairs"),
                    Column(key="n_linked", title="Linked", kind="count"),
                    Column(key="n_not_linked", title="Not linked", kind="count"),
                    Column(key="flip_rate_linked", title="Flips, linked", kind="rate", unit="%"),
                    Column(
                        key="flip_rate_not_linked", title="Flips, not linked", kind="rate", unit="%"
                    ),
                    interval_column("difference", "Difference", "difference", "points"),
                    interval_column("auc", "AUC", "number", "0.5 is chance"),
                ],
            )
        }


def _probes(folders: tuple[Path, ...]) -> dict[str, pd.DataFrame]:
    """Read the true pairs of linking runs, by model."""
    found = study_name(folders)
    if found != "linking":
        raise ValueError(f"--linking names runs of the linking probe, not of {found}")
    probes: dict[str, pd.DataFrame] = {}
    for run in load_runs(folders, outcome=LinkingOutcome):
        told = run.outcomes
        own = told[(told["kind"] == "positive") & told["is_main"] & told["first_correct"].notna()]
        if run.manifest.model in probes:
            raise ValueError(
                f"--linking names two runs of {run.manifest.model!r}; give one of each model"
            )
        probes[run.manifest.model] = own.assign(is_linked=own["first_correct"].astype(bool))[
            [*_NAMES, "is_linked", "first_log_odds"]
        ]
    return probes


def _joined(run: Run, probe: pd.DataFrame) -> pd.DataFrame:
    """Put what the model said of two names beside what it answered under them."""
    scored = run.outcomes
    scored = scored[scored["first_correct"].notna() & scored["second_correct"].notna()]
    joined = scored.merge(probe.drop_duplicates(_NAMES), on=_NAMES, how="inner")
    if joined.empty:
        raise DataError(
            f"the linking run of {run.manifest.model!r} asks for no pair of names of {run.label}; "
            "ask it for the same data"
        )
    flips = joined["first_correct"].astype(bool) != joined["second_correct"].astype(bool)
    return joined.assign(is_flip=flips)


def _row(part: pd.DataFrame, report: Report) -> dict[str, Any]:
    """Compute the numbers of some pairs."""
    linked, flips = part["is_linked"].to_numpy(), part["is_flip"].to_numpy()
    cells = np.stack([linked & flips, linked, ~linked & flips, ~linked], axis=1).astype(float)
    codes, _ = pd.factorize(part[report.cluster])
    n_clusters = int(codes.max(initial=-1)) + 1
    row: dict[str, Any] = {
        "n_linked": int(linked.sum()),
        "n_not_linked": int((~linked).sum()),
        "n_clusters": n_clusters,
    }
    counts = np.stack(
        [np.bincount(codes, cells[:, column], minlength=n_clusters) for column in range(4)], axis=1
    )
    names = ("flip_rate_linked", "flip_rate_not_linked", "difference")
    row |= dict.fromkeys((*names, "difference_low", "difference_high"), float("nan"))
    if row["n_linked"]:
        row["flip_rate_linked"] = counts[:, 0].sum() / counts[:, 1].sum()
    if row["n_not_linked"]:
        row["flip_rate_not_linked"] = counts[:, 2].sum() / counts[:, 3].sum()
    if row["n_linked"] and row["n_not_linked"] and n_clusters > 1:
        told = cluster_bootstrap(counts, _difference)
        row["difference"] = told.estimate
        row["difference_low"] = told.estimate_interval.low
        row["difference_high"] = told.estimate_interval.high
    known = part[part["first_log_odds"].notna()]
    area = clustered_auc(
        -known["first_log_odds"].to_numpy(dtype=float),
        known["is_flip"].to_numpy(dtype=float),
        known[report.cluster].to_numpy(dtype=object),
    )
    return row | {
        "auc": area.auc,
        "auc_low": area.auc_interval.low,
        "auc_high": area.auc_interval.high,
    }


@of_shares(Part(1.0, (1, 0, 0, 0), (0, 1, 0, 0)), Part(-1.0, (0, 0, 1, 0), (0, 0, 0, 1)))
def _difference(sums: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Take the flip rate of linked pairs less that of pairs not linked."""
    flips, linked, other_flips, others = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    difference: npt.NDArray[np.float64] = flips / linked - other_flips / others
    return difference
