"""The construction of RedirectQA from dumps."""

from surface_consistency.wikimedia.construction._work_folder import files_digest
from surface_consistency.wikimedia.construction.build import (
    CATEGORY_CAP,
    BuildResult,
    Variant,
    build_redirectqa,
)
from surface_consistency.wikimedia.construction.dump_files import DumpFiles, Route
from surface_consistency.wikimedia.construction.dump_plan import DumpPlan, PlannedDump, find_dumps
from surface_consistency.wikimedia.construction.popqa import augment_popqa
from surface_consistency.wikimedia.construction.progress import (
    BuildHook,
    BuildProgress,
    StepCount,
    attrition_frame,
)
from surface_consistency.wikimedia.construction.rows import BuiltRow, read_rows

__all__ = [
    "CATEGORY_CAP",
    "BuildHook",
    "BuildProgress",
    "BuildResult",
    "BuiltRow",
    "DumpFiles",
    "DumpPlan",
    "PlannedDump",
    "Route",
    "StepCount",
    "Variant",
    "attrition_frame",
    "augment_popqa",
    "build_redirectqa",
    "files_digest",
    "find_dumps",
    "read_rows",
]
