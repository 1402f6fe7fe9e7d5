"""How two conditions are compared, and the scored runs of a report.

A report needs only a `Design` and runs, not a model, so that correctness labels from elsewhere get
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
"""Name in the manifests of imported correctness labels, instead of a study."""


def bibtex(package: str) -> str:
    """Read the citation of a study.

    Args:
        package: Importable name of the package that contains its `cite.bib`.

    Returns:
        The entries, as BibTeX.
    """
    return resources.files(package).joinpath("cite.bib").read_text(encoding="utf-8").strip()


class Design(Record):
    """How two conditions are compared, and their names in tables and on the page.

    Raises:
        ValidationError: If a field is unknown or has another type; names it.

    Examples:
        >>> design = Design(title="Case", question="in capitals and not", conditions=("a", "A"))
        >>> design.clusters
        {'item': 'facts'}
    """

    title: str
    """Title of the study."""

    question: str = ""
    """Phrase that describes the compared prompts, for pages and lists."""

    citation: str = ""
    """Citation, as BibTeX."""

    conditions: tuple[str, str] = ("first", "second")
    """Names of the two conditions on the page."""

    cells: tuple[str, str, str, str] = (
        *("both correct", "only the first correct", "only the second correct", "both incorrect"),
    )
    """Names of the four cells of the paired contingency table."""

    clusters: Mapping[str, str] = Field(default={"item": "facts"}, min_length=1)
    """Clustering columns of intervals and tests, the default first, with plural names of units."""

    stratum: str | None = None
    """Column of the targets by which the noise floor is computed; None for all together."""

    kind: str = "condition"
    """Column of the targets that defines kinds of answers: agreement with human labels is computed
    per kind, and answers are drawn for labelling per kind. The condition by default."""

    paper_prompts: str = ""
    """Source of the prompts of the study's paper, as part of the error message if `prompts`
    requests a preset and the study has none; "" if the paper's wording is not known."""

    facet: str | None = None
    """Column of the outcomes whose values are never pooled, such as the template."""

    groupings: Mapping[str, Items[str]] = {}
    """Name of each further table to the columns of the outcomes that group it."""

    second_condition_columns: Items[str] = ()
    """Columns of the outcomes that describe only the second condition, such as the category of a
    redirect."""

    exploded_names: Mapping[str, str] = {}
    """Name in tables of columns of lists, such as {"types": "type"}."""

    labels: Mapping[str, Mapping[str, str]] = {}
    """Displayed text of each label, by name of the column in tables; also the order of the
    labels."""

    def shown(self, column: str) -> str:
        """Return the name of a column of the outcomes in tables.

        Args:
            column: The column.

        Returns:
            Its name in tables.
        """
        return self.exploded_names.get(column, column)

    def keys(self, *columns: str) -> list[str]:
        """Return the columns that make the groups of a table.

        Args:
            columns: Columns of the groups.

        Returns:
            The model, the facet if there is one, and these columns.
        """
        return ["model", *([] if self.facet is None else [self.facet]), *columns]


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """Scored runs and how to report them: the argument of the functions of a page."""

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
        """Number of each run by its label, from 0, for its marker and its colour."""
        return {run.label: place for place, run in enumerate(self.runs)}

    @property
    def labels(self) -> list[str]:
        """Labels of the runs."""
        return [run.label for run in self.runs]

    @property
    def clusters(self) -> str:
        """Name of the clusters, in the plural."""
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
        """Options of sentences: name of the clusters and confidence level."""
        return {"clusters": self.clusters, "confidence": self.confidence}

    @property
    def level(self) -> str:
        """The level in percent for texts, such as "95"."""
        return f"{100 * self.confidence:g}"

    @property
    def facet(self) -> str | None:
        """Name of the facet in tables; None without a facet."""
        return None if self.design.facet is None else self.design.shown(self.design.facet)

    @functools.cached_property
    def memo(self) -> dict[object, Any]:
        """Intermediate results that several tables or sections read."""
        return {}
