"""Correctness labels and outcomes of SLAQ."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from surface_consistency.data.slaq_records import N_FACTS, Popularity
from surface_consistency.schemas._record import NonEmpty
from surface_consistency.schemas.outcomes import PairedOutcome
from surface_consistency.schemas.verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd

SlaqForm = Literal["short", "long", "free"]
"""One fact per query, all five listed in one query, or a query on the topic without a list."""


class SlaqVerdict(Verdict):
    """Correctness label of one fact in one answer."""

    is_recalled: bool | None = None
    """Whether the answer mentions the fact, correctly or incorrectly; None if not determined."""

    attempts: int = Field(default=0, ge=0)
    """Number of requests to an LLM judge; 0 if there is nothing to judge."""

    @model_validator(mode="after")
    def _correct_is_recalled(self) -> "SlaqVerdict":
        """Reject a correct fact that the answer does not mention."""
        if self.correct and self.is_recalled is False:
            raise ValueError("a fact that is not recalled cannot be correct")
        return self


class SlaqOutcome(PairedOutcome):
    """A fact of SLAQ in a short query and in one long query."""

    topic_id: NonEmpty
    """The topic: the coarser cluster."""

    category: NonEmpty
    """Category of the topic."""

    popularity: Popularity | None
    """Half of the topic by page views."""

    is_entity: bool | None
    """Whether the answer is a named entity."""

    question_index: int = Field(ge=1, le=N_FACTS)
    """Position of the fact in the source, 1 to 5."""

    permutation: int | None = Field(ge=0)
    """Number of the long prompt among those of its topic; None in free form."""

    slot: int | None = Field(ge=1, le=N_FACTS)
    """Position of the fact in the long query, from 1; None in free form."""

    n_slots: int | None = Field(ge=1, le=N_FACTS)
    """Number of slots of the long query; None in free form."""

    order_id: str | None
    """Order of the long query, such as "3-1-5-2-4"; None in free form."""

    is_recalled: bool | None
    """Whether the long answer mentions the fact; None if not determined."""

    first_prediction: str | None
    """The short answer; None if missing."""

    second_prediction: str | None
    """The whole long answer; None if missing."""

    @classmethod
    def derived(cls, pairs: "pd.DataFrame", verdicts: "pd.DataFrame") -> Mapping[str, Any]:
        """Return is_recalled of the long answer; see `PairedOutcome.derived`."""
        recalled = verdicts.set_index("target_id")["is_recalled"].astype("boolean")
        return {"is_recalled": recalled.reindex(pairs["second_target"]).array}
