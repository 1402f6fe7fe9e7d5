"""Verdicts and outcomes of SLAQ."""

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
"""One fact alone, all five listed in one query, or a query on the topic that lists none."""


class SlaqVerdict(Verdict):
    """The judgement of one fact in one answer."""

    is_recalled: bool | None = None
    """Whether the answer speaks of the fact at all, rightly or wrongly; None when not asked."""

    attempts: int = Field(default=0, ge=0)
    """How often a model that judges was asked; 0 when there was nothing to ask about."""

    @model_validator(mode="after")
    def _right_is_recalled(self) -> "SlaqVerdict":
        """Refuse a right answer that is not there."""
        if self.correct and self.is_recalled is False:
            raise ValueError("a fact that is not recalled cannot be correct")
        return self


class SlaqOutcome(PairedOutcome):
    """A fact of SLAQ, asked alone and in one long query."""

    topic_id: NonEmpty
    """The topic: the coarser cluster."""

    category: NonEmpty
    """Category of the topic."""

    popularity: Popularity | None
    """Half of the topic by page views."""

    is_entity: bool | None
    """Whether the answer is a named entity."""

    question_index: int = Field(ge=1, le=N_FACTS)
    """Place of the fact in the source, 1 to 5."""

    permutation: int | None = Field(ge=0)
    """Number of the long prompt among those of its topic; None in free form."""

    slot: int | None = Field(ge=1, le=N_FACTS)
    """Where the long query asks for the fact, from 1; None in free form."""

    n_slots: int | None = Field(ge=1, le=N_FACTS)
    """Slots of the long query; None in free form."""

    order_id: str | None
    """Order of the long query, such as "3-1-5-2-4"; None in free form."""

    is_recalled: bool | None
    """Whether the long answer speaks of the fact at all; None when the judge was not asked."""

    first_prediction: str | None
    """The short answer; None when there is none."""

    second_prediction: str | None
    """The long answer, whole; None when there is none."""

    @classmethod
    def derived(cls, pairs: "pd.DataFrame", verdicts: "pd.DataFrame") -> Mapping[str, Any]:
        """Take is_recalled of the long answer; see `PairedOutcome.derived`."""
        recalled = verdicts.set_index("target_id")["is_recalled"].astype("boolean")
        return {"is_recalled": recalled.reindex(pairs["second_target"]).array}
