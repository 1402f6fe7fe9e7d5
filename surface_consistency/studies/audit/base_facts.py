"""The cluster of an audit: the fact before renaming, which several topologies store.

The answers to one fact in several databases are not independent, and with retrieval off they are
nearly copies; so are those under its alias names, and those of the decoys and near misses that were
made from it.
"""

import hashlib
from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

from surface_consistency.schemas.memory import AuditPrompt
from surface_consistency.studies.audit.retrieval.alias_groups import ROLES, name_key, names_in


class BaseFact(NamedTuple):
    """The fact from which a fact of a database was made."""

    name: str
    """Its subject and relation, such as "France | Capital"; equal names are one cluster."""

    is_linked: bool
    """Whether this is known: the prompt names it, or a fact of topology base has the same names."""


def base_facts(prompts: Sequence[tuple[str, AuditPrompt]]) -> list[BaseFact]:
    """Find the base fact of each prompt: the cluster of all intervals and tests of an audit.

    A prompt with `base_fact` has this one. Other prompts that share a name of the subject and a
    name of the relation, as the audit compares names, ask the same question and have one base fact,
    that of topology base if there is one. A prompt without either, such as a decoy of the published
    files, which do not name base facts, is not linked and is its own base fact.

    Args:
        prompts: Pairs of a topology and a prompt. Pass those of all databases together, or a fact
            in two of them may be in two clusters.

    Returns:
        The base fact of each prompt, in order.
    """
    key_of = name_key("published")
    known: dict[tuple[str, ...], BaseFact] = {}
    found: dict[int, BaseFact] = {}

    # Prompts whose base fact is known come first, so that the others are linked with them.
    first = [(one.base_fact is None, topology != "base") for topology, one in prompts]
    for place in sorted(range(len(prompts)), key=first.__getitem__):
        topology, prompt = prompts[place]
        keys = [*product(*(map(key_of, names_in(prompt, role)) for role in ROLES[:2]))]
        name = prompt.base_fact or f"{prompt.subject} | {prompt.relation}"
        own = BaseFact(name, prompt.base_fact is not None or topology == "base")
        if prompt.base_fact is None:
            own = next((known[key] for key in keys if key in known), own)
        found[place] = own
        for key in keys:
            known.setdefault(key, own)
    return [found[place] for place in range(len(prompts))]


def draw_base_facts(
    facts: Iterable[tuple[str, str, str]], n_facts: int, *, seed: int
) -> set[tuple[str, str]]:
    """Draw base facts of each domain, the same ones in all its topologies.

    Args:
        facts: Domain, topology and base fact of each prompt.
        n_facts: Number of base facts per domain, of those that all its topologies store; a domain
            with no more of these has all its facts.
        seed: Seed of the draw.

    Returns:
        Domain and base fact of those that are drawn: the hash of the name is among the first
        `n_facts`. Base facts that fewer topologies store, such as the decoys of the published
        files, which are not linked to other topologies, are thus drawn at about the same rate.
    """
    topologies: dict[str, dict[str, set[str]]] = {}
    for domain, topology, name in facts:
        topologies.setdefault(domain, {}).setdefault(name, set()).add(topology)
    drawn: set[tuple[str, str]] = set()
    for domain, found in topologies.items():
        rank = {name: hashlib.sha256(f"{seed}|{name}".encode()).digest() for name in found}
        widest = max(map(len, found.values()))
        shared = sorted(rank[name] for name, of in found.items() if len(of) == widest)
        is_all = n_facts >= len(shared)
        drawn |= {(domain, name) for name in found if is_all or rank[name] < shared[n_facts]}
    return drawn
