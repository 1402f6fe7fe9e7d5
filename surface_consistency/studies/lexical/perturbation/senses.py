"""Which sense a word has in its text."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import existing_file, json_objects, shown
from surface_consistency.schemas import Generation, GenerationParams, Prompt
from surface_consistency.schemas.jsonl import atomic_path
from surface_consistency.studies.lexical.perturbation.wordnet import Synset

_QUESTION: Final = (
    "What does the word “{word}” mean in the following text?\n\nText: {text}\n\n{options}\n\n"
    "Answer with the number of the meaning alone.\nAnswer:"
)
_SENSE_COLUMNS: Final = ("text", "start", "synset")


@dataclass(frozen=True, slots=True, kw_only=True)
class SenseQuestion:
    """A word of which several senses are known."""

    text: str
    """The text."""

    start: int
    """Place of the word's first character."""

    end: int
    """Place after its last."""

    synsets: tuple[Synset, ...]
    """Its senses, the most frequent first; at least one."""


class SenseChooser(Protocol):
    """Says which sense words have; all questions are known at once, so that a model can batch."""

    def choose(self, questions: Sequence[SenseQuestion]) -> Sequence[Synset | None]:
        """Choose a sense for each question.

        Args:
            questions: The words.

        Returns:
            A sense of each, in order; None to leave the word as it is.
        """


class FirstSense:
    """Takes the most frequent sense, whatever the text."""

    def choose(self, questions: Sequence[SenseQuestion]) -> list[Synset | None]:
        """Choose the first sense; see `SenseChooser.choose`."""
        return [question.synsets[0] for question in questions]


class StoredSense:
    """Takes senses that someone chose before.

    Args:
        path: JSONL with `text`, `start` and `synset` (id of the sense, such as "02084071-n", or
            null for none), as `write_senses` writes it.

    Raises:
        SourceNotFoundError: If there is no such file.
        RecordError: If a line lacks a field or has one of another kind.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = existing_file(Path(path), "senses of words", "*.jsonl")
        self._senses: dict[tuple[str, int], str | None] = {}
        for number, row in json_objects(self._path):
            text, start, synset = (row.get(name) for name in _SENSE_COLUMNS)
            if (
                type(text) is not str
                or type(start) is not int
                or not (synset is None or type(synset) is str)
                or "synset" not in row
            ):
                raise RecordError(
                    f"{self._path}:{number}: a sense has text, start (a number) and synset (an id "
                    f"such as 02084071-n, or null), got the fields {', '.join(row) or 'none'}"
                )
            self._senses[text, start] = synset

    def choose(self, questions: Sequence[SenseQuestion]) -> list[Synset | None]:
        """Look the senses up; see `SenseChooser.choose`.

        Raises:
            DataError: If a stored sense is none of the word's.
        """
        chosen: list[Synset | None] = []
        for question in questions:
            wanted = self._senses.get((question.text, question.start))
            stored = next((sense for sense in question.synsets if sense.id == wanted), None)
            if wanted is not None and stored is None:
                word = question.text[question.start : question.end]
                raise DataError(
                    f"{self._path}: {wanted} is no sense of {shown(word)} in this WordNet; take "
                    "the one with which the senses were chosen"
                )
            chosen.append(stored)
        return chosen


class _Answering(Protocol):
    """A runner, as far as it is needed here; see `models.Runner`."""

    def generate(
        self, prompts: Sequence[Prompt], params: GenerationParams
    ) -> Iterable[Generation]: ...


class JudgedSense:
    """Asks a model, by multiple choice over the definitions.

    Words of a single sense are not asked. A model whose answer is no number of a sense leaves the
    word as it is, which `n_unclear` counts.

    Args:
        runner: Any runner; a `models.MultipleChoiceRunner` chooses by probability.

    References:
        Appendix A.2 of the study of lexical popularity, which asks a fine-tuned Llama-3.1-8B; its
        wording is not printed, and this one is this package's own.
    """

    def __init__(self, runner: _Answering) -> None:
        self._runner = runner
        self.n_unclear = 0
        """Words whose sense the model did not tell."""

    def choose(self, questions: Sequence[SenseQuestion]) -> list[Synset | None]:
        """Ask the model, equal words once; see `SenseChooser.choose`."""
        prompts = [_prompt(question) for question in questions]
        unclear = {
            prompt.id: prompt
            for prompt, question in zip(prompts, questions, strict=True)
            if len(question.synsets) > 1
        }
        params = GenerationParams(max_new_tokens=4)
        replies = self._runner.generate(list(unclear.values()), params) if unclear else ()
        answers = {reply.prompt_id: reply.text or "" for reply in replies}
        chosen: list[Synset | None] = []
        for prompt, question in zip(prompts, questions, strict=True):
            if len(question.synsets) == 1:
                chosen.append(question.synsets[0])
                continue
            number = answers.get(prompt.id, "").strip().rstrip(".)")
            named = {str(place): one for place, one in enumerate(question.synsets, start=1)}
            self.n_unclear += number not in named
            chosen.append(named.get(number))
        return chosen


def write_senses(
    questions: Sequence[SenseQuestion],
    chosen: Sequence[Synset | None],
    path: str | os.PathLike[str],
) -> None:
    """Write chosen senses for `StoredSense`.

    Args:
        questions: The words.
        chosen: Their senses, in the same order.
        path: JSONL file; it is replaced.
    """
    with atomic_path(path) as part, part.open("w", encoding="utf-8") as file:
        for question, sense in zip(questions, chosen, strict=True):
            row: Mapping[str, object] = {
                "text": question.text,
                "start": question.start,
                "synset": None if sense is None else sense.id,
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _prompt(question: SenseQuestion) -> Prompt:
    """Ask for the sense of a word."""
    listed = "\n".join(
        f"{number}. {sense.definition}" for number, sense in enumerate(question.synsets, start=1)
    )
    text = _QUESTION.format(
        word=question.text[question.start : question.end], text=question.text, options=listed
    )
    place = f"{question.start}\n{text}"
    return Prompt(
        id=hashlib.sha256(place.encode()).hexdigest()[:32],
        text=text,
        options=tuple(f" {number}" for number in range(1, len(question.synsets) + 1)),
    )
