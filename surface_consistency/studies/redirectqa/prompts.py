r"""Questions to few-shot prompts: which solved questions stand before one, and how all are written.

The plain form is PopQA's (Mallen et al., 2023), which RedirectQA keeps: demonstrations
`Q: <question> A: <answer>` joined by blank lines, then `Q: <question> A:`. Other languages have
frames of their own.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Final, Literal, Protocol

from surface_consistency.schemas import Message, Prompt, QuestionRealization
from surface_consistency.schemas.prompts import PromptFormat
from surface_consistency.taxonomy import TEMPLATES

__all__ = [
    "FRAMES",
    "Demonstration",
    "DemonstrationPool",
    "DemonstrationScope",
    "DemonstrationSource",
    "GivenDemonstrations",
    "build_prompts",
    "render_chat",
    "render_completion",
    "resolve_frame",
]

DemonstrationScope = Literal["per_relation", "per_fact"]
"""Whether the facts of one relation share their demonstrations or each fact draws its own."""

_HOLE: Final = "{question}"

FRAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "en": "Q: {question} A:",
        "ar": "سؤال: {question} جواب:",
        "cs": "Otázka: {question} Odpověď:",
        "da": "Spørgsmål: {question} Svar:",
        "de": "Frage: {question} Antwort:",
        "el": "Ερώτηση: {question} Απάντηση:",
        "es": "Pregunta: {question} Respuesta:",
        "fa": "پرسش: {question} پاسخ:",
        "fi": "Kysymys: {question} Vastaus:",
        "fr": "Question : {question} Réponse :",
        "he": "שאלה: {question} תשובה:",
        "hi": "प्रश्न: {question} उत्तर:",
        "hu": "Kérdés: {question} Válasz:",
        "id": "Pertanyaan: {question} Jawaban:",
        "it": "Domanda: {question} Risposta:",
        "ja": "質問: {question} 回答:",
        "ko": "질문: {question} 답변:",
        "nl": "Vraag: {question} Antwoord:",
        "pl": "Pytanie: {question} Odpowiedź:",
        "pt": "Pergunta: {question} Resposta:",
        "ro": "Întrebare: {question} Răspuns:",
        "ru": "Вопрос: {question} Ответ:",
        "sv": "Fråga: {question} Svar:",
        "th": "คำถาม: {question} คำตอบ:",
        "tr": "Soru: {question} Cevap:",
        "uk": "Питання: {question} Відповідь:",
        "vi": "Câu hỏi: {question} Trả lời:",
        "zh": "问题：{question} 答案：",
    }
)
"""What stands around a question, by language. "en" is that of PopQA and of both RedirectQA papers
(the Japanese one too, section 3.1), whose questions are English; the others are this package's."""

_FORMATS: Final = ("completion", "chat")
_SCOPES: Final = ("per_relation", "per_fact")
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


class DemonstrationSource(Protocol):
    """Where the demonstrations of questions come from."""

    def unit(self, target: QuestionRealization) -> str:
        """Name what shares its demonstrations with a question.

        Args:
            target: The question.
        """

    def draw(self, target: QuestionRealization, shots: int) -> Sequence[Demonstration]:
        """Choose the demonstrations of one question.

        Args:
            target: The question that will follow.
            shots: How many, 0 or more.
        """


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
        pool: dict[str, dict[str, list[QuestionRealization]]] = {}
        for question in sorted(questions, key=lambda item: (item.triple.relation, item.id)):
            if question.surface.is_canonical and question.triple.answers:
                by_relation = pool.setdefault(question.template, {})
                by_relation.setdefault(question.triple.relation, []).append(question)
        self._pool = pool
        self._drawn: dict[tuple[str, str, int], tuple[Demonstration, ...]] = {}

    def unit(self, target: QuestionRealization) -> str:
        """Name what shares its demonstrations with a question.

        Args:
            target: The question.

        Returns:
            Its relation, or its fact when each fact draws its own.
        """
        return target.triple.relation if self._scope == "per_relation" else target.triple.id

    def relations(self, template: str) -> frozenset[str]:
        """List the relations that have demonstrations in a wording.

        Args:
            template: The wording. A further paraphrase takes the first one of a relation that has
                no such.

        Returns:
            Their names.
        """
        return frozenset(self._questions(template))

    def _questions(self, template: str) -> dict[str, list[QuestionRealization]]:
        """Find the questions of a wording by relation."""
        first = self._pool.get(TEMPLATES[1], {}) if template.startswith(TEMPLATES[1]) else {}
        return {**first, **self._pool.get(template, {})}

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
            for relation, items in sorted(self._questions(target.template).items())
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
            for item in _round_robin(others, shots, random, subject_id)
        )


