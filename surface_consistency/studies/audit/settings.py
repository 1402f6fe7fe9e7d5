"""What an audit asks, deletes and how it judges: the records behind its options."""

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
"""All states: the database whole; the fact deleted; the fact deleted and retrieval off."""


class AuditSource(Settings):
    """Which databases, and which of their prompts."""

    databases: str = "sample"
    """Folder of databases with their prompts, file of one, or "sample": facts about countries, in
    the topology noise unless other topologies are given."""

    domains: Items[str] | None = None
    """Domains to take; all by default."""

    topologies: Items[str] | None = None
    """Topologies to take, such as base, alias, noise and collision; all by default."""

    styles: Items[str] | None = None
    """Prompt styles to take; all by default."""

    max_missing: Rare[float] = Field(default=0.5, ge=0, le=1)
    """Largest share of a file's prompts whose fact the database may lack."""


class AuditSettings(PublishedSettings, OptionSettings):
    """What is deleted, how it is looked for, and how the model is asked."""

    seed: int = 0
    """Seed of the repeated sample, and of the facts that are drawn."""

    limit: int | None = Field(default=None, ge=1)
    """Only the first so many prompts of each file, which are not the same base facts in each
    topology."""

    sample: int | None = Field(default=None, ge=1)
    """Number of base facts per domain, drawn by the seed: the same ones in all topologies and
    prompt styles, each with all facts that were made from it."""

    states: Items[MemoryState] = STATES
    """States of the store in which every fact is asked."""

    retriever: Items[str] = ("minilm",)
    """minilm, bm25, fuzzy, hybrid, or a model of sentence-transformers; several make a sweep."""

    threshold: Items[float | None] = (0.6,)
    """Lowest score that is accepted, or none, as published; several make a sweep."""

    k: Rare[int] = Field(default=5, ge=1)
    """Candidates that a trace shows."""

    fallback: Rare[Literal["abstain", "top1_anyway"]] = "abstain"
    """Whether the closest entry is taken where none is accepted (top1_anyway, as published)."""

    off_mode: Rare[Literal["forbid", "allow", "null"]] = "forbid"
    """Lookup tokens with retrieval off: the model cannot write them, may write them and whatever it
    likes as the value, or gets the null result."""

    closure: Literal["aliases", "groups"] = "aliases"
    """Whether a fact's own aliases tell what is deleted, as published, or the alias groups of all
    prompts of the database, under which no deletion is incomplete."""

    closure_key: Rare[Literal["published", "strict"]] = "published"
    """When two names are one: without regard to case and punctuation, or to case alone."""

    closure_scope: Rare[Items[Role]] = ROLES
    """Parts of an entry that must be equivalent to the fact's for it to be deleted."""

    radius: Rare[float | None] = Field(default=None, ge=0, le=2)
    """Cosine distance to a deleted entry within which entries are deleted as well; needs a
    retriever with an encoder."""

    radius_same_object: Rare[bool] = False
    """Whether the radius takes only entries with an object of the deleted ones."""

    canonical: Rare[bool] = False
    """Whether the databases are rewritten to one name for each thing before they are asked."""

    query: Rare[Literal["fact", "prompt"]] = "fact"
    """What is looked up for a model that does not look up itself: subject and relation of the fact,
    or the whole text of the prompt."""

    n_facts: Rare[int] = Field(default=5, ge=1)
    """Facts before a prompt, for such a model, at most."""

    index_cache: Rare[str | None] = None
    """Folder in which indices are kept; not recorded, since nothing depends on it."""

    max_new_tokens: int = Field(default=64, ge=1)
    """Longest answer, in tokens."""

    stop: Rare[bool] = True
    """Whether an answer ends at the newline."""

    repeat: int = Field(default=200, ge=0)
    """Prompts asked a second time in other batches, with retrieval on and as many with it off, for
    the noise floor; 0 for none."""

    @model_validator(mode="after")
    def _can_be_run(self) -> Self:
        """Refuse nothing, the same twice, and thresholds that nothing can be held against."""
        for name in ("states", "retriever", "threshold", "closure_scope"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise ValueError(f"{name} must be given, each once; got {list(values)}")
        if self.limit is not None and self.sample is not None:
            raise ValueError("`limit` and `sample` both choose prompts; take one of them")
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
    """How answers are judged."""

    judge: Literal["rule", "llm", "human"] = "rule"
    """Who judges what the cleaner gives: the equivalence, a model, or labels of people; llm where
    `judge_model` is given."""

    cleaner: Rare[Literal["audit", "published"]] = "audit"
    """How an answer is cut out of the output; "published" is the rule of the paper."""

    equivalence: Rare[Literal["audit", "published"]] = "audit"
    """When an answer is the gold object; "published" is the rule of the paper. Any other judge is
    held against it."""

    support: Rare[Literal["audit", "published"]] = "audit"
    """When an entry that retrieval brought up states the deleted fact, so that a right answer is no
    artifact: under the names that the aliases of all facts join; "published" asks the rule that
    deleted, which no such entry can meet, so that A is p(DEL-ON)."""


class AuditToyModel(ToyModelSettings):
    """A small model that looks facts up, trained on the prompts before they are asked."""

    leaked: int = Field(default=0, ge=0)
    """Facts that it is also taught in plain text."""

    steps: Rare[int] = Field(default=900, ge=1)
    """Training steps."""

    def train(
        self,
        data: "AuditData",
        settings: AuditSettings,
        out: Path,
        *,
        options: Mapping[str, object],
    ) -> "Runner":
        """Train a small model that looks facts up on the prompts that it will be asked.

        Raises:
            ValueError: If more facts shall be leaked than there are.
            RunnerError: If the runner does not take the options; before anything is trained.
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
    """Name the folder of a run of a sweep."""
    limit = "none" if threshold is None else f"{threshold:g}"
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', retriever).strip('-')}-{limit}"


RECORDS: Final = StudyRecords(
    AuditSource, AuditSettings, AuditScoring, AuditToyModel, runner="lookup"
)
"""The settings records of the study."""
