"""Paraphrase the questions of RedirectQA (arXiv 2604.21882, section 2.3 and appendix B.2).

In the paper all questions have two wordings: a template, and a paraphrase by GPT-4o. The paper
contains neither the request nor the paraphrases. A paraphrase is a wording with a gap for the name,
so that the members of a pair still differ only in the name.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Final

from pydantic import Field

from surface_consistency.data.redirectqa import RedirectQA
from surface_consistency.data.redirectqa_release import RedirectQARow, question_cells
from surface_consistency.engine.features import make_features
from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import shown
from surface_consistency.rows.readers import Place
from surface_consistency.schemas import Message, Prompt, QuestionRealization
from surface_consistency.taxonomy import RELATIONS, TEMPLATES, paraphrase_name
from surface_consistency.text import guess_language, padded_words
from surface_consistency_build.cards.dataset_card import redirectqa_card
from surface_consistency_build.cards.dataset_folder import Subset, write_folder
from surface_consistency_build.writers import writer

_PRETTY_NAME: Final = "RedirectQA with paraphrases"
_SUBSET: Final = "paraphrased"

DROP_REASONS: Final[Mapping[str, str]] = {
    "name": "the name does not occur in it exactly once",
    "no question": "it does not end like a question",
    "original": "it is the original",
    "repeated": "it repeats another",
    "answer": "it contains an accepted answer",
    "surplus": "enough paraphrases exist without it",
    "refused": "the reviewer rejected it",
}
"""Reasons for which a paraphrase is not used, by name."""

_REQUEST: Final = Path(__file__).with_name("paraphrase_request.json")
_GAP: Final = "{}"
_NUMBER: Final = re.compile(r"^\s*(?:\d{1,2}\s*[.):]|[-*•])\s*")
_QUOTED: Final = re.compile(r"^([\"'“‘«`*_]+)(.*?)([\"'”’»`*_]+)$")
_MARKS: Final = ("?", "？", "؟")


class ParaphraseSettings(writer.WriterSettings):
    """Settings for paraphrasing questions."""

    paraphrases: int = Field(default=1, ge=1)
    """Number of paraphrases per question; 1 in the paper."""

    max_new_tokens: int = Field(default=256, ge=1)
    """Maximum number of new tokens per answer."""

    limit: int | None = Field(default=None, ge=1)
    """Maximum number of facts, spread over the relations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paraphrase:
    """One written paraphrase."""

    text: str
    """The question about the name in the request."""

    reason: str | None = None
    """Reason for which it is not used, a name of `DROP_REASONS`; None if it is used."""

    refused_facts: frozenset[str] = frozenset()
    """Facts whose answer it contains; it is not used for these facts."""


