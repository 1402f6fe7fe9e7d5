"""A fact in one of its forms, and what an audit must know to delete it."""

from collections.abc import Iterator
from dataclasses import dataclass

from surface_consistency.schemas import AuditPrompt, Triplet
from surface_consistency.text import token_key

__all__ = ["FactForm", "paraphrased_forms", "target_prompt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactForm:
    """An entry and all names of its parts."""

    triplet: Triplet
    """The entry."""

    subjects: tuple[str, ...]
    """All names of the subject, the canonical one first."""

    relations: tuple[str, ...]
    """All names of the relation, the canonical one first."""

    objects: tuple[str, ...]
    """All names of the object, the canonical one first."""

    def named(self, subject: str, relation: str) -> "FactForm":
        """Give the same fact under other names of subject and relation."""
        return FactForm(
            triplet=Triplet(subject, relation, self.triplet.object),
            subjects=self.subjects,
            relations=self.relations,
            objects=self.objects,
        )


def paraphrased_forms(own: FactForm, paraphrases: list[tuple[str, str]]) -> Iterator[FactForm]:
    """Give a fact and its paraphrases, each with the names of all of them."""
    whole = FactForm(
        triplet=own.triplet,
        subjects=_distinct((*own.subjects, *(subject for subject, _ in paraphrases))),
        relations=_distinct((*own.relations, *(relation for _, relation in paraphrases))),
        objects=own.objects,
    )
    yield whole
    for subject, relation in paraphrases:
        yield whole.named(subject, relation)


def target_prompt(form: FactForm, number: int) -> AuditPrompt:
    """Make the target of a fact; names of the subject are no aliases of the object.

    An object alias that is a name of the subject would let a model pass by echoing its prompt.
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
    )


def _others(name: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Leave a name out of its aliases."""
    return tuple(alias for alias in names if alias != name)


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    """Keep the first of equal names."""
    return tuple(dict.fromkeys(names))
