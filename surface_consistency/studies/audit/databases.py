"""The databases of an audit: made as a folder of files, checked against prompts, compared."""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from surface_consistency.errors import ContaminationWarning
from surface_consistency.schemas import AuditPrompt, Triplet
from surface_consistency.studies.audit.fact_tables import DOMAINS, FactTable, load_fact_table
from surface_consistency.studies.audit.files import (
    prompt_file_name,
    write_audit_prompts,
    write_database,
)
from surface_consistency.studies.audit.topologies import PUBLISHED_TOPOLOGIES, build_topology
from surface_consistency.text import folded, token_key

__all__ = [
    "BuiltDatabase",
    "Difference",
    "DifferenceKind",
    "PromptWriter",
    "build_audit_databases",
    "compare_databases",
]

PromptWriter = Callable[[Sequence[AuditPrompt]], Iterable[AuditPrompt]]
"""Puts targets into words: the same rows, with another `prompt_text`."""

_NO_STYLES: Final[Mapping[str, PromptWriter]] = MappingProxyType({})
DifferenceKind = Literal["triplet", "subject_aliases", "relation_aliases", "object_aliases"]
"""Part of a fact in which the versions differ."""

_NO_REASONS: Final[Mapping[Triplet, str]] = MappingProxyType({})
_NO_ALIAS_REASONS: Final[Mapping[str, str]] = MappingProxyType({})
_ROLES: Final[Mapping[DifferenceKind, str]] = MappingProxyType(
    {"subject_aliases": "subject", "relation_aliases": "relation", "object_aliases": "gold_object"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltDatabase:
    """What was written of one database."""

    domain: str
    """Name of its table."""

    topology: str
    """How the facts are stored."""

    path: Path
    """The database file."""

    prompt_paths: tuple[Path, ...]
    """Its prompt files, one a style."""

    n_triplets: int
    """Entries of the database."""

    n_facts: int
    """Facts that each prompt file asks for."""


def build_audit_databases(
    out: str | os.PathLike[str],
    *,
    domains: Iterable[str | FactTable] = DOMAINS,
    topologies: Iterable[str] = PUBLISHED_TOPOLOGIES,
    styles: Mapping[str, PromptWriter] = _NO_STYLES,
    seed: int = 0,
) -> list[BuiltDatabase]:
    """Write databases and their prompts.

    The files are `<domain>/<topology>.json` and
    `<domain>/prompts/<topology>/prompts_<style>.jsonl`, as the audit publishes them; each appears
    whole or not at all, and the same arguments give the same bytes.

    Args:
        out: Folder; made where it is missing. Files of these names are replaced.
        domains: Names of tables that come with the package, or tables of your own.
        topologies: Names of topologies.
        styles: Prompt writers by the name of their style
            (`surface_consistency.studies.audit.styles.style_writers` gives the six of the paper);
            none: databases alone.
        seed: Seed of whatever is drawn, for tables that list no near misses.

    Returns:
        What was written, by domain and topology.

    Raises:
        ValueError: If a domain or topology is unknown, or a domain stands twice.
        DataError: If a table cannot be stored in a topology.

    Warns:
        ContaminationWarning: If a table has no alias for any fact, so that alias equals base.
    """
    tables = [item if isinstance(item, FactTable) else load_fact_table(item) for item in domains]
    names = [table.name for table in tables]
    if len(set(names)) < len(names):
        raise ValueError(f"domains must differ in name, got {', '.join(names)}")
    wanted = list(topologies)
    return [
        _write(Path(out), table, topology, styles, seed) for table in tables for topology in wanted
    ]


def _write(
    out: Path, table: FactTable, topology: str, styles: Mapping[str, PromptWriter], seed: int
) -> BuiltDatabase:
    """Write one database and its prompts."""
    made = build_topology(table, topology, seed=seed)
    if topology == "alias" and set(made.database.triplets) == set(table.facts):
        warnings.warn(
            f"table {table.name!r} has no other name for any of its facts, so its topology alias "
            "equals base; add an aliases.tsv, or leave alias out",
            ContaminationWarning,
            stacklevel=4,
        )
    folder = out / table.name / "prompts" / topology
    folder.mkdir(parents=True, exist_ok=True)
    path = out / table.name / f"{topology}.json"
    write_database(path, made.database)
    paths = []
    for style, writer in styles.items():
        paths.append(folder / prompt_file_name(style))
        write_audit_prompts(paths[-1], writer(made.targets))
    return BuiltDatabase(
        domain=table.name,
        topology=topology,
        path=path,
        prompt_paths=tuple(paths),
        n_triplets=len(made.database.triplets),
        n_facts=len(made.targets),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One fact that two versions hold differently."""

    kind: DifferenceKind
    """What differs."""

    fact: Triplet
    """The fact."""

    ours: tuple[str, ...]
    """For aliases, our list; for a triplet, its parts, or nothing where only the other has it."""

    other: tuple[str, ...]
    """The other version's, likewise."""

    reason: str
    """Why, as far as it can be told."""


def compare_databases(
    ours: Sequence[AuditPrompt],
    other: Sequence[AuditPrompt],
    *,
    reasons: Mapping[Triplet, str] = _NO_REASONS,
    alias_reasons: Mapping[str, str] = _NO_ALIAS_REASONS,
) -> list[Difference]:
    """List the differences between two versions of a database's facts.

    Args:
        ours: Facts of one version, with their aliases.
        other: Facts of the other.
        reasons: Reasons for facts that one version alone holds, by fact.
        alias_reasons: Reasons for aliases that the other version alone gives, by alias.

    Returns:
        First the facts that the other version alone has, then those that ours alone has, then
        facts of both with other aliases. Equal lists in another order do not differ. Where no
        reason is given one is looked for: "echo" (the subject counts as the object), "over-merged"
        (a name that is another thing's too), "overwritten" (the aliases of the relation were
        replaced by other ones), "repeated" (a name twice).
    """
    own = {_fact(prompt): prompt for prompt in ours}
    foreign = {_fact(prompt): prompt for prompt in other}
    owners = _owners([*ours, *other])
    differences = [
        Difference(
            kind="triplet",
            fact=fact,
            ours=(),
            other=tuple(fact),
            reason=reasons.get(fact) or _triplet_reason(fact, owners),
        )
        for fact in foreign
        if fact not in own
    ]
    differences += [
        Difference(
            kind="triplet",
            fact=fact,
            ours=tuple(fact),
            other=(),
            reason=reasons.get(fact, "in the place of one that is left out"),
        )
        for fact in own
        if fact not in foreign
    ]
    for fact in own:
        if fact in foreign:
            differences += _alias_differences(own[fact], foreign[fact], owners, alias_reasons)
    return differences


def _fact(prompt: AuditPrompt) -> Triplet:
    """The fact of a prompt."""
    return Triplet(prompt.subject, prompt.relation, prompt.gold_object)


def _owners(prompts: Iterable[AuditPrompt]) -> dict[str, set[str]]:
    """Tell for each name of an object which objects bear it."""
    owners: dict[str, set[str]] = {}
    for prompt in prompts:
        for name in (prompt.gold_object, *prompt.object_aliases):
            owners.setdefault(token_key(name), set()).add(token_key(prompt.gold_object))
    return owners


def _triplet_reason(fact: Triplet, owners: Mapping[str, set[str]]) -> str:
    """Look for a reason why a fact was left out."""
    if folded(fact.subject) == folded(fact.object):
        return "echo: the subject is the object"
    if token_key(fact.subject) in owners:
        return "over-merged: the subject's name is another thing's too"
    return "left out"


def _alias_differences(
    ours: AuditPrompt,
    other: AuditPrompt,
    owners: Mapping[str, set[str]],
    alias_reasons: Mapping[str, str],
) -> list[Difference]:
    """Compare the aliases of a fact that both versions have."""
    differences = []
    for kind in _ROLES:
        own: tuple[str, ...] = getattr(ours, kind)
        foreign: tuple[str, ...] = getattr(other, kind)
        if sorted(own) == sorted(foreign):
            continue
        dropped = [alias for alias in foreign if alias not in own]
        given = [alias_reasons[alias] for alias in dropped if alias in alias_reasons]
        reason = given[0] if given else _alias_reason(ours, kind, dropped, owners)
        if not dropped:
            repeated = len(set(foreign)) < len(foreign)
            reason = "repeated: a name twice" if repeated else "names added"
        differences.append(
            Difference(kind=kind, fact=_fact(ours), ours=own, other=foreign, reason=reason)
        )
    return differences


def _alias_reason(
    prompt: AuditPrompt,
    kind: DifferenceKind,
    dropped: Sequence[str],
    owners: Mapping[str, set[str]],
) -> str:
    """Look for the reason why aliases were left out."""
    own_key = token_key(getattr(prompt, _ROLES[kind]))
    keys = {token_key(alias) for alias in dropped}
    spoken = {token_key(name) for name in (prompt.subject, *prompt.subject_aliases)}
    if kind == "relation_aliases":
        return "overwritten: another registration of the relation replaced its aliases"
    if keys <= {own_key}:
        return "repeated: the name itself in other letters"
    if kind == "object_aliases" and keys & spoken:
        return "echo: names of the subject count as the object"
    if any(owners.get(key, set()) - {own_key} for key in keys):
        return "over-merged: an alias is another thing's name too"
    return "other names"
