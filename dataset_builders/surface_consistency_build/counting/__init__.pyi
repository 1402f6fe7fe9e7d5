from .boundaries import (
    BOUNDARY_RULES as BOUNDARY_RULES,
    BoundaryRule as BoundaryRule,
)
from .counter import (
    Counts as Counts,
    SurfaceCounter as SurfaceCounter,
)
from .documents import (
    DocumentReader as DocumentReader,
    FilePart as FilePart,
    ReadReport as ReadReport,
    corpus_files as corpus_files,
    read_documents as read_documents,
)
from .finder import (
    Hits as Hits,
    Segmenter as Segmenter,
)
from .indexes import (
    IndexCount as IndexCount,
    InfiniGramAPI as InfiniGramAPI,
    InfiniGramMiniAPI as InfiniGramMiniAPI,
    LocalIndex as LocalIndex,
    LookupIndex as LookupIndex,
    lookup_counts as lookup_counts,
    open_index as open_index,
)
from .ngrams import (
    NgramCounter as NgramCounter,
    Tokenizer as Tokenizer,
    count_ngrams as count_ngrams,
)
from .pairs import (
    PairCounter as PairCounter,
    PairCounts as PairCounts,
)
from .runs import (
    CorpusSettings as CorpusSettings,
    CountResult as CountResult,
    CountRun as CountRun,
    CountStep as CountStep,
    MergeStep as MergeStep,
)
from .surfaces import (
    SURFACE_ROLES as SURFACE_ROLES,
    SurfaceRole as SurfaceRole,
    SurfaceTable as SurfaceTable,
)
from .tables import (
    MEASURES as MEASURES,
    MentionCounts as MentionCounts,
    entity_table as entity_table,
    instance_table as instance_table,
    linked_instances as linked_instances,
    linked_tables as linked_tables,
    pair_table as pair_table,
    surface_table as surface_table,
)
from .tasks import (
    CountTask as CountTask,
    ModelTokenizer as ModelTokenizer,
    NameSettings as NameSettings,
    NameTask as NameTask,
    NgramSettings as NgramSettings,
    NgramTask as NgramTask,
    PairSettings as PairSettings,
)
from .texts import (
    CASES as CASES,
    Case as Case,
    PackedTexts as PackedTexts,
)
