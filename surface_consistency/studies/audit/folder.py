"""The files of an audit."""

from dataclasses import dataclass
from pathlib import Path

from surface_consistency.studies.run_folder import RunFolder

__all__ = ["AuditFolder"]


@dataclass(frozen=True, slots=True)
class AuditFolder(RunFolder):
    """A run folder with the products of an audit."""

    @property
    def targets(self) -> Path:
        """What was deleted and asked: lines of `AuditTarget`."""
        return self.path / "targets.jsonl"

    @property
    def results(self) -> Path:
        """Folder of the answers with their traces, one file a cell, in the published rows."""
        return self.path / "results"

    @property
    def tables(self) -> Path:
        """Folder of the tables."""
        return self.path / "tables"

    @property
    def per_state(self) -> Path:
        """Means by cell and state, in the published columns."""
        return self.path / "per_state_metrics.csv"

    @property
    def cross_state(self) -> Path:
        """Leakage, mediated correctness and artifacts by cell, in the published columns."""
        return self.path / "cross_state_metrics.csv"
