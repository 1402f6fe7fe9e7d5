from .anchors import (
    plain_text as plain_text,
)
from .pages_xml import (
    read_pages as read_pages,
    read_redirects as read_redirects,
)
from .pageviews import (
    read_pageviews as read_pageviews,
)
from .sql import (
    read_create_table as read_create_table,
    read_sql as read_sql,
)
from .streams import (
    open_dump as open_dump,
)
from .wikidata import (
    read_entity_batches as read_entity_batches,
)
from .wikis import (
    WIKIS as WIKIS,
    WikiConfig as WikiConfig,
    load_wiki as load_wiki,
)