class GivenDemonstrations:
    """Demonstrations of one's own, in their order, in place of ones drawn from the data.

    A question gets the first ones that may stand before it: of its wording or any, not of its
    relation, and not one of its fact's own questions. The members of a pair get the same ones.

    Args:
        demonstrations: Solved questions, at least one.
        questions: The questions that will be asked, to know which fact a demonstration gives away.

    Raises:
        ValueError: If there are no demonstrations.
    """

    def __init__(
        self,
        demonstrations: Sequence[Demonstration],
        *,
        questions: Iterable[QuestionRealization] = (),
    ) -> None:
        if not demonstrations:
            raise ValueError("demonstrations must hold at least one solved question, got none")
        self._all = tuple(demonstrations)
        known = {item.question for item in self._all}
        self._own: dict[str, set[str]] = {}
        for question in questions:
            if question.question in known:
                self._own.setdefault(question.triple.id, set()).add(question.question)

    def _places(self, target: QuestionRealization) -> tuple[int, ...]:
        """List which ones may stand before a question."""
        own = self._own.get(target.triple.id, set()) | {target.question}
        return tuple(
            place
            for place, item in enumerate(self._all)
            if item.relation != target.triple.relation
            and item.template in (None, target.template)
            and item.question not in own
        )

    def available(self, target: QuestionRealization) -> int:
        """Count the demonstrations that may stand before a question.

        Args:
            target: The question.

        Returns:
            Their number.
        """
        return len(self._places(target))

    def unit(self, target: QuestionRealization) -> str:
        """Name what shares its demonstrations with a question.

        Args:
            target: The question.

        Returns:
            The places of the demonstrations that it may have.
        """
        return "given " + ",".join(map(str, self._places(target)))

    def draw(self, target: QuestionRealization, shots: int) -> tuple[Demonstration, ...]:
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
                f"stand before questions of {target.triple.relation!r} under template "
                f"{target.template!r} (none of their own relation or fact may); ask for fewer "
                "shots or give more demonstrations"
            )
        return tuple(self._all[place] for place in places[:shots])


def _round_robin(
    pool: dict[str, list[QuestionRealization]], shots: int, random: Random, subject_id: str | None
) -> Sequence[QuestionRealization]:
    """Take one question a relation, relations in random order, again until there are enough."""
    relations = list(pool)
    random.shuffle(relations)
    chosen: list[QuestionRealization] = []
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
    items: list[QuestionRealization], taken: set[str], random: Random, subject_id: str | None
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


def resolve_frame(frame: str) -> str:
    """Find what stands around a question.

    Args:
        frame: A name of `FRAMES`, or a text of your own with "{question}" in it once and something
            after it, to which the answer is joined by a space.

    Returns:
        The text with its "{question}".

    Raises:
        ValueError: If it is neither.

    Examples:
        >>> resolve_frame("ja"), resolve_frame("{question} It is")
        ('質問: {question} 回答:', '{question} It is')
    """
    text = FRAMES.get(frame, frame)
    _, hole, after = text.partition(_HOLE)
    if not hole or not after.strip() or _HOLE in after or text != text.rstrip():
        raise ValueError(
            f"a frame is one of {', '.join(FRAMES)}, or a text with {_HOLE} in it once and "
            f"something after it that ends in no space; got {frame!r}"
        )
    return text


