"""Databases of the audit of forgetting: their files, the tables they come from, their making."""

from surface_consistency.data.audit.build import (
    BuiltDatabase,
    PromptWriter,
    build_audit_databases,
    prompt_file_name,
)
from surface_consistency.data.audit.database_files import (
    make_database,
    read_database,
    write_database,
)
from surface_consistency.data.audit.differences import Difference, compare_databases
from surface_consistency.data.audit.facts import (
    DOMAINS,
    Aliases,
    FactTable,
    RelatedFact,
    load_fact_table,
    read_fact_table,
)
from surface_consistency.data.audit.fit import PromptsFit, check_prompts_fit
from surface_consistency.data.audit.prompt_files import read_audit_prompts, write_audit_prompts
from surface_consistency.data.audit.topologies import (
    POINTER_RELATIONS,
    PUBLISHED_TOPOLOGIES,
    TOPOLOGIES,
    AuditDatabase,
    build_topology,
)

__all__ = [
    "DOMAINS",
    "POINTER_RELATIONS",
    "PUBLISHED_TOPOLOGIES",
    "TOPOLOGIES",
    "Aliases",
    "AuditDatabase",
    "BuiltDatabase",
    "Difference",
    "FactTable",
    "PromptWriter",
    "PromptsFit",
    "RelatedFact",
    "build_audit_databases",
    "build_topology",
    "check_prompts_fit",
    "compare_databases",
    "load_fact_table",
    "make_database",
    "prompt_file_name",
    "read_audit_prompts",
    "read_database",
    "read_fact_table",
    "write_audit_prompts",
    "write_database",
]
