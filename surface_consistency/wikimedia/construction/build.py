"""RedirectQA from dumps: the steps in their order, from what is staged to rows."""

import os
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

from surface_consistency.wikimedia.construction._asked_facts import asked_facts
from surface_consistency.wikimedia.construction._plan import (
    article_steps,
    fact_steps,
    naming_step,
    rows_step,
    surface_steps,
)
from surface_consistency.wikimedia.construction._row_assembly import object_rows, subject_rows
from surface_consistency.wikimedia.construction._run import run_build
from surface_consistency.wikimedia.construction.dump_files import DumpFiles
from surface_consistency.wikimedia.construction.progress import BuildHook
from surface_consistency.wikimedia.construction.result import BuildResult
from surface_consistency.wikimedia.construction.rows import BuiltRow
from surface_consistency.wikimedia.construction.steps.candidates import Unambiguous
from surface_consistency.wikimedia.wikis import WikiConfig, load_wiki

if TYPE_CHECKING:
    import duckdb

__all__ = ["CATEGORY_CAP", "Variant", "build_redirectqa", "check_dumps"]

CATEGORY_CAP = 1_000
"""Surface instances at which a category counts as over-represented: the largest categories of the
release hold about that many, and it holds about 30,000 instances."""

Variant = Literal["subject", "object"]
"""Whose surface form varies."""


def build_redirectqa(
    dumps: DumpFiles,
    work: str | os.PathLike[str],
    *,
    config: str | WikiConfig,
    triples: int = 500_000,
    seed: int = 0,
    category_cap: int | None = CATEGORY_CAP,
    variant: Variant = "subject",
    unambiguous: Unambiguous = "subject",
    memory_limit: str = "2GB",
    threads: int | None = None,
    allow_truncated: bool = False,
    progress: BuildHook | None = None,
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
        variant: Whose surface form varies. With "object" every question stands under its canonical
            subject, and each row accepts one name of the gold object, its redirects among them.
        unambiguous: Whose canonical surface form must be that of one entity alone.
        memory_limit: Memory for DuckDB, such as "2GB"; beyond it spills to the work folder.
        threads: Threads for reading and for DuckDB; as many as there are processors when None.
        allow_truncated: Whether a dump that ends early counts as far as it goes, with a warning.
        progress: Called as dumps are read and before each step.

    Returns:
        The rows and what was left out on the way.

    Raises:
        SourceNotFoundError: If a dump is not there.
        DumpError: If a dump is broken, or not the table it should be.
        DataError: If the steps leave no rows.
        MissingDependencyError: If a library of the extra `build` is not installed.
        WorkFolderLockedError: If another build uses the work folder.
        ValueError: If an option is out of its range, or `dumps` lacks Wikidata or redirects.
    """
    _check_options(triples, category_cap, variant, threads)
    check_dumps(dumps, facts_too=True)
    config = config if isinstance(config, WikiConfig) else load_wiki(config)
    steps = (
        *article_steps(),
        *fact_steps(config, triples=triples, seed=seed, unambiguous=unambiguous),
        *surface_steps(config, category_cap=category_cap, seed=seed, variant=variant),
        naming_step(config),
    )
    return run_build(
        dumps,
        work,
        config=config,
        steps=steps,
        steps_folder="steps",
        last=rows_step(config, variant),
        rows=partial(_rows, config=config, variant=variant),
        memory_limit=memory_limit,
        threads=threads,
        allow_truncated=allow_truncated,
        progress=progress,
    )


def check_dumps(dumps: DumpFiles, *, facts_too: bool) -> None:
    """Refuse files that cannot make a build.

    Args:
        dumps: The files.
        facts_too: Whether facts are to be read off them, or only redirects.

    Raises:
        SourceNotFoundError: If a file is not there.
        ValueError: If a needed file is not given.
    """
    if not dumps.pages_articles and (dumps.page is None or dumps.redirect is None):
        raise ValueError("dumps must give `page` and `redirect`, or `pages_articles`")
    if dumps.wikidata is None:
        raise ValueError("dumps must give `wikidata`")
    if facts_too and not dumps.pageviews:
        raise ValueError("dumps must give `pageviews`: pages without views are left out")
    dumps.check_paths()


def _rows(
    connection: "duckdb.DuckDBPyConnection", *, config: WikiConfig, variant: Variant
) -> Iterator[BuiltRow]:
    """Ask the facts that are left."""
    ask = subject_rows if variant == "subject" else object_rows
    for fact in asked_facts(connection):
        yield from ask(fact, config)


def _check_options(
    triples: int, category_cap: int | None, variant: str, threads: int | None
) -> None:
    """Refuse options out of their range."""
    if triples < 1:
        raise ValueError(f"triples must be at least 1, got {triples}")
    if category_cap is not None and category_cap < 1:
        raise ValueError(
            f"category_cap must be at least 1, or None (on the command line 0) for no "
            f"balancing, got {category_cap}"
        )
    if variant not in get_args(Variant):
        raise ValueError(f"variant must be one of {', '.join(get_args(Variant))}, got {variant!r}")
    if threads is not None and threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}")
