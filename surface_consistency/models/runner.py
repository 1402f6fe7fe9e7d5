"""What a runner is: anything that turns prompts into generations; and one without a model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from surface_consistency.errors import RunnerError
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.prompts import GenerationParams, Prompt
from surface_consistency.schemas.scoring import ScoredText, ScoringRequest


@runtime_checkable
class Runner(Protocol):
    """Asks a model; resume, progress and smaller batches on out-of-memory are the library's job.

    Any class with these three members is a runner; it need not inherit from this one. Make it
    known by an entry point of the group `surface_consistency.runners`, or name it as
    `module:attribute`.

    Examples:
        >>> class Shouting:
        ...     name = "shouting"
        ...
        ...     def fingerprint(self):
        ...         return {"runner": self.name, "version": 1}
        ...
        ...     def generate(self, prompts, params):
        ...         for prompt in prompts:
        ...             yield Generation(prompt_id=prompt.id, text=prompt.text.upper())
        >>> isinstance(Shouting(), Runner)
        True
        >>> [answer.text for answer in Shouting().generate([Prompt(id="q1", text="hey")], None)]
        ['HEY']
    """

    name: str
    """Short name, such as "transformers"."""

    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell what decides the answers: model, revision, dtype, quantisation, batch policy.

        Returns:
            Plain JSON values. A run is only continued under an equal fingerprint.
        """

    def generate(self, prompts: Sequence[Prompt], params: GenerationParams) -> Iterator[Generation]:
        """Answer one batch.

        Args:
            prompts: The batch; ids are unique.
            params: How to decode.

        Yields:
            One generation for each prompt, under its id, in any order. A prompt that cannot be
            answered comes back with `finish_reason="error"` and is asked again on resume.

        Raises:
            RunnerOutOfMemoryError: If the batch is too large; it is asked again in halves.
            RunnerError: If the run cannot go on.
        """


@runtime_checkable
class BatchPlanner(Protocol):
    """The optional second capability of a runner: to cut a run into batches itself."""

    def plan(
        self, prompts: Sequence[Prompt], params: GenerationParams
    ) -> Iterator[Sequence[Prompt]]:
        """Check every prompt before any work, then cut the run into batches.

        The plan is a function of the prompts alone, so a resumed run asks the same batches.

        Args:
            prompts: All prompts of the run; ids and contents are unique.
            params: How to decode.

        Returns:
            The batches: every prompt once, in the order in which they shall be asked.

        Raises:
            RunnerError: If a prompt does not fit the model's context.
        """


@runtime_checkable
class Rebatchable(Protocol):
    """The optional third capability of a runner: to put the same prompts into other batches."""

    def rebatched(self, seed: int) -> Runner:
        """Give a runner of the same model with another batch composition.

        Args:
            seed: Which other composition.

        Returns:
            The runner; it may share the model's memory.
        """


@runtime_checkable
class Scorer(Protocol):
    """The optional fourth capability of a runner: to tell how probable texts are."""

    name: str
    """Short name, such as "transformers"."""

    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell what decides the numbers; see `Runner.fingerprint`."""

    def score(self, requests: Sequence[ScoringRequest]) -> Iterator[ScoredText]:
        """Tell the log-probability of texts, each given what stands before it.

        Context and continuation are tokenised as one text; a token that covers the end of the one
        and the begin of the other counts as one of the continuation.

        Args:
            requests: What to score; ids are unique.

        Yields:
            One scored text for each request, under its id, in any order.

        Raises:
            RunnerError: If a text does not fit the model's context.
            RunnerError: If a text cannot be scored.
        """


@runtime_checkable
class ConversationRenderer(Protocol):
    """What a scorer needs besides to score answers to conversations."""

    def render(self, prompt: Prompt) -> str:
        """Write a conversation as the model's chat template has it, ready for the answer.

        Args:
            prompt: A prompt with messages.

        Returns:
            The text, with the special tokens of the template.

        Raises:
            RunnerError: If the model has no chat template, or it refuses the conversation.
        """


class FakeRunner:
    """Answers what its handler says: deterministic, without model or network.

    Args:
        handler: A function from a prompt to a text, or a mapping from prompt id, else prompt
            text, to a text.
        name: The runner's name.

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
    """Ids of all prompts that it was asked, in order."""

    def __init__(
        self, handler: Callable[[Prompt], str] | Mapping[str, str], *, name: str = "fake"
    ) -> None:
        if not callable(handler) and not isinstance(handler, Mapping):
            raise TypeError(
                f"`handler` must be a function of a prompt or a mapping from prompt id or text to "
                f"text, got {type(handler).__name__}"
            )
        self._handler = handler
        self.name = name
        self.asked = []

    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell the name; what a handler says is not known in advance."""
        return {"runner": "fake", "name": self.name}

    def generate(
        self, prompts: Sequence[Prompt], params: GenerationParams | None = None
    ) -> Iterator[Generation]:
        """Answer each prompt with the handler's text, uncut.

        Args:
            prompts: What to answer.
            params: Without effect.

        Yields:
            One generation for each prompt, in order.

        Raises:
            RunnerError: If a mapping has no text for a prompt.
        """
        for prompt in prompts:
            self.asked.append(prompt.id)
            yield Generation(prompt_id=prompt.id, text=self._answer(prompt))

    def _answer(self, prompt: Prompt) -> str:
        """Ask the handler."""
        if not isinstance(self._handler, Mapping):
            return self._handler(prompt)
        for name in (prompt.id, prompt.text):
            if name is not None and name in self._handler:
                return self._handler[name]
        raise RunnerError(
            f"the fake runner {self.name!r} has no text for prompt {prompt.id!r}; add its id or "
            "its text to the mapping"
        )
