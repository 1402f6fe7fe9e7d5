"""The cluster of an audit: the fact before renaming, which several topologies store.

The answers to one fact in several databases are not independent, and with retrieval off they are
nearly copies; so are those under its alias names, and those of the decoys and near misses that were
made from it.
"""

from collections.abc import Sequence
from itertools import product
from typing import Final, NamedTuple

from surface_consistency.schemas.memory import AuditPrompt
from surface_consistency.studies.audit.retrieval.alias_groups import name_key, names_in

BASE: Final = "base"
"""The topology that stores each fact once, in its own names."""


UNLINKED: Final = (
    "without a known base fact (they have no number of it, and no fact of topology base has their "
    "names), so that each has its own cluster"
)
"""Description of facts that are not linked."""


class BaseFact(NamedTuple):
    """The fact from which a fact of a database was made."""

    name: str
    """Its name within all databases, such as "countries/base/17"; equal names are one cluster."""

    is_linked: bool
    """Whether this is known: by its number, or by names that a fact of topology base has too."""


def base_facts(prompts: Sequence[tuple[str, AuditPrompt]]) -> list[BaseFact]:
    """Find the base fact of each prompt: the cluster of all intervals and tests of an audit.

    A prompt with `base_fact` has the fact of this number. Prompts of one domain that share a name
    of the subject and a name of the relation, as the audit compares names, ask the same question
    and have one base fact, that of topology base if there is one. Any other prompt, such as a decoy
    in the published files, which do not number base facts, is not linked and has its own cluster.

    Args:
        prompts: Pairs of the name of a database, such as "countries/alias", and a prompt. Pass all
            databases of a domain together, or a fact in two of them is in two clusters.

    Returns:
        The base fact of each prompt, in order.
    """
    known: dict[tuple[str, str, str], BaseFact] = {}
    found: dict[int, BaseFact] = {}
    is_base = [database.partition("/")[2] == BASE for database, _ in prompts]
    # Facts whose base fact is known come first, so that the others are linked with them.
    places = range(len(prompts))
    for place in sorted(places, key=lambda i: (prompts[i][1].base_fact is None, not is_base[i])):
        database, prompt = prompts[place]
        domain = database.partition("/")[0]
        keys = [
            (domain, subject, relation)
            for subject, relation in product(
                *(map(name_key("published"), names_in(prompt, r)) for r in ("subject", "relation"))
            )
        ]
        if prompt.base_fact is not None:
            fact = BaseFact(f"{domain}/{BASE}/{prompt.base_fact}", True)
        else:
            own = BaseFact(f"{database}/{prompt.fact_id}", is_base[place])
            fact = next((known[key] for key in keys if key in known), own)
        found[place] = fact
        for key in keys:
            known.setdefault(key, fact)
    return [found[place] for place in places]
