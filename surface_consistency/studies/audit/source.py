"""The store as the runners of an audit see it: a database, a state and a deletion a prompt."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from surface_consistency.inference.fact_store import LookupMode, LookupRequest
from surface_consistency.retrieval import CanonicalDatabase, TripletStore
from surface_consistency.schemas.memory import AuditPrompt, Lookup, LookupQuery, MemoryState
from surface_consistency.schemas.prompts import Prompt

__all__ = ["AskedFact", "AuditSource"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AskedFact:
    """What the lookups of one prompt meet."""

    database: str
    """Name of the database."""

    state: MemoryState
    """State of the store."""

    fact: AuditPrompt
    """The fact by which candidates are flagged."""

    deleted: npt.NDArray[np.int64]
    """The entries that its deletion removes."""


class AuditSource:
    """Answers the lookups of all prompts of an audit, each from its database, fact and state.

    Args:
        stores: The stores by name of the database.
        asked: What the lookups of each prompt meet, by prompt id.
        off_mode: What becomes of lookups with retrieval off.
        canonical: The databases that were rewritten to one name for each thing, by name; lookups
            in them follow the pointers first.
        query: What is looked up for models that do not look up themselves.
    """

    def __init__(
        self,
        stores: Mapping[str, TripletStore],
        asked: Mapping[str, AskedFact],
        *,
        off_mode: LookupMode = "forbid",
        canonical: Mapping[str, CanonicalDatabase] | None = None,
        query: Literal["fact", "prompt"] = "fact",
    ) -> None:
        self._stores = dict(stores)
        self._asked = asked
        self._off_mode: LookupMode = off_mode
        self._canonical = dict(canonical or {})
        self._query = query

    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell what decides the answers.

        Returns:
            How retrieval off is meant, and a digest of stores and deletions.
        """
        digest = hashlib.sha256()
        for name, store in sorted(self._stores.items()):
            digest.update(f"{name}{store.fingerprint()}".encode())
        for prompt_id, item in sorted(self._asked.items()):
            digest.update(f"{prompt_id}{item.state}".encode() + item.deleted.tobytes())
        return {"source": "audit", "off_mode": self._off_mode, "sha256": digest.hexdigest()}

    def mode(self, prompt: Prompt) -> LookupMode:
        """Tell what becomes of a prompt's lookups.

        Args:
            prompt: A prompt of the audit.

        Returns:
            "answer", or what is set for retrieval off.

        Raises:
            ValueError: If the prompt is none of the audit.
        """
        return self._off_mode if self._of(prompt).state == "DEL-OFF" else "answer"

    def query(self, prompt: Prompt) -> LookupQuery:
        """Tell what to look up for a prompt whose model does not ask.

        Args:
            prompt: A prompt of the audit.

        Returns:
            Subject and relation of its fact, or its whole text as the entity.

        Raises:
            ValueError: If the prompt is none of the audit.
        """
        fact = self._of(prompt).fact
        if self._query == "prompt":
            return LookupQuery(entity=fact.prompt_text, relation="")
        return LookupQuery(entity=fact.subject, relation=fact.relation)

    def look_up(self, requests: Sequence[LookupRequest]) -> list[Lookup]:
        """Answer lookups, those of each database in one batch.

        Args:
            requests: Lookups of prompts in any state, of any database.

        Returns:
            One lookup for each, with its trace.

        Raises:
            ValueError: If a prompt is none of the audit.
        """
        by_store: dict[str, list[int]] = {}
        for place, request in enumerate(requests):
            by_store.setdefault(self._of(request.prompt).database, []).append(place)
        answers: dict[int, Lookup] = {}
        for name, places in by_store.items():
            answers |= self._answered(name, [requests[place] for place in places], places)
        return [answers[place] for place in range(len(requests))]

    def _answered(
        self, name: str, requests: Sequence[LookupRequest], places: Sequence[int]
    ) -> dict[int, Lookup]:
        """Answer the lookups of one database."""
        items = [self._of(request.prompt) for request in requests]
        pointers = self._canonical.get(name)
        queries = [
            request.query if pointers is None else pointers.resolve(request.query)
            for request in requests
        ]
        traces = self._stores[name].look_up(
            queries,
            states=[item.state for item in items],
            deleted=[item.deleted for item in items],
            targets=[item.fact for item in items],
        )
        return {
            place: Lookup(query=request.query, value=trace.selected_value, trace=trace)
            for place, request, trace in zip(places, requests, traces, strict=True)
        }

    def _of(self, prompt: Prompt) -> AskedFact:
        """Find what a prompt asks."""
        if prompt.id not in self._asked:
            raise ValueError(
                f"prompt {prompt.id!r} is none of this audit; build the source of the same cells, "
                "settings and limits as the prompts"
            )
        return self._asked[prompt.id]
