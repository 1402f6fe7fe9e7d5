from .entity_maps import (
    FAILURE_KEYS as FAILURE_KEYS,
    EntityMap as EntityMap,
    map_entity_table as map_entity_table,
    map_pair_table as map_pair_table,
)
from .gold import (
    GoldDocument as GoldDocument,
    GoldLabel as GoldLabel,
    LinkerScore as LinkerScore,
    read_gold as read_gold,
    score_linker as score_linker,
)
from .link_counts import (
    LinkSettings as LinkSettings,
    LinkTask as LinkTask,
    make_linker as make_linker,
)
from .linkers import (
    CoherenceLinker as CoherenceLinker,
    InLinks as InLinks,
    Linker as Linker,
    Mention as Mention,
    PriorLinker as PriorLinker,
)
from .mentions import (
    ExpectedMentions as ExpectedMentions,
    MentionTable as MentionTable,
    expected_mentions as expected_mentions,
)
from .spotlight import (
    SpotlightClient as SpotlightClient,
)
