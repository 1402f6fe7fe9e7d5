from .dbpedia import (
    dbpedia_uris as dbpedia_uris,
    resource_title as resource_title,
)
from .entity_maps import (
    FAILURE_KEYS as FAILURE_KEYS,
    EntityMap as EntityMap,
    map_entity_table as map_entity_table,
    map_pair_table as map_pair_table,
)
from .link_counts import (
    LinkSettings as LinkSettings,
    LinkTask as LinkTask,
    count_link_rows as count_link_rows,
)
from .spotlight import (
    Mention as Mention,
    SpotlightClient as SpotlightClient,
)
