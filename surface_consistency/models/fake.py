"""A runner without a model, for tests and for trying out a pipeline."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from surface_consistency.errors import RunnerError
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.prompts import GenerationParams, Prompt

__all__ = ["FakeRunner"]


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
