"""Build the stores that answer the lookups of an audit: retrievers, deletions and states."""

import hashlib
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import JsonValue

from surface_consistency.errors import DataWarning, RunnerError
from surface_consistency.models import encoders
from surface_consistency.schemas.memory import AuditPrompt, Lookup, LookupQuery, MemoryState
from surface_consistency.schemas.prompts import Prompt
from surface_consistency.studies.audit.lookup.fact_store import LookupMode, LookupRequest
from surface_consistency.studies.audit.retrieval.alias_groups import AliasGroups
from surface_consistency.studies.audit.retrieval.canonical import CanonicalDatabase, canonicalise
from surface_consistency.studies.audit.retrieval.closure import alias_closures, similarity_closures
from surface_consistency.studies.audit.retrieval.retriever import Retriever
from surface_consistency.studies.audit.retrieval.retrievers import (
    BM25Retriever,
    EmbeddingRetriever,
    FuzzyRetriever,
    HybridRetriever,
)
from surface_consistency.studies.audit.retrieval.triplet_store import TripletStore
from surface_consistency.studies.audit.retrieval.triplets import Ints, Triplets
from surface_consistency.studies.audit.retrieval.verification import closure_counts, verify_closures
from surface_consistency.studies.audit.settings import AuditSettings

RETRIEVERS: Final = ("minilm", "bm25", "fuzzy", "hybrid")
"""Names that `retrievers_by_name` accepts: all-MiniLM-L6-v2; search by words; search by letters;
and the first two combined."""


MakeRetriever = Callable[[Triplets], Retriever]
"""Makes the retriever of a database."""


def built_once(make: MakeRetriever) -> MakeRetriever:
    """Cache the retriever of each database.

    Args:
        make: Makes a retriever.

    Returns:
        A function that makes one retriever per content and returns it again in later calls.
    """
    made: dict[str, Retriever] = {}

    def find(triplets: Triplets) -> Retriever:
        """Make a retriever, or return the cached one."""
        if triplets.content not in made:
            made[triplets.content] = make(triplets)
        return made[triplets.content]

    return find


