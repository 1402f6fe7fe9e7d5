"""What a build hands back."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from surface_consistency.errors import DataError
from surface_consistency.wikimedia.construction._checkpoints import Checkpoints
from surface_consistency.wikimedia.construction._digests import digest_of
from surface_consistency.wikimedia.construction._pipeline import Pipeline, Step
from surface_consistency.wikimedia.construction._row_assembly import write_rows
from surface_consistency.wikimedia.construction.attrition import StepCount
from surface_consistency.wikimedia.construction.database import count_of
from surface_consistency.wikimedia.construction.rows import BuiltRow, read_rows
from surface_consistency.wikimedia.construction.staging import StagedTables

__all__ = ["BuildResult", "finish_build"]

_MAY_BE_EMPTY = frozenset({"read page_props", "names"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """A finished build."""

    path: Path
    """The rows, one Parquet file in the work folder; its name tells its inputs and settings, so a
    later build with others does not replace it."""

    attrition: tuple[StepCount, ...]
    """What each dump and step took in, passed on and left out, in order."""

    n_triples: int
    """Facts."""

    n_redirect_instances: int
    """Facts under a redirect's name: the pairs of the consistency analysis."""

    n_rows: int
    """Rows: instances, canonical ones included, times question templates."""

    seconds: Mapping[str, float]
    """Seconds that each dump or step took when it was made; earlier starts included."""

    @property
    def n_instances(self) -> int:
        """Surface instances, canonical ones included."""
        return self.n_triples + self.n_redirect_instances

    def rows(self) -> Iterator[BuiltRow]:
        """Read the rows, each checked against its record.

        Yields:
            The rows, ordered by fact; canonical before redirects, wordings together.
        """
        return read_rows(self.path)


def finish_build(
    pipeline: Pipeline,
    staged: StagedTables,
    folder: Path,
    step: Step,
    rows: Callable[[], Iterator[BuiltRow]],
) -> BuildResult:
    """Write the rows, unless they are there, and sum the build up.

    Args:
        pipeline: The steps that were run.
        staged: What was read.
        folder: Where the rows go.
        step: What the rows depend on; its `run` is not used.
        rows: Makes the rows.

    Returns:
        The build.

    Raises:
        DataError: If there are no rows.
    """
    connection = pipeline.connection
    n_triples = count_of(connection, "(SELECT DISTINCT triplet_id FROM balanced)")
    counts = (*staged.counts, *pipeline.counts)
    if not n_triples:
        raise DataError(_empty_message(counts))
    digest = pipeline.digest(step)
    name = f"rows-{digest_of('rows', {}, [digest])[:12]}"
    checkpoints = Checkpoints(folder)
    marker = checkpoints.find(name, digest)
    if marker is None:

        def work(parts: dict[str, Path]) -> list[StepCount]:
            """Write the rows."""
            n_rows = write_rows(parts[name], rows())
            unit = "surface instances to rows"
            n_instances = n_triples + count_of(connection, "balanced")
            return [StepCount(step="rows", unit=unit, rows_in=n_instances, rows_out=n_rows)]

        marker = checkpoints.make(name, digest, [name], work)
    seconds = {done: item.seconds for done, item in pipeline.markers.items()}
    return BuildResult(
        path=checkpoints.path(name),
        attrition=(*counts, *marker.counts),
        n_triples=n_triples,
        n_redirect_instances=count_of(connection, "balanced"),
        n_rows=marker.counts[0].rows_out,
        seconds={**staged.seconds, **seconds, "rows": marker.seconds},
    )


def _empty_message(counts: tuple[StepCount, ...]) -> str:
    """Say where the rows went."""
    last = next(
        (
            count
            for count in counts
            if count.rows_in and not count.rows_out and count.step not in _MAY_BE_EMPTY
        ),
        None,
    )
    where = "no dump held a row for them" if last is None else f"step {last.step!r} left none"
    reason = f": {last.reason}" if last is not None and last.reason else ""
    return (
        f"the build has no rows; {where}{reason}. Check that all dumps are of the configured wiki "
        "and of about the same date"
    )
