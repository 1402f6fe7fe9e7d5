"""How two conditions are compared, and the scored runs that a report is made of.

A `Design` and runs are all that a report needs: nothing in it asks, so that anyone's verdicts get
the same tables and the same page as those of a study.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

import pandas as pd
from pydantic import Field

from surface_consistency.engine.settings import ReportSettings
from surface_consistency.metrics.uncertainty.intervals import Intervals
from surface_consistency.runs.loader import Run
from surface_consistency.schemas._record import Items, Record

VERDICTS: Final = "verdicts"
"""What manifests of verdicts from elsewhere name in place of a study."""


def bibtex(package: str) -> str:
    """Read what a study asks to be cited.

    Args:
        package: Importable name of the package that holds its `cite.bib`.

    Returns:
        The entries, as BibTeX.
    """
    return resources.files(package).joinpath("cite.bib").read_text(encoding="utf-8").strip()


class Design(Record):
    """How two conditions are compared, and what tables and page call them.

    Raises:
        ValidationError: If a field has another name or type than here; names it.

    Examples:
        >>> design = Design(title="Case", question="in capitals and not", conditions=("a", "A"))
        >>> design.clusters
        {'item': 'facts'}
    """

    title: str
    """Name for people."""

    question: str = ""
    """What is asked, in half a sentence, for pages and lists."""

    citation: str = ""
    """What to cite, as BibTeX."""

    conditions: tuple[str, str] = ("first", "second")
    """What the two conditions are called on the page."""

    cells: tuple[str, str, str, str] = ("both correct", "first only", "second only", "neither")
    """What the cells of the square are called."""

    clusters: Mapping[str, str] = Field(default={"item": "facts"}, min_length=1)
    """Columns that intervals and tests may take whole, the default first, and what they hold."""

    stratum: str | None = None
    """Column of the targets by which the noise floor is told; None for all together."""

    kind: str = "condition"
    """Column of the targets whose values a judge is held against people apart on, and answers are
    drawn for labelling: the condition of each, unless the study has something of its own."""

    paper_prompts: str = ""
    """Where the words are that the study's paper prints, for who asks for a preset of them by
    `prompts` and the study has none; "" where no paper prints any."""

    facet: str | None = None
    """Column of the outcomes whose values are never pooled, such as the template."""

    groupings: Mapping[str, Items[str]] = {}
    """Name of each further table to the columns of the outcomes that group it."""

    second_condition_columns: Items[str] = ()
    """Columns of the outcomes that describe what the second condition asks with, such as the
    category of a redirect, and nothing of the first."""

    exploded_names: Mapping[str, str] = {}
    """Name in tables of columns that hold lists, such as {"types": "type"}."""

    labels: Mapping[str, Mapping[str, str]] = {}
    """Wording of labels for people, by column as tables name it; the order is that of tables."""

    def shown(self, column: str) -> str:
        """Name a column of the outcomes as tables name it.

        Args:
            column: The column.

        Returns:
            Its name in tables.
        """
        return self.exploded_names.get(column, column)

    def keys(self, *columns: str) -> list[str]:
        """Name the columns that make the groups of a table.

        Args:
            columns: Those of the groups themselves.

        Returns:
            The model, the facet where there is one, and these.
        """
        return ["model", *([] if self.facet is None else [self.facet]), *columns]


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """Scored runs and how to report them: what the functions of a page read."""

    runs: Sequence[Run]
    """The runs, labels distinct."""

    design: Design
    """How their conditions are compared."""

    settings: ReportSettings = field(default_factory=ReportSettings)
    """How tables and page are computed."""

    cluster: str = "item"
    """The column by which intervals and tests are clustered."""

    @functools.cached_property
    def frame(self) -> pd.DataFrame:
        """The outcomes of all runs, one below the other; `model` contains their labels."""
        return pd.concat([run.outcomes for run in self.runs], ignore_index=True)

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """Place of each run by its label, which determines its marker and its hue."""
        return {run.label: place for place, run in enumerate(self.runs)}

    @property
    def labels(self) -> list[str]:
        """Labels of the runs."""
        return [run.label for run in self.runs]

    @property
    def clusters(self) -> str:
        """What the clusters are, in the plural."""
        return self.design.clusters[self.cluster]

    @property
    def confidence(self) -> float:
        """Confidence level of intervals and tests."""
        return self.settings.confidence

    @property
    def intervals(self) -> Intervals:
        """How confidence intervals are made."""
        names = ("confidence", "resamples", "seed")
        return Intervals(**{name: getattr(self.settings, name) for name in names})

    @property
    def words(self) -> dict[str, Any]:
        """What sentences call the clusters, and the level of their decisions."""
        return {"clusters": self.clusters, "confidence": self.confidence}

    @property
    def level(self) -> str:
        """The level in percent, for fixed texts, such as "95"."""
        return f"{100 * self.confidence:g}"

    @property
    def facet(self) -> str | None:
        """The facet as tables name it; None without one."""
        return None if self.design.facet is None else self.design.shown(self.design.facet)

    @functools.cached_property
    def memo(self) -> dict[object, Any]:
        """Intermediate results that several tables or sections read."""
        return {}
