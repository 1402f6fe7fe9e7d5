"""Choice of the sense of a word in its text."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import existing_file, first_names, json_objects, shown
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
    """A word in its text, with its candidate senses."""

    text: str
    """The text."""

    start: int
    """Position of the word's first character."""

    end: int
    """Position after its last character."""

    synsets: tuple[Synset, ...]
    """Its senses, the most frequent first; at least one."""


class SenseChooser(Protocol):
    """Interface of choosers of senses; all questions are passed at once to allow batching."""

    def choose(self, questions: Sequence[SenseQuestion]) -> Sequence[Synset | None]:
        """Choose a sense for each question.

        Args:
            questions: The words.

        Returns:
            A sense of each, in order; None if the word is not to be replaced.
        """


class FirstSense:
    """Chooses the most frequent sense, independent of the text."""

    def choose(self, questions: Sequence[SenseQuestion]) -> list[Synset | None]:
        """Choose the first sense; see `SenseChooser.choose`."""
        return [question.synsets[0] for question in questions]


class StoredSense:
    """Reads senses from a file.

    Args:
        path: JSONL with `text`, `start` and `synset` (id of the sense, such as "02084071-n", or
            null if it was not chosen), as written by `write_senses`.

    Raises:
        SourceNotFoundError: If the file does not exist.
        RecordError: If a field of a line is missing or has another type.
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
                    f"{self._path}:{number}: a sense must have text, start (a number) and synset "
                    f"(an id such as 02084071-n, or null), got {first_names(row) or 'no fields'}"
                )
            self._senses[text, start] = synset

    def choose(self, questions: Sequence[SenseQuestion]) -> list[Synset | None]:
        """Look up the senses; see `SenseChooser.choose`.

        Raises:
            DataError: If a stored sense is not a sense of the word.
        """
        chosen: list[Synset | None] = []
        for question in questions:
            wanted = self._senses.get((question.text, question.start))
            stored = next((sense for sense in question.synsets if sense.id == wanted), None)
            if wanted is not None and stored is None:
                word = question.text[question.start : question.end]
                raise DataError(
                    f"{self._path}: {wanted} is not a sense of {shown(word)} in this WordNet; use "
                    "the version with which the senses were chosen"
                )
            chosen.append(stored)
        return chosen


class _Answering(Protocol):
    """The part of a runner that is used here; see `models.Runner`."""

    def generate(
        self, prompts: Sequence[Prompt], params: GenerationParams
    ) -> Iterable[Generation]: ...


class JudgedSense:
    """Chooses senses by a model, as multiple choice over the definitions.

    Words with a single sense are not sent. If the answer of the model is not the number of a sense,
    the word is not replaced and `n_unclear` counts it.

    Args:
        runner: Any runner; a `models.MultipleChoiceRunner` chooses by probability.

    References:
        Appendix A.2 of the study of lexical popularity, which uses a fine-tuned Llama-3.1-8B; its
        prompt is not printed, and the prompt here is that of this package.
    """

    def __init__(self, runner: _Answering) -> None:
        self._runner = runner
        self.n_unclear = 0
        """Number of words for which the model did not choose a sense."""

    def choose(self, questions: Sequence[SenseQuestion]) -> list[Synset | None]:
        """Query the model, once for identical prompts; see `SenseChooser.choose`."""
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
    """Build the prompt on the sense of a word."""
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
