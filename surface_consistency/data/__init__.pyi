from .popqa import (
    PopQA as PopQA,
    load_popqa as load_popqa,
)
from .redirectqa import (
    RedirectQA as RedirectQA,
    load_redirectqa as load_redirectqa,
    load_sample as load_sample,
)
from .redirectqa_release import (
    RedirectQARow as RedirectQARow,
    hub_rows as hub_rows,
)
from .slaq import (
    Slaq as Slaq,
    load_slaq as load_slaq,
    load_slaq_sample as load_slaq_sample,
)
from .slaq_records import (
    SlaqArticle as SlaqArticle,
    SlaqQuestion as SlaqQuestion,
    SlaqTopic as SlaqTopic,
)
from .slaq_rows import (
    SlaqRow as SlaqRow,
    to_slaq_rows as to_slaq_rows,
    write_slaq_csv as write_slaq_csv,
)
from .sources import (
    open_source as open_source,
)
