"""Add the redirects of subjects to the facts of another data set: the paper's PopQA experiment."""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Unpack

from surface_consistency.errors import DataError
from surface_consistency.reading import shown
from surface_consistency.schemas import FactualTriple
from surface_consistency_build.wikimedia.construction import rows
from surface_consistency_build.wikimedia.construction._pipeline import (
    Step,
    article_steps,
    rows_step,
    surface_steps,
)
from surface_consistency_build.wikimedia.construction.build import (
    BuildResources,
    BuildResult,
    check_dumps,
    run_build,
)
from surface_consistency_build.wikimedia.construction.dump_files import DumpFiles
from surface_consistency_build.wikimedia.construction.steps import (
    GivenFact,
    insert_facts,
    pair_given_facts,
)
from surface_consistency_build.wikimedia.wikis import WikiConfig, load_wiki

if TYPE_CHECKING:
    import duckdb

_FACTS_AT_ONCE = 5_000


def augment_popqa(
    facts: Sequence[FactualTriple],
    dumps: DumpFiles,
    work: str | os.PathLike[str],
    *,
    config: str | WikiConfig,
    seed: int = 0,
    category_cap: int | None = None,
    **resources: Unpack[BuildResources],
) -> BuildResult:
    """Build the questions of given facts with their subjects' redirects (RedirectQA, appendix B.1).

    The facts keep their numbers, canonical names and accepted answers. Their redirects pass the
    steps of `build_redirectqa`, from the resolved chains to the balancing. Facts without a redirect
    are excluded. Tables that `build_redirectqa` staged in the same work folder are reused.

    Args:
        facts: The facts, such as those of PopQA's questions. The subject's `id` is its Wikidata
            item; without an item, its name is used as the title of its article.
        dumps: The files; without pageviews the redirects' views are unknown.
        work: Folder for the staged tables and the steps' results; one build at a time.
        config: Configuration of the wiki, or an argument of `load_wiki`.
        seed: Seed of the balancing.
        category_cap: Instances at which a category is down-sampled; None for no balancing.
        resources: Memory and threads, handling of damaged dumps, and hook for progress:
            `BuildResources`.

    Returns:
        The rows, and a description of the excluded rows.

    Raises:
        SourceNotFoundError: If a dump is missing.
        DataError: If a dump is damaged or contains another table.
        DataError: If two facts have the same number, a relation is not one of the wiki's, or no
            rows remain.
        RunError: If another build uses the work folder.
        ValueError: If `dumps` lacks Wikidata or redirects.
    """
    check_dumps(dumps, facts_too=False)
    config = config if isinstance(config, WikiConfig) else load_wiki(config)
    known = _numbered(facts, config)
    steps_of_build = (
        *article_steps(),
        _insert_step(known),
        *surface_steps(config, category_cap=category_cap, seed=seed, pair=pair_given_facts),
    )
    return run_build(
        dumps,
        work,
        config=config,
        steps=steps_of_build,
        steps_folder="popqa-steps",
        last=rows_step(config, facts=_digest(known)),
        rows=partial(_all_rows, known=known, config=config, has_views=bool(dumps.pageviews)),
        **resources,
    )


def _all_rows(
    connection: "duckdb.DuckDBPyConnection",
    *,
    known: dict[int, FactualTriple],
    config: WikiConfig,
    has_views: bool,
) -> Iterator[rows.BuiltRow]:
    """Yield the rows of the kept facts, in the order of their numbers."""
    facts = connection.execute(
        "SELECT DISTINCT triplet_id, title FROM balanced JOIN sample USING (triplet_id) "
        "JOIN articles ON entity = subject ORDER BY triplet_id"
    ).fetchall()
    for start in range(0, len(facts), _FACTS_AT_ONCE):
        part = facts[start : start + _FACTS_AT_ONCE]
        redirects = rows.redirects_of(connection, part[0][0], part[-1][0])
        for number, title in part:
            fact = known[number]
            canonical = rows.canonical_row(
                number,
                fact.relation,
                title,
                fact.answers,
                subject_id=fact.subject.id,
                subject_surface=fact.subject.name,
                subject_pageviews=fact.subject.pageviews,
                subject_aliases=fact.subject.aliases,
                object_id=fact.object.id,
                object_surface=fact.object.name,
                object_wiki_title=None,
                object_pageviews=fact.object.pageviews,
                n_objects=None,
            )
            yield from rows.rows_of_wordings(canonical, config)
            for redirect in redirects[number]:
                row = rows.with_subject_redirect(canonical, redirect, has_views=has_views)
                yield from rows.rows_of_wordings(row, config)


def _numbered(facts: Sequence[FactualTriple], config: WikiConfig) -> dict[int, FactualTriple]:
    """Key facts by their numbers, or by their positions if an identifier is not a number."""
    are_numbers = all(fact.id.isascii() and fact.id.isdigit() for fact in facts)
    known: dict[int, FactualTriple] = {}
    for place, fact in enumerate(facts):
        number = int(fact.id) if are_numbers else place
        if number in known:
            raise DataError(
                f"fact {shown(fact.id)} is given twice; the identifiers of facts must be unique"
            )
        if fact.relation not in config.relations:
            raise DataError(
                f"fact {shown(fact.id)}: relation {shown(fact.relation)} is not one of "
                f"{config.name}'s ({', '.join(config.relations)}); exclude such facts"
            )
        known[number] = fact
    return known


def _digest(known: dict[int, FactualTriple]) -> str:
    """Return a digest of the facts' content."""
    digest = hashlib.sha256()
    for number, fact in sorted(known.items()):
        digest.update(f"{number} {fact.model_dump_json()}\n".encode())
    return digest.hexdigest()


def _insert_step(known: dict[int, FactualTriple]) -> Step:
    """Describe the step that finds the subjects' articles."""
    given: list[GivenFact] = [
        (number, _entity(fact.subject.id), fact.subject.name) for number, fact in known.items()
    ]
    return Step(
        "06_facts",
        ("articles",),
        ("sample",),
        lambda connection, facts: insert_facts(connection, given),
        {"facts": _digest(known)},
    )


def _entity(item: str | None) -> int | None:
    """Read the number of a Wikidata item."""
    is_item = item is not None and re.fullmatch("Q[0-9]{1,18}", item)
    return int(item[1:]) if item is not None and is_item else None
