"""Put retrieved facts before the prompts of any runner."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from surface_consistency.errors import RunnerError
from surface_consistency.models.runner import Runner
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.memory import Lookup, LookupQuery
from surface_consistency.schemas.prompts import GenerationParams, Message, Prompt
from surface_consistency.studies.audit.attribution import given_candidates
from surface_consistency.studies.audit.lookup.fact_store import (
    FactStore,
    LookupRequest,
    ask_store,
    mode_of,
)

_TEMPLATE: Final = "Facts:\n{facts}\n\n{prompt}"


class RetrievalAugmentedRunner(Runner):
    """Sends prompts to another runner, with facts of a store before each prompt.

    For prompts in the mode "answer" the store is queried, once for many prompts, and the facts
    found are put before them. Prompts in the modes "allow" and "forbid" are sent unchanged. In the
    mode "null", and if the store finds nothing, the null text replaces the facts. Prompts that
    become identical are sent once. In a conversation the facts are put before the text of its last
    turn.

    Args:
        runner: The runner that generates.
        store: The store, which also sets the mode of each prompt.
        query: Returns the lookup query of a prompt.
        n_facts: Maximum number of facts per prompt: the entries that a lookup retained at or above
            the threshold, if the store has traces; otherwise one fact.
        null_text: Text in place of the facts if there are none; with None such prompts are
            unchanged.

    Raises:
        ValueError: If `n_facts` is below 1.

    Examples:
        >>> from surface_consistency.models.runner import FakeRunner
        >>> class Store:
        ...     def mode(self, prompt):
        ...         return "answer"
        ...
        ...     def look_up(self, requests):
        ...         return [Lookup(query=query, value="Paris") for _, query in requests]
        >>> runner = RetrievalAugmentedRunner(
        ...     FakeRunner(lambda prompt: prompt.text),
        ...     Store(),
        ...     query=lambda prompt: LookupQuery(entity="France", relation="Capital"),
        ... )
        >>> found = next(runner.generate([Prompt(id="q1", text="Capital of France?")], None))
        >>> found.text.splitlines()
        ['Facts:', 'France | Capital | Paris', '', 'Capital of France?']
    """

    name: str = "retrieval_augmented"
    """The runner's name."""

    def __init__(
        self,
        runner: Runner,
        store: FactStore,
        *,
        query: Callable[[Prompt], LookupQuery],
        n_facts: int = 5,
        null_text: str | None = "unknown",
    ) -> None:
        if n_facts < 1:
            raise ValueError(f"`n_facts` must be at least 1, got {n_facts}")
        self._runner = runner
        self.is_stored = runner.is_stored
        self._store = store
        self._query = query
        self._n_facts = n_facts
        self._null_text = null_text
        self._ready: dict[str, tuple[Prompt, tuple[Lookup, ...]]] = {}

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return template, store, and the fingerprint of the other runner."""
        of_store = getattr(self._store, "fingerprint", None)
        return {
            "runner": self.name,
            "n_facts": self._n_facts,
            "template": _TEMPLATE,
            "null_text": self._null_text,
            "source": type(self._store).__name__ if of_store is None else of_store(),
            "asks": self._runner.fingerprint(),
        }

    def plan(
        self, prompts: Sequence[Prompt], params: GenerationParams
    ) -> Iterator[Sequence[Prompt]]:
        """Look all prompts up at once, then split them into the batches of the other runner.

        Args:
            prompts: All prompts of the run.
            params: Decoding parameters.

        Returns:
            The batches.

        Raises:
            RunnerError: If a prompt with its facts does not fit the model's context.
        """
        augmented = self._augment(prompts)
        same, distinct = _by_content(prompts, augmented)
        batches = self._runner.plan(list(distinct.values()), params)
        return ([one for changed in batch for one in same[changed.key]] for batch in batches)

    def generate(self, prompts: Sequence[Prompt], params: GenerationParams) -> Iterator[Generation]:
        """Answer one batch.

        Args:
            prompts: The batch.
            params: Decoding parameters.

        Yields:
            One generation per prompt, with its lookups; empty if the store was not queried.

        Raises:
            RunnerError: If the answers of the store or of the other runner do not match the
                requests.
        """
        augmented = self._augment(prompts)
        lookups = {prompt.key: self._ready[prompt.key][1] for prompt in prompts}
        same, distinct = _by_content(prompts, augmented)
        waiting = {changed.id: key for key, changed in distinct.items()}
        for answer in self._runner.generate(list(distinct.values()), params):
            key = waiting.pop(answer.prompt_id, None)
            if key is None:
                raise RunnerError(
                    f"runner {self._runner.name!r} answered prompt {answer.prompt_id!r}, which is "
                    "not in this batch, or was already answered"
                )
            for prompt in same[key]:
                self._ready.pop(prompt.key, None)
                update = {"prompt_id": prompt.id, "lookups": lookups[prompt.key]}
                yield answer.model_copy(update=update)

    def _augment(self, prompts: Sequence[Prompt]) -> list[Prompt]:
        """Put facts before prompts; prompts already looked up are not looked up again."""
        new = list({one.key: one for one in prompts if one.key not in self._ready}.values())
        modes = [mode_of(self._store, prompt) for prompt in new]
        queries = {
            prompt.key: self._query(prompt)
            for prompt, mode in zip(new, modes, strict=True)
            if mode in ("answer", "null")
        }
        queried = [prompt for prompt, mode in zip(new, modes, strict=True) if mode == "answer"]
        requests = [LookupRequest(prompt, queries[prompt.key]) for prompt in queried]
        answers = dict(
            zip((one.key for one in queried), ask_store(self._store, requests), strict=True)
        )
        for prompt in new:
            query = queries.get(prompt.key)
            if query is None:
                self._ready[prompt.key] = _unconditional(prompt), ()
            else:
                lookup = answers.get(prompt.key, Lookup(query=query, value=None))
                self._ready[prompt.key] = self._with_facts(prompt, lookup), (lookup,)
        return [self._ready[prompt.key][0] for prompt in prompts]

    def _with_facts(self, prompt: Prompt, lookup: Lookup) -> Prompt:
        """Make the prompt that is sent."""
        facts = "\n".join(self._facts(lookup)) or self._null_text
        if facts is None:
            return _unconditional(prompt)
        update: dict[str, object] = {"condition": None}
        if prompt.contexts is not None:
            update["contexts"] = tuple(
                _TEMPLATE.format(facts=facts, prompt=text) for text in prompt.contexts
            )
        if prompt.messages is None:
            update["text"] = _TEMPLATE.format(facts=facts, prompt=prompt.text)
        else:
            *turns, last = prompt.messages
            content = _TEMPLATE.format(facts=facts, prompt=last.content)
            update["messages"] = (*turns, Message(role=last.role, content=content))
        return prompt.model_copy(update=update)

    def _facts(self, lookup: Lookup) -> list[str]:
        """Format the facts of a lookup."""
        if lookup.value is None:
            return []
        trace = lookup.trace
        shown = () if trace is None else given_candidates(trace, self._n_facts)
        triples = [(one.subject, one.relation, one.object) for one in shown]
        triples = triples or [(lookup.query.entity, lookup.query.relation, lookup.value)]
        return list(map(" | ".join, triples))


def _by_content(
    prompts: Sequence[Prompt], augmented: Sequence[Prompt]
) -> tuple[dict[str, list[Prompt]], dict[str, Prompt]]:
    """Group prompts by the key of their augmented prompt, and return that prompt by key."""
    same: dict[str, list[Prompt]] = {}
    for prompt, changed in zip(prompts, augmented, strict=True):
        same.setdefault(changed.key, []).append(prompt)
    return same, {changed.key: changed for changed in augmented}


def _unconditional(prompt: Prompt) -> Prompt:
    """Return the prompt without its condition."""
    return prompt.model_copy(update={"condition": None})
