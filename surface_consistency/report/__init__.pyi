from .figures import (
    plot_groups as plot_groups,
)
from .figures import (
    plot_square as plot_square,
)
from .figures import (
    write_figures as write_figures,
)
from .html import render_page as render_page
from .html import write_page as write_page
from .numbers import table_text as table_text
from .page import Page as Page
from .page import Section as Section
from .table import Column as Column
from .table import Table as Table
