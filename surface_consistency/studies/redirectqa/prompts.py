r"""Few-shot prompts of questions: the demonstrations of each question, and the frames.

The default format is that of PopQA (Mallen et al., 2023), which RedirectQA also uses:
demonstrations `Q: <question> A: <answer>` joined by blank lines, then `Q: <question> A:`. Other
languages have their own frames.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import pandas as pd

from surface_consistency.data.questions import Question, questions_of
from surface_consistency.schemas import Message, Prompt
from surface_consistency.schemas.prompts import PromptFormat
from surface_consistency.studies.redirectqa.demonstrations import (
    Demonstration,
    DemonstrationPool,
    GivenDemonstrations,
)

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
"""Frame (the text around a question) by language. "en" is that of PopQA and of both RedirectQA
papers (also the Japanese one, section 3.1), whose questions are English; the others were written
for this package."""

_FORMATS: Final = ("completion", "chat")


def resolve_frame(frame: str) -> str:
    """Return the frame of a question.

    Args:
        frame: A name of `FRAMES`, or a custom text that contains "{question}" once and further
            text after it, to which the answer is joined by a space.

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
            f"a frame must be one of {', '.join(FRAMES)}, or a text with {_HOLE} once, followed "
            f"by text that does not end in a space; got {frame!r}"
        )
    return text


def render_completion(
    question: str, demonstrations: Sequence[Demonstration], *, frame: str = "en"
) -> str:
    r"""Write a question after its demonstrations as plain text.

    Args:
        question: The question to answer.
        demonstrations: Solved questions, in order.
        frame: Frame of each question, as for `resolve_frame`.

    Returns:
        The text; it ends as the frame does, "A:" by default, without a space.

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
        frame: Frame of each question, as for `resolve_frame`.

    Returns:
        One user and one assistant turn per demonstration, then the user's question.
    """
    text = resolve_frame(frame)
    turns: list[Message] = []
    for item in demonstrations:
        turns.append(Message(role="user", content=text.replace(_HOLE, item.question)))
        turns.append(Message(role="assistant", content=item.answer))
    return (*turns, Message(role="user", content=text.replace(_HOLE, question)))


def build_prompts(
    rows: pd.DataFrame,
    pool: DemonstrationPool | GivenDemonstrations,
    *,
    shots: int = 15,
    prompt_format: PromptFormat = "completion",
    frame: str = "en",
    fits: Callable[[Prompt], bool] | None = None,
) -> Iterator[Prompt]:
    """Build one prompt per question; its id is that of the question.

    Unless each question has its own demonstrations, all questions of a fact under one template have
    the same ones, so the members of a pair differ only in the surface form.

    Args:
        rows: The questions, columns of `QUESTION_COLUMNS`.
        pool: Source of the demonstrations.
        shots: Demonstrations per prompt: 15 in RedirectQA, 14 in the Japanese paper.
        prompt_format: "completion" or "chat".
        frame: Frame of each question, as for `resolve_frame`.
        fits: Function that returns whether a prompt fits the model. If a prompt of a fact does not
            fit, demonstrations are dropped from the front of all its prompts until they fit or all
            are dropped. None keeps every prompt at its full length.

    Yields:
        The prompts, in the order of the questions. `group` names the prompts with the same
        demonstrations: `<template>|<relation or fact>|<number of demonstrations>`.

    Raises:
        ValueError: If `prompt_format` or `frame` is unknown or the pool is too small for `shots`.
    """
    if prompt_format not in _FORMATS:
        raise ValueError(
            f"prompt_format must be one of {', '.join(_FORMATS)}, got {prompt_format!r}"
        )

    def prompt_of(question: Question, n_shots: int) -> Prompt:
        demonstrations = pool.draw(question, shots)[shots - n_shots :]
        group = f"{question.template}|{pool.unit(question)}|{n_shots}"
        if prompt_format == "chat":
            messages = render_chat(question.question, demonstrations, frame=frame)
            return Prompt(id=question.id, messages=messages, group=group)
        text = render_completion(question.question, demonstrations, frame=frame)
        return Prompt(id=question.id, text=text, group=group)

    questions = questions_of(rows)
    shots_of: dict[tuple[str, str], int] = {}
    for question in () if fits is None else questions:
        key = (question.item, question.template)
        n_shots = shots_of.get(key, shots)
        while n_shots and fits is not None and not fits(prompt_of(question, n_shots)):
            n_shots -= 1
        shots_of[key] = n_shots
    for question in questions:
        yield prompt_of(question, shots_of.get((question.item, question.template), shots))
