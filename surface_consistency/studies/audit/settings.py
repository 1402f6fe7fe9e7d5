"""The settings of an audit: databases, deletions, lookups and scoring."""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self, get_args

from pydantic import Field, model_validator

from surface_consistency.engine.settings import (
    JudgeScoring,
    OptionSettings,
    PublishedSettings,
    StudyRecords,
    ToyModelSettings,
)
from surface_consistency.models.registry import load_runner
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.memory import MemoryState
from surface_consistency.schemas.settings import Rare, Settings
from surface_consistency.studies.audit.retrieval.alias_groups import ROLES, Role

if TYPE_CHECKING:
    from surface_consistency.models.runner import Runner
    from surface_consistency.studies.audit.conditions import AuditData

STATES: Final[tuple[MemoryState, ...]] = get_args(MemoryState)
"""All states: the full database; the fact deleted; the fact deleted and retrieval off."""


class AuditSource(Settings):
    """Databases and prompts of an audit."""

    databases: str = "sample"
    """Folder of databases with their prompts, file of one database, or "sample" for bundled facts
    about countries, by default in the topology noise."""

    domains: Items[str] | None = None
    """Domains to use; all by default."""

    topologies: Items[str] | None = None
    """Topologies to use, such as base, alias, noise and collision; all by default."""

    styles: Items[str] | None = None
    """Prompt styles to use; all by default."""

    max_missing: Rare[float] = Field(default=0.5, ge=0, le=1)
    """Maximum proportion of a file's prompts whose fact is missing from the database."""


