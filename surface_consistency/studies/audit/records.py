"""Rows of the outcomes frame of an audit of forgetting."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from surface_consistency.schemas._record import NonEmpty
from surface_consistency.schemas.outcomes import PairedOutcome

if TYPE_CHECKING:
    import pandas as pd

Attribution = Literal[
    "parameters",
    "surviving_equivalent",
    "same_object",
    "echo",
    "same_subject",
    "unrelated",
    "no_candidate",
]
"""Where a right answer after deletion came from: the model's own parameters, by which it is right
with retrieval off too; an entry equivalent to the deleted fact that survived; the same object under
another subject or relation; the prompt itself, which holds the answer; or, with no explanation in
what was given, the subject with another object, an entry that shares neither subject nor object, or
no retrieved entry at all."""


class AuditOutcome(PairedOutcome):
    """A fact of a database in one prompt style: DEL-ON first, DEL-OFF second, FULL beside them.

    `item` is the database and the fact's number in it ("countries/alias/17").
    """

    base_fact: NonEmpty | None = None
    """The fact before renaming ("France | Capital"), whose styles, topologies, alias names, decoys
    and near misses are one cluster; None in runs of versions that did not record it."""

    database: NonEmpty
    """Name of the database, such as "countries/alias"."""

    domain: NonEmpty
    """What the facts are about, such as "countries"."""

    topology: NonEmpty
    """Topology of the database, such as "alias"."""

    style: NonEmpty
    """Prompt style, such as "cloze"."""

    prompt_id: int
    """Number of the prompt in its file."""

    subject: NonEmpty
    """Subject as the prompt names it."""

    relation: NonEmpty
    """Relation as the prompt names it."""

    gold_object: NonEmpty
    """The object that is right."""

    full_correct: bool | None
    """Verdict with the database whole; None when it could not be judged or was not asked."""

    full_prediction: str | None
    """Cleaned answer with the database whole."""

    first_prediction: str | None
    """Cleaned answer after deletion, retrieval on."""

    second_prediction: str | None
    """Cleaned answer after deletion, retrieval off."""

    full_f1: float | None
    """Token F1 with the database whole, in [0, 1]."""

    first_f1: float | None
    """Token F1 after deletion, retrieval on, in [0, 1]."""

    second_f1: float | None
    """Token F1 after deletion, retrieval off, in [0, 1]."""

    n_deleted: int = Field(ge=0)
    """Entries that the deletion removed."""

    n_surviving: int = Field(ge=0)
    """Entries equivalent to the fact that remain, by the widest closure; 0 when it is complete."""

    n_lookups: int | None = Field(ge=0)
    """Lookups under DEL-ON; None when the runner makes none."""

    n_abstained: int | None = Field(ge=0)
    """Those of them that found nothing at or above the threshold."""

    gold_retrieved: bool | None
    """Whether an entry that retrieval brought up under DEL-ON still states the fact, by the rule
    `AuditScoring.support`; None without traces."""

    echoes_subject: bool
    """Whether an accepted object is or contains a name of the subject, so that repeating the
    question may pass for an answer."""

    attribution: Attribution | None
    """Where the DEL-ON answer came from; None unless it is right, and without traces unless it is
    the parameters'."""

    attributed_to: str | None
    """The entry behind the answer, as "subject | relation | object"; None without one, and where
    the parameters are behind it."""

    @classmethod
    def derived(cls, pairs: "pd.DataFrame", verdicts: "pd.DataFrame") -> Mapping[str, Any]:
        """Take lookups and origin of DEL-ON; see `PairedOutcome.derived`.

        An answer that is also correct under DEL-OFF is attributed to the parameters.
        """
        names = ["n_lookups", "n_abstained", "gold_retrieved", "attribution", "attributed_to"]
        judged = verdicts.set_index("target_id")
        after, off = (judged.reindex(pairs[f"{side}_target"]) for side in ("first", "second"))
        on, known = (one["correct"].eq(True).fillna(False).to_numpy(bool) for one in (after, off))
        after["attribution"] = after["attribution"].mask(on & known, "parameters")
        after["attributed_to"] = after["attributed_to"].mask(on & known, None)
        return {name: after[name].array for name in names}
