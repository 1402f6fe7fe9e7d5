"""A runner over predictions that were made elsewhere."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from surface_consistency.inference.predictions import read_predictions
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.prompts import GenerationParams, Prompt

__all__ = ["Coverage", "StoredRunner"]

_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How stored predictions and the prompts of a study meet."""

    n_prompts: int
    """Prompts looked up."""

    n_found: int
    """Prompts with a stored prediction."""

    missing: tuple[str, ...]
    """Ids of the prompts without one, in the prompts' order."""

    foreign: tuple[str, ...]
    """Identifiers of predictions that belong to no prompt, in the file's order."""

    def describe(self) -> str | None:
        """Say what does not meet.

        Returns:
            One sentence with counts and the first examples; None when every prompt has its
            prediction and every prediction its prompt.

        Examples:
            >>> Coverage(n_prompts=2, n_found=1, missing=("q2",), foreign=()).describe()
            "1 of 2 prompts have no stored prediction (such as 'q2')"
        """
        parts = []
        if self.missing:
            parts.append(
                f"{len(self.missing):,} of {self.n_prompts:,} prompts have no stored prediction "
                f"{_such_as(self.missing)}"
            )
        if self.foreign:
            parts.append(
                f"{len(self.foreign):,} stored predictions belong to no prompt "
                f"{_such_as(self.foreign)}"
            )
        return "; ".join(parts) or None


class StoredRunner:
    """Answers from stored predictions, so that anyone's outputs are scored without a model.

    A prompt is looked up by its id, else by its text, else by the question that it ends with: what
    stands between "Q: " and " A:" at the end of the text, or of the last message of a user.

    Args:
        predictions: A file that `read_predictions` reads, or a mapping from identifier to text.
        id_column: Column of the identifier; None to look for the usual names.
        text_column: Column of the text; None to look for the usual names.

    Raises:
        DataError: If the file cannot be read; see `read_predictions`.

    Examples:
        >>> runner = StoredRunner({"q1": "London", "q9": "Rome"})
        >>> prompts = [Prompt(id="q1", text="Q: Capital of England? A:")]
        >>> [answer.text for answer in runner.generate(prompts)]
        ['London']
        >>> runner.coverage(prompts).foreign
        ('q9',)
    """

    name: str = "stored"
    """The runner's name."""

    def __init__(
        self,
        predictions: str | os.PathLike[str] | Mapping[str, str],
        *,
        id_column: str | None = None,
        text_column: str | None = None,
    ) -> None:
        if isinstance(predictions, Mapping):
            self._texts = dict(predictions)
            self._source = "mapping"
        else:
            self._texts = read_predictions(
                predictions, id_column=id_column, text_column=text_column
            )
            self._source = Path(predictions).name

    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell the file's name and a digest of the predictions read from it."""
        digest = hashlib.sha256()
        for item in self._texts.items():
            digest.update(json.dumps(item).encode("ascii"))
        return {
            "runner": self.name,
            "source": self._source,
            "sha256": digest.hexdigest(),
            "n_predictions": len(self._texts),
        }

    def coverage(self, prompts: Sequence[Prompt]) -> Coverage:
        """Compare the stored predictions with the prompts of a study.

        Args:
            prompts: All prompts of the study.

        Returns:
            What is missing and what is foreign.
        """
        names = {prompt.id: _names(prompt) for prompt in prompts}
        used = {name for of_prompt in names.values() for name in of_prompt}
        missing = tuple(
            prompt
            for prompt, of_prompt in names.items()
            if self._texts.keys().isdisjoint(of_prompt)
        )
        return Coverage(
            n_prompts=len(names),
            n_found=len(names) - len(missing),
            missing=missing,
            foreign=tuple(name for name in self._texts if name not in used),
        )

    def generate(
        self, prompts: Sequence[Prompt], params: GenerationParams | None = None
    ) -> Iterator[Generation]:
        """Look the answers up.

        Args:
            prompts: What to answer.
            params: Without effect: the predictions are as they are.

        Yields:
            One generation for each prompt, in order; an error where none is stored.
        """
        for prompt in prompts:
            name = next((name for name in _names(prompt) if name in self._texts), None)
            if name is None:
                yield Generation(
                    prompt_id=prompt.id,
                    text=None,
                    finish_reason="error",
                    error=f"no stored prediction under id {prompt.id!r}, its text or its question",
                )
            else:
                yield Generation(prompt_id=prompt.id, text=self._texts[name])


def _names(prompt: Prompt) -> list[str]:
    """List what a prediction of a prompt may be stored under, best first."""
    if prompt.messages is None:
        asked = prompt.text
    else:
        users = [turn.content for turn in prompt.messages if turn.role == "user"]
        asked = users[-1] if users else None
    names = (prompt.id, prompt.text, None if asked is None else _question(asked))
    return [name for name in names if name]


def _question(text: str) -> str | None:
    """Take the question off the end of a prompt."""
    _, start, question = f"\n{text}".rpartition("\nQ: ")
    return question.removesuffix(" A:") if start and question.endswith(" A:") else None


def _such_as(names: Sequence[str]) -> str:
    """Show the first few names."""
    return f"(such as {', '.join(map(repr, names[:_SHOWN]))})"
