"""A runner over predictions that were made elsewhere."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from surface_consistency.errors import DataError
from surface_consistency.models.prediction_rows import PredictionSettings, question_of
from surface_consistency.models.predictions import read_predictions
from surface_consistency.models.runner import Runner
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.prompts import GenerationParams, Prompt

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


class StoredRunner(Runner):
    """Answers from stored predictions, so that anyone's outputs are scored without a model.

    A prompt is looked up by its id, else by its text, else by the question that it ends with: what
    stands between "Q: " and " A:" at the end of the text, or of the last message of a user.

    Args:
        predictions: A file that `read_predictions` reads, or a mapping from identifier to text.
        id_column: Column of the identifier; None to look for the usual names.
        text_column: Column of the text; None to look for the usual names.
        strip_prompt: Whether the prompt is cut off a text that begins with it; else such a text is
            refused.
        blank: Whether a blank text is a "missing" prediction or a "wrong" answer.
        harness_filter: Filter of samples of lm-evaluation-harness; None for the unfiltered text.

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

    is_stored: bool = True
    """The answers are stored."""

    def __init__(
        self,
        predictions: str | os.PathLike[str] | Mapping[str, str],
        *,
        id_column: str | None = None,
        text_column: str | None = None,
        strip_prompt: bool = False,
        blank: Literal["missing", "wrong"] = "missing",
        harness_filter: str | None = None,
    ) -> None:
        settings = PredictionSettings(
            id_column=id_column,
            text_column=text_column,
            strip_prompt=strip_prompt,
            blank=blank,
            harness_filter=harness_filter,
        )
        self._conflicts: dict[str, str] = {}
        if isinstance(predictions, Mapping):
            self._texts = dict(predictions)
            self._source = "mapping"
        else:
            read = read_predictions(Path(predictions), settings)
            self._texts, self._conflicts = read.by_name()
            self._source = Path(predictions).name
        self._settings = settings

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
            text, problem = self._find(prompt)
            yield Generation(
                prompt_id=prompt.id,
                text=text,
                finish_reason="stop" if problem is None else "error",
                error=problem,
            )

    def _find(self, prompt: Prompt) -> tuple[str | None, str | None]:
        """Find the text of a prompt, or say why there is none."""
        for name in _names(prompt):
            if name in self._conflicts:
                return None, self._conflicts[name]
            if name not in self._texts:
                continue
            text = self._texts[name]
            if prompt.text and text.startswith(prompt.text):
                if not self._settings.strip_prompt:
                    raise DataError(
                        f"the stored prediction of {prompt.id!r} begins with its prompt, which "
                        "would be judged in place of the answer; set strip_prompt=true to cut it "
                        "off (--runner-option strip_prompt=true)"
                    )
                text = text.removeprefix(prompt.text)
            if not text.strip() and self._settings.blank == "missing":
                return None, "the stored prediction is blank; blank=wrong counts it as wrong"
            return text, None
        return None, f"no stored prediction under id {prompt.id!r}, its text or its question"


def _names(prompt: Prompt) -> list[str]:
    """List what a prediction of a prompt may be stored under, best first."""
    if prompt.messages is None:
        last = prompt.text
    else:
        users = [turn.content for turn in prompt.messages if turn.role == "user"]
        last = users[-1] if users else None
    names = (prompt.id, prompt.text, None if last is None else question_of(last))
    return [name for name in names if name]


def _such_as(names: Sequence[str]) -> str:
    """Show the first few names."""
    return f"(such as {', '.join(map(repr, names[:_SHOWN]))})"
