"""The runner of limited-memory models, which query a store of facts while they generate."""

import copy
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from surface_consistency.models._decoding import context_length, end_tokens
from surface_consistency.models.transformers_runner import TransformersRunner
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.prompts import GenerationParams, Prompt
from surface_consistency.studies.audit.lookup._loop import decode
from surface_consistency.studies.audit.lookup._rows import Kind, Reader, Results, Row
from surface_consistency.studies.audit.lookup.fact_store import FactStore, LookupMode, mode_of
from surface_consistency.studies.audit.lookup.settings import LookupSettings, find_tokens

if TYPE_CHECKING:
    from array import array

_KINDS: dict[LookupMode, Kind] = {
    "answer": "pause",
    "null": "pause",
    "allow": "allow",
    "forbid": "forbid",
}
_FURTHER_ENDS = ("<|end_of_text|>",)


class LookupRunner(TransformersRunner):
    """Runs a limited-memory model, a causal language model with four lookup tokens.

    The model writes `<|db_entity|> E<|db_relationship|> R<|db_return|>`. Then generation pauses,
    the store is queried, its value and `<|db_end|>` are inserted, and generation continues.
    Decoding is greedy, with only the repetition penalty and the biases of the settings.

    All rows of a batch advance together, with prompts of all states: waiting rows are answered in
    one call of the store, and the cached keys and values are kept. Prompts of the same content
    are one row as long as the store gives them the same answers. The answers equal those of prompts
    run one by one. Models whose cache cannot be shared run prompts one by one, which the
    fingerprint records.

    Args:
        model: Folder of a model and its tokenizer, or hub id.
        store: The store, which also sets the mode of each prompt.
        settings: Token names, penalty, biases, limits.
        revision: Branch, tag or commit of the hub repository; pinned to its commit.
        dtype: Torch dtype; "auto" uses that of the checkpoint.
        device: Such as "cuda:1"; None uses a GPU if there is one.
        batch_size: Maximum batch size.
        trust_remote_code: Whether code of the repository may be run.

    Raises:
        MissingDependencyError: If torch or transformers is not installed.
        SourceNotFoundError: If the model does not exist or cannot be reached.
        RunnerError: If it cannot be loaded, or its tokenizer has no lookup tokens.
        ValueError: If an option is out of range.

    References:
        Zhao et al., 2025 (limited-memory language models); arXiv 2607.00605, appendix.
    """

    name: str = "lookup"
    """The runner's name."""

    _smaller = " or dtype='bfloat16'"

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        store: FactStore,
        settings: LookupSettings | None = None,
        revision: str | None = None,
        dtype: str = "auto",
        device: str | None = None,
        batch_size: int = 32,
        trust_remote_code: bool = False,
    ) -> None:
        super().__init__(
            model,
            revision=revision,
            dtype=dtype,
            device=device,
            batch_size=batch_size,
            trust_remote_code=trust_remote_code,
        )
        self.settings = settings or LookupSettings()
        """The decoding."""
        self._store = store
        loaded = self._engine.model
        tokenizer = self._encoder.tokenizer
        self._tokens = find_tokens(
            tokenizer, self.settings, label=self._source.label, size=self._engine.vocabulary
        )
        vocabulary = tokenizer.get_vocab()
        further = {vocabulary[token] for token in _FURTHER_ENDS if token in vocabulary}
        self._ends = end_tokens(loaded.generation_config) | further
        self._context = context_length(loaded, tokenizer)
        together = self._padding == "left" and self._engine.keeps_cache
        size = batch_size if together else 1
        self._planner = replace(self._planner, batch_size=size, reuse_prefix=False)

    def with_store(self, store: FactStore) -> "LookupRunner":
        """Return a runner of the same model, sharing its memory, with another store.

        Args:
            store: The store.

        Returns:
            The runner.
        """
        other = copy.copy(self)
        other._store = store
        return other

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return model, decoding and store."""
        details = super().fingerprint()
        together = self._planner.batch_size > 1
        of_store = getattr(self._store, "fingerprint", None)
        return details | {
            "generation_config": {"eos_token_id": sorted(self._ends)},
            "prefix_reuse": "prompts of one content" if together else details["prefix_reuse"],
            "lookup": asdict(self.settings),
            "source": type(self._store).__name__ if of_store is None else of_store(),
        }

    def plan(
        self, prompts: Sequence[Prompt], params: GenerationParams
    ) -> Iterator[Sequence[Prompt]]:
        """Check the length of every prompt, then split the run into batches.

        Args:
            prompts: All prompts of the run.
            params: Decoding parameters.

        Returns:
            The batches: longest prompts first, identical contents next to each other.

        Raises:
            RunnerError: If a prompt and its new tokens do not fit the model's context.
        """
        return super().plan(sorted(prompts, key=_content), params)

    def generate(self, prompts: Sequence[Prompt], params: GenerationParams) -> Iterator[Generation]:
        """Answer prompts; if there is more than one batch, they are planned first.

        Args:
            prompts: The prompts; the store sets the mode of each.
            params: Maximum number of tokens that the model writes, without inserted values, and
                stop strings, which end the text outside of lookups.

        Yields:
            One generation per prompt: the raw text with its lookups, and the lookups, which are
            empty in the modes "allow" and "forbid". If a value does not fit the context, the
            generation contains an error.

        Raises:
            ValueError: If the temperature is not 0, or reasoning has a limit.
            RunnerError: If a prompt does not fit the model's context.
            RunnerOutOfMemoryError: If the batch does not fit the device.
            RunnerError: If the answers of the store do not match the requests.
        """
        if params.temperature > 0:
            raise ValueError(
                f"LookupRunner decodes greedily: temperature must be 0, got {params.temperature}"
            )
        if params.max_reasoning_tokens is not None:
            raise ValueError(
                "LookupRunner runs models that look facts up and do not reason: omit "
                f"`max_reasoning_tokens`, got {params.max_reasoning_tokens}"
            )
        return super().generate(prompts, params)

    def _generate_batch(
        self, prompts: Sequence[Prompt], rows: "Sequence[array[int]]", params: GenerationParams
    ) -> list[Generation]:
        """Run one batch through model and store."""
        modes = [mode_of(self._store, prompt) for prompt in prompts]
        reader = Reader(
            self._encoder.tokenizer,
            tokens=self._tokens,
            ends=self._ends,
            stop=params.stop,
            max_new_tokens=params.max_new_tokens,
        )
        results = Results(
            store=self._store,
            prompts=prompts,
            modes=modes,
            reader=reader,
            settings=self.settings,
            context=self._context,
        )
        ended = decode(
            self._engine, _rows(rows, modes), results.split, reader=reader, settings=self.settings
        )
        return _generations(prompts, ended, reader, results)


def _content(prompt: Prompt) -> str:
    """Return the content of a prompt, without its state."""
    return prompt.text if prompt.text is not None else repr(prompt.messages)


def _rows(encoded: "Sequence[array[int]]", modes: Sequence[LookupMode]) -> list[Row]:
    """Make one row per content and kind of decoding."""
    rows: dict[tuple[object, ...], Row] = {}
    for position, (ids, mode) in enumerate(zip(encoded, modes, strict=True)):
        kind = _KINDS[mode]
        name = (kind, ids.tobytes())
        if name not in rows:
            n_prompt = len(ids)
            rows[name] = Row([], kind, n_prompt, list(ids), outside=n_prompt)
        rows[name].members.append(position)
    return list(rows.values())


def _generations(
    prompts: Sequence[Prompt], ended: Sequence[Row], reader: Reader, results: Results
) -> list[Generation]:
    """Make the record of each prompt."""
    made: list[Generation] = []
    for row in ended:
        written: dict[str, Any] = {
            "text": reader.written(row),
            "finish_reason": "stop" if row.state == "ended" else "length",
            "n_prompt_tokens": row.n_prompt,
            "n_new_tokens": row.n_written,
        }
        made += [
            Generation(
                prompt_id=prompts[member].id, lookups=tuple(results.lookups[member]), **written
            )
            for member in row.members
        ]
    made += [
        Generation(
            prompt_id=prompts[member].id,
            text=None,
            finish_reason="error",
            error=problem,
            lookups=tuple(results.lookups[member]),
        )
        for member, problem in results.errors.items()
    ]
    return made
