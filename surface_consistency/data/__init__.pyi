from .popqa import PopQA as PopQA, load_popqa as load_popqa
from .redirectqa import (
    RedirectQA as RedirectQA,
    load_redirectqa as load_redirectqa,
    load_sample as load_sample,
)
from .slaq import Slaq as Slaq, load_slaq as load_slaq
from .sources import open_source as open_source