@dataclass(slots=True, kw_only=True)
class WordingDraft(writer.Draft):
    """A wording that is paraphrased once, for all facts with this wording."""

    id: str
    """Relation and a digest of the wording."""

    relation: str
    """The relation."""

    wording: str
    """The question with "{}" for the name."""

    name: str
    """The canonical name in the request."""

    facts: Mapping[str, Sequence[QuestionRealization]]
    """The original questions of each fact, with all of its names."""

    number: int = 1
    """Number of needed paraphrases."""

    candidates: list[Paraphrase] = field(default_factory=list)
    """All written paraphrases, in order."""

    @property
    def question(self) -> str:
        """The question in the request."""
        return self.wording.replace(_GAP, self.name)

    @property
    def taken(self) -> list[Paraphrase]:
        """The paraphrases that are used."""
        return [one for one in self.candidates if one.reason is None]

    def request(self, attempt: int) -> Prompt | None:
        """Request the paraphrases that are missing; see `Draft.request`."""
        missing = self.number - len(self.taken)
        if not missing:
            return None
        return paraphrase_prompt(
            self.question,
            self.name,
            number=missing,
            prompt_id=f"{self.id}/write/{attempt}",
            taken=tuple(dict.fromkeys(one.text for one in self.candidates)),
        )

    def take(self, text: str) -> None:
        """Use the first paraphrases of an answer that pass the checks; see `Draft.take`."""
        for one in parse_paraphrases(text):
            taken = [known.text for known in self.taken]
            reason, refused = check_paraphrase(one, self, taken=taken)
            if reason is None and len(taken) == self.number:
                reason = "surplus"
            self.candidates.append(Paraphrase(text=one, reason=reason, refused_facts=refused))

    def rows(self) -> list[tuple[str, ...]]:
        """List the paraphrases; see `Draft.rows`."""
        return [
            (
                f"{self.id}/{place}",
                self.relation,
                str(len(self.facts) - len(one.refused_facts)),
                self.question,
                one.text,
                "" if one.reason is None else DROP_REASONS[one.reason],
            )
            for place, one in enumerate(self.candidates, start=1)
        ]

    def review(self, rows: Sequence[tuple[Place, writer.Cells]]) -> None:
        """Keep, drop or replace paraphrases; see `Draft.review`.

        A replacement is checked like a text of the model, and also restores a dropped paraphrase.
        """
        passed: list[str] = []
        for index, (place, cells) in enumerate(rows):
            one, mark = self.candidates[index], writer.mark_of(cells["keep"])
            text = " ".join(cells["corrected"].split()) or (one.text if mark else "")
            if not text and mark is None and one.reason is None:
                raise DataError(
                    f"{place}: the reviewer did not mark this row; write yes or no under `keep`, "
                    "or a better question under `corrected`"
                )
            if not text:
                self.candidates[index] = replace(one, reason=one.reason or "refused")
                continue
            reason, refused = check_paraphrase(text, self, taken=passed)
            if reason is not None:
                raise RecordError(
                    f"{place}: {shown(text)} cannot be used, because {DROP_REASONS[reason]}; write "
                    f"another question about {shown(self.name)} under `corrected`, or leave both "
                    "columns empty"
                )
            passed.append(text)
            self.candidates[index] = Paraphrase(text=text, refused_facts=refused)


class ParaphraseWriting(writer.Writing[WordingDraft, ParaphraseSettings]):
    """The task of writing paraphrases.

    `write` and `apply` write `test.jsonl`: the original questions, each followed by its
    paraphrases, in the columns of `load_redirectqa`. The first paraphrase is the template
    "paraphrase", the others are "paraphrase_2" and so on.

    Args:
        data: The questions; those of other templates than the original are ignored.
        settings: The settings; None for the defaults.

    Raises:
        DataError: If no question can be paraphrased.
    """

    study = "paraphrases"
    sheet = writer.ReviewSheet(
        shown=("id", "relation", "n_facts", "question", "paraphrase", "dropped"),
        filled=("keep", "corrected", "note"),
        key=("id",),
        marks=("keep",),
        unread=("note",),
    )

    def __init__(self, data: RedirectQA, settings: ParaphraseSettings | None = None) -> None:
        self.settings = settings or ParaphraseSettings()
        data = data.select(templates=TEMPLATES[0], limit=self.settings.limit)
        self.questions, self.source = data.questions, data.source
        self.drafts, self.left_out = find_wordings(self.questions, number=self.settings.paraphrases)
        if not self.drafts:
            reason = next(iter(self.left_out.values()), "there are no questions")
            raise DataError(f"no question of {data.source.id} can be paraphrased: {reason}")

    def finish(self, folder: Path, *, is_reviewed: bool) -> writer.WritingSummary:
        """Write the questions and their paraphrases; see `Writing.finish`."""
        reasons = [one.reason for draft in self.drafts for one in draft.candidates if one.reason]
        dropped = Counter(DROP_REASONS[reason] for reason in reasons)
        n_taken = sum(len(draft.taken) for draft in self.drafts)
        if not n_taken:
            counts = ", ".join(f"{n} {reason}" for reason, n in dropped.items())
            raise DataError(
                f"no paraphrase of {len(self.drafts)} wordings remains ({counts or 'none written'}"
                "); write better ones under `corrected` in the review sheet, or query a model that "
                "follows instructions"
            )
        import datasets

        draft_of = {fact: draft for draft in self.drafts for fact in draft.facts}
        rows = []
        for question in self.questions:
            triple = question.triple
            cells = question_cells(question) | {
                "object_aliases": triple.object.aliases,
                "possible_answers": triple.answers,
            }
            rows.append(cells)
            draft = draft_of.get(triple.id)
            for number, one in enumerate(draft.taken if draft else (), start=1):
                if draft is not None and triple.id not in one.refused_facts:
                    text = one.text.replace(draft.name, question.surface.text)
                    rows.append(cells | {"template": paraphrase_name(number), "question": text})
        features = datasets.Features(
            make_features(RedirectQARow)
            | {
                "triplet_id": datasets.Value("string"),
                "possible_answers": datasets.List(datasets.Value("string")),
            }
        )
        language = guess_language([question.question for question in self.questions])
        card = redirectqa_card((language,) if language else (), pretty_name=_PRETTY_NAME)
        subset = Subset(name=_SUBSET, splits={"test": rows}, features=features)
        write_folder(folder, [subset], card=card)
        few = [draft.wording for draft in self.drafts if len(draft.taken) < draft.number]
        return writer.WritingSummary(
            counts={"wordings": len(self.drafts), "paraphrases": n_taken, "rows": len(rows)},
            dropped=dropped,
            left_out={**self.left_out, **dict.fromkeys(few, "it has too few paraphrases")},
        )


