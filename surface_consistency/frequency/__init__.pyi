from .boundaries import BOUNDARY_RULES as BOUNDARY_RULES, BoundaryRule as BoundaryRule
from .counter import (
    Counts as Counts,
    SurfaceCounter as SurfaceCounter,
    merge_counts as merge_counts,
)
from .engines import (
    ENGINES as ENGINES,
    EngineName as EngineName,
    Hits as Hits,
    Segmenter as Segmenter,
)
from .surfaces import (
    SURFACE_ROLES as SURFACE_ROLES,
    SurfaceRole as SurfaceRole,
    SurfaceTable as SurfaceTable,
)
from .texts import CASES as CASES, Case as Case, PackedTexts as PackedTexts
