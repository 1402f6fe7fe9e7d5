"""Build RedirectQA from dumps: run the steps in order, from staged tables to rows."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from surface_consistency.engine.features import read_parquet, to_parquet
from surface_consistency.errors import DataError
from surface_consistency_build.wikimedia.construction import _pipeline
from surface_consistency_build.wikimedia.construction._work_folder import (
    Checkpoints,
    digest_of,
    locked_folder,
)
from surface_consistency_build.wikimedia.construction.database import count_of, open_database
from surface_consistency_build.wikimedia.construction.dump_files import DumpFiles
from surface_consistency_build.wikimedia.construction.progress import (
    BuildHook,
    StepCount,
    Tracker,
    step_counts,
)
from surface_consistency_build.wikimedia.construction.rows import (
    BuiltRow,
    checked_row,
    kept_facts,
    subject_rows,
)
from surface_consistency_build.wikimedia.construction.staging import END_MARKED, StagedTables, stage
from surface_consistency_build.wikimedia.construction.steps import Unambiguous, pair_with_surfaces
from surface_consistency_build.wikimedia.wikis import WikiConfig, load_wiki

if TYPE_CHECKING:
    import duckdb

CATEGORY_CAP = 1_000
"""Number of surface instances above which a category is over-represented. The largest categories of
the release have about as many; the release has about 30,000 instances."""

_MAY_BE_EMPTY = frozenset({"read page_props", "names"})


class BuildResources(TypedDict, total=False):
    """Resources of a build and handling of damaged dumps; no effect on rows of complete dumps."""

    memory_limit: str
    """Memory for DuckDB, "2GB" by default; further data spill to the work folder."""

    threads: int | None
    """Number of threads for reading and for DuckDB; by default the number of processors."""

    allow_truncated: bool
    """Whether a dump that ends early is read up to that place, with a warning; False by default."""

    require_end_mark: bool
    """Whether an uncompressed dump without an end marker is rejected; False by default."""

    progress: BuildHook | None
    """Called as dumps are read and before each step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """A finished build."""

    path: Path
    """The rows, one Parquet file in the work folder; its name has a digest of inputs and settings,
    so a later build with others does not replace it."""

    attrition: tuple[StepCount, ...]
    """Rows that each dump and step read, kept and excluded, in order."""

    n_triples: int
    """Number of facts."""

    n_redirect_instances: int
    """Number of facts with a redirect's name: the pairs of the consistency analysis."""

    n_rows: int
    """Number of rows: instances, including canonical ones, times question templates."""

    seconds: Mapping[str, float]
    """Seconds of each dump or step when it was made; includes earlier starts."""

    @property
    def n_instances(self) -> int:
        """Number of surface instances, including canonical ones."""
        return self.n_triples + self.n_redirect_instances

    def rows(self) -> Iterator[BuiltRow]:
        """Read and validate the rows.

        Yields:
            The rows, ordered by fact; canonical before redirects, wordings of a name together.
        """
        return read_parquet(self.path, BuiltRow)


def build_redirectqa(
    dumps: DumpFiles,
    work: str | os.PathLike[str],
    *,
    config: str | WikiConfig,
    triples: int = 500_000,
    seed: int = 0,
    category_cap: int | None = CATEGORY_CAP,
    unambiguous: Unambiguous = "subject",
    **resources: Unpack[BuildResources],
) -> BuildResult:
    """Build RedirectQA (RedirectQA section 2.3) from dumps of one wiki and of Wikidata.

    Each dump is read once into Parquet files in the work folder, then the steps run over them in
    DuckDB. A stopped build resumes after the last finished dump or step; a build with other
    settings repeats only the steps that depend on them. The same dumps, settings and seed give the
    same bytes for any number of threads.

    A question accepts all correct objects in Wikidata for its subject and relation, with all their
    names: label, title, aliases, and redirects in the wanted categories.

    Args:
        dumps: The files; `find_dumps` finds them in a folder.
        work: Folder for the staged tables and the steps' results; one build at a time.
        config: Configuration of the wiki, or an argument of `load_wiki`.
        triples: Number of candidate triples to draw.
        seed: Seed of the draws.
        category_cap: Number of instances above which a category is down-sampled; None for no
            balancing. See `steps.balance`.
        unambiguous: Entities whose canonical surface form must be unique to one entity.
        resources: Memory and threads, handling of damaged dumps, and hook for progress:
            `BuildResources`.

    Returns:
        The rows, and a description of the excluded rows.

    Raises:
        SourceNotFoundError: If a dump is missing.
        DataError: If a dump is damaged or contains another table.
        DataError: If no rows remain after the steps.
        RunError: If another build uses the work folder.
        ValueError: If an option is out of its range, or `dumps` lacks Wikidata or redirects.
    """
    _check_options(triples, category_cap, resources.get("threads"))
    check_dumps(dumps, facts_too=True)
    config = config if isinstance(config, WikiConfig) else load_wiki(config)
    steps = (
        *_pipeline.article_steps(),
        *_pipeline.fact_steps(config, triples=triples, seed=seed, unambiguous=unambiguous),
        *_pipeline.surface_steps(
            config, category_cap=category_cap, seed=seed, pair=pair_with_surfaces
        ),
        _pipeline.naming_step(config),
    )
    return run_build(
        dumps,
        work,
        config=config,
        steps=steps,
        steps_folder="steps",
        last=_pipeline.rows_step(config, "entity_names", "right_answers"),
        rows=lambda connection: (
            row for fact in kept_facts(connection) for row in subject_rows(fact, config)
        ),
        **resources,
    )


