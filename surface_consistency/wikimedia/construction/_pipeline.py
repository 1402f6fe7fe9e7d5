"""Steps in their order, each done once for what it depends on."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from surface_consistency.wikimedia.construction._checkpoints import Checkpoints, Marker
from surface_consistency.wikimedia.construction._digests import digest_of
from surface_consistency.wikimedia.construction._table_schemas import TABLES, table_schema
from surface_consistency.wikimedia.construction._tracker import Tracker
from surface_consistency.wikimedia.construction.attrition import StepCount
from surface_consistency.wikimedia.construction.database import quoted
from surface_consistency.wikimedia.construction.staging import StagedTables

if TYPE_CHECKING:
    import duckdb

__all__ = ["Pipeline", "Step"]

_VERSION = 2

_ARTICLES_OF_ENTITIES = """
    CREATE VIEW redirect_pages AS FROM {source};
    CREATE OR REPLACE VIEW pages AS FROM redirect_pages UNION ALL
        SELECT NULL, title, any_value(surface), false
        FROM entities ANTI JOIN redirect_pages USING (title) WHERE title IS NOT NULL GROUP BY title
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step and what it depends on."""

    name: str
    """Name of its marker."""

    reads: Sequence[str]
    """Tables that it reads."""

    makes: Sequence[str]
    """Tables that it makes."""

    run: Callable[..., list[StepCount]]
    """The step: takes the connection, then its settings by name."""

    settings: Mapping[str, object] = field(default_factory=dict)
    """Options of the step; values that JSON can hold."""


class Pipeline:
    """Runs steps over staged tables, and keeps each result.

    Args:
        connection: The database.
        staged: The tables that the dumps gave.
        folder: Where results go.
        tracker: What to tell.
    """

    def __init__(
        self,
        connection: "duckdb.DuckDBPyConnection",
        staged: StagedTables,
        folder: Path,
        tracker: Tracker,
    ) -> None:
        self.connection = connection
        self.checkpoints = Checkpoints(folder)
        self.markers: dict[str, Marker] = {}
        """Markers of the finished steps."""
        self._digests = dict(staged.digests)
        self._tracker = tracker
        for table in TABLES:
            source = _source(table, staged.files[table])
            connection.execute(f"CREATE OR REPLACE VIEW {table} AS FROM {source}")
        if not staged.has_articles:
            source = _source("pages", staged.files["pages"])
            connection.execute(_ARTICLES_OF_ENTITIES.format(source=source))
            made_of = [self._digests["pages"], self._digests["entities"]]
            self._digests["pages"] = digest_of("pages", {}, made_of)

    def run(self, steps: Iterable[Step]) -> None:
        """Do steps in their order, those whose results are there excepted.

        Args:
            steps: The steps; each reads tables that are staged or that one before it made.
        """
        for step in steps:
            self._run(step)

    def _run(self, step: Step) -> None:
        """Do a step, unless its results are there, and show them as tables."""
        self._tracker.begin(step.name)
        results = [f"{step.name}.{table}" for table in step.makes]
        digest = self.digest(step)
        marker = self.checkpoints.find(step.name, digest)
        if marker is None:
            marker = self.checkpoints.make(
                step.name, digest, results, lambda parts: self._made(step, parts)
            )
        self.markers[step.name] = marker
        for table, result in zip(step.makes, results, strict=True):
            file = quoted(str(self.checkpoints.path(result)))
            self.connection.execute(f"CREATE OR REPLACE VIEW {table} AS FROM read_parquet({file})")
            self._digests[table] = digest_of(table, {}, [digest])
        self._tracker.end_step()

    def digest(self, step: Step) -> str:
        """Tell what a step's results are made from.

        Args:
            step: The step; what it reads must have been made.

        Returns:
            The digest.
        """
        inputs = [self._digests[table] for table in step.reads]
        return digest_of(f"{step.name} v{_VERSION}", step.settings, inputs)

    def _made(self, step: Step, parts: Mapping[str, Path]) -> list[StepCount]:
        """Do a step, and write its tables."""
        counts = step.run(self.connection, **step.settings)
        for table, part in zip(step.makes, parts.values(), strict=True):
            self.connection.execute(
                f"COPY {table} TO {quoted(str(part))} (FORMAT parquet, COMPRESSION zstd)"
            )
            self.connection.execute(f"DROP TABLE {table}")
        return counts

    @property
    def counts(self) -> Iterator[StepCount]:
        """What the steps took in and passed on."""
        return (count for marker in self.markers.values() for count in marker.counts)


def _source(table: str, files: Sequence[Path]) -> str:
    """Write staged files as one source in SQL; a table without files is empty."""
    if files:
        listed = ", ".join(quoted(str(file)) for file in files)
        return f"read_parquet([{listed}])"
    kinds = {"int64": "BIGINT", "string": "VARCHAR", "bool": "BOOLEAN"}
    columns = (
        f"NULL::{kinds[str(column.type)]} AS {column.name}" for column in table_schema(table)
    )
    return f"(SELECT {', '.join(columns)} WHERE false)"
