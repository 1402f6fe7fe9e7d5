from ._work_folder import (
    files_digest as files_digest,
)
from .build import (
    CATEGORY_CAP as CATEGORY_CAP,
    BuildResult as BuildResult,
    build_redirectqa as build_redirectqa,
)
from .dump_files import (
    DumpFiles as DumpFiles,
    DumpPlan as DumpPlan,
    PlannedDump as PlannedDump,
    Route as Route,
    find_dumps as find_dumps,
)
from .popqa import (
    augment_popqa as augment_popqa,
)
from .progress import (
    BuildHook as BuildHook,
    BuildProgress as BuildProgress,
    StepCount as StepCount,
    attrition_frame as attrition_frame,
)
from .rows import (
    BuiltRow as BuiltRow,
)
