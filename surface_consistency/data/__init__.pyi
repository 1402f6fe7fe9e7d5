from .popqa import PopQA as PopQA
from .redirectqa import RedirectQA as RedirectQA
from .slaq import Slaq as Slaq
from .sources import open_source as open_source
