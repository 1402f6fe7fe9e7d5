"""Find the base fact of each prompt, which is the cluster of an audit.

A base fact is a fact before renaming; several topologies contain facts made from it. The answers
to one base fact in several databases are not independent, and with retrieval off they are nearly
copies. The same is true of answers under its alias names, and to the decoys and near misses derived
from it.
"""

import hashlib
from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

from surface_consistency.schemas.memory import AuditPrompt
from surface_consistency.studies.audit.retrieval.alias_groups import ROLES, name_key, names_in


class BaseFact(NamedTuple):
    """The fact from which a fact of a database was derived."""

    name: str
    """Its subject and relation, such as "France | Capital"; equal names are one cluster."""

    is_linked: bool
    """Whether it is known: the prompt names it, or a fact of topology base has the same names."""


def base_facts(prompts: Sequence[tuple[str, AuditPrompt]]) -> list[BaseFact]:
    """Find the base fact of each prompt: the cluster of all intervals and tests of an audit.

    A base fact is known if a prompt names it in `base_fact`, or as subject and relation of a fact
    of topology base. Known base facts are the same if their names are equal, ignoring case and
    spacing. Each other prompt has the base fact of its own name, if there is one. Otherwise it has
    the only base fact with which it shares a name of the subject and a name of the relation. Names
    are compared by the audit's key or with punctuation; names of only one base fact take
    precedence. Other prompts that share names, also through further prompts, contain the same
    question and are one cluster: that of a base fact if they share names with only one. The
    remaining prompts are not linked, such as decoys of the published files, which do not name base
    facts, and questions that two base facts share.

    Args:
        prompts: Pairs of a topology and a prompt, in any order. Pass the prompts of all databases
            together; otherwise a fact in two of them may be in two clusters.

    Returns:
        The base fact of each prompt, in order; of several spellings, the first in sorted order.
    """
    from scipy.cluster.hierarchy import DisjointSet

    published, strict = name_key("published"), name_key("strict")
    spelled = [one.base_fact or f"{one.subject} | {one.relation}" for _, one in prompts]
    own = [strict(name) for name in spelled]
    keys = [
        {
            key
            for pair in product(*(names_in(one, role) for role in ROLES[:2]))
            for key in (strict(" | ".join(pair)), tuple(map(published, pair)))
        }
        for _, one in prompts
    ]
    known: dict[str, str] = {}
    owners: dict[str | tuple[str, ...], set[str]] = {}
    others: DisjointSet[str | tuple[str, ...] | int] = DisjointSet(range(len(prompts)))
    for place, (topology, one) in enumerate(prompts):
        is_known = topology == "base" or one.base_fact is not None
        if is_known:
            known[own[place]] = min(spelled[place], known.get(own[place], spelled[place]))
        for key in keys[place]:
            if is_known:
                owners.setdefault(key, set()).add(own[place])
            else:
                others.add(key)
                others.merge(key, place)
    owners |= {name: {name} for name in known}

    def owners_of(place: int) -> set[str]:
        """Return the base facts that share names with a prompt."""
        found = [owners[key] for key in keys[place] if key in owners]
        sole = [names for names in found if len(names) == 1]
        return {own[place]} if own[place] in known else set().union(*(sole or found))

    facts: dict[int, BaseFact] = {}
    for members in others.subsets():
        names = {one: owners_of(one) for one in members if isinstance(one, int)}
        together = set[str]().union(*names.values())
        if len(together) == 1:
            names = dict.fromkeys(names, together)
        unlinked = [spelled[one] for one, of in names.items() if len(of) != 1]
        for place, of in names.items():
            is_linked = len(of) == 1
            facts[place] = BaseFact(known[min(of)] if is_linked else min(unlinked), is_linked)
    return [facts[place] for place in range(len(prompts))]


def draw_base_facts(
    facts: Iterable[tuple[str, str, str]], n_facts: int, *, seed: int
) -> set[tuple[str, str]]:
    """Draw base facts of each domain, the same ones in all its topologies.

    Args:
        facts: Domain, topology and base fact of each prompt.
        n_facts: Number of base facts per domain among those that all its topologies store; all
            facts of a domain that does not have more of these.
        seed: Seed of the draw.

    Returns:
        Domain and name of the base facts drawn: the hash of the name is among the first `n_facts`.
        Base facts in fewer topologies, such as the decoys of the published files, which are not
        linked to other topologies, are thus drawn at about the same rate.
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
