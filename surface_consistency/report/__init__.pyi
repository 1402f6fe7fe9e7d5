from .columns import (
    COLUMNS as COLUMNS,
    catalogue as catalogue,
)
from .figures import (
    plot_forms as plot_forms,
    plot_groups as plot_groups,
    plot_square as plot_square,
    write_figures as write_figures,
)
from .html import (
    render_page as render_page,
    write_page as write_page,
)
from .numbers import (
    interval_value as interval_value,
    table_text as table_text,
)
from .page import (
    Block as Block,
    Dot as Dot,
    ForestPlot as ForestPlot,
    Heatmap as Heatmap,
    Page as Page,
    Part as Part,
    Prose as Prose,
    Section as Section,
    Value as Value,
)
from .table import (
    Column as Column,
    Table as Table,
    interval_column as interval_column,
)
from .tabulation import (
    describe as describe,
    tabulate as tabulate,
)
from .wording import (
    Wording as Wording,
    compared as compared,
)
