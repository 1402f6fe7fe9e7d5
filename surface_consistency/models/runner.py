"""The base class of runners, which turn prompts into generations, and a runner without a model."""

import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NoReturn
from uuid import uuid4

from pydantic import JsonValue

from surface_consistency.errors import RunnerError
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.prompts import GenerationParams, Prompt
from surface_consistency.schemas.scoring import ScoredText, ScoringRequest

BATCH_SIZE: Final = 32
"""Number of prompts per batch of `Runner.plan`."""


class Runner(ABC):
    """Base class of model backends; resuming, progress and smaller batches are built in.

    A subclass sets `name` and defines `fingerprint` and at least one of `generate`, for generated
    answers, and `score`, for options. It overrides the other methods that it supports. Register it
    under the entry point group `surface_consistency.runners`, or name it as `module:attribute`.

    Examples:
        >>> class Shouting(Runner):
        ...     name = "shouting"
        ...
        ...     def fingerprint(self):
        ...         return {"runner": self.name, "version": 1}
        ...
        ...     def generate(self, prompts, params):
        ...         for prompt in prompts:
        ...             yield Generation(prompt_id=prompt.id, text=prompt.text.upper())
        >>> [answer.text for answer in Shouting().generate([Prompt(id="q1", text="hey")], None)]
        ['HEY']
    """

    name: str = "unnamed"
    """Short name for messages, such as "transformers"."""

    is_stored: bool = False
    """Whether answers are stored and not computed, so that repeated prompts show no variation."""

    max_refusals: int = 20
    """Number of prompts with the same error after which a run without answers is stopped."""

    @abstractmethod
    def fingerprint(self) -> dict[str, JsonValue]:
        """Return the settings that determine the answers, such as model, revision and dtype.

        Returns:
            Plain JSON values, including quantisation and batches. A run resumes only if they are
            equal.
        """

    def generate(self, prompts: Sequence[Prompt], params: GenerationParams) -> Iterator[Generation]:
        """Answer one batch.

        Args:
            prompts: The batch; ids are unique.
            params: How to decode.

        Yields:
            One generation for each prompt, under its id, in any order. A prompt that cannot be
            answered is returned with `finish_reason="error"` and is sent again on resume.

        Raises:
            RunnerOutOfMemoryError: If the batch is too large; it is sent again in halves.
            RunnerError: If the run cannot continue, or if the runner does not define this method,
                as by default.
        """
        self._undefined(
            "generate",
            f"which prompts without options need ({len(prompts)}, such as {prompts[0].id!r}); set "
            "`read` to multiple-choice or log-odds, or use the runner transformers",
        )

    def plan(
        self, prompts: Sequence[Prompt], params: GenerationParams
    ) -> Iterator[Sequence[Prompt]]:
        """Check every prompt before any work, then divide the run into batches.

        The plan is a function of the prompts alone, so a resumed run has the same batches.

        Args:
            prompts: All prompts of the run; ids and contents are unique.
            params: How to decode.

        Returns:
            The batches: every prompt once, in the order in which they are sent; by default 32
            prompts each.

        Raises:
            RunnerError: If a prompt does not fit the model's context.
        """
        return (prompts[at : at + BATCH_SIZE] for at in range(0, len(prompts), BATCH_SIZE))

    def rebatched(self, seed: int) -> "Runner":
        """Return a runner of the same model with another composition of batches.

        Args:
            seed: Seed of the other composition.

        Returns:
            The runner, which may share the model's memory; by default this one.
        """
        return self

    def fits(self, prompt: Prompt, params: GenerationParams) -> bool:
        """Check whether a prompt and its new tokens fit the model's context.

        Args:
            prompt: A text or a conversation.
            params: How to decode.

        Returns:
            Whether `generate` accepts it.

        Raises:
            RunnerError: If the runner does not define this method, as by default.
        """
        self._undefined(
            "fits", "so demonstrations cannot be dropped; turn `truncate` off or use fewer `shots`"
        )

    def score(self, requests: Sequence[ScoringRequest]) -> Iterator[ScoredText]:
        """Compute the log-probability of texts, each given the text before it.

        Context and continuation are tokenised as one text; a token that covers the end of the one
        and the beginning of the other belongs to the continuation.

        Args:
            requests: The texts; ids are unique.

        Yields:
            One scored text for each request, under its id, in any order.

        Raises:
            RunnerError: If a text does not fit the model's context or cannot be scored, or if the
                runner does not define this method, as by default.
        """
        self._undefined(
            "score",
            "which prompts with options need; set `read` to generate, or use the runner "
            "transformers",
        )

    def render(self, prompt: Prompt) -> str:
        """Render a conversation with the model's chat template, ready for the answer.

        Args:
            prompt: A prompt with messages.

        Returns:
            The text, with the special tokens of the template.

        Raises:
            RunnerError: If the model has no chat template, the template rejects the conversation,
                or the runner does not define this method, as by default.
        """
        self._undefined("render", "so answers to conversations cannot be scored; use plain prompts")

    def _undefined(self, method: str, consequence: str) -> NoReturn:
        """Report a method that the runner does not define."""
        raise RunnerError(f"runner {self.name!r} does not define `{method}`, {consequence}")


