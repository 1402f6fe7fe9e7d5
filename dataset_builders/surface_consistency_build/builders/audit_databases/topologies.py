"""Six topologies: ways to store the same facts, which differ in how a deleted fact may survive.

`base`, `alias`, `noise` and `collision` are the topologies of the audit of forgetting (arXiv
2607.00605, section 4 and appendix A.2); `paraphrase` and `pointer` are the two designs proposed in
its section 9.

- `base`: each fact once, with its own names.
- `alias`: each fact only in two aliased forms of subject and relation.
- `noise`: `base` and decoys: other subjects that lead to the same objects.
- `collision`: `base` and near misses: confusable facts with other objects.
- `paraphrase`: `base` and a paraphrase of each fact (its decoys if it has any), all declared as
  forms of the fact, so that an alias closure includes them at deletion time.
- `pointer`: each fact once; aliases and paraphrased subjects are pointers to the canonical name
  without a value. The targets are those of `alias`, so that both stores can be compared.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import numpy as np

from surface_consistency.errors import DataError
from surface_consistency.schemas import AuditPrompt, Triplet
from surface_consistency.studies.audit.conditions import TOPOLOGIES
from surface_consistency.studies.audit.files import check_entries
from surface_consistency.studies.audit.retrieval.triplets import Triplets
from surface_consistency.text import folded, token_key
from surface_consistency_build.builders.audit_databases.fact_tables import FactTable, RelatedFact

PUBLISHED_TOPOLOGIES: Final = TOPOLOGIES[:4]
"""The topologies of the paper."""

POINTER_RELATIONS: Final = MappingProxyType(
    {"subject": "Canonical Name", "relation": "Canonical Relation"}
)
"""Relations of the entries that point from an alias to the name with the facts."""

_FORMS: Final = 2
_DRAWS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditDatabase:
    """A database and the facts that an audit deletes from it."""

    database: Triplets
    """The store."""

    targets: tuple[AuditPrompt, ...]
    """The facts with their aliases; `prompt_text` is "subject: relation" until a prompt style
    replaces it."""


def build_topology(table: FactTable, topology: str, *, seed: int = 0) -> AuditDatabase:
    """Store a table of facts in one topology.

    Args:
        table: The facts, with their aliases, decoys and near misses.
        topology: One of `TOPOLOGIES`.
        seed: Random seed of the near misses for a table that does not list any; not used otherwise.

    Returns:
        The database, and its facts as targets: all entries of the four published topologies and of
        `paraphrase`, the alias forms of `pointer`.

    Raises:
        ValueError: If the topology does not exist.
        DataError: If two facts of the table give the same entry, or the table is too uniform for
            near misses.

    Examples:
        >>> from surface_consistency_build.builders.audit_databases import fact_tables
        >>> made = build_topology(fact_tables.load_fact_table("countries"), "alias")
        >>> made.database[0], made.targets[0].subject_aliases
        (Triplet(subject='USA', relation='Capital City', object='Washington, D.C.'), \
('United States', 'United States of America'))
    """
    if topology not in TOPOLOGIES:
        raise ValueError(f"topology must be one of {', '.join(TOPOLOGIES)}, got {topology!r}")
    if topology == "pointer":
        return _pointer(table)
    forms = list(_MAKERS[topology](table, seed))
    database = make_database(form.triplet for form in forms)
    return AuditDatabase(database=database, targets=_targets(forms))


def make_database(triplets: Iterable[Triplet]) -> Triplets:
    """Make a database from triplets.

    Args:
        triplets: The distinct entries, in order.

    Returns:
        The database.

    Raises:
        DataError: If an entry occurs twice, or a part of an entry is empty.

    Examples:
        >>> len(make_database([Triplet("France", "Capital", "Paris")]))
        1
    """
    entries = tuple(triplets)
    check_entries(entries, "the database", longest=None)
    return Triplets.of(entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """A form of a fact: an entry, and all names of its parts, the canonical name first.

    `base` names the fact of the table that it states or from which it was made.
    """

    triplet: Triplet
    subjects: tuple[str, ...]
    relations: tuple[str, ...]
    objects: tuple[str, ...]
    base: str | None

    def named(self, subject: str, relation: str) -> "_Form":
        """Return the same fact with other names of subject and relation."""
        return replace(self, triplet=Triplet(subject, relation, self.triplet.object))


def _targets(forms: Iterable[_Form]) -> tuple[AuditPrompt, ...]:
    """Number the facts."""
    return tuple(_target(form, number) for number, form in enumerate(forms))


def _base(table: FactTable, seed: int) -> Iterator[_Form]:
    """Yield each fact with its own names."""
    for fact in table.facts:
        yield _own_form(table, fact, fact[:2])


def _own_form(table: FactTable, fact: Triplet, base: tuple[str, str] | None) -> _Form:
    """Return a fact with its own names, its aliases, and the fact that it states or is based on."""
    subject, relation, gold = fact
    return _Form(
        triplet=fact,
        subjects=(subject, *table.names_of("subject", subject, relation=relation)),
        relations=(relation, *table.names_of("relation", relation, relation=relation)),
        objects=(gold, *table.names_of("object", gold, relation=relation)),
        base=base and " | ".join(base),
    )


def _alias(table: FactTable, seed: int) -> Iterator[_Form]:
    """Yield each fact in two forms of subject and relation."""
    for fact in table.facts:
        subject, relation, gold = fact
        subjects = _two_forms(
            table.forms_of("subject", subject, relation=relation), avoid=folded(gold)
        )
        relations = _two_forms(table.forms_of("relation", relation, relation=relation))
        own = _own_form(table, fact, fact[:2])
        for place in range(max(len(subjects), len(relations))):
            yield own.named(subjects[place % len(subjects)], relations[place % len(relations)])


def _two_forms(names: tuple[str, ...], *, avoid: str | None = None) -> list[str]:
    """Return the first two names; a name that is the object would reveal it and is replaced."""
    spare = [name for name in names[_FORMS:] if folded(name) != avoid]
    forms = []
    for name in names[:_FORMS]:
        if folded(name) != avoid:
            forms.append(name)
        elif spare:
            forms.append(spare.pop(0))
    return forms or [names[0]]


def _noise(table: FactTable, seed: int) -> Iterator[_Form]:
    """Yield the facts, and decoys that lead to their objects."""
    yield from _base(table, seed)
    yield from _related(table, table.noise or tuple(map(_decoy, table.facts)))


def _decoy(fact: Triplet) -> RelatedFact:
    """Make a decoy for a fact of a table without decoys."""
    subject, relation, gold = fact
    decoy = Triplet(f"Encyclopedia article on {subject}", f"{relation} Mentioned", gold)
    return RelatedFact(triplet=decoy, near=(subject, relation))


def _collision(table: FactTable, seed: int) -> Iterator[_Form]:
    """Yield the facts, and near misses with other objects."""
    yield from _base(table, seed)
    yield from _related(table, table.collision or _near_misses(table, seed))


def _near_misses(table: FactTable, seed: int) -> tuple[RelatedFact, ...]:
    """Make a near miss for each fact of a table without near misses: another subject's object.

    Facts of the same subject and relation may share a near miss.
    """
    generator = np.random.default_rng(seed)
    by_relation: dict[str, list[Triplet]] = {}
    for fact in table.facts:
        by_relation.setdefault(fact.relation, []).append(fact)
    known = set(table.facts)
    made: dict[Triplet, RelatedFact] = {}
    for fact in table.facts:
        other = _other_object(fact, by_relation[fact.relation], generator)
        if other is None:
            continue
        near_miss = Triplet(fact.subject, f"{fact.relation} of {other.subject}", other.object)
        if near_miss not in known:
            made.setdefault(near_miss, RelatedFact(triplet=near_miss, near=fact[:2]))
    return tuple(made.values())


def _other_object(
    fact: Triplet, alike: list[Triplet], generator: np.random.Generator
) -> Triplet | None:
    """Draw a fact of the same relation with another subject and object; None if not found."""

    def differs(other: Triplet) -> bool:
        """Return whether both parts differ."""
        return other.subject != fact.subject and folded(other.object) != folded(fact.object)

    for _ in range(_DRAWS):
        other = alike[int(generator.integers(len(alike)))]
        if differs(other):
            return other
    others = [other for other in alike if differs(other)]
    return others[int(generator.integers(len(others)))] if others else None


def _related(table: FactTable, related: tuple[RelatedFact, ...]) -> Iterator[_Form]:
    """Yield related facts of a table, with the aliases that apply to them."""
    if not related:
        raise DataError(
            f"table {table.name!r} lists no near misses and none can be drawn, because no relation "
            "has two subjects with different objects; add a collision.tsv"
        )
    for item in related:
        yield _own_form(table, item.triplet, item.near)


def _paraphrase(table: FactTable, seed: int) -> Iterator[_Form]:
    """Yield the facts and their paraphrases as forms of one fact."""
    for fact in table.facts:
        own = _own_form(table, fact, fact[:2])
        spoken = _paraphrases(table, fact)
        subjects = (*own.subjects, *(subject for subject, _ in spoken))
        relations = (*own.relations, *(relation for _, relation in spoken))
        whole = replace(
            own, subjects=tuple(dict.fromkeys(subjects)), relations=tuple(dict.fromkeys(relations))
        )
        yield whole
        yield from (whole.named(*names) for names in spoken)


def _paraphrases(table: FactTable, fact: Triplet) -> list[tuple[str, str]]:
    """Return the table's paraphrased subjects and relations, or one made from the fact."""
    listed = [
        (item.triplet.subject, item.triplet.relation)
        for item in table.noise
        if item.near == fact[:2] and item.triplet.object == fact.object
    ]
    return listed or [(f"{fact.relation} of {fact.subject}", "Is")]


