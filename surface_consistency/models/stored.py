"""A runner that returns stored predictions."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from surface_consistency.errors import DataError
from surface_consistency.models.runner import Runner
from surface_consistency.reading import shown
from surface_consistency.results.columns import PredictionSettings
from surface_consistency.results.rows import question_of
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.prompts import GenerationParams, Prompt

_SHOWN = 3


class StoredRunner(Runner):
    """Answers from stored predictions, so that existing outputs are scored without a model.

    A prompt is looked up by its id, else by its text, else by the question at its end: the text
    between "Q: " and " A:" at the end of the text, or of the last message of a user.

    Args:
        predictions: A file that `read_predictions` reads, or a mapping from identifier to text.
        item: Columns that together contain the identifier, or one column; () for the usual names.
        prediction: Column of the text; None for the usual names.
        strip_prompt: Whether to remove the prompt from a text that begins with it; otherwise such a
            text raises an error.
        missing: "drop" excludes a blank text as a missing prediction; "wrong" counts it as
            incorrect.
        filter: Filter of samples of lm-evaluation-harness; None for the unfiltered text.

    Raises:
        DataError: If the file cannot be read; see `read_predictions`.

    Examples:
        >>> runner = StoredRunner({"q1": "London", "q9": "Rome"})
        >>> prompts = [Prompt(id="q1", text="Q: Capital of England? A:")]
        >>> [answer.text for answer in runner.generate(prompts)]
        ['London']
        >>> runner.gaps(prompts)
        "1 stored predictions belong to no prompt (such as 'q9')"
    """

    name: str = "stored"
    """The runner's name."""

    is_stored: bool = True
    """The answers are stored."""

    def __init__(
        self,
        predictions: str | os.PathLike[str] | Mapping[str, str],
        *,
        item: str | Items[str] = (),
        prediction: str | None = None,
        strip_prompt: bool = False,
        missing: Literal["drop", "wrong"] = "drop",
        filter: str | None = None,
    ) -> None:
        settings = PredictionSettings(
            item=(item,) if isinstance(item, str) else item,
            prediction=prediction,
            strip_prompt=strip_prompt,
            missing=missing,
            filter=filter,
        )
        self._texts: dict[str, str | None]
        if isinstance(predictions, Mapping):
            self._texts = dict(predictions)
            self._source = "mapping"
        else:
            from surface_consistency.results.predictions import read_predictions

            self._texts = read_predictions(Path(predictions), settings).by_name()
            self._source = Path(predictions).name
        self._settings = settings

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return the file's name and a digest of the predictions read from it."""
        digest = hashlib.sha256()
        for item in self._texts.items():
            digest.update(json.dumps(item).encode("ascii"))
        return {
            "runner": self.name,
            "source": self._source,
            "sha256": digest.hexdigest(),
            "n_predictions": len(self._texts),
        }

    def gaps(self, prompts: Sequence[Prompt]) -> str | None:
        """Describe the prompts without a stored prediction, and the predictions without a prompt.

        Args:
            prompts: All prompts of the study.

        Returns:
            One sentence with counts and the first examples; None if every prompt has a prediction
            and every prediction a prompt.

        Examples:
            >>> StoredRunner({"q1": "x"}).gaps([Prompt(id="q1", text=""), Prompt(id="q2", text="")])
            "1 of 2 prompts have no stored prediction (such as 'q2')"
        """
        names = {prompt.id: _names(prompt) for prompt in prompts}
        used = {name for of_prompt in names.values() for name in of_prompt}
        missing = [p for p, of_prompt in names.items() if self._texts.keys().isdisjoint(of_prompt)]
        foreign = [name for name in self._texts if name not in used]
        parts = []
        if missing:
            parts.append(
                f"{len(missing):,} of {len(names):,} prompts have no stored prediction "
                f"{_such_as(missing)}"
            )
        if foreign:
            parts.append(
                f"{len(foreign):,} stored predictions belong to no prompt {_such_as(foreign)}"
            )
        return "; ".join(parts) or None

    def generate(
        self, prompts: Sequence[Prompt], params: GenerationParams | None = None
    ) -> Iterator[Generation]:
        """Look up the answers.

        Args:
            prompts: The prompts.
            params: Not used: the predictions are already decoded.

        Yields:
            One generation for each prompt, in order; an error if no prediction is stored.
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
        """Return the text of a prompt, or the reason for its absence."""
        for name in _names(prompt):
            if name not in self._texts:
                continue
            text = self._texts[name]
            if text is None:
                return None, f"the stored predictions under {shown(name)} differ; keep one of them"
            if prompt.text and text.startswith(prompt.text):
                if not self._settings.strip_prompt:
                    raise DataError(
                        f"the stored prediction of {shown(prompt.id)} begins with its prompt, "
                        "which would be scored in place of the answer; set strip_prompt=true to "
                        "remove it (`runner_option` strip_prompt=true)"
                    )
                text = text.removeprefix(prompt.text)
            if not text.strip() and self._settings.missing != "wrong":
                return None, "the stored prediction is blank; missing=wrong counts it as incorrect"
            return text, None
        return None, f"no stored prediction under id {shown(prompt.id)}, its text or its question"


def _names(prompt: Prompt) -> list[str]:
    """Return the names by which a prediction of a prompt is looked up, best first."""
    if prompt.messages is None:
        last = prompt.text
    else:
        users = [turn.content for turn in prompt.messages if turn.role == "user"]
        last = users[-1] if users else None
    names = (prompt.id, prompt.text, None if last is None else question_of(last))
    return [name for name in names if name]


def _such_as(names: Sequence[str]) -> str:
    """Format the first few names."""
    return f"(such as {', '.join(map(repr, names[:_SHOWN]))})"