class AuditSettings(PublishedSettings, OptionSettings):
    """Settings of deletions, retrieval and decoding."""

    seed: int = 0
    """Random seed of the repeated sample and of the facts that are drawn."""

    limit: int | None = Field(default=None, ge=1)
    """Maximum number of prompts per file, which cover other base facts in each topology; `sample`
    selects the same facts."""

    sample: int | None = Field(default=None, ge=1)
    """Number of base facts per domain, drawn by the seed: the same ones in all topologies and
    prompt styles, each with all facts derived from it."""

    states: Items[MemoryState] = STATES
    """States of the store in which every fact is queried."""

    retriever: Items[str] = ("minilm",)
    """minilm, bm25, fuzzy, hybrid, or a model of sentence-transformers; several values make a sweep
    of runs."""

    threshold: Items[float | None] = (0.6,)
    """Minimum score of an accepted entry, or none, as published; several values make a sweep of
    runs."""

    k: Rare[int] = Field(default=5, ge=1)
    """Number of candidates in a trace."""

    fallback: Rare[Literal["abstain", "top1_anyway"]] = "abstain"
    """If no entry is accepted, abstain, or take the closest one (top1_anyway, as published)."""

    off_mode: Rare[Literal["forbid", "allow", "null"]] = "forbid"
    """Lookup tokens with retrieval off: the model cannot write them (forbid), may write them and
    any value (allow), or gets the null result (null)."""

    closure: Literal["aliases", "groups"] = "aliases"
    """Delete by the aliases of the fact itself, as published (aliases), or by the alias groups of
    all prompts of the database, which makes every deletion complete (groups)."""

    closure_key: Rare[Literal["published", "strict"]] = "published"
    """Comparison of names: ignore case and punctuation (published), or only case (strict)."""

    closure_scope: Rare[Items[Role]] = ROLES
    """Parts of an entry that must be equivalent to the fact's for the entry to be deleted."""

    radius: Rare[float | None] = Field(default=None, ge=0, le=2)
    """Cosine distance to a deleted entry within which entries are also deleted; needs a
    retriever with an encoder."""

    radius_same_object: Rare[bool] = False
    """Within the radius, delete only entries with an object of the deleted entries."""

    canonical: Rare[bool] = False
    """Rewrite the databases to one name per entity and relation before they are queried."""

    query: Rare[Literal["fact", "prompt"]] = "fact"
    """Lookup query for a model that does not write lookups: subject and relation of the fact, or
    the full text of the prompt."""

    n_facts: Rare[int] = Field(default=5, ge=1)
    """Maximum number of facts before a prompt, for a model that does not write lookups."""

    index_cache: Rare[str | None] = None
    """Folder of cached indices; not recorded, since no result depends on it."""

    max_new_tokens: int = Field(default=64, ge=1)
    """Maximum number of new tokens."""

    stop: Rare[bool] = True
    """End an answer at the newline."""

    repeat: int = Field(default=200, ge=0)
    """Number of prompts sent a second time in other batches with retrieval on, and the same number
    with it off, for the test-retest flip rate (noise floor); 0 to omit it."""

    @model_validator(mode="after")
    def _can_be_run(self) -> Self:
        """Reject empty lists, repeated values, invalid thresholds, and `limit` with `sample`."""
        for name in ("states", "retriever", "threshold", "closure_scope"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise ValueError(f"{name} needs one or more distinct values; got {list(values)}")
        if self.limit is not None and self.sample is not None:
            raise ValueError("`limit` and `sample` both select prompts; use one of them")
        from surface_consistency.studies.audit.retrieval.retriever import check_policy

        for threshold in self.threshold:
            check_policy(threshold, self.fallback)
        return self

    def variants(self) -> Sequence[tuple[str, Self]]:
        """Return one run per retriever and threshold, in folders such as "minilm-0.6"."""
        pairs = list(product(self.retriever, self.threshold))
        if len(pairs) == 1:
            return [("", self)]
        return [
            (
                _folder_name(retriever, threshold),
                self.model_copy(update={"retriever": (retriever,), "threshold": (threshold,)}),
            )
            for retriever, threshold in pairs
        ]


class AuditScoring(JudgeScoring):
    """Settings of scoring."""

    judge: Literal["rule", "llm", "human"] = "rule"
    """Scorer of the cleaned answers: the equivalence (rule), an LLM judge, or human labels; llm if
    `judge_model` is given."""

    cleaner: Rare[Literal["audit", "published"]] = "audit"
    """Rule that extracts an answer from the output; "published" is the rule of the paper."""

    equivalence: Rare[Literal["audit", "published"]] = "audit"
    """Rule by which an answer equals the gold object; "published" is the rule of the paper. An LLM
    judge and human labels are compared with it."""

    support: Rare[Literal["audit", "published"]] = "audit"
    """Rule that decides whether a retrieved entry still states the deleted fact; a correct answer
    from such an entry is not an artifact. The rule audit compares names by the aliases of all
    facts. The rule published is that of the deletion, which no remaining entry satisfies, so that A
    equals p(DEL-ON)."""


class AuditToyModel(ToyModelSettings):
    """A small model that looks facts up, trained on the prompts of the audit."""

    leaked: int = Field(default=0, ge=0)
    """Number of facts that the model is also taught in plain text."""

    steps: Rare[int] = Field(default=900, ge=1)
    """Number of training steps."""

    def train(
        self,
        data: "AuditData",
        settings: AuditSettings,
        out: Path,
        *,
        options: Mapping[str, object],
    ) -> "Runner":
        """Train a small model that looks facts up on the prompts of the audit.

        Raises:
            ValueError: If `leaked` is larger than the number of facts.
            RunnerError: If the runner does not accept the options; raised before training.
        """
        from surface_consistency.studies.audit.toy_model import train_memory_toy_model

        model = load_runner("lookup", model=out, options=options)
        chosen = [one.limited(settings.limit) for one in data.conditions]
        prompts = [prompt for one in chosen for prompt in one.prompts]
        facts = list(dict.fromkeys((prompt.subject, prompt.relation) for prompt in prompts))
        if self.leaked > len(facts):
            raise ValueError(f"`leaked` must be 0 to {len(facts)}, got {self.leaked}")
        train_memory_toy_model(prompts, out, leaked=facts[: self.leaked], steps=self.steps)
        return model


def _folder_name(retriever: str, threshold: float | None) -> str:
    """Return the name of the folder of a run of a sweep."""
    limit = "none" if threshold is None else f"{threshold:g}"
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', retriever).strip('-')}-{limit}"


RECORDS: Final = StudyRecords(
    AuditSource, AuditSettings, AuditScoring, AuditToyModel, runner="lookup"
)
"""The settings records of the study."""