def paraphrase_prompt(
    question: str, name: str, *, number: int, prompt_id: str, taken: Sequence[str] = ()
) -> Prompt:
    """Return the request for paraphrases of a question, in the wording of this package.

    The paper of RedirectQA does not contain its request. Solved examples precede the request,
    because small models follow examples better than rules. Their relations are not those of
    RedirectQA, so they do not suggest a wording of the data.

    Args:
        question: The question.
        name: The name of its subject, which must be kept.
        number: Number of paraphrases, from 1.
        prompt_id: Identifier of the prompt.
        taken: Questions that must not be written again.

    Returns:
        The conversation.
    """
    known = json.loads(_REQUEST.read_text(encoding="utf-8"))
    wanted = "Write 1 wording." if number == 1 else f"Write {number} wordings."
    turns, task = [], f"{known['task']}\n\n"
    for one in known["examples"]:
        content = f"{task}Question: {one['question']}\nName: {one['name']}\n{wanted}"
        lines = [f"{place}. {text}" for place, text in enumerate(one["wordings"][:number], start=1)]
        turns.append(Message(role="user", content=content))
        turns.append(Message(role="assistant", content="\n".join(lines)))
        task = ""
    request = f"Question: {question}\nName: {name}\n{wanted}"
    if taken:
        request = f"Taken already: {' | '.join(taken)}\n{request}"
    return Prompt(id=prompt_id, messages=(*turns, Message(role="user", content=request)))