def render_completion(
    question: str, demonstrations: Sequence[Demonstration], *, frame: str = "en"
) -> str:
    r"""Write a question after its demonstrations as plain text.

    Args:
        question: The question to answer.
        demonstrations: Solved questions, in order.
        frame: What stands around each question, as for `resolve_frame`.

    Returns:
        The text; it ends as the frame does, "A:" by default, and with no space.

    Examples:
        >>> render_completion("Who?", [Demonstration(question="Where?", answer="Rome")])
        'Q: Where? A: Rome\n\nQ: Who? A:'
    """
    text = resolve_frame(frame)
    solved = [f"{text.replace(_HOLE, item.question)} {item.answer}" for item in demonstrations]
    return "\n\n".join([*solved, text.replace(_HOLE, question)])


def render_chat(
    question: str, demonstrations: Sequence[Demonstration], *, frame: str = "en"
) -> tuple[Message, ...]:
    """Write a question after its demonstrations as turns of a conversation.

    Args:
        question: The question to answer.
        demonstrations: Solved questions, in order.
        frame: What stands around each question, as for `resolve_frame`.

    Returns:
        One user and one assistant turn for each demonstration, then the user's question.
    """
    text = resolve_frame(frame)
    turns: list[Message] = []
    for item in demonstrations:
        turns.append(Message(role="user", content=text.replace(_HOLE, item.question)))
        turns.append(Message(role="assistant", content=item.answer))
    return (*turns, Message(role="user", content=text.replace(_HOLE, question)))


def build_prompts(
    questions: Sequence[QuestionRealization],
    pool: DemonstrationSource,
    *,
    shots: int = 15,
    prompt_format: PromptFormat = "completion",
    frame: str = "en",
    fits: Callable[[Prompt], bool] | None = None,
) -> Iterator[Prompt]:
    """Turn questions into prompts, one each, under the questions' ids.

    All questions of a fact under one template get the same demonstrations, so the members of a
    pair differ in the surface form alone.

    Args:
        questions: What to ask.
        pool: Where the demonstrations come from.
        shots: Demonstrations a prompt: 15 for RedirectQA v1.0.0, 14 for v0.1.0.
        prompt_format: "completion" or "chat".
        frame: What stands around each question, as for `resolve_frame`.
        fits: Tells whether a prompt fits the model. When given, facts of which any prompt does not
            fit lose demonstrations from the front, all their prompts alike, until they fit or none
            is left. None leaves every prompt at its full length.

    Yields:
        The prompts, in the order of the questions. `group` names what shares its demonstrations,
        as `<template>|<relation or fact>|<number of demonstrations>`.

    Raises:
        ValueError: If `prompt_format` or `frame` is unknown or the pool is too small for `shots`.
    """
    if prompt_format not in _FORMATS:
        raise ValueError(
            f"prompt_format must be one of {', '.join(_FORMATS)}, got {prompt_format!r}"
        )

    def prompt_of(question: QuestionRealization, n_shots: int) -> Prompt:
        demonstrations = pool.draw(question, shots)[shots - n_shots :]
        group = f"{question.template}|{pool.unit(question)}|{n_shots}"
        if prompt_format == "chat":
            messages = render_chat(question.question, demonstrations, frame=frame)
            return Prompt(id=question.id, messages=messages, group=group)
        text = render_completion(question.question, demonstrations, frame=frame)
        return Prompt(id=question.id, text=text, group=group)

    shots_of: dict[tuple[str, str], int] = {}
    for question in () if fits is None else questions:
        key = (question.triple.id, question.template)
        n_shots = shots_of.get(key, shots)
        while n_shots and fits is not None and not fits(prompt_of(question, n_shots)):
            n_shots -= 1
        shots_of[key] = n_shots
    for question in questions:
        yield prompt_of(question, shots_of.get((question.triple.id, question.template), shots))
