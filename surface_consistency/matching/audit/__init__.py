"""Answers of an audit of forgetting: lookups taken out, answers cleaned, verdicts given."""

from surface_consistency.matching.audit.cleaners import (
    CLEANERS,
    Cleaner,
    audit_answer,
    published_answer,
    says_unknown,
)
from surface_consistency.matching.audit.judgement import (
    EQUIVALENCES,
    AuditJudgement,
    Equivalence,
    audit_key,
    judge_answer,
)
from surface_consistency.matching.audit.markup import (
    LOOKUP_TOKENS,
    WrittenLookup,
    parse_lookups,
    strip_lookups,
)

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