def find_wordings(
    questions: Iterable[QuestionRealization], *, number: int = 1
) -> tuple[list[WordingDraft], dict[str, str]]:
    """Find the wordings to paraphrase.

    Args:
        questions: Questions of a data set; those in the original template are used.
        number: Number of paraphrases per wording.

    Returns:
        One draft per relation and wording, in the order of their first question; and the facts
        without one, each with the reason: it has no canonical question, its name does not occur in
        its question exactly once, or a redirect question differs in more than the name.
    """
    facts: dict[str, list[QuestionRealization]] = {}
    for question in questions:
        if question.template == TEMPLATES[0]:
            facts.setdefault(question.triple.id, []).append(question)
    left_out: dict[str, str] = {}
    members: dict[tuple[str, str], dict[str, list[QuestionRealization]]] = {}
    for fact, group in facts.items():
        canonical = next((one for one in group if one.surface.is_canonical), None)
        wording = None if canonical is None else _wording(canonical)
        if canonical is None:
            left_out[fact] = "it has no canonical question"
        elif wording is None:
            left_out[fact] = "its name does not occur in its question exactly once"
        elif any(one.question != wording.replace(_GAP, one.surface.text) for one in group):
            left_out[fact] = "its questions differ in more than the name"
        else:
            members.setdefault((canonical.triple.relation, wording), {})[fact] = group
    drafts = []
    for (relation, wording), of_wording in members.items():
        digest = hashlib.sha256(f"{relation}\0{wording}".encode()).hexdigest()[:16]
        all_questions = [one for group in of_wording.values() for one in group]
        names = [one.surface.text for one in all_questions if one.surface.is_canonical]
        # The first name that is not a word of the wording.
        fit = (name for name in names if _occurs_once(name, wording.replace(_GAP, name)))
        drafts.append(
            WordingDraft(
                id=f"{relation}/{digest}",
                relation=relation,
                wording=wording,
                name=next(fit, names[0]),
                facts=of_wording,
                number=number,
            )
        )
    return drafts, left_out


def parse_paraphrases(text: str) -> list[str]:
    r"""Read a writer's answer: one question per line.

    Args:
        text: The answer. Numbers, bullets and quotation marks around a line are removed; if any
            line is numbered, lines without a number are remarks.

    Returns:
        The lines, in order.

    Examples:
        >>> parse_paraphrases("Here they are:\n1. Who wrote X?\n2) “Whose work is X?”")
        ['Who wrote X?', 'Whose work is X?']
    """
    lines = [line for line in text.splitlines() if line.strip()]
    numbered = [bool(_NUMBER.match(line)) for line in lines]
    paraphrases = []
    for line in compress(lines, numbered) if any(numbered) else lines:
        plain = _NUMBER.sub("", line).strip()
        quoted = _QUOTED.match(plain)
        paraphrases.append(" ".join((quoted[2] if quoted else plain).split()))
    return [text for text in paraphrases if text]


def check_paraphrase(
    text: str, draft: WordingDraft, *, taken: Collection[str] = ()
) -> tuple[str | None, frozenset[str]]:
    """Check one paraphrase.

    Args:
        text: The paraphrase, about the name of the draft.
        draft: The wording that it paraphrases.
        taken: Other paraphrases of the wording.

    Returns:
        The reason for which it cannot be used, a name of `DROP_REASONS`, or None; and the facts
        whose answer occurs in it and not in the original wording. Words are compared without case
        and punctuation, but the name must occur exactly as written.
    """
    words, original = padded_words([text, draft.question])
    if not _occurs_once(draft.name, text) or _GAP in text:
        return "name", frozenset()
    if words == original:
        return "original", frozenset()
    if words in padded_words(list(taken)):
        return "repeated", frozenset()
    if draft.question.endswith(_MARKS) and not text.endswith(_MARKS):
        return "no question", frozenset()
    parts = padded_words(text.split(draft.name))
    known = padded_words(draft.wording.split(_GAP))
    refused = frozenset(
        fact
        for fact, group in draft.facts.items()
        if any(
            answer.strip()
            and any(answer in part for part in parts)
            and not any(answer in part for part in known)
            for answer in padded_words(group[0].triple.answers)
        )
    )
    return ("answer" if len(refused) == len(draft.facts) else None), refused


def _occurs_once(name: str, text: str) -> bool:
    """Check whether a name occurs in a text exactly once, as written, and not within a word."""
    words, apart = padded_words([text, text.replace(name, f" {name} ")])
    return text.count(name) == 1 and words.split() == apart.split()


def _wording(question: QuestionRealization) -> str | None:
    """Replace the name in a canonical question by a gap; None if its position is not unique."""
    name, text = question.surface.text, question.question
    relation = RELATIONS.get(question.triple.relation)
    if relation is not None and relation.question(name) == text:
        return relation.original
    if text.count(name) != 1 or _GAP in text:
        return None
    return text.replace(name, _GAP)
