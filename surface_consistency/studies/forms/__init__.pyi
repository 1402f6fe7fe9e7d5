from .data import (
    Forms as Forms,
    load_forms as load_forms,
)
from .layouts import (
    Layout as Layout,
    presets as presets,
)
from .study import (
    FormsStudy as FormsStudy,
)
