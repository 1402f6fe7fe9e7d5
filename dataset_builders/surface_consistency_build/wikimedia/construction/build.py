"""RedirectQA from dumps: the steps in their order, from what is staged to rows."""

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
    asked_facts,
    checked_row,
    subject_rows,
)
from surface_consistency_build.wikimedia.construction.staging import END_MARKED, StagedTables, stage
from surface_consistency_build.wikimedia.construction.steps import Unambiguous, pair_with_surfaces
from surface_consistency_build.wikimedia.wikis import WikiConfig, load_wiki

if TYPE_CHECKING:
    import duckdb

CATEGORY_CAP = 1_000
"""Surface instances at which a category counts as over-represented: the largest categories of the
release hold about that many, and it holds about 30,000 instances."""

_MAY_BE_EMPTY = frozenset({"read page_props", "names"})


class BuildResources(TypedDict, total=False):
    """What a build may use, and what it takes; nothing here changes a row of whole dumps."""

    memory_limit: str
    """Memory for DuckDB, "2GB" by default; beyond it spills to the work folder."""

    threads: int | None
    """Threads for reading and for DuckDB; as many as there are processors by default."""

    allow_truncated: bool
    """Whether a dump that ends early counts as far as it goes, with a warning; False by default."""

    require_end_mark: bool
    """Whether a plain dump of which nothing tells that it is whole is refused; False by default."""

    progress: BuildHook | None
    """Called as dumps are read and before each step."""


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
    DuckDB. A build that was killed goes on after the last finished dump or step; one with other
    settings redoes only what depends on them. The same dumps, settings and seed give the same
    bytes, whatever the number of threads.

    A question accepts every right object that Wikidata has for its subject and relation, by each of
    its names: label, title, aliases, and redirects in the wanted categories.

    Args:
        dumps: The files; `find_dumps` looks for them in a folder.
        work: Folder for what is staged and for the steps' results; one build at a time.
        config: The wiki: its configuration, or what `load_wiki` takes.
        triples: Candidate triples that are drawn.
        seed: Seed of the draws.
        category_cap: Instances at which a category is down-sampled; None for no balancing. See
            `steps.balance`.
        unambiguous: Whose canonical surface form must be that of one entity alone.
        resources: Memory and threads, which dumps are taken, and who hears of progress:
            `BuildResources`.

    Returns:
        The rows, and a description of the excluded rows.

    Raises:
        SourceNotFoundError: If a dump is not there.
        DataError: If a dump is broken, or not the table it should be.
        DataError: If the steps leave no rows.
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
            row for fact in asked_facts(connection) for row in subject_rows(fact, config)
        ),
        **resources,
    )


def _check_options(triples: int, category_cap: int | None, threads: int | None) -> None:
    """Refuse options out of their range."""
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
    """Refuse files that cannot make a build, of facts too or of redirects alone."""
    if not dumps.pages_articles and (dumps.page is None or dumps.redirect is None):
        raise ValueError("dumps must give `page` and `redirect`, or `pages_articles`")
    if dumps.wikidata is None:
        raise ValueError("dumps must give `wikidata`")
    if facts_too and not dumps.pageviews:
        raise ValueError("dumps must give `pageviews`: pages without views are left out")
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
    """Do what is left to do of a build: read the dumps, run its steps, write its rows.

    The steps' results lie in the subfolder `steps_folder`; `rows` makes the rows from their tables,
    and `last` says what those depend on.
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
    """Write the rows, unless they are there, and sum the build up."""
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
    """Say where the rows went."""
    emptied = (
        count
        for count in counts
        if count.rows_in
        and not count.rows_out
        and count.step not in _MAY_BE_EMPTY
        and count.unit != END_MARKED
    )
    last = next(emptied, None)
    where = "no dump held a row for them" if last is None else f"step {last.step!r} left none"
    reason = f": {last.reason}" if last is not None and last.reason else ""
    return (
        f"the build has no rows; {where}{reason}. Check that all dumps are of the configured wiki "
        "and of about the same date"
    )
