from .cleaners import (
    CLEANERS as CLEANERS,
    Cleaner as Cleaner,
    audit_answer as audit_answer,
    published_answer as published_answer,
    says_unknown as says_unknown,
)
from .judgement import (
    EQUIVALENCES as EQUIVALENCES,
    AuditJudgement as AuditJudgement,
    Equivalence as Equivalence,
    audit_key as audit_key,
    judge_answer as judge_answer,
)
from .markup import (
    LOOKUP_TOKENS as LOOKUP_TOKENS,
    WrittenLookup as WrittenLookup,
    parse_lookups as parse_lookups,
    strip_lookups as strip_lookups,
)
