"""The interface between a runner and the store of facts that answers its lookups."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, get_args, runtime_checkable

from surface_consistency.errors import RunnerError
from surface_consistency.schemas.memory import Lookup, LookupQuery
from surface_consistency.schemas.prompts import Prompt

LookupMode = Literal["answer", "allow", "forbid", "null"]
"""Mode of a prompt's lookups: they are answered ("answer"); or, with retrieval off, the model may
write lookup tokens and then writes the value itself ("allow"), cannot write them ("forbid"), or
gets the null result without a query to the store ("null")."""
MODES: tuple[LookupMode, ...] = get_args(LookupMode)
"""All modes."""


class LookupRequest(NamedTuple):
    """One lookup that waits for its answer."""

    prompt: Prompt
    """The prompt; its `condition` contains the state of the store."""

    query: LookupQuery
    """The query that the model wrote."""


@runtime_checkable
class FactStore(Protocol):
    """A store of facts in one or several states.

    Any class with these two members is a store; it need not inherit from this class. If it also has
    a method `fingerprint() -> dict[str, JsonValue]`, the fingerprint of a runner contains it, so
    that a run is not resumed with another store.

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
        """Return the mode of a prompt's lookups.

        Args:
            prompt: The prompt; its `condition` contains the state of the store.

        Returns:
            One of `MODES`.
        """

    def look_up(self, requests: Sequence[LookupRequest]) -> Sequence[Lookup]:
        """Answer many lookups at once.

        Args:
            requests: The lookups of one step, of prompts of any state.

        Returns:
            One record for each request, in order; its value is None if nothing was found.
        """


def mode_of(store: FactStore, prompt: Prompt) -> LookupMode:
    """Return the mode of a prompt, after a check.

    Raises:
        RunnerError: If it is not one of `MODES`.
    """
    mode = store.mode(prompt)
    if mode not in MODES:
        raise RunnerError(
            f"{type(store).__name__}.mode returned {mode!r} for prompt {prompt.id!r}; a mode is "
            f"one of {', '.join(MODES)}"
        )
    return mode


def ask_store(store: FactStore, requests: Sequence[LookupRequest]) -> list[Lookup]:
    """Send requests to a store, unless there are none, and check the answers.

    Raises:
        RunnerError: If the answers are not one `Lookup` per request.
    """
    if not requests:
        return []
    answers: Sequence[object] = store.look_up(requests)
    lookups = [answer for answer in answers if isinstance(answer, Lookup)]
    if not len(lookups) == len(answers) == len(requests):
        raise RunnerError(
            f"{type(store).__name__}.look_up returned {len(answers)} answers, {len(lookups)} of "
            f"them a Lookup, for {len(requests)} requests, the first of prompt "
            f"{requests[0].prompt.id!r}; it must return one Lookup per request, in order"
        )
    return lookups
