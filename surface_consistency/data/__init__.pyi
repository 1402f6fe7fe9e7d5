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
from .sources import (
    open_source as open_source,
)
