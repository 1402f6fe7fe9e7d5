"""Where lookups are answered: a store of facts as a runner sees it."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, get_args, runtime_checkable

from surface_consistency.errors import RunnerError
from surface_consistency.schemas.memory import Lookup, LookupQuery
from surface_consistency.schemas.prompts import Prompt

LookupMode = Literal["answer", "allow", "forbid", "null"]
"""What becomes of a prompt's lookups: they are answered; or, with retrieval off, the model may
write lookup tokens and goes on to write the value itself, or it cannot write them, or the null
result is inserted without asking the store."""
MODES: tuple[LookupMode, ...] = get_args(LookupMode)
"""All modes."""


class LookupRequest(NamedTuple):
    """One lookup that waits for its answer."""

    prompt: Prompt
    """The prompt; its `condition` tells the state of the store."""

    query: LookupQuery
    """What the model asks."""


@runtime_checkable
class FactStore(Protocol):
    """A store of facts in one or several states.

    Any class with these two members is one; it need not inherit from this. If it has a method
    `fingerprint() -> dict[str, JsonValue]` as well, the fingerprint of a runner holds it, so that
    no run is continued with another store.

    Examples:
        >>> class Capitals:
        ...     def mode(self, prompt):
        ...         return "forbid" if prompt.condition == "DEL-OFF" else "answer"
        ...
        ...     def look_up(self, requests):
        ...         found = {"France": "Paris"}
        ...         return [Lookup(query=q, value=found.get(q.entity)) for _, q in requests]
        >>> isinstance(Capitals(), FactStore)
        True
    """

    def mode(self, prompt: Prompt) -> LookupMode:
        """Tell what becomes of a prompt's lookups.

        Args:
            prompt: The prompt; its `condition` tells the state of the store.

        Returns:
            One of `MODES`.
        """

    def look_up(self, requests: Sequence[LookupRequest]) -> Sequence[Lookup]:
        """Answer many lookups at once.

        Args:
            requests: The lookups of one step, of prompts of any state.

        Returns:
            One record for each request, in order; its value is None when nothing was found.
        """


def mode_of(store: FactStore, prompt: Prompt) -> LookupMode:
    """Ask a store for the mode of a prompt and hold it to its word.

    Raises:
        RunnerError: If it is none of `MODES`.
    """
    mode = store.mode(prompt)
    if mode not in MODES:
        raise RunnerError(
            f"{type(store).__name__}.mode gave {mode!r} for prompt {prompt.id!r}; a mode is one "
            f"of {', '.join(MODES)}"
        )
    return mode


def ask_store(store: FactStore, requests: Sequence[LookupRequest]) -> list[Lookup]:
    """Ask a store, if there is anything to ask, and hold it to its word.

    Raises:
        RunnerError: If it gives fewer or more answers than it was asked, or something else.
    """
    if not requests:
        return []
    answers: Sequence[object] = store.look_up(requests)
    lookups = [answer for answer in answers if isinstance(answer, Lookup)]
    if not len(lookups) == len(answers) == len(requests):
        raise RunnerError(
            f"{type(store).__name__}.look_up gave {len(answers)} answers, {len(lookups)} of them "
            f"a Lookup, for {len(requests)} requests, the first of prompt "
            f"{requests[0].prompt.id!r}; it gives one Lookup for each, in order"
        )
    return lookups
