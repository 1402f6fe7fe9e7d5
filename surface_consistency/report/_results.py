"""The middle of the report page: the figure and the tables of each template, and the checks."""

from surface_consistency.errors import MissingDependencyError
from surface_consistency.report._document import picture
from surface_consistency.report._markup import Html, join, tag
from surface_consistency.report._old_figures import consistency_figure, svg_text
from surface_consistency.report._page import Page
from surface_consistency.report.tables import GROUPINGS

__all__ = ["checks", "results_of_template"]

_TITLES = {
    "by_type": "By redirect type",
    "by_category": "By redirect category",
    "by_relation": "By relation",
    "noise_floor": "Noise floor: the same prompts asked again",
    "rules": "Verdicts that differ between matching rules",
    "regions": "Verdicts on the first line and on the whole output",
}
_OPEN = ("by_type",)
_CAPTION = (
    "A model has two bars: left the pairs whose canonical question is answered right, right those "
    "where it is answered wrong. Light is consistent, dark and hatched is flipped; the numbers "
    "above are consistent:flipped in percent of the bar."
)


def results_of_template(page: Page, template: str) -> Html:
    """Show the figure and the tables of one wording of the questions."""
    names = [name for name, columns in GROUPINGS.items() if columns]
    return join([_figure(page, template), *(_table(page, name, template) for name in names)])


def checks(page: Page) -> Html:
    """Show the tables on the soundness of the runs."""
    names = [name for name in page.tables if name not in GROUPINGS and len(page.tables[name])]
    if not names:
        return tag("p", "The runs hold no checks: no noise floor, no comparison of rules.")
    known = [name for name in _TITLES if name in names]
    names = [*known, *sorted(set(names) - set(known))]
    return join(page.grid(page.tables[name], _title(name)) for name in names)


def _title(name: str) -> str:
    """Name a table for people."""
    return _TITLES.get(name, name.replace("_", " ").capitalize())


def _table(page: Page, name: str, template: str) -> Html:
    """Show one table of a template, the long ones folded away."""
    table = page.tables[name]
    rows = table[table["template"] == template].drop(columns="template")
    key = next(column for column in rows.columns if column != "model")
    order = [key, *(column for column in rows.columns if column != key)]
    shown = page.grid(rows[order], f"{_title(name)}, template {template}")
    if name in _OPEN:
        return shown
    n_groups = rows[key].nunique()
    return tag("details", tag("summary", f"{_title(name)}: {n_groups} groups"), shown)


def _figure(page: Page, template: str) -> Html:
    """Draw the figure of one template, or say why there is none."""
    try:
        figure = consistency_figure(page.tables, template=template, categories=page.categories)
    except MissingDependencyError as error:
        return tag("p", f"{error} Then write the report again.", class_="note")
    except ValueError as error:
        return tag("p", f"No figure: {error}.", class_="note")
    panels = [ax.get_title().split("\n")[0] for ax in figure.axes]
    alt = (
        "Stacked bars of consistent and flipped pairs by model, one panel each for "
        f"{', '.join(panels)}. The tables below hold the numbers."
    )
    return picture(
        svg_text(figure), alt=alt, label=f"Figure, template {template}", caption=_CAPTION
    )
