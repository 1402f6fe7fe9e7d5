"""The class of results that all functions of the library return.

A result contains a frame, a description of its estimates, sentences and a caption. Its methods
write text, tables, a figure and a page. `surface_consistency.metrics` computes the statistics.
"""

import html
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pandas as pd

from surface_consistency.tables.latex import heading, latex_table, table_cells
from surface_consistency.tables.markdown import markdown_table
from surface_consistency.tables.numbers import fitted_text, json_value, sentence_text
from surface_consistency.tables.sentences import Sentence
from surface_consistency.tables.table import Column, Table
from surface_consistency.text import one_line
from surface_consistency.truth import NoTruthValue

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH: Final = 100
_MOST_COLUMNS: Final = 7
_MOST_NUMBERS: Final = 6
"""Number of columns that a table always has in addition to its labels."""
_MOST_SENTENCES: Final = 3
_MOST_ROWS: Final = 60
"""Maximum number of rows in HTML; `to_frame` returns all."""

_TITLES: Final = {"n": "n", "n_items": "items", "n_clusters": "clusters"}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result(NoTruthValue):
    """The result of `accuracy`, `consistency`, `paired`, `compare` and the other functions.

    `print` shows the first sentences; a notebook cell that ends with a result shows all of them and
    the table.

    Examples:
        >>> import pandas as pd
        >>> from surface_consistency.analysis.measures import accuracy
        >>> answers = pd.DataFrame({"item": range(40), "correct": [1, 0, 1, 1] * 10})
        >>> result = accuracy(answers)
        >>> result.sentences
        ['The accuracy is 75.0 % (95 % CI 60.5 to 89.2; 40 items).']
        >>> result.to_frame()[["accuracy", "n"]].values.tolist()
        [[0.75, 40.0]]
    """

    truth: ClassVar[str] = "a number of to_frame(), or read sentences"

    kind: str
    """Name of the function that returned it, such as "accuracy"."""

    frame: pd.DataFrame
    """All columns, one row per group or pair; rates and differences are fractions."""

    keys: Sequence[str]
    """Columns that identify a row: the model, or both models of a pair, and the groups."""

    estimates: Sequence[Column]
    """Columns with confidence intervals, the main estimate first."""

    caption: str
    """Caption of the table."""

    sentences: Sequence[str]
    """The finding and further sentences, each supported by a test in the table."""

    claims: Sequence[Mapping[str, Any]] = ()
    """One record per number and comparison in the sentences: quantity, column, estimate, low,
    high, p, direction (1, -1, or 0 if not significant), null, margin, scope (labels of the row and
    names of conditions), n, n_clusters, and the text."""

    p: str | None = None
    """Column of the p-value; None without a test."""

    p_title: str = "p"
    """Heading of the p-value. It names the estimate that is tested if this is not the first one."""

    counts: Sequence[str] = ("n", "n_clusters")
    """Columns of the numbers of observations and clusters."""

    confidence: float = 0.95
    """Confidence level of all intervals."""

    unit: str = "pairs"
    """Unit of observation that `n` counts, in the plural."""

    note: str = ""
    """Printed note on the numbers, such as the clusters, with remedies."""

    table_note: str = ""
    """The facts of `note` without remedies, for tables, captions and pages."""

    page: Callable[[str | os.PathLike[str]], Path] | None = None
    """Function that writes the report page of the command line. If it is None, `save` writes a page
    with a figure and a table."""

    def to_frame(self, all: bool = False) -> pd.DataFrame:
        """Return the numbers as a tidy frame.

        Args:
            all: Whether to include every column, such as counts, tests and reasons.

        Returns:
            A copy with one row per group or pair: keys, estimates with `_low` and `_high`, the
            p-value, and the numbers of observations and clusters. With `all` it has all columns.
        """
        if all:
            return self.frame.copy()
        bounds = [name for one in self.estimates for name in one.frame_columns]
        return self.frame[[*self.keys, *bounds, *([self.p] if self.p else []), *self.counts]].copy()

    def to_dict(self, all: bool = False) -> dict[str, Any]:
        """Return sentences and numbers as plain Python values, for `json.dumps`.

        Args:
            all: Whether to include every column, as for `to_frame`.

        Returns:
            kind, caption, note, confidence, sentences, claims, and rows, a list with one dictionary
            per row of `to_frame(all)`; undefined numbers are None.
        """
        rows = [
            {str(key): json_value(value) for key, value in row.items()}
            for row in self.to_frame(all).to_dict("records")
        ]
        named = {name: getattr(self, name) for name in ("kind", "caption", "note", "confidence")}
        listed = {"sentences": list(self.sentences), "claims": list(self.claims)}
        return named | listed | {"rows": rows}

    def to_text(self, all: bool = False) -> str:
        """Return the table for a terminal.

        Args:
            all: Whether to include every estimate, whatever the width of the table.

        Returns:
            `name: value` lines for a single row; otherwise a table with the columns of
            `to_markdown`, in which the last estimates are omitted if it exceeds 80 characters. The
            last line states `table_note` and the level of the intervals.
        """
        n_all = len(self.frame.columns)
        if len(self.frame) == 1:
            heads, (row,) = table_cells(self._table(n_all))
            lines = [f"{head}: {cell}" for head, cell in zip(heads, row, strict=True)]
            return "\n".join(filter(None, [*lines, self._facts()]))
        columns = [n_all] if all else range(self._most, len(self.keys), -1)
        return fitted_text(map(self._table, columns))

    def to_markdown(self) -> str:
        """Return the table in Markdown.

        Returns:
            A table of at most seven columns, or its labels and six columns; each estimate is
            `value [low, high]`, and a line below the table names the level.
        """
        return "\n\n".join(filter(None, (markdown_table(self._table()), self._brackets())))

    def to_latex(self, caption: str | None = None, label: str | None = None) -> str:
        r"""Return the table in LaTeX.

        Args:
            caption: Caption; by default that of the result. The clusters and the level of the
                intervals are added. Special characters are escaped.
            label: Label for references; by default `tab:` and the name of the function.

        Returns:
            A `table` environment with the columns of `to_markdown`. It requires
            `\usepackage{booktabs}` and, for labels that are not ASCII, a Unicode engine. Wide
            tables have smaller type and headings of several lines.
        """
        text = ". ".join(
            filter(None, (self.caption if caption is None else caption, self._facts()))
        )
        name = label or "tab:" + self.kind.replace("_", "-")
        return latex_table(self._table(), caption=text, label=name)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the first estimate of each row with its confidence interval, one point per row.

        Args:
            ax: Axes to draw on; None for the current axes of pyplot.

        Returns:
            The axes. Rates are in percent and differences in points; rows with fewer than 20
            clusters are pale.

        Raises:
            MissingDependencyError: If matplotlib is not installed.
        """
        from surface_consistency.report.plots import plot_estimates

        main = self.estimates[0]
        return plot_estimates(
            self.frame,
            key=main.key,
            labels=self._names(),
            axis=heading(main),
            unit=1.0 if main.kind in ("number", "decimal") else 100.0,
            null=0.0 if main.kind == "difference" else None,
            ax=ax,
        )

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the report page and the tables as CSV.

        Args:
            folder: Folder of `report.html` and `tables/`; created if it does not exist.

        Returns:
            The path of the page.

        Raises:
            DataError: If the folder contains a run, a file that was not written by a report would
                be replaced, or a file cannot be written.
        """
        if self.page is not None:
            return self.page(folder)
        from surface_consistency.report.estimates import write_estimates

        return write_estimates(
            folder,
            name=self.kind,
            table=self._table(len(self.frame.columns)),
            names=self._names(),
            main=self.estimates[0],
            unit=self.unit,
            sentences=self.sentences,
            claims=self.claims,
        )

    @property
    def _most(self) -> int:
        """Return the maximum number of columns of a table."""
        return max(_MOST_COLUMNS, len(self.keys) + _MOST_NUMBERS)

    def _brackets(self) -> str:
        """Describe the brackets of the table; empty if it has no interval."""
        shown = [one.low for one in self.estimates if one.low]
        if not self.frame[shown].notna().any(axis=None):
            return ""
        return f"{100 * self.confidence:g} % confidence intervals in brackets."

    def _facts(self) -> str:
        """Return the note of a table with the level of its intervals."""
        return " ".join(filter(None, (self.table_note, self._brackets())))

    def _table(self, most: int | None = None) -> Table:
        """Describe the table, with as many estimates as fit into `most` columns."""
        most = self._most if most is None else most
        keys = [Column(key=key, title=key.replace("_", " ")) for key in self.keys]
        last = [] if self.p is None else [Column(key=self.p, title=self.p_title, kind="p_value")]
        last += [
            Column(key=name, title=_TITLES.get(name, name), kind="count") for name in self.counts
        ]
        last = last[: max(0, most - len(keys) - 1)]
        shown = self.estimates[: max(1, most - len(keys) - len(last))]
        return Table(
            frame=self.frame,
            caption=self.caption,
            columns=[*keys, *shown, *last],
            note=self._facts(),
            model=None,
        )

    def _names(self) -> list[str]:
        """Return the labels of the rows."""
        if list(self.keys[:2]) == ["model", "reference"]:
            pairs = self.frame[["model", "reference"]].astype(str).agg(" − ".join, axis=1)
            rest = self.frame[[*self.keys[2:]]].astype(str).to_numpy().tolist()
            return [", ".join([pair, *more]) for pair, more in zip(pairs, rest, strict=True)]
        rows = self.frame[[*self.keys]].astype(str).to_numpy().tolist()
        return [", ".join(row) or "all" for row in rows]

    def _repr_html_(self) -> str:
        """Show sentences and table in a notebook."""
        heads, rows = table_cells(self._table())
        body = "".join(f"<tr>{_html(row, 'td')}</tr>" for row in rows[:_MOST_ROWS])
        more = [self._facts()]
        if len(rows) > _MOST_ROWS:
            more.append(f"The first {_MOST_ROWS} of {len(rows):,} rows; to_frame() has all.")
        return (
            f"{_html(self.sentences, 'p')}<table><caption>{html.escape(self.caption)}</caption>"
            f"<thead><tr>{_html(heads, 'th')}</tr></thead><tbody>{body}</tbody></table>"
            f"{_html(list(filter(None, more)), 'p')}"
        )

    def __repr__(self) -> str:
        """Show the first sentences, the note and the shape of the table."""
        lines = [
            line
            for sentence in self.sentences[:_MOST_SENTENCES]
            for line in textwrap.wrap(sentence, _WIDTH)
        ]
        n_more = len(self.sentences) - _MOST_SENTENCES
        more = f"{n_more} more in .sentences; " if n_more > 0 else ""
        rows, columns = self.to_frame().shape
        shape = (
            f"[{self.kind}: {more}{rows} {'row' if rows == 1 else 'rows'} x {columns} columns in "
            f".to_frame(), {self.frame.shape[1]} with all=True]"
        )
        note = textwrap.wrap(self.note, _WIDTH, max_lines=2, placeholder=" ... (.note has all)")
        return "\n".join([*lines, *note, *textwrap.wrap(shape, _WIDTH)])


def texts(sentences: Sequence[Sentence]) -> list[str]:
    """Convert sentences to plain text.

    Args:
        sentences: Texts and numbers; empty ones are skipped.

    Returns:
        The sentences, without no-break spaces.
    """
    return [one_line(sentence_text(one).replace("\u00a0", " ")) for one in sentences if one]


def _html(cells: Sequence[str], tag: str) -> str:
    """Put each text into an HTML element."""
    return "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
