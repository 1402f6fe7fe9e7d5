"""The order of the build steps; the result of each step is stored and reused."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from surface_consistency_build.wikimedia.construction._work_folder import (
    Checkpoints,
    Marker,
    digest_of,
)
from surface_consistency_build.wikimedia.construction.database import TABLES, quoted, table_schema
from surface_consistency_build.wikimedia.construction.progress import StepCount, Tracker
from surface_consistency_build.wikimedia.construction.staging import StagedTables
from surface_consistency_build.wikimedia.construction.steps import (
    Unambiguous,
    balance,
    candidate_triples,
    find_shared_names,
    join_articles,
    keep_categories,
    keep_surfaces,
    name_objects,
    resolve_redirects,
    sample_triples,
    sum_views,
)
from surface_consistency_build.wikimedia.wikis import WikiConfig

if TYPE_CHECKING:
    import duckdb

_VERSION = 2

_ARTICLES_OF_ENTITIES = """
    CREATE VIEW redirect_pages AS FROM {source};
    CREATE OR REPLACE VIEW pages AS FROM redirect_pages UNION ALL
        SELECT NULL, title, any_value(surface), false
        FROM entities ANTI JOIN redirect_pages USING (title) WHERE title IS NOT NULL GROUP BY title
"""


Run = Callable[..., list[StepCount]]
"""Function of a step: receives the connection, and the settings of the step as keywords."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step and its inputs."""

    name: str
    """Name of its marker."""

    reads: Sequence[str]
    """Tables that it reads."""

    makes: Sequence[str]
    """Tables that it creates."""

    run: Run
    """The step."""

    settings: Mapping[str, object] = field(default_factory=dict)
    """Options of the step, as JSON values."""


class Pipeline:
    """Runs steps over staged tables, and stores each result in a folder."""

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

    def run(self, step: Step) -> None:
        """Run a step, unless its results exist, and create views of them."""
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
        """Return the digest of a step's inputs and settings; its input tables must exist."""
        inputs = [self._digests[table] for table in step.reads]
        return digest_of(f"{step.name} v{_VERSION}", step.settings, inputs)

    def _made(self, step: Step, parts: Mapping[str, Path]) -> list[StepCount]:
        """Run a step, and write its tables."""
        counts = step.run(self.connection, **step.settings)
        for table, part in zip(step.makes, parts.values(), strict=True):
            self.connection.execute(
                f"COPY {table} TO {quoted(str(part))} (FORMAT parquet, COMPRESSION zstd)"
            )
            self.connection.execute(f"DROP TABLE {table}")
        return counts

    @property
    def counts(self) -> Iterator[StepCount]:
        """Rows in and out of the steps."""
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


def article_steps() -> tuple[Step, ...]:
    """List the steps that depend only on the dumps."""
    pages = ("pages", "page_props")
    return (
        Step("01_views", ("views", "pages"), ("page_views",), sum_views),
        Step("02_articles", (*pages, "entities", "page_views"), ("articles",), join_articles),
        Step("03_redirects", ("redirects", *pages, "articles"), ("resolved",), resolve_redirects),
    )


def fact_steps(
    config: WikiConfig, *, triples: int, seed: int, unambiguous: Unambiguous
) -> tuple[Step, ...]:
    """List the steps that choose the facts."""
    return (
        Step("04_names", ("articles", "entities"), ("shared_names",), find_shared_names),
        Step(
            "05_candidates",
            ("claims", "articles", "shared_names"),
            ("candidates", "facts"),
            candidate_triples,
            {"properties": sorted(config.properties), "unambiguous": unambiguous},
        ),
        Step(
            "06_sample",
            ("candidates",),
            ("sample",),
            sample_triples,
            {"triples": triples, "seed": seed},
        ),
    )


def surface_steps(
    config: WikiConfig, *, category_cap: int | None, seed: int, pair: Run
) -> tuple[Step, ...]:
    """List the steps that find the surface forms of the facts; `pair` pairs facts with them."""
    labels = {"labels": list(config.labels)}
    balanced = {"category_cap": category_cap, "seed": seed}
    known = ("sample", "resolved", "categories")
    return (
        Step("07_categories", known, ("kinds",), keep_categories, labels),
        Step("08_surfaces", ("kinds", "articles", "entities"), ("surfaces",), keep_surfaces),
        Step("09_instances", ("sample", "surfaces"), ("instances",), pair),
        Step("10_balance", ("instances",), ("balanced",), balance, balanced),
    )


def naming_step(config: WikiConfig) -> Step:
    """Describe the step that collects the accepted answers."""
    facts = ("sample", "balanced", "facts", "entities", "aliases")
    return Step(
        "11_answers",
        (*facts, "articles", "resolved", "categories"),
        ("entity_names", "right_answers"),
        name_objects,
        {"labels": list(config.labels)},
    )


def rows_step(config: WikiConfig, *more: str, **settings: object) -> Step:
    """Describe the inputs of the rows: the tables of every build, and `more`."""
    return Step(
        "12_rows",
        ("sample", "balanced", "articles", "surfaces", "page_views", *more),
        (),
        lambda _: [],
        {"config": config.model_dump(mode="json"), **settings},
    )
