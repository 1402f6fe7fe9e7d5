"""Solved questions that stand before one: drawn from the data, or given in a file."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from random import Random
from typing import Final, Literal, get_args

import pandas as pd

from surface_consistency.data.questions import Question, questions_of
from surface_consistency.data.redirectqa_wordings import relation_name
from surface_consistency.errors import RecordError
from surface_consistency.rows.readers import Place
from surface_consistency.taxonomy import TEMPLATES

DemonstrationScope = Literal["per_relation", "per_fact", "per_question"]
"""Whether the facts of one relation share their demonstrations, or each fact or question draws its
own."""

_SCOPES: Final = get_args(DemonstrationScope)
_REDRAWS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """A solved question."""

    question: str
    """The question, under the canonical surface form."""

    answer: str
    """Its first accepted answer."""

    relation: str | None = None
    """What it asks for, so that it never stands before a question of the same relation; None where
    that is not known."""

    template: str | None = None
    """The wording before which it stands; None for any."""


class DemonstrationPool:
    """Canonical, answerable questions by template and relation, to draw demonstrations from.

    A draw takes one question from each of the other relations, in an order and from facts that
    depend on the seed alone; with fewer shots than relations it takes a part of the relations,
    with more it goes round again. RedirectQA draws 15 shots from 15 other relations (section 3.1),
    and the Japanese paper has 14. Since a fact has one relation, its own triple is
    never among them.

    Args:
        rows: Questions of a data set, columns of `QUESTION_COLUMNS`; redirect surfaces and facts
            without answers are left out. The order does not matter.
        seed: Seed of every draw.
        scope: "per_relation" gives all facts of a relation the same demonstrations, so their
            prompts share a prefix and the members of a pair differ in the surface alone;
            "per_fact" draws anew for each fact, the same for all its surfaces, and leaves out
            other facts of the same subject; "per_question" draws again for each question, so that
            the members of a pair differ in their demonstrations too.

    Raises:
        ValueError: If `scope` is unknown.
    """

    def __init__(
        self, rows: pd.DataFrame, *, seed: int = 0, scope: DemonstrationScope = "per_relation"
    ) -> None:
        if scope not in _SCOPES:
            raise ValueError(f"scope must be one of {', '.join(_SCOPES)}, got {scope!r}")
        self._seed = seed
        self._scope = scope
        pool: dict[str, dict[str, list[Question]]] = {}
        canonical = questions_of(rows[rows["is_canonical"] & rows["references"].map(bool)])
        for question in sorted(canonical, key=lambda item: (item.relation, item.id)):
            by_relation = pool.setdefault(question.template, {})
            by_relation.setdefault(question.relation, []).append(question)
        self._pool = pool
        self._drawn: dict[tuple[str, str, int], tuple[Demonstration, ...]] = {}

    def unit(self, target: Question) -> str:
        """Name what shares its demonstrations with a question.

        Args:
            target: The question.

        Returns:
            Its relation, or its fact or itself when each draws its own.
        """
        units = {"per_relation": target.relation, "per_fact": target.item}
        return units.get(self._scope, target.id)

    def relations(self, template: str) -> frozenset[str]:
        """List the relations that have demonstrations in a wording.

        Args:
            template: The wording. A further paraphrase takes the first one of a relation that has
                no such.

        Returns:
            Their names.
        """
        return frozenset(self._questions(template))

    def _questions(self, template: str) -> dict[str, list[Question]]:
        """Find the questions of a wording by relation."""
        first = self._pool.get(TEMPLATES[1], {}) if template.startswith(TEMPLATES[1]) else {}
        return {**first, **self._pool.get(template, {})}

    def draw(self, target: Question, shots: int) -> tuple[Demonstration, ...]:
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
            if self._scope != "per_relation":
                # The surfaces of a fact come one after another; keeping all facts would be a leak.
                self._drawn.clear()
            self._drawn[key] = self._draw_anew(target, unit, shots)
        return self._drawn[key]

    def _draw_anew(self, target: Question, unit: str, shots: int) -> tuple[Demonstration, ...]:
        """Draw with a generator that is seeded by what the draw may depend on."""
        others = {
            relation: items
            for relation, items in sorted(self._questions(target.template).items())
            if relation != target.relation
        }
        available = sum(len(items) for items in others.values())
        if shots > available:
            raise ValueError(
                f"shots={shots}, but only {available} canonical questions of relations other than "
                f"{target.relation!r} have answers under template {target.template!r}; "
                "ask for fewer shots or load more rows"
            )
        name = f"{self._seed}|{self._scope}|{target.template}|{unit}"
        random = Random(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))
        subject_id = target.subject_id if self._scope == "per_fact" else None
        return tuple(
            Demonstration(question=item.question, answer=item.references[0])
            for item in _round_robin(others, shots, random, subject_id)
        )


class GivenDemonstrations:
    """Demonstrations of one's own, in their order, in place of ones drawn from the data.

    A question gets the first ones that may stand before it: of its wording or any, not of its
    relation, and not one of its fact's own questions. The members of a pair get the same ones.

    Args:
        demonstrations: Solved questions, at least one.
        rows: The questions that will be asked, columns of `QUESTION_COLUMNS`, to know which fact a
            demonstration gives away.

    Raises:
        ValueError: If there are no demonstrations.
    """

    def __init__(self, demonstrations: Sequence[Demonstration], rows: pd.DataFrame) -> None:
        if not demonstrations:
            raise ValueError("demonstrations must hold at least one solved question, got none")
        self._all = tuple(demonstrations)
        known = rows[rows["question"].isin({item.question for item in self._all})]
        self._own = known.groupby("item")["question"].agg(set).to_dict()

    def _places(self, target: Question) -> tuple[int, ...]:
        """List which ones may stand before a question."""
        own = self._own.get(target.item, set()) | {target.question}
        return tuple(
            place
            for place, item in enumerate(self._all)
            if item.relation != target.relation
            and item.template in (None, target.template)
            and item.question not in own
        )

    def available(self, target: Question) -> int:
        """Count the demonstrations that may stand before a question.

        Args:
            target: The question.

        Returns:
            Their number.
        """
        return len(self._places(target))

    def unit(self, target: Question) -> str:
        """Name what shares its demonstrations with a question.

        Args:
            target: The question.

        Returns:
            The places of the demonstrations that it may have.
        """
        return "given " + ",".join(map(str, self._places(target)))

    def draw(self, target: Question, shots: int) -> tuple[Demonstration, ...]:
        """Choose the demonstrations of one question.

        Args:
            target: The question that will follow.
            shots: How many, 0 or more.

        Returns:
            The first `shots` that may stand before it.

        Raises:
            ValueError: If `shots` is negative, or fewer may; names how many do.
        """
        if shots < 0:
            raise ValueError(f"shots must be 0 or more, got {shots}")
        places = self._places(target)
        if shots > len(places):
            raise ValueError(
                f"shots={shots}, but only {len(places)} of the {len(self._all)} demonstrations may "
                f"stand before questions of {target.relation!r} under template "
                f"{target.template!r} (none of their own relation or fact may); ask for fewer "
                "shots or give more demonstrations"
            )
        return tuple(self._all[place] for place in places[:shots])


def _round_robin(
    pool: dict[str, list[Question]], shots: int, random: Random, subject_id: str | None
) -> Sequence[Question]:
    """Take one question a relation, relations in random order, again until there are enough."""
    relations = list(pool)
    random.shuffle(relations)
    chosen: list[Question] = []
    taken: set[str] = set()
    while len(chosen) < shots:
        before = len(chosen)
        for relation in relations[: shots - len(chosen)]:
            item = _pick(pool[relation], taken, random, subject_id)
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
    items: list[Question], taken: set[str], random: Random, subject_id: str | None
) -> Question | None:
    """Draw one question that is free and about another subject; None when there is none."""

    def is_free(item: Question) -> bool:
        return item.id not in taken and (subject_id is None or item.subject_id != subject_id)

    # Nearly every draw is free, so drawing again beats listing the free ones of thousands.
    for _ in range(_REDRAWS):
        item = random.choice(items)
        if is_free(item):
            return item
    free = [item for item in items if is_free(item)]
    return random.choice(free) if free else None


def read_demonstration(place: Place, row: Mapping[str, object]) -> Demonstration:
    """Read a demonstration off a row.

    Args:
        place: Where the row stands.
        row: Its cells: question, answer, and relation and template if known.

    Returns:
        The demonstration.

    Raises:
        RecordError: If a cell is no text, a column is none of these, or question or answer lack.
    """
    known = {field.name for field in fields(Demonstration)}
    if unknown := sorted(set(row) - known):
        raise RecordError(
            f"{place}: demonstrations have the columns {', '.join(sorted(known))} and no "
            f"{', '.join(unknown)}; rename or drop them"
        )
    # A cell without a number of a Parquet file is NaN, which is not equal to itself.
    held = {name: cell for name, cell in row.items() if cell is not None and cell == cell}
    for name, cell in held.items():
        if isinstance(cell, bool) or not isinstance(cell, str | int | float):
            raise RecordError(
                f"{place}: {name} holds no text but {str(cell)[:60]}; give one text, such as the "
                "first of several answers"
            )
    cells = {name: text for name, cell in held.items() if (text := str(cell).strip())}
    if not cells.get("question") or not cells.get("answer"):
        raise RecordError(f"{place}: a demonstration needs a question and an answer; got {cells}")
    if "relation" in cells:
        cells["relation"] = relation_name(cells["relation"])
    return Demonstration(**cells)