def cut_at_stop(text: str, stop: Sequence[str]) -> str | None:
    r"""Cut an answer before its first stop string.

    Args:
        text: The text that the model wrote. Line breaks before the answer do not end it.
        stop: The stop strings, as in `GenerationParams.stop`.

    Returns:
        The text before the first stop string; None if the text contains none.

    Examples:
        >>> cut_at_stop("\n\nLondon\nQ: Who", ["\n"])
        '\n\nLondon'
        >>> cut_at_stop(" London", ["\n"]) is None
        True
    """
    start = len(text) - len(text.lstrip("\n"))
    ends = [end for end in (text.find(item, start) for item in stop) if end >= 0]
    return text[: min(ends)] if ends else None


class FakeRunner(Runner):
    """Returns the texts of a handler, deterministically, without model or network.

    Args:
        handler: A function from a prompt to a text, or a mapping from prompt id, else prompt
            text, to a text.
        name: The runner's name, "fake" by default. A stopped run resumes with a runner of the same
            name. Without a name, a function of a module is recognised by its qualified name, and a
            mapping of texts by its content. Every other handler, such as a lambda, resumes only
            with the same runner object: pass `name` to resume in another process. Pass another name
            if the code of a handler changes.

    Raises:
        TypeError: If the handler is neither callable nor a mapping.

    Examples:
        >>> runner = FakeRunner(lambda prompt: prompt.text.upper())
        >>> [answer.text for answer in runner.generate([Prompt(id="q1", text="hey")])]
        ['HEY']
    """

    name: str
    """The runner's name."""

    asked: list[str]
    """Ids of all received prompts, in order."""

    def __init__(
        self, handler: Callable[[Prompt], str] | Mapping[str, str], *, name: str | None = None
    ) -> None:
        if not callable(handler) and not isinstance(handler, Mapping):
            raise TypeError(
                f"`handler` must be a function of a prompt or a mapping from prompt id or text to "
                f"text, got {type(handler).__name__}"
            )
        self._handler = handler
        self._given = name
        self._instance = f"unnamed-{uuid4()}"
        self.name = name or "fake"
        self.asked = []

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return the name or, if no name was given, an identifier of the handler or runner."""
        name = self._given or _identifier(self._handler) or self._instance
        return {"runner": "fake", "name": name}

    def generate(
        self, prompts: Sequence[Prompt], params: GenerationParams | None = None
    ) -> Iterator[Generation]:
        """Answer each prompt with the handler's text, uncut.

        Args:
            prompts: The prompts.
            params: Not used.

        Yields:
            One generation for each prompt, in order.

        Raises:
            RunnerError: If a mapping has no text for a prompt.
        """
        for prompt in prompts:
            self.asked.append(prompt.id)
            yield Generation(prompt_id=prompt.id, text=self._answer(prompt))

    def _answer(self, prompt: Prompt) -> str:
        """Return the handler's text for a prompt."""
        if not isinstance(self._handler, Mapping):
            return self._handler(prompt)
        for name in (prompt.id, prompt.text):
            if name is not None and name in self._handler:
                return self._handler[name]
        raise RunnerError(
            f"the fake runner {self.name!r} has no text for prompt {prompt.id!r}; add its id or "
            "its text to the mapping"
        )


def _identifier(handler: Callable[[Prompt], str] | Mapping[str, str]) -> str | None:
    """Return the name of a module's function or the digest of a mapping of texts; else None."""
    if isinstance(handler, Mapping):
        if not all(isinstance(text, str) for item in handler.items() for text in item):
            return None
        return hashlib.sha256(repr(sorted(handler.items())).encode()).hexdigest()[:12]
    module, name = getattr(handler, "__module__", ""), getattr(handler, "__qualname__", "")
    return f"{module}.{name}" if getattr(sys.modules.get(module), name, None) is handler else None
