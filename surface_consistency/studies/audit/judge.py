"""Score the answers of an audit and count their lookups."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
from pydantic import Field

from surface_consistency.engine.judging.judges import NO_ANSWER, Judge
from surface_consistency.schemas import Verdict
from surface_consistency.schemas.memory import Lookup
from surface_consistency.studies.audit.attribution import attribute
from surface_consistency.studies.audit.matching.cleaners import CLEANERS
from surface_consistency.studies.audit.matching.judgement import (
    EQUIVALENCES,
    judge_answer,
    rule_named,
)
from surface_consistency.studies.audit.matching.markup import parse_lookups
from surface_consistency.studies.audit.plan import target_rows, to_audit_prompt
from surface_consistency.studies.audit.records import Attribution


class AuditVerdict(Verdict):
    """The score of one answer of an audit; `prediction` is the cleaned answer."""

    contains: bool | None
    """Whether it contains an accepted object ("contains_match"); None without an answer."""

    is_unknown: bool | None
    """Whether it is empty or a phrase such as "I don't know"; None without an answer."""

    precision: float | None
    """Proportion of its words that the gold contains, in [0, 1]; None without an answer."""

    recall: float | None
    """Proportion of the gold's words that it contains, in [0, 1]; None without an answer."""

    f1: float | None
    """Harmonic mean of both, in [0, 1]; None without an answer."""

    n_lookups: int | None = Field(ge=0)
    """Number of lookups; None if the runner does not make lookups."""

    n_abstained: int | None = Field(ge=0)
    """Number of lookups that found nothing."""

    n_fallback: int | None = Field(ge=0)
    """Number of lookups that were answered by an entry below the threshold."""

    n_blank: int | None = Field(ge=0)
    """Number of lookups with an empty query."""

    n_malformed: int | None = Field(ge=0)
    """Number of lookups begun in the text without an entity and a relation; None without an
    answer."""

    gold_retrieved: bool | None
    """Whether a retained candidate states the fact, by the rule `support`; None without traces."""

    attribution: Attribution | None
    """Origin of a correct answer after deletion, from its traces only, so never "parameters"; None
    for all other answers."""

    attributed_to: str | None
    """The entry of this origin, as "subject | relation | object"; None without one."""


class AuditJudge:
    """Scores answers by the rules of the audit, and attributes those correct after deletion.

    An LLM judge or human labels, if given, decide whether the cleaned answer is correct.
    Containment, token overlap and lookups are always computed by the rules.

    Args:
        cleaner: Name of a cleaner, one of `studies.audit.matching.CLEANERS`.
        equivalence: Name of an equivalence, one of `studies.audit.matching.EQUIVALENCES`.
        support: When a retained entry states the fact: "published" uses the rule of the deletion,
            "audit" a wider rule that also finds the entries that the deletion missed.
        n_facts: Maximum number of facts that the runner puts before a prompt; None if the model
            looks facts up itself and gets the selected entry.
        by: LLM judge or human labels in place of the equivalence; None for the equivalence.

    Raises:
        ValueError: If a rule is unknown.
    """

    name: str
    """Names of the cleaner and of the equivalence, LLM judge or human labels."""

    def __init__(
        self,
        *,
        cleaner: str = "audit",
        equivalence: str = "audit",
        support: str = "audit",
        n_facts: int | None = None,
        by: Judge | None = None,
    ) -> None:
        rule_named("cleaner", cleaner, CLEANERS)
        rule_named("equivalence", equivalence, EQUIVALENCES)
        rule_named("support", support, {"audit": True, "published": False})
        self._rules = {"cleaner": cleaner, "equivalence": equivalence, "support": support}
        self._n_facts = n_facts
        self._by = by
        self.judges_again: bool = getattr(by, "judges_again", True)
        """Whether it can score the repeated sample."""
        self.name = f"{cleaner} cleaner, {by.name if by else f'{equivalence} equivalence'}"

    def overruled(self, by: Judge) -> "AuditJudge":
        """Use an LLM judge or human labels for the cleaned answers.

        Args:
            by: The LLM judge or the human labels.

        Returns:
            The judge.
        """
        return AuditJudge(**self._rules, n_facts=self._n_facts, by=by)

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Score answers; see `Judge.judge`.

        Args:
            targets: The answers: columns of `plan_audit`, text and lookups.

        Returns:
            The fields of `AuditVerdict` except target_id and judged_by.
        """
        rows = list(target_rows(targets, "state", "text", "lookups", "surviving"))
        scored = [self._score_by_rules(row) for row in rows]
        if self._by is not None:
            answers = pd.Series([one.get("prediction") for one in scored], dtype=object)
            shown = targets.reset_index(drop=True).assign(text=answers)
            judged = self._by.judge(shown).astype(object)
            for one, other in zip(
                scored, judged.where(judged.notna(), None).to_dict("records"), strict=True
            ):
                one["rule_correct"] = one.get("correct")
                one |= {name: other.get(name) for name in ("correct", "reason", "raw")}
        for row, one in zip(rows, scored, strict=True):
            if row["state"] == "DEL-ON" and row["lookups"] is not None and one.get("correct"):
                one |= self._origin(row, one["prediction"])
        own = [
            name
            for name in AuditVerdict.model_fields
            if name not in ("target_id", "judged_by", "matched_answer", "score")
        ]
        return pd.DataFrame(
            {name: pd.Series([one.get(name) for one in scored], dtype=object) for name in own}
        ).astype({"precision": "float64", "recall": "float64", "f1": "float64"})

    def _score_by_rules(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Score one answer by the rules, and count its lookups."""
        text, lookups = row["text"], row["lookups"]
        if not isinstance(text, str):
            return {"reason": NO_ANSWER}
        rules = {name: self._rules[name] for name in ("cleaner", "equivalence")}
        scored = asdict(judge_answer(text, to_audit_prompt(row), lookups=lookups, **rules))
        scored["prediction"] = scored.pop("answer")
        scored["n_malformed"] = sum(lookup.is_malformed for lookup in parse_lookups(text))
        if lookups is None:
            return scored
        # With retrieval off the model may write lookups, but they are not answered.
        made: Sequence[Lookup] = () if row["state"] == "DEL-OFF" else lookups
        traces = [lookup.trace for lookup in made if lookup.trace is not None]
        is_wide = self._rules["support"] == "audit"
        left = {tuple(entry) for entry in row["surviving"]} if is_wide else set()
        return scored | {
            "n_lookups": len(made),
            "n_abstained": sum(lookup.value is None for lookup in made),
            "n_fallback": sum(trace.is_fallback for trace in traces),
            "n_blank": sum(map(_is_blank, made)),
            "gold_retrieved": any(
                candidate.supports_target_fact
                or (candidate.subject, candidate.relation, candidate.object) in left
                for trace in traces
                for candidate in trace.retained_candidates
            ),
        }

    def _origin(self, row: Mapping[str, Any], answer: str) -> dict[str, Any]:
        """Attribute an answer that is correct after deletion."""
        kind, behind = attribute(
            to_audit_prompt(row),
            answer,
            [lookup.trace for lookup in row["lookups"] if lookup.trace is not None],
            surviving=row["surviving"],
            equivalence=self._rules["equivalence"],
            n_facts=self._n_facts,
        )
        return {"attribution": kind, "attributed_to": behind and " | ".join(behind)}


def _is_blank(lookup: Lookup) -> bool:
    """Return whether a lookup has an empty query, which runners do not send to the store."""
    return lookup.value is None and (lookup.trace is None or bool(lookup.trace.error))
