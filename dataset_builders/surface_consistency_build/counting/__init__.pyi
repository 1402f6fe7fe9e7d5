from .counter import SurfaceCounter as SurfaceCounter
from .documents import read_documents as read_documents
from .runs import (
    CorpusSettings as CorpusSettings,
    CountRun as CountRun,
    CountStep as CountStep,
    MergeStep as MergeStep,
)
from .surfaces import SurfaceTable as SurfaceTable
from .tasks import NameTask as NameTask
