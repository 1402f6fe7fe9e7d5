"""Few-shot demonstrations: which facts of other relations stand before a question."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Literal

from surface_consistency.schemas import QuestionRealization

__all__ = ["Demonstration", "DemonstrationPool", "DemonstrationScope"]

DemonstrationScope = Literal["per_relation", "per_fact"]
"""Whether the facts of one relation share their demonstrations or each fact draws its own."""

_SCOPES: Final = ("per_relation", "per_fact")
_REDRAWS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """A solved question."""

    question: str
    """The question, under the canonical surface form."""

    answer: str
    """Its first accepted answer."""


class DemonstrationPool:
    """Canonical, answerable questions by template and relation, to draw demonstrations from.

    A draw takes one question from each of the other relations, in an order and from facts that
    depend on the seed alone; with fewer shots than relations it takes a part of the relations,
    with more it goes round again. RedirectQA draws 15 shots from 15 other relations, its release
    v0.1.0 14 from 14 (RedirectQA, section 3.1). Since a fact has one relation, its own triple is
    never among them.

    Args:
        questions: Questions of a data set; redirect surfaces and facts without answers are left
            out. The order does not matter.
        seed: Seed of every draw.
        scope: "per_relation" gives all facts of a relation the same demonstrations, so their
            prompts share a prefix and the members of a pair differ in the surface alone;
            "per_fact" draws anew for each fact, the same for all its surfaces, and leaves out
            other facts of the same subject.

    Raises:
        ValueError: If `scope` is unknown.
    """

    def __init__(
        self,
        questions: Iterable[QuestionRealization],
        *,
        seed: int = 0,
        scope: DemonstrationScope = "per_relation",
    ) -> None:
        if scope not in _SCOPES:
            raise ValueError(f"scope must be one of {', '.join(_SCOPES)}, got {scope!r}")
        self._seed = seed
        self._scope = scope
        pool: dict[str, dict[str, list[QuestionRealization]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for question in questions:
            if question.surface.is_canonical and question.triple.answers:
                pool[question.template][question.triple.relation].append(question)
        self._drawn: dict[tuple[str, str, int], tuple[Demonstration, ...]] = {}
        self._pool = {
            template: {
                relation: sorted(items, key=lambda item: item.id)
                for relation, items in sorted(by_relation.items())
            }
            for template, by_relation in pool.items()
        }

    def unit(self, target: QuestionRealization) -> str:
        """Name what shares its demonstrations with a question.

        Args:
            target: The question.

        Returns:
            Its relation, or its fact when each fact draws its own.
        """
        return target.triple.relation if self._scope == "per_relation" else target.triple.id

    def draw(self, target: QuestionRealization, shots: int) -> tuple[Demonstration, ...]:
        """Choose the demonstrations of one question.

        Args:
            target: The question that will follow.
            shots: How many, 0 or more.

        Returns:
            `shots` demonstrations, none of the target's relation.

        Raises:
            ValueError: If `shots` is negative, or the other relations of this template do not
                hold that many facts; names how many there are.
        """
        if shots < 0:
            raise ValueError(f"shots must be 0 or more, got {shots}")
        unit = self.unit(target)
        key = (target.template, unit, shots)
        if key not in self._drawn:
            if self._scope == "per_fact":
                # The surfaces of a fact come one after another; keeping all facts would be a leak.
                self._drawn.clear()
            self._drawn[key] = self._draw_anew(target, unit, shots)
        return self._drawn[key]

    def _draw_anew(
        self, target: QuestionRealization, unit: str, shots: int
    ) -> tuple[Demonstration, ...]:
        """Draw with a generator that is seeded by what the draw may depend on."""
        others = {
            relation: items
            for relation, items in self._pool.get(target.template, {}).items()
            if relation != target.triple.relation
        }
        available = sum(len(items) for items in others.values())
        if shots > available:
            raise ValueError(
                f"shots={shots}, but only {available} canonical questions of relations other than "
                f"{target.triple.relation!r} have answers under template {target.template!r}; "
                "ask for fewer shots or load more rows"
            )
        name = f"{self._seed}|{self._scope}|{target.template}|{unit}"
        random = Random(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))
        subject_id = target.triple.subject.id if self._scope == "per_fact" else None
        return tuple(
            Demonstration(question=item.question, answer=item.triple.answers[0])
            for item in _round_robin(others, shots, random, subject_id=subject_id)
        )


def _round_robin(
    pool: dict[str, list[QuestionRealization]],
    shots: int,
    random: Random,
    *,
    subject_id: str | None,
) -> Sequence[QuestionRealization]:
    """Take one question a relation, relations in random order, again until there are enough."""
    relations = list(pool)
    random.shuffle(relations)
    chosen: list[QuestionRealization] = []
    taken: set[str] = set()
    while len(chosen) < shots:
        before = len(chosen)
        for relation in relations[: shots - len(chosen)]:
            item = _pick(pool[relation], taken, random, subject_id=subject_id)
            if item is not None:
                taken.add(item.id)
                chosen.append(item)
        if len(chosen) == before:
            raise ValueError(
                f"shots={shots}, but only {before} demonstrations are about other subjects than "
                f"{subject_id}; ask for fewer shots or load more rows"
            )
    random.shuffle(chosen)
    return chosen


def _pick(
    items: list[QuestionRealization], taken: set[str], random: Random, *, subject_id: str | None
) -> QuestionRealization | None:
    """Draw one question that is free and about another subject; None when there is none."""

    def is_free(item: QuestionRealization) -> bool:
        return item.id not in taken and (subject_id is None or item.triple.subject.id != subject_id)

    # Nearly every draw is free, so drawing again beats listing the free ones of thousands.
    for _ in range(_REDRAWS):
        item = random.choice(items)
        if is_free(item):
            return item
    free = [item for item in items if is_free(item)]
    return random.choice(free) if free else None
