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
"""Origin of a correct answer after deletion: the parameters, if it is also correct with retrieval
off; a surviving entry equivalent to the deleted fact; the same object under another subject or
relation; the prompt itself, if it contains the answer; or, if the entries that were given do not
explain the answer, the subject with another object, an entry that shares neither subject nor
object, or no entry."""


class AuditOutcome(PairedOutcome):
    """A fact of a database in one prompt style: DEL-ON first, DEL-OFF second, and FULL.

    `item` is the database and the fact's number in it ("countries/alias/17").
    """

    base_fact: NonEmpty | None = None
    """The fact before renaming ("France | Capital"), whose styles, topologies, alias names, decoys
    and near misses are one cluster; None in runs of versions that did not record it."""

    database: NonEmpty
    """Name of the database, such as "countries/alias"."""

    domain: NonEmpty
    """Topic of the facts, such as "countries"."""

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
    """The correct object."""

    full_correct: bool | None
    """Correctness label with the full database; None if it was not scored or not run."""

    full_prediction: str | None
    """Cleaned answer with the full database."""

    first_prediction: str | None
    """Cleaned answer after deletion, retrieval on."""

    second_prediction: str | None
    """Cleaned answer after deletion, retrieval off."""

    full_f1: float | None
    """Token F1 with the full database, in [0, 1]."""

    first_f1: float | None
    """Token F1 after deletion, retrieval on, in [0, 1]."""

    second_f1: float | None
    """Token F1 after deletion, retrieval off, in [0, 1]."""

    n_deleted: int = Field(ge=0)
    """Number of entries that the deletion removed."""

    n_surviving: int = Field(ge=0)
    """Number of remaining entries equivalent to the fact, by the widest closure; 0 if the deletion
    is complete."""

    n_lookups: int | None = Field(ge=0)
    """Number of lookups under DEL-ON; None if the runner does not make lookups."""

    n_abstained: int | None = Field(ge=0)
    """Number of these lookups that found nothing at or above the threshold."""

    gold_retrieved: bool | None
    """Whether an entry that was retrieved under DEL-ON still states the fact, by the rule
    `AuditScoring.support`; None without traces."""

    echoes_subject: bool
    """Whether an accepted object is or contains a name of the subject, so that a repetition of the
    question may be scored as correct."""

    attribution: Attribution | None
    """Origin of the DEL-ON answer; None if it is incorrect, or has no traces and is not attributed
    to the parameters."""

    attributed_to: str | None
    """The entry of this origin, as "subject | relation | object"; None without one, and for the
    parameters."""

    @classmethod
    def derived(cls, pairs: "pd.DataFrame", verdicts: "pd.DataFrame") -> Mapping[str, Any]:
        """Return lookups and origin of DEL-ON; see `PairedOutcome.derived`.

        An answer that is also correct under DEL-OFF is attributed to the parameters.
        """
        names = ["n_lookups", "n_abstained", "gold_retrieved", "attribution", "attributed_to"]
        judged = verdicts.set_index("target_id")
        after, off = (judged.reindex(pairs[f"{side}_target"]) for side in ("first", "second"))
        on, known = (one["correct"].eq(True).fillna(False).to_numpy(bool) for one in (after, off))
        after["attribution"] = after["attribution"].mask(on & known, "parameters")
        after["attributed_to"] = after["attributed_to"].mask(on & known, None)
        return {name: after[name].array for name in names}
