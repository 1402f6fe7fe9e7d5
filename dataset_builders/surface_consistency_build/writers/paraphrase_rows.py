"""Paraphrases of questions: what is paraphrased, what of a writer's answer holds, and the rows.

A paraphrase is a wording with a gap for the name, so that the members of a pair go on differing in
the name alone, whatever was written.
"""

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final, Literal, TypeAlias

from surface_consistency.data.redirectqa_release import question_cells
from surface_consistency.runs.files import write_text
from surface_consistency.schemas import QuestionRealization
from surface_consistency.taxonomy import RELATIONS, TEMPLATES, paraphrase_name
from surface_consistency.text import padded_words

Sharing: TypeAlias = Literal["wording", "fact"]

DROP_REASONS: Final[Mapping[str, str]] = {
    "name": "the name does not stand in it exactly once",
    "no question": "it does not end as a question does",
    "original": "it is the original",
    "repeated": "it repeats another",
    "answer": "an accepted answer stands in it",
    "surplus": "there are enough without it",
    "refused": "the reviewer refused it",
}
"""Why a paraphrase is not taken, by name."""

_GAP: Final = "{}"
_NONE: Final = "\0"
_NUMBER: Final = re.compile(r"^\s*(?:\d{1,2}\s*[.):]|[-*•])\s*")
_QUOTED: Final = re.compile(r"^([\"'“‘«`*_]+)(.*?)([\"'”’»`*_]+)$")
_MARKS: Final = ("?", "？", "؟")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParaphraseUnit:
    """A wording that is paraphrased once, for all facts that are asked in it."""

    id: str
    """Relation and a digest of the wording, or relation and fact."""

    relation: str
    """The relation."""

    wording: str
    """The question with "{}" for the name."""

    name: str
    """The canonical name that the writer is shown."""

    facts: Mapping[str, tuple[QuestionRealization, ...]]
    """The original questions of each fact, under all of its names."""

    @property
    def question(self) -> str:
        """The question that the writer is shown."""
        return self.wording.replace(_GAP, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParaphraseUnits:
    """What can be paraphrased, and what cannot."""

    units: tuple[ParaphraseUnit, ...]
    """In the order of their first question."""

    left_out: Mapping[str, str]
    """Facts that are not paraphrased, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParaphraseCandidate:
    """One paraphrase that was written."""

    id: str
    """Its unit and its number among those written."""

    text: str
    """The question about the name that the writer was shown."""

    reason: str | None = None
    """Why it is not taken, a name of `DROP_REASONS`; None when it is."""

    refused_facts: frozenset[str] = frozenset()
    """Facts of which it gives the answer away; it is not asked of these."""


def find_units(
    questions: Iterable[QuestionRealization], *, sharing: Sharing = "wording"
) -> ParaphraseUnits:
    """Find what is paraphrased.

    Args:
        questions: Questions of a data set; those in the original template are paraphrased.
        sharing: "wording" for one set of paraphrases a relation and template, as RedirectQA has
            them; "fact" for one a fact.

    Returns:
        The units. A fact is left out where it has no canonical question, its name does not stand
        in its question exactly once, or a redirect question differs in more than the name.

    Raises:
        ValueError: If `sharing` is neither.
    """
    if sharing not in ("wording", "fact"):
        raise ValueError(f"sharing must be one of wording, fact; got {sharing!r}")
    facts: dict[str, list[QuestionRealization]] = {}
    for question in questions:
        if question.template == TEMPLATES[0]:
            facts.setdefault(question.triple.id, []).append(question)
    left_out: dict[str, str] = {}
    sharing_facts: dict[tuple[str, str, str], list[str]] = {}
    for fact, realizations in facts.items():
        found = _common_wording(realizations)
        if found.startswith(_NONE):
            left_out[fact] = found.removeprefix(_NONE)
            continue
        relation = realizations[0].triple.relation
        digest = hashlib.sha256(f"{relation}\0{found}".encode()).hexdigest()[:16]
        name = f"{relation}/{digest if sharing == 'wording' else fact}"
        sharing_facts.setdefault((name, relation, found), []).append(fact)
    units = (
        ParaphraseUnit(
            id=name,
            relation=relation,
            wording=wording,
            name=_shown_name(wording, [facts[fact] for fact in members]),
            facts={fact: tuple(facts[fact]) for fact in members},
        )
        for (name, relation, wording), members in sharing_facts.items()
    )
    return ParaphraseUnits(units=tuple(units), left_out=left_out)


def parse_paraphrases(text: str) -> list[str]:
    r"""Read a writer's answer: one question a line.

    Args:
        text: The answer. Numbers, bullets and quotation marks around a line are taken off; where
            any line is numbered, those without a number are remarks.

    Returns:
        The lines, in order.

    Examples:
        >>> parse_paraphrases("Here they are:\n1. Who wrote X?\n2) “Whose work is X?”")
        ['Who wrote X?', 'Whose work is X?']
    """
    lines = [line for line in text.splitlines() if line.strip()]
    numbered = [bool(_NUMBER.match(line)) for line in lines]
    if any(numbered):
        lines = list(compress(lines, numbered))
    paraphrases = []
    for line in lines:
        plain = _NUMBER.sub("", line).strip()
        quoted = _QUOTED.match(plain)
        plain = " ".join((quoted[2] if quoted else plain).split())
        if plain:
            paraphrases.append(plain)
    return paraphrases


def check_paraphrase(
    text: str, unit: ParaphraseUnit, *, taken: Collection[str] = ()
) -> tuple[str | None, frozenset[str]]:
    """Check one paraphrase.

    Args:
        text: The paraphrase, about the name of the unit.
        unit: What it paraphrases.
        taken: Paraphrases of the same unit.

    Returns:
        Why it cannot be taken, a name of `DROP_REASONS`, or None; and the facts whose answer stands
        in it and not in the original wording. Words are compared without regard to case and
        punctuation, but the name, which must stand there as it is.
    """
    words, original = padded_words([text, unit.question])
    if not _stands_once(unit.name, text) or _GAP in text:
        return "name", frozenset()
    if words == original:
        return "original", frozenset()
    if words in padded_words(list(taken)):
        return "repeated", frozenset()
    if unit.question.endswith(_MARKS) and not text.endswith(_MARKS):
        return "no question", frozenset()
    parts = padded_words(text.split(unit.name))
    known = padded_words(unit.wording.split(_GAP))
    refused = frozenset(
        fact
        for fact, realizations in unit.facts.items()
        if any(
            answer.strip()
            and any(answer in part for part in parts)
            and not any(answer in part for part in known)
            for answer in padded_words(realizations[0].triple.answers)
        )
    )
    return ("answer" if len(refused) == len(unit.facts) else None), refused


def select_candidates(
    texts: Sequence[str], unit: ParaphraseUnit, *, number: int
) -> list[ParaphraseCandidate]:
    """Check what was written on a unit, and take the first that hold.

    Args:
        texts: What was written, in order.
        unit: What it paraphrases.
        number: How many are taken at most.

    Returns:
        All of them.
    """
    candidates: list[ParaphraseCandidate] = []
    taken: list[str] = []
    for place, text in enumerate(texts, start=1):
        reason, refused = check_paraphrase(text, unit, taken=taken)
        if reason is None and len(taken) == number:
            reason = "surplus"
        if reason is None:
            taken.append(text)
        candidates.append(
            ParaphraseCandidate(
                id=f"{unit.id}/{place}", text=text, reason=reason, refused_facts=refused
            )
        )
    return candidates


def write_paraphrase_rows(
    path: str | os.PathLike[str],
    units: ParaphraseUnits,
    taken: Mapping[str, Sequence[ParaphraseCandidate]],
    questions: Iterable[QuestionRealization],
) -> int:
    """Write original questions and their paraphrases, in the columns that `load_redirectqa` reads.

    Args:
        path: The file, such as `test.jsonl`; its folder must exist.
        units: What was paraphrased.
        taken: Paraphrases by unit; the first is the template "paraphrase", then "paraphrase_2".
        questions: The questions; those in the original template are written, in this order, each
            before its paraphrases.

    Returns:
        The number of rows.
    """
    unit_of = {fact: unit for unit in units.units for fact in unit.facts}
    lines = []
    for question in questions:
        if question.template != TEMPLATES[0]:
            continue
        triple = question.triple
        cells = question_cells(question) | {
            "object_aliases": triple.object.aliases,
            "possible_answers": triple.answers,
        }
        lines.append(cells)
        unit = unit_of.get(triple.id)
        for number, one in enumerate(taken.get(unit.id, ()) if unit else (), start=1):
            if unit is None or triple.id in one.refused_facts:
                continue
            text = one.text.replace(unit.name, question.surface.text)
            lines.append(cells | {"template": paraphrase_name(number), "question": text})
    write_text(path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in lines))
    return len(lines)


def _common_wording(realizations: Sequence[QuestionRealization]) -> str:
    """Find the wording of a fact's questions, or say behind `_NONE` why there is none."""
    canonical = next((one for one in realizations if one.surface.is_canonical), None)
    if canonical is None:
        return f"{_NONE}it has no canonical question"
    wording = _wording(canonical)
    if wording is None:
        return f"{_NONE}its name does not stand in its question exactly once"
    if any(one.question != wording.replace(_GAP, one.surface.text) for one in realizations):
        return f"{_NONE}its questions differ in more than the name"
    return wording


def _shown_name(wording: str, facts: Sequence[Sequence[QuestionRealization]]) -> str:
    """Choose the first canonical name that is no word of the wording."""
    names = [
        one.surface.text
        for realizations in facts
        for one in realizations
        if one.surface.is_canonical
    ]
    return next((n for n in names if _stands_once(n, wording.replace(_GAP, n))), names[0])


def _stands_once(name: str, text: str) -> bool:
    """Tell whether a name stands in a text exactly as it is, once, and not within a word."""
    words, apart = padded_words([text, text.replace(name, f" {name} ")])
    return text.count(name) == 1 and words.split() == apart.split()


def _wording(question: QuestionRealization) -> str | None:
    """Put a gap for the name of a canonical question; None where that is not sure."""
    name, text = question.surface.text, question.question
    relation = RELATIONS.get(question.triple.relation)
    if relation is not None and relation.question(name) == text:
        return relation.original
    if text.count(name) != 1 or _GAP in text:
        return None
    return text.replace(name, _GAP)
