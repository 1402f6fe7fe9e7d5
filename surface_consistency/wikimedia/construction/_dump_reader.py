"""Reading one dump into tables, once."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surface_consistency.errors import TruncatedDumpWarning
from surface_consistency.wikimedia.construction._arrow import TableWriter, Tally
from surface_consistency.wikimedia.construction._checkpoints import Checkpoints, Marker
from surface_consistency.wikimedia.construction._digests import digest_of, file_digest
from surface_consistency.wikimedia.construction._table_schemas import TABLES, table_schema
from surface_consistency.wikimedia.construction._tracker import Tracker
from surface_consistency.wikimedia.construction.attrition import StepCount
from surface_consistency.wikimedia.streams import ReadProgress
from surface_consistency.wikimedia.wikis import WikiConfig

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DumpReader"]

_VERSION = 2
_TO_THE_END = "dumps read to their end"


class DumpReader:
    """Reads the dumps of one build into tables, and remembers what became of each.

    Args:
        folder: Where the tables go.
        config: The wiki.
        tracker: What to tell.
        allow_truncated: Whether a dump that ends early counts as far as it goes.
        threads: Threads for unpacking; as many as there are processors when None.
    """

    def __init__(
        self,
        folder: Path,
        config: WikiConfig,
        tracker: Tracker,
        *,
        allow_truncated: bool,
        threads: int | None,
    ) -> None:
        self.config = config
        """The wiki."""
        self._checkpoints = Checkpoints(folder)
        self._tracker = tracker
        self.options: dict[str, Any] = {
            "allow_truncated": allow_truncated,
            "progress": tracker.read,
            "threads": threads,
        }
        """Options of every reader of dumps."""
        self.files: dict[str, list[Path]] = {table: [] for table in TABLES}
        """Files by table."""
        self.digests: dict[str, list[str]] = {table: [] for table in TABLES}
        """Digests by table."""
        self.markers: dict[str, Marker] = {}
        """What was read, by name."""

    def take(
        self,
        path: Path,
        name: str,
        tables: Sequence[str],
        work: Callable[[dict[str, TableWriter], Tally], None],
        *,
        unit: str,
        settings: Mapping[str, object] | None = None,
        inputs: Sequence[str] = (),
    ) -> None:
        """Read one dump into tables, unless an earlier start did.

        Args:
            path: The dump.
            name: Name of its results.
            tables: Tables that it gives.
            work: Reads it into the writers of those tables.
            unit: What its rows are.
            settings: Settings that its results depend on.
            inputs: Digests of other tables that its results depend on.
        """
        digest = digest_of(f"{name} v{_VERSION}", settings or {}, [file_digest(path), *inputs])
        results = {table: f"{name}.{table}" for table in tables}
        marker = self._finished(path, name, digest)
        if marker is None:
            self._tracker.begin(f"read {name}", path)
            run = partial(self._write_tables, path, results, work, step=f"read {name}", unit=unit)
            marker = self._checkpoints.make(name, digest, list(results.values()), run)
            self._tracker.finish(path)
        else:
            self._tracker.skip(path)
        self.markers[f"read {name}"] = marker
        for table, result in results.items():
            self.files[table].append(self._checkpoints.path(result))
            self.digests[table].append(digest)

    def sql(self, path: Path, columns: tuple[str, ...]) -> "Iterator[pa.RecordBatch]":
        """Read columns of an SQL dump."""
        from surface_consistency.wikimedia.sql import read_sql

        return read_sql(path, columns, **self.options)

    def _finished(self, path: Path, name: str, digest: str) -> Marker | None:
        """Find what an earlier start made of a dump; of one that ended early, only if allowed."""
        marker = self._checkpoints.find(name, digest)
        cuts = [count for count in marker.counts if count.unit == _TO_THE_END] if marker else []
        if not cuts:
            return marker
        if not self.options["allow_truncated"]:
            return None
        message = f"{path}: {cuts[0].reason}, when an earlier start read it"
        warnings.warn(message, TruncatedDumpWarning, stacklevel=2)
        return marker

    def _write_tables(
        self,
        path: Path,
        results: Mapping[str, str],
        work: Callable[[dict[str, TableWriter], Tally], None],
        parts: Mapping[str, Path],
        *,
        step: str,
        unit: str,
    ) -> list[StepCount]:
        """Open the writers of a dump's tables, let it be read, and count."""
        tally = Tally()
        with ExitStack() as stack:
            writers = {
                table: stack.enter_context(TableWriter(parts[result], table_schema(table)))
                for table, result in results.items()
            }
            work(writers, tally)
        counts = _counts_of(tally, step, unit)
        cut = self._tracker.truncated.get(path)
        return counts if cut is None else [*counts, _cut_off(step, cut)]


def _counts_of(tally: Tally, step: str, unit: str) -> list[StepCount]:
    """Turn what was counted into lines of the attrition table."""
    removed: list[tuple[str | None, int]] = [
        (reason, count) for reason, count in sorted(tally.removed.items()) if count
    ]
    return [
        StepCount(
            step=step,
            unit=unit,
            rows_in=tally.n_in,
            rows_out=tally.n_out,
            reason=reason,
            removed=count,
        )
        for reason, count in removed or [(None, 0)]
    ]


def _cut_off(step: str, state: ReadProgress) -> StepCount:
    """Count a dump that was not read to its end, and say where it ended."""
    reason = (
        f"{state.path.name} is cut off or damaged near byte {state.read_bytes:,} of "
        f"{state.total_bytes:,}; what came before is kept"
    )
    return StepCount(step=step, unit=_TO_THE_END, rows_in=1, rows_out=0, reason=reason, removed=1)