def _pointer(table: FactTable) -> AuditDatabase:
    """Return the facts once, pointers to them, and their alias forms as targets."""
    pointers: dict[Triplet, None] = {}
    for fact in table.facts:
        own = _own_form(table, fact, fact[:2])
        spoken = (*own.subjects[1:], *(subject for subject, _ in _paraphrases(table, fact)))
        for alias in spoken:
            if folded(alias) != folded(fact.subject):
                pointers[Triplet(alias, POINTER_RELATIONS["subject"], fact.subject)] = None
        for alias in own.relations[1:]:
            pointers[Triplet(alias, POINTER_RELATIONS["relation"], fact.relation)] = None
    database = make_database(dict.fromkeys((*table.facts, *pointers)))
    return AuditDatabase(database=database, targets=_targets(_alias(table, 0)))


def _target(form: _Form, number: int) -> AuditPrompt:
    """Make the target of a fact; names of the subject are not aliases of the object.

    With an object alias that is a name of the subject, repeating the prompt would be correct.
    """
    subject, relation, gold = form.triplet
    spoken = {token_key(name) for name in (subject, *form.subjects)}
    return AuditPrompt(
        prompt_id=number,
        fact_id=number,
        subject=subject,
        relation=relation,
        gold_object=gold,
        prompt_text=f"{subject}: {relation}",
        subject_aliases=_others(subject, form.subjects),
        relation_aliases=_others(relation, form.relations),
        object_aliases=tuple(
            name for name in _others(gold, form.objects) if token_key(name) not in spoken
        ),
        base_fact=form.base,
    )


def _others(name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Remove a name from its aliases."""
    return tuple(alias for alias in names if alias != name)


_MAKERS: Final[dict[str, Callable[[FactTable, int], Iterator[_Form]]]] = {
    "base": _base,
    "alias": _alias,
    "noise": _noise,
    "collision": _collision,
    "paraphrase": _paraphrase,
}
