from .conditions import AuditData as AuditData, find_conditions as find_conditions
from .files import read_database as read_database
from .published import (
    published_tables as published_tables,
    score_published_results as score_published_results,
)
from .settings import AuditSettings as AuditSettings, AuditSource as AuditSource
from .study import AuditStudy as AuditStudy, LookupModel as LookupModel