def retrievers_by_name(
    name: str,
    *,
    encoder: encoders.Encoder | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> MakeRetriever:
    """Find retrievers by name; each distinct text is encoded once for all databases.

    Args:
        name: One of `RETRIEVERS`, or a model of sentence-transformers: a folder, or a hub id with
            its owner.
        encoder: Encoder in place of all-MiniLM-L6-v2; with "minilm" and "hybrid".
        cache_dir: Folder in which indices are cached, under a digest of content, model and
            settings; None for no cache. Without effect on "bm25" and "fuzzy".

    Returns:
        A function that makes the retriever of a database.

    Raises:
        ValueError: If the name is unknown.
        RunnerError: If the encoder cannot be loaded.
        MissingDependencyError: If a library is not installed.
    """
    if name == "bm25":
        return BM25Retriever
    if name == "fuzzy":
        return FuzzyRetriever
    is_model = "/" in name or os.sep in name or name in (encoders.MINILM, encoders.BUNDLED_MINILM)
    if name not in RETRIEVERS and not is_model:
        raise ValueError(
            f"retriever must be one of {', '.join(RETRIEVERS)}, the folder of a model of "
            f"sentence-transformers, or its hub id with the owner; got {name!r}"
        )
    model = _minilm() if name in RETRIEVERS else name
    cached = encoders.CachedEncoder(encoder or encoders.SentenceEncoder(model))

    def make(triplets: Triplets) -> Retriever:
        """Make the retriever of the name."""
        embedding = EmbeddingRetriever(triplets, cached, cache_dir=cache_dir)
        if name == "hybrid":
            return HybridRetriever([embedding, BM25Retriever(triplets)])
        return embedding

    return make


def _minilm() -> str:
    """Return the name of the installed copy of all-MiniLM-L6-v2, else of the one on the hub."""
    try:
        encoders.bundled_minilm()
    except RunnerError:
        return encoders.MINILM
    return encoders.BUNDLED_MINILM


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditDatabase:
    """One database with its deletions."""

    store: TripletStore
    """The entries and their retriever."""

    closures: Mapping[str, Ints]
    """The entries that the deletion of each fact removes, by `fact_key`."""

    left: pd.DataFrame
    """The entries that remain after each deletion, in the same order, as of `verify_closures`."""

    counts: Mapping[str, Any]
    """Counts of these entries over all facts, as of `closure_counts`."""

    others: tuple[tuple[int, ...], ...]
    """For each fact, the entries with its subject and relation and another object: a lookup finds
    any of them, so FULL may be incorrect although the store contains the fact."""

    canonical: CanonicalDatabase | None
    """The database with one name per entity and relation; None if it is not rewritten."""


def fact_key(prompt: AuditPrompt) -> str:
    """Return the key of a fact with its aliases, independent of the style of the prompt.

    Args:
        prompt: A prompt.

    Returns:
        The key, equal for prompts of one fact.
    """
    return prompt.model_copy(update={"prompt_id": 0, "prompt_text": "?"}).model_dump_json()


def build_database(
    name: str,
    database: Triplets,
    prompts: Sequence[AuditPrompt],
    settings: AuditSettings,
    make_retriever: MakeRetriever,
) -> AuditDatabase:
    """Build the store of one database, compute the deletions, and verify them.

    Args:
        name: Name of the database, for warnings.
        database: The entries.
        prompts: All prompts on it.
        settings: Settings of deletions and lookups; the first retriever and threshold are used.
        make_retriever: Makes the retriever.

    Returns:
        Store, deletions and remaining entries.

    Raises:
        ValueError: If a radius is set for a retriever without encoder.
        RunnerError: If the retriever was built over another database.

    Warns:
        DataWarning: If a fact remains after its deletion.
    """
    by_key = {fact_key(prompt): prompt for prompt in prompts}
    facts = list(by_key.values())
    canonical = None
    if settings.canonical:
        # All names are rewritten, not only those of the facts.
        groups = AliasGroups.from_prompts(facts, database=database)
        preferred = [part for fact in facts for part in (fact.subject, fact.relation)]
        canonical = canonicalise(database, groups, preferred=preferred)
        database = canonical.database
    else:
        groups = database.alias_groups(facts)
    retriever, key = make_retriever(database), settings.closure_key
    rule = groups if settings.closure == "groups" else key
    closures = alias_closures(database, facts, rule=rule, scope=settings.closure_scope)
    if settings.radius is not None:
        embed = getattr(retriever, "encode", None)
        if embed is None:
            raise ValueError(
                f"retriever {settings.retriever[0]!r} does not have an encoder; use one that has, "
                "such as minilm, or omit radius"
            )
        closures = similarity_closures(
            database,
            closures,
            embed=embed,
            radius=settings.radius,
            same_object=key if settings.radius_same_object else None,
        )
    left = verify_closures(database, facts, closures, groups=groups)
    counts = closure_counts(left)
    if counts["n_incomplete"]:
        warnings.warn(f"{name}: {counts['summary']}", DataWarning, stacklevel=5)
    answers = alias_closures(database, facts, rule=rule, scope=("subject", "relation"))
    stated = alias_closures(database, facts, rule=rule)
    return AuditDatabase(
        store=TripletStore(
            database,
            retriever,
            k=settings.k,
            threshold=settings.threshold[0],
            fallback=settings.fallback,
            key=key,
        ),
        closures=dict(zip(by_key, closures, strict=True)),
        left=left,
        counts=counts,
        others=tuple(
            tuple(np.setdiff1d(one, other, assume_unique=True).tolist())
            for one, other in zip(answers, stated, strict=True)
        ),
        canonical=canonical,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LookupContext:
    """Database, state and deletion for the lookups of one prompt."""

    database: str
    """Name of the database."""

    state: MemoryState
    """State of the store."""

    fact: AuditPrompt
    """The fact by which candidates are flagged."""

    deleted: npt.NDArray[np.int64]
    """The entries that its deletion removes."""


class AuditFactStore:
    """Answers the lookups of all prompts of an audit, each from its database, fact and state.

    Args:
        databases: The databases by name; in those with one name per entity and relation, the names
            of a query are replaced by the canonical names first.
        contexts: Database, state and deletion of each prompt, by prompt id.
        off_mode: Mode of lookups with retrieval off.
        query: Lookup query for models that do not write lookups.
    """

    def __init__(
        self,
        databases: Mapping[str, AuditDatabase],
        contexts: Mapping[str, LookupContext],
        *,
        off_mode: LookupMode = "forbid",
        query: Literal["fact", "prompt"] = "fact",
    ) -> None:
        self._databases = dict(databases)
        self._contexts = contexts
        self._off_mode: LookupMode = off_mode
        self._query = query

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return everything that affects the answers.

        Returns:
            The mode of retrieval off, and a digest of stores and deletions.
        """
        digest = hashlib.sha256()
        for name, database in sorted(self._databases.items()):
            digest.update(f"{name}{database.store.fingerprint()}".encode())
        for prompt_id, item in sorted(self._contexts.items()):
            digest.update(f"{prompt_id}{item.state}".encode() + item.deleted.tobytes())
        return {"source": "audit", "off_mode": self._off_mode, "sha256": digest.hexdigest()}

    def mode(self, prompt: Prompt) -> LookupMode:
        """Return the mode of a prompt's lookups: "answer", or `off_mode` with retrieval off.

        Raises:
            ValueError: If the prompt is not part of the audit.
        """
        return self._off_mode if self._of(prompt).state == "DEL-OFF" else "answer"

    def query(self, prompt: Prompt) -> LookupQuery:
        """Return the lookup query for a prompt if the model does not write lookups.

        Args:
            prompt: A prompt of the audit.

        Returns:
            Subject and relation of its fact, or its full text as the entity.

        Raises:
            ValueError: If the prompt is not part of the audit.
        """
        fact = self._of(prompt).fact
        if self._query == "prompt":
            return LookupQuery(entity=fact.prompt_text, relation="")
        return LookupQuery(entity=fact.subject, relation=fact.relation)

    def look_up(self, requests: Sequence[LookupRequest]) -> list[Lookup]:
        """Answer lookups, those of each database in one batch; see `FactStore.look_up`.

        Raises:
            ValueError: If a prompt is not part of the audit.
        """
        by_database: dict[str, list[int]] = {}
        for place, request in enumerate(requests):
            by_database.setdefault(self._of(request.prompt).database, []).append(place)
        answers: dict[int, Lookup] = {}
        for name, places in by_database.items():
            lookups = self._answered(self._databases[name], [requests[place] for place in places])
            answers |= dict(zip(places, lookups, strict=True))
        return [answers[place] for place in range(len(requests))]

    def _answered(self, database: AuditDatabase, requests: Sequence[LookupRequest]) -> list[Lookup]:
        """Answer the lookups of one database."""
        items = [self._of(request.prompt) for request in requests]
        pointers = database.canonical
        traces = database.store.look_up(
            [one.query if pointers is None else pointers.resolve(one.query) for one in requests],
            states=[item.state for item in items],
            deleted=[item.deleted for item in items],
            targets=[item.fact for item in items],
        )
        return [
            Lookup(query=request.query, value=trace.selected_value, trace=trace)
            for request, trace in zip(requests, traces, strict=True)
        ]

    def _of(self, prompt: Prompt) -> LookupContext:
        """Return the context of a prompt."""
        if prompt.id not in self._contexts:
            raise ValueError(
                f"prompt {prompt.id!r} is not part of this audit; use the store of the plan that "
                "contains the prompt"
            )
        return self._contexts[prompt.id]
