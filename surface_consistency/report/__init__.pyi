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
from .page import (
    Block as Block,
    Dot as Dot,
    ForestPlot as ForestPlot,
    Heatmap as Heatmap,
    Page as Page,
    Prose as Prose,
    Section as Section,
)
from .texts import (
    Texts as Texts,
)
