from .attribution import (
    AttributionResult as AttributionResult,
    attribute as attribute,
)
from .conditions import (
    AuditCondition as AuditCondition,
    AuditData as AuditData,
    ConditionLabel as ConditionLabel,
    condition_label as condition_label,
    find_conditions as find_conditions,
)
from .files import (
    AuditResult as AuditResult,
    read_audit_prompts as read_audit_prompts,
    read_audit_results as read_audit_results,
    read_database as read_database,
)
from .judge import (
    AuditJudge as AuditJudge,
    AuditVerdict as AuditVerdict,
)
from .plan import (
    AuditPlan as AuditPlan,
    plan_audit as plan_audit,
)
from .published import (
    published_tables as published_tables,
    score_published_results as score_published_results,
)
from .records import (
    AuditOutcome as AuditOutcome,
)
from .settings import (
    STATES as STATES,
    AuditScoring as AuditScoring,
    AuditSettings as AuditSettings,
    AuditSource as AuditSource,
    AuditToyModel as AuditToyModel,
)
from .stores import (
    RETRIEVERS as RETRIEVERS,
    AuditFactStore as AuditFactStore,
    retrievers_by_name as retrievers_by_name,
)
from .study import (
    AuditStudy as AuditStudy,
    LookupModel as LookupModel,
)
from .tables import (
    AUDIT_GROUPINGS as AUDIT_GROUPINGS,
    audit_tables as audit_tables,
)
from .trace import (
    FactTrace as FactTrace,
    fact_trace as fact_trace,
)
