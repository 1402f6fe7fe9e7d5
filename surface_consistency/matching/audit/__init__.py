"""Answers of an audit of forgetting: lookups taken out, answers cleaned, verdicts given."""

from surface_consistency.matching.audit.cleaners import (
    CLEANERS,
    Cleaner,
    audit_answer,
    published_answer,
)
from surface_consistency.matching.audit.equivalence import EQUIVALENCES, Equivalence, audit_key
from surface_consistency.matching.audit.judgement import AuditJudgement, judge_answer
from surface_consistency.matching.audit.markup import (
    LOOKUP_TOKENS,
    WrittenLookup,
    parse_lookups,
    strip_lookups,
)
from surface_consistency.matching.audit.unknown import says_unknown

__all__ = [
    "CLEANERS",
    "EQUIVALENCES",
    "LOOKUP_TOKENS",
    "AuditJudgement",
    "Cleaner",
    "Equivalence",
    "WrittenLookup",
    "audit_answer",
    "audit_key",
    "judge_answer",
    "parse_lookups",
    "published_answer",
    "says_unknown",
    "strip_lookups",
]
