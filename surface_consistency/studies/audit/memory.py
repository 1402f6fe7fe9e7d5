"""From the cells of an audit to what is asked, what is deleted, and the store that answers."""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from surface_consistency.errors import ContaminationWarning
from surface_consistency.retrieval import (
    AliasGroups,
    CanonicalDatabase,
    Closure,
    ClosureReport,
    FactClosure,
    TripletStore,
    alias_closures,
    canonicalise,
    content_digest,
    similarity_closures,
    verify_closures,
)
from surface_consistency.schemas.audit import AuditTarget
from surface_consistency.schemas.memory import AuditPrompt, MemoryState, TripletDatabase
from surface_consistency.schemas.prompts import Prompt
from surface_consistency.studies.audit._other_objects import other_objects
from surface_consistency.studies.audit.cells import AuditCell
from surface_consistency.studies.audit.retrievers import Retrievers
from surface_consistency.studies.audit.settings import AuditSettings
from surface_consistency.studies.audit.source import AskedFact, AuditSource

__all__ = ["AuditMemory", "build_memory"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditMemory:
    """Everything that an audit needs besides a model."""

    targets: tuple[AuditTarget, ...]
    """Each fact in each style, and what its deletion leaves."""

    prompts: tuple[Prompt, ...]
    """What is asked: each target in each state."""

    source: AuditSource
    """The store that answers."""

    reports: Mapping[str, ClosureReport]
    """What the deletions of each database leave."""

    others: Mapping[str, tuple[tuple[int, ...], ...]]
    """For each fact of a report, the entries with its subject and relation and another object."""

    stores: Mapping[str, TripletStore]
    """The store of each database."""

    contents: Mapping[str, str]
    """Digest of the entries of each database."""

    @property
    def digest(self) -> str:
        """SHA-256 of all that is asked, and of which databases."""
        digest = hashlib.sha256()
        for name, content in sorted(self.contents.items()):
            digest.update(f"{name}{content}".encode())
        for target in self.targets:
            digest.update(target.prompt.model_dump_json().encode())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Store:
    """One database with its deletions."""

    store: TripletStore
    closures: Mapping[str, Closure]
    facts: Mapping[str, FactClosure]
    report: ClosureReport
    others: tuple[tuple[int, ...], ...]
    canonical: CanonicalDatabase | None


def build_memory(
    cells: Sequence[AuditCell], settings: AuditSettings, retrievers: Retrievers
) -> AuditMemory:
    """Find what each fact's deletion removes and leaves, and build the stores.

    Args:
        cells: Databases with their prompts.
        settings: What is deleted and how lookups are answered.
        retrievers: Makes the retriever of each database.

    Returns:
        Targets, prompts and stores.

    Raises:
        ValueError: If there are no cells, two databases have one name, or a radius is set for a
            retriever without encoder.
        RetrievalError: If a retriever was built over another database than its own.

    Warns:
        IncompleteClosureWarning: For each database in which a deletion leaves its fact.
        ContaminationWarning: If two databases are equal.
    """
    databases = _databases(cells)
    contents = {name: content_digest(item.triplets) for name, item in databases.items()}
    _warn_equal(contents)
    built = {
        name: _build(
            name,
            database,
            [prompt for cell in cells if cell.label.database == name for prompt in cell.prompts],
            settings,
            retrievers,
        )
        for name, database in databases.items()
    }
    targets = tuple(
        _target(cell, prompt, built[cell.label.database])
        for cell in cells
        for prompt in cell.prompts
    )
    prompts: list[Prompt] = []
    asked: dict[str, AskedFact] = {}
    for target in targets:
        closure = built[target.database].closures[_fact_key(target.prompt)]
        for state in settings.states:
            prompt = _prompt(target, state)
            prompts.append(prompt)
            asked[prompt.id] = AskedFact(
                database=target.database, state=state, fact=target.prompt, deleted=closure.indices
            )
    return AuditMemory(
        targets=targets,
        prompts=tuple(prompts),
        source=AuditSource(
            {name: item.store for name, item in built.items()},
            asked,
            off_mode=settings.off_mode,
            query=settings.query,
            canonical={
                name: item.canonical for name, item in built.items() if item.canonical is not None
            },
        ),
        reports={name: item.report for name, item in built.items()},
        others={name: item.others for name, item in built.items()},
        stores={name: item.store for name, item in built.items()},
        contents=contents,
    )


def _databases(cells: Sequence[AuditCell]) -> dict[str, TripletDatabase]:
    """Gather the databases by name."""
    if not cells:
        raise ValueError("cells is empty; an audit needs at least one database with prompts")
    databases: dict[str, TripletDatabase] = {}
    for cell in cells:
        name = cell.label.database
        known = databases.setdefault(name, cell.database)
        if known is not cell.database and known != cell.database:
            raise ValueError(f"two different databases are named {name}; audit them apart")
    return databases


def _warn_equal(contents: Mapping[str, str]) -> None:
    """Say which databases hold the same entries."""
    names: dict[str, list[str]] = {}
    for name, content in contents.items():
        names.setdefault(content, []).append(name)
    for same in names.values():
        if len(same) > 1:
            warnings.warn(
                f"databases {', '.join(same)} hold the same entries in the same order, so their "
                "numbers are one measurement; check that no file was copied over another",
                ContaminationWarning,
                stacklevel=4,
            )


def _build(
    name: str,
    database: TripletDatabase,
    prompts: Sequence[AuditPrompt],
    settings: AuditSettings,
    retrievers: Retrievers,
) -> _Store:
    """Build the store of one database and look at its deletions."""
    facts = list({_fact_key(prompt): prompt for prompt in prompts}.values())
    groups = AliasGroups.from_prompts(facts, database=database)
    canonical = None
    if settings.canonical:
        canonical = canonicalise(
            database, groups, preferred=[part for fact in facts for part in _names(fact)]
        )
        database = canonical.database
    chosen = groups if settings.closure == "groups" else None
    closures = alias_closures(
        database,
        facts,
        key=settings.closure_key,
        scope=settings.closure_scope,
        groups=chosen,
    )
    if settings.radius is not None:
        closures = _widened(database, closures, settings, retrievers)
    with warnings.catch_warnings(record=True) as caught:
        report = verify_closures(database, facts, closures, groups=groups, warn=True)
    for warning in caught:
        warnings.warn(f"{name}: {warning.message}", warning.category, stacklevel=5)
    keys = [_fact_key(fact) for fact in facts]
    return _Store(
        store=TripletStore(
            database,
            retrievers.make(database),
            k=settings.k,
            threshold=settings.threshold,
            fallback=settings.fallback,
            key=settings.closure_key,
        ),
        closures=dict(zip(keys, closures, strict=True)),
        facts=dict(zip(keys, report.facts, strict=True)),
        report=report,
        others=other_objects(database, facts, settings, groups=chosen),
        canonical=canonical,
    )


def _widened(
    database: TripletDatabase,
    closures: Sequence[Closure],
    settings: AuditSettings,
    retrievers: Retrievers,
) -> list[Closure]:
    """Take what lies near the deleted entries, too."""
    if retrievers.encoder is None or settings.radius is None:
        raise ValueError(
            f"radius needs a retriever with an encoder, such as minilm; {settings.retriever!r} has "
            "none"
        )
    return similarity_closures(
        database,
        closures,
        embed=retrievers.encoder.encode,
        radius=settings.radius,
        same_object=settings.closure_key if settings.radius_same_object else None,
    )


def _target(cell: AuditCell, prompt: AuditPrompt, built: _Store) -> AuditTarget:
    """Write down a fact and what its deletion leaves."""
    found = built.facts[_fact_key(prompt)]
    entries = built.store.database.triplets
    return AuditTarget(
        database=cell.label.database,
        domain=cell.label.domain,
        variant=cell.label.variant,
        style=cell.label.style,
        database_file=cell.database_file,
        prompt_file=cell.prompt_file,
        prompt=prompt,
        n_deleted=found.n_deleted,
        surviving=tuple(entries[index] for index in found.remaining),
        n_shared_surface=len(found.shared_surface),
        echoes=found.echoes,
    )


def _prompt(target: AuditTarget, state: MemoryState) -> Prompt:
    """Make the prompt of a target in a state.

    With retrieval off nothing depends on the database, so equal texts are asked once for all.
    """
    condition = state if state == "DEL-OFF" else f"{state}|{target.pair_id}"
    return Prompt(id=target.prompt_id(state), text=target.prompt.prompt_text, condition=condition)


def _fact_key(prompt: AuditPrompt) -> str:
    """Name a fact with its aliases, whatever the style that asks for it."""
    return prompt.model_copy(update={"prompt_id": 0, "prompt_text": "?"}).model_dump_json()


def _names(fact: AuditPrompt) -> tuple[str, str]:
    """Give the names under which a prompt asks."""
    return fact.subject, fact.relation
