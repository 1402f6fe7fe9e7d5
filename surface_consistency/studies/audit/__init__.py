"""The audit of forgetting: what survives the deletion of a fact, by which way, and from where."""

from surface_consistency.studies.audit.attribution import AttributionResult, attribute
from surface_consistency.studies.audit.conditions import (
    AuditCondition,
    AuditData,
    ConditionLabel,
    condition_label,
    find_conditions,
)
from surface_consistency.studies.audit.judge import AuditJudge, AuditVerdict, score_generation
from surface_consistency.studies.audit.plan import AuditPlan, plan_audit
from surface_consistency.studies.audit.published import published_tables, score_published_results
from surface_consistency.studies.audit.settings import (
    STATES,
    AuditOrganism,
    AuditScoring,
    AuditSettings,
    AuditSource,
)
from surface_consistency.studies.audit.stores import (
    RETRIEVERS,
    AuditFactStore,
    RetrieverFactory,
    retrievers_by_name,
)
from surface_consistency.studies.audit.story import FactStory, fact_story
from surface_consistency.studies.audit.study import AuditStudy, LookupModel
from surface_consistency.studies.audit.tables import AUDIT_GROUPINGS, audit_tables

__all__ = [
    "AUDIT_GROUPINGS",
    "RETRIEVERS",
    "STATES",
    "AttributionResult",
    "AuditCondition",
    "AuditData",
    "AuditFactStore",
    "AuditJudge",
    "AuditOrganism",
    "AuditPlan",
    "AuditScoring",
    "AuditSettings",
    "AuditSource",
    "AuditStudy",
    "AuditVerdict",
    "ConditionLabel",
    "FactStory",
    "LookupModel",
    "RetrieverFactory",
    "attribute",
    "audit_tables",
    "condition_label",
    "fact_story",
    "find_conditions",
    "plan_audit",
    "published_tables",
    "retrievers_by_name",
    "score_generation",
    "score_published_results",
]
