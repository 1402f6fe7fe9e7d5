"""How an audit is run."""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pydantic import JsonValue

from surface_consistency.inference.fact_store import LookupMode
from surface_consistency.retrieval.alias_groups import ROLES, Role
from surface_consistency.retrieval.policy import Fallback, check_policy
from surface_consistency.schemas.memory import MemoryState
from surface_consistency.schemas.prompts import GenerationParams

__all__ = ["STATES", "AuditSettings"]

STATES: tuple[MemoryState, ...] = get_args(MemoryState)
"""All states: the database whole; the fact deleted; the fact deleted and retrieval off."""

_OFF_MODES: tuple[LookupMode, ...] = ("forbid", "allow", "null")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """What is deleted, how it is looked for, and how the model is asked.

    Raises:
        ValueError: If a setting is out of range.
    """

    states: tuple[MemoryState, ...] = STATES
    """States of the store in which every fact is asked."""

    retriever: str = "minilm"
    """Name of the retriever, for `retrievers_by_name` and tables."""

    k: int = 5
    """Candidates that a trace shows."""

    threshold: float | None = 0.6
    """Lowest score that is accepted; None for no limit. The published audit had none."""

    fallback: Fallback = "abstain"
    """Whether the closest entry is taken where none is accepted ("top1_anyway", as published)."""

    off_mode: LookupMode = "forbid"
    """What becomes of lookup tokens with retrieval off: the model cannot write them, may write them
    and whatever it likes as the value ("allow"), or gets the null result ("null")."""

    closure: Literal["aliases", "groups"] = "aliases"
    """Whether a fact's own aliases tell what is deleted, as published, or the alias groups of all
    prompts of the database, under which no deletion is incomplete."""

    closure_key: Literal["published", "strict"] = "published"
    """When two names are one: without regard to case and punctuation, or to case alone."""

    closure_scope: tuple[Role, ...] = ROLES
    """Parts of an entry that must be equivalent to the fact's for it to be deleted."""

    radius: float | None = None
    """Cosine distance to a deleted entry within which entries are deleted as well; None for none.
    Needs a retriever with an encoder."""

    radius_same_object: bool = False
    """Whether the radius takes only entries with an object of the deleted ones."""

    canonical: bool = False
    """Whether the databases are rewritten to one name for each thing before they are asked."""

    query: Literal["fact", "prompt"] = "fact"
    """What is looked up for a model that does not look up itself: subject and relation of the fact,
    as a model that asks would write them, or the whole text of the prompt."""

    params: GenerationParams = field(default_factory=lambda: GenerationParams(max_new_tokens=64))
    """Decoding: greedy, 64 new tokens, stop at the newline."""

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        check_policy(self.threshold, self.fallback)
        unknown = [state for state in self.states if state not in STATES]
        if unknown or not self.states or len(set(self.states)) < len(self.states):
            raise ValueError(
                f"states must be some of {', '.join(STATES)}, each once; got {self.states}"
            )
        for name, value, allowed in (
            ("off_mode", self.off_mode, _OFF_MODES),
            ("closure", self.closure, ("aliases", "groups")),
            ("closure_key", self.closure_key, ("published", "strict")),
            ("query", self.query, ("fact", "prompt")),
        ):
            if value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}")
        if self.k < 1:
            raise ValueError(f"k must be at least 1; got {self.k}")
        if self.radius is not None and not 0 <= self.radius <= 2:
            raise ValueError(f"radius must be a cosine distance in [0, 2]; got {self.radius}")

    def described(self) -> dict[str, JsonValue]:
        """Tell all settings but the decoding as JSON values, for the manifest.

        Returns:
            By name.
        """
        told: dict[str, Any] = {
            name: getattr(self, name) for name in self.__slots__ if name != "params"
        }
        return told | {
            "states": "+".join(self.states),
            "closure_scope": "+".join(self.closure_scope),
        }
