"""Few-shot demonstrations (solved questions): drawn from the data, or read from a file."""

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
"""Unit that has the same demonstrations: a relation, a fact or a single question."""

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
    """The relation of its fact, or None if unknown. A demonstration never precedes a question of
    the same relation."""

    template: str | None = None
    """The template of the questions that it may precede; None for any."""


class DemonstrationPool:
    """Pool of canonical, answerable questions by template and relation.

    A draw takes one question from each of the other relations. The order of the relations and the
    facts depend only on the seed. With fewer shots than relations, some relations are used; with
    more, relations are used again. RedirectQA draws 15 shots from 15 other relations (section
    3.1), and the Japanese paper draws 14. A fact has one relation, so its own triple is never
    drawn.

    Args:
        rows: Questions of a data set, columns of `QUESTION_COLUMNS`; redirect surfaces and facts
            without answers are excluded. The order does not matter.
        seed: Seed of every draw.
        scope: "per_relation" gives all facts of a relation the same demonstrations, so their
            prompts share a prefix and the members of a pair differ only in the surface;
            "per_fact" draws for each fact, the same for all its surfaces, and excludes other
            facts of the same subject; "per_question" draws for each question, so the members of a
            pair also differ in their demonstrations.

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
        """Name the unit with the same demonstrations as a question.

        Args:
            target: The question.

        Returns:
            Its relation; or its fact ("per_fact") or its own id ("per_question").
        """
        units = {"per_relation": target.relation, "per_fact": target.item}
        return units.get(self._scope, target.id)

    def relations(self, template: str) -> frozenset[str]:
        """List the relations that have demonstrations in a template.

        Args:
            template: The template. For a further paraphrase, the first paraphrase replaces it in
                relations that do not have it.

        Returns:
            Their names.
        """
        return frozenset(self._questions(template))

    def _questions(self, template: str) -> dict[str, list[Question]]:
        """Find the questions of a template by relation."""
        first = self._pool.get(TEMPLATES[1], {}) if template.startswith(TEMPLATES[1]) else {}
        return {**first, **self._pool.get(template, {})}

    def draw(self, target: Question, shots: int) -> tuple[Demonstration, ...]:
        """Choose the demonstrations of one question.

        Args:
            target: The question that will follow.
            shots: Number of demonstrations, 0 or more.

        Returns:
            `shots` demonstrations, all of relations other than the target's.

        Raises:
            ValueError: If `shots` is negative, or the other relations of this template have fewer
                facts; the message contains their number.
        """
        if shots < 0:
            raise ValueError(f"shots must be 0 or more, got {shots}")
        unit = self.unit(target)
        key = (target.template, unit, shots)
        if key not in self._drawn:
            if self._scope != "per_relation":
                # The surfaces of a fact are consecutive; storing all facts would be a memory leak.
                self._drawn.clear()
            self._drawn[key] = self._draw_seeded(target, unit, shots)
        return self._drawn[key]

    def _draw_seeded(self, target: Question, unit: str, shots: int) -> tuple[Demonstration, ...]:
        """Draw with a generator that is seeded by the seed, scope, template and unit."""
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
                "set fewer shots or load more rows"
            )
        name = f"{self._seed}|{self._scope}|{target.template}|{unit}"
        random = Random(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))
        subject_id = target.subject_id if self._scope == "per_fact" else None
        return tuple(
            Demonstration(question=item.question, answer=item.references[0])
            for item in _round_robin(others, shots, random, subject_id)
        )


class GivenDemonstrations:
    """User-defined demonstrations, used in their order instead of ones drawn from the data.

    A question gets the first demonstrations that may precede it: of its template or of any, not of
    its relation, and not a question of its fact. The members of a pair get the same ones.

    Args:
        demonstrations: Solved questions, at least one.
        rows: The questions of the run, columns of `QUESTION_COLUMNS`, which determine the fact of
            a demonstration.

    Raises:
        ValueError: If `demonstrations` is empty.
    """

    def __init__(self, demonstrations: Sequence[Demonstration], rows: pd.DataFrame) -> None:
        if not demonstrations:
            raise ValueError("demonstrations must contain at least one solved question, got 0")
        self._all = tuple(demonstrations)
        known = rows[rows["question"].isin({item.question for item in self._all})]
        self._own = known.groupby("item")["question"].agg(set).to_dict()

    def _places(self, target: Question) -> tuple[int, ...]:
        """List the positions of the demonstrations that may precede a question."""
        own = self._own.get(target.item, set()) | {target.question}
        return tuple(
            place
            for place, item in enumerate(self._all)
            if item.relation != target.relation
            and item.template in (None, target.template)
            and item.question not in own
        )

    def available(self, target: Question) -> int:
        """Count the demonstrations that may precede a question.

        Args:
            target: The question.

        Returns:
            Their number.
        """
        return len(self._places(target))

    def unit(self, target: Question) -> str:
        """Name the unit with the same demonstrations as a question.

        Args:
            target: The question.

        Returns:
            The positions of the demonstrations that may precede it.
        """
        return "given " + ",".join(map(str, self._places(target)))

    def draw(self, target: Question, shots: int) -> tuple[Demonstration, ...]:
        """Choose the demonstrations of one question.

        Args:
            target: The question that will follow.
            shots: Number of demonstrations, 0 or more.

        Returns:
            The first `shots` demonstrations that may precede it.

        Raises:
            ValueError: If `shots` is negative, or fewer may precede it; the message contains their
                number.
        """
        if shots < 0:
            raise ValueError(f"shots must be 0 or more, got {shots}")
        places = self._places(target)
        if shots > len(places):
            raise ValueError(
                f"shots={shots}, but only {len(places)} of the {len(self._all)} demonstrations may "
                f"precede questions of {target.relation!r} under template {target.template!r} "
                "(those of the same relation or fact are excluded); set fewer shots or add "
                "demonstrations"
            )
        return tuple(self._all[place] for place in places[:shots])


def _round_robin(
    pool: dict[str, list[Question]], shots: int, random: Random, subject_id: str | None
) -> Sequence[Question]:
    """Take one question per relation, relations in random order, until there are enough."""
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
                f"{subject_id}; set fewer shots or load more rows"
            )
    random.shuffle(chosen)
    return chosen


def _pick(
    items: list[Question], taken: set[str], random: Random, subject_id: str | None
) -> Question | None:
    """Draw one unused question about another subject; None without such a question."""

    def is_free(item: Question) -> bool:
        return item.id not in taken and (subject_id is None or item.subject_id != subject_id)

    # Nearly every drawn question is free: redrawing is faster than filtering thousands.
    for _ in range(_REDRAWS):
        item = random.choice(items)
        if is_free(item):
            return item
    free = [item for item in items if is_free(item)]
    return random.choice(free) if free else None


def read_demonstration(place: Place, row: Mapping[str, object]) -> Demonstration:
    """Read a demonstration from a row.

    Args:
        place: File and line of the row.
        row: Its cells: question, answer, and relation and template if known.

    Returns:
        The demonstration.

    Raises:
        RecordError: If a cell is not text, a column is unknown, or question or answer is missing.
    """
    known = {field.name for field in fields(Demonstration)}
    if unknown := sorted(set(row) - known):
        raise RecordError(
            f"{place}: unknown columns of a demonstration: {', '.join(unknown)}; rename or drop "
            f"them. Columns: {', '.join(sorted(known))}"
        )
    # An empty numeric cell of a Parquet file is NaN, which is not equal to itself.
    present = {name: cell for name, cell in row.items() if cell is not None and cell == cell}
    for name, cell in present.items():
        if isinstance(cell, bool) or not isinstance(cell, str | int | float):
            raise RecordError(
                f"{place}: {name} is not a text, got {str(cell)[:60]}; give one text, such as the "
                "first of several answers"
            )
    cells = {name: text for name, cell in present.items() if (text := str(cell).strip())}
    if not cells.get("question") or not cells.get("answer"):
        raise RecordError(f"{place}: a demonstration needs a question and an answer; got {cells}")
    if "relation" in cells:
        cells["relation"] = relation_name(cells["relation"])
    return Demonstration(**cells)