def _check_options(triples: int, category_cap: int | None, threads: int | None) -> None:
    """Reject options out of their range."""
    if triples < 1:
        raise ValueError(f"triples must be at least 1, got {triples}")
    if category_cap is not None and category_cap < 1:
        raise ValueError(
            f"category_cap must be at least 1, or None (on the command line 0) for no "
            f"balancing, got {category_cap}"
        )
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}")


def check_dumps(dumps: DumpFiles, *, facts_too: bool) -> None:
    """Check that the files suffice for a build, of facts and redirects or of redirects only."""
    if not dumps.pages_articles and (dumps.page is None or dumps.redirect is None):
        raise ValueError("dumps must give `page` and `redirect`, or `pages_articles`")
    if dumps.wikidata is None:
        raise ValueError("dumps must give `wikidata`")
    if facts_too and not dumps.pageviews:
        raise ValueError("dumps must give `pageviews`: pages without views are excluded")
    dumps.check_paths()


def run_build(
    dumps: DumpFiles,
    work: str | os.PathLike[str],
    *,
    config: WikiConfig,
    steps: Sequence[_pipeline.Step],
    steps_folder: str,
    last: _pipeline.Step,
    rows: "Callable[[duckdb.DuckDBPyConnection], Iterator[BuiltRow]]",
    **resources: Unpack[BuildResources],
) -> BuildResult:
    """Run the unfinished parts of a build: read the dumps, run the steps, write the rows.

    The steps' results are stored in the subfolder `steps_folder`; `rows` makes the rows from their
    tables, and `last` describes the inputs of the rows.
    """
    threads = resources.get("threads")
    memory_limit = resources.get("memory_limit", "2GB")
    with (
        locked_folder(work) as folder,
        open_database(folder, memory_limit=memory_limit, threads=threads) as connection,
    ):
        tracker = Tracker(resources.get("progress"), dumps.paths, n_steps=len(steps))
        staged = stage(
            dumps,
            folder / "staged",
            config,
            allow_truncated=resources.get("allow_truncated", False),
            require_end_mark=resources.get("require_end_mark", False),
            threads=threads,
            tracker=tracker,
        )
        pipeline = _pipeline.Pipeline(connection, staged, folder / steps_folder, tracker)
        for step in steps:
            pipeline.run(step)
        return _finished(pipeline, staged, folder / "rows", last, partial(rows, connection))


def _finished(
    pipeline: _pipeline.Pipeline,
    staged: StagedTables,
    folder: Path,
    last: _pipeline.Step,
    rows: Callable[[], Iterator[BuiltRow]],
) -> BuildResult:
    """Write the rows, unless they exist, and return the summary of the build."""
    n_triples = count_of(pipeline.connection, "(SELECT DISTINCT triplet_id FROM balanced)")
    n_redirects = count_of(pipeline.connection, "balanced")
    counts = (*staged.counts, *pipeline.counts)
    if not n_triples:
        raise DataError(_empty_message(counts))
    digest = pipeline.digest(last)
    name = f"rows-{digest_of('rows', {}, [digest])[:12]}"
    checkpoints = Checkpoints(folder)
    marker = checkpoints.find(name, digest)
    if marker is None:

        def work(parts: dict[str, Path]) -> list[StepCount]:
            """Write the rows."""
            n_rows = to_parquet(parts[name], map(checked_row, rows()), BuiltRow)
            unit = "surface instances to rows"
            return step_counts("rows", unit, n_triples + n_redirects, n_rows)

        marker = checkpoints.make(name, digest, [name], work)
    seconds = {done: item.seconds for done, item in pipeline.markers.items()}
    return BuildResult(
        path=checkpoints.path(name),
        attrition=(*counts, *marker.counts),
        n_triples=n_triples,
        n_redirect_instances=n_redirects,
        n_rows=marker.counts[0].rows_out,
        seconds={**staged.seconds, **seconds, "rows": marker.seconds},
    )


def _empty_message(counts: tuple[StepCount, ...]) -> str:
    """Return the error for a build without rows, with the step that excluded the last ones."""
    emptied = (
        count
        for count in counts
        if count.rows_in
        and not count.rows_out
        and count.step not in _MAY_BE_EMPTY
        and count.unit != END_MARKED
    )
    last = next(emptied, None)
    where = "no dump has rows for them" if last is None else f"step {last.step!r} kept none"
    reason = f": {last.reason}" if last is not None and last.reason else ""
    return (
        f"the build has no rows; {where}{reason}. Check that all dumps belong to the configured "
        "wiki and have about the same date"
    )
