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


class StoredRunner:
    """Answers from stored predictions, so that anyone's outputs are scored without a model.

    A prompt is looked up by its id, else by its text.

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
        names = {prompt.id: self._lookup(prompt) for prompt in prompts}
        used = set(names.values())
        missing = tuple(prompt for prompt, name in names.items() if name is None)
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
            name = self._lookup(prompt)
            if name is None:
                yield Generation(
                    prompt_id=prompt.id,
                    text=None,
                    finish_reason="error",
                    error=f"no stored prediction under id {prompt.id!r} or its text",
                )
            else:
                yield Generation(prompt_id=prompt.id, text=self._texts[name])

    def _lookup(self, prompt: Prompt) -> str | None:
        """Find the identifier under which a prompt's prediction is stored."""
        if prompt.id in self._texts:
            return prompt.id
        return prompt.text if prompt.text in self._texts else None
