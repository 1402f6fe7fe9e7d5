"""What every section of the report page draws on."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from surface_consistency.report._grid import grid
from surface_consistency.report._markup import Html
from surface_consistency.report.run import StudyRun

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Runs, their tables, and the settings of the report."""

    runs: Sequence[StudyRun]
    """The runs in the order of the page."""

    tables: "Mapping[str, pd.DataFrame]"
    """As from `study_tables`."""

    cluster: str
    """Column that was resampled as a whole."""

    n_resamples: int
    """Resamples of the intervals."""

    seed: int
    """Seed of the resampling."""

    n_examples: int
    """Pairs shown of each cell, at most."""

    categories: Sequence[str]
    """Redirect categories that get a panel in the figures."""

    @property
    def templates(self) -> list[str]:
        """The question templates in the order of the tables."""
        return list(dict.fromkeys(self.tables["overall"]["template"]))

    def signatures(self, labels: Collection[str] | None = None) -> list[str]:
        """One line for each run of these labels, the label before it where it is not the model."""
        return [
            run.signature if run.label == run.manifest.model else f"{run.label} = {run.signature}"
            for run in self.runs
            if labels is None or run.label in labels
        ]

    def grid(self, frame: "pd.DataFrame", caption: str) -> Html:
        """Build a table with the signatures of the runs that it names below it."""
        column = next((name for name in ("model", "run") if name in frame), None)
        labels = None if column is None else set(frame[column])
        return grid(frame, caption=caption, sources=self.signatures(labels))
