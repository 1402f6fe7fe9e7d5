"""What a report page holds, as plain values: studies fill them, `html` renders them.

Numbers stand here as fractions with their intervals; whoever sets a block multiplies and rounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from surface_consistency.tables.numbers import Part, Value
from surface_consistency.tables.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The first thing on the page: what a paper could quote."""

    sentence: Sequence[Part]
    """The finding, with its numbers."""

    definition: str = ""
    """What the page counts, in one line below the finding; none by default."""

    summary: Sequence[Part]
    """What stands beside it: accuracies, the noise floor, what the flips lean to."""

    warning: str = ""
    """What forbids quoting it, such as a sample or a toy model; set in red; none by default."""

    facts: Sequence[tuple[str, str]] = ()
    """Facts about the run, name and value: data, pairs, rule, date, version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MosaicPlot:
    """The contingency table of one model, drawn true to area."""

    title: str
    """What it is of: the model, or the group."""

    model: int | None
    """Index of the model, which has a marker and a hue; None where models do not matter."""

    both: int
    """Pairs right under both conditions."""

    first_only: int
    """Pairs right under the first condition only."""

    second_only: int
    """Pairs right under the second condition only."""

    neither: int
    """Pairs wrong under both conditions."""

    facts: Sequence[tuple[str, Value, str]] = ()
    """Lines below it: name, number, and a remark such as the test that was used."""

    filters: Mapping[str, str] = field(default_factory=dict)
    """What its cells select among the answers besides the cell, such as {"model": "gpt2"}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MosaicPlots:
    """One square a model or group, side by side."""

    squares: Sequence[MosaicPlot]
    """The squares."""

    conditions: tuple[str, str]
    """What the conditions are called, such as ("title", "redirect")."""

    cells: tuple[str, str, str, str]
    """What the cells are called: both, first only, second only, neither."""

    size: Literal["figure", "small"] = "figure"
    """Large, or as small multiples."""

    note: Sequence[Part] = ()
    """What follows below them, such as the contrast of two models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One group of one model."""

    model: int
    """Index of the model."""

    value: Value
    """The rate with its interval."""

    n: int
    """Pairs."""

    n_clusters: int
    """Facts, or topics: below 10 it is faded, below 4 left to the table."""

    unit: str = "pairs"
    """What `n` counts, in the plural."""

    is_certain: bool = False
    """Whether its test shows it after correction for many groups: a filled marker."""

    is_above_noise: bool = False
    """Whether the rate is above that of identical prompts, by a test of the difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestPlot:
    """A rate by group with its intervals, over the noise floor."""

    name: str
    """Short name, for files and anchors."""

    title: str
    """What it shows."""

    axis: str
    """What the scale measures, with its unit, such as "flip rate, %"."""

    rows: Sequence[tuple[str, int, Sequence[Dot]]]
    """Groups from top to bottom: label, level (0 for heads, 1 for what belongs to them), dots."""

    noise: Mapping[int, float] = field(default_factory=dict)
    """Upper bound of the noise floor by model index; models without one are left out."""

    clusters: str = "facts"
    """What the column at the right counts."""

    certain: str = "flips are asymmetric (Holm)"
    """What a filled marker says; "" where markers say nothing."""

    margin: float | None = None
    """Difference to either side of 0 that counts as none: a grey band; None for none."""

    ticks: Sequence[float] = ()
    """Values that are marked, from end to end of the scale; chosen by the intervals by default."""

    remarks: Mapping[str, str] = field(default_factory=dict)
    """What stands at the right of a group, by its label, in place of its clusters. Rows that have
    one are models themselves, which no legend names again."""

    note: str = ""
    """What stands below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A point of a curve."""

    x: float
    """Where it stands."""

    value: Value
    """The number with its interval."""

    n: int | None = None
    """Observations behind it; None where that is no matter. Below 5 it is faded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One curve."""

    label: str
    """What it is of."""

    model: int | None
    """Index of the model; None for a reference."""

    points: Sequence[Point]
    """The points, by x."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Curves over a scale, with a grey band of what chance alone brings about."""

    name: str
    """Short name, for files and anchors."""

    title: str
    """What it shows."""

    x_title: str
    """What the horizontal scale counts."""

    series: Sequence[Series]
    """The curves."""

    band: Sequence[tuple[float, float, float, float]] = ()
    """The grey band: x, lower bound, middle, upper bound; none by default."""

    reference: tuple[str, Value] | None = None
    """A level to compare with, drawn across with its interval; None without one."""

    facts: Sequence[tuple[str, Value, str]] = ()
    """Lines below it: name, number, remark."""

    note: str = ""
    """What stands below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedBars:
    """Stacked shares, one bar a row."""

    name: str
    """Short name, for files and anchors."""

    title: str
    """What it shows."""

    parts: Sequence[tuple[str, Literal["both", "first_only", "second_only", "neither", "other"]]]
    """The parts of a bar from left to right: label, and the cell whose colour it takes."""

    rows: Sequence[tuple[str, int | None, Sequence[int]]]
    """Bars from top to bottom: label, index of the model or None, counts of the parts."""

    shares: Sequence[Sequence[Value]] = ()
    """Of each bar the shares of its parts with their intervals; none by default."""

    note: str = ""
    """What stands below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlluvialPlot:
    """How verdicts go from state to state."""

    name: str
    """Short name, for files and anchors."""

    title: str
    """What it shows."""

    states: Sequence[tuple[str, str, Value]]
    """The states from left to right: name, what it means, share that is right."""

    counts: Mapping[tuple[bool, ...], int]
    """Pairs by their verdicts in all states."""

    note: str = ""
    """What stands below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Named cells in rows and columns, each in the colour of an outcome."""

    title: str
    """What it shows."""

    columns: Sequence[str]
    """Headings of the columns."""

    rows: Sequence[
        tuple[
            str,
            Sequence[tuple[str, str, Literal["both", "first_only", "second_only", "neither", ""]]],
        ]
    ]
    """Rows from top to bottom: label, and for each column text, remark and the outcome ("" for
    none)."""

    note: str = ""
    """What stands below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heatmap:
    """Shares in rows and columns as colours, in panels side by side on one scale."""

    name: str
    """Short name, for files and anchors."""

    title: str
    """What it shows."""

    columns: Sequence[str]
    """Headings of the columns."""

    panels: Sequence[tuple[str, Sequence[tuple[str, Sequence[float]]]]]
    """Panels from left to right: title, and rows from top to bottom, each a label and a share for
    each column; NaN where there is none."""

    row_title: str = ""
    """What the rows are; none by default."""

    note: str = ""
    """What stands below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What happened to one fact, step by step."""

    title: str
    """The fact."""

    facts: Sequence[tuple[str, str]] = ()
    """Name and text of what is known of it: prompt, gold, deleted entries."""

    steps: Sequence[tuple[str, str, Sequence[tuple[str, str, str]], str, bool | None]] = ()
    """From left to right: name of the step; what was done; entries with score, text and mark
    ("deleted", "selected" or ""); the answer; the verdict."""

    note: str = ""
    """Where the answer came from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """A paragraph."""

    parts: Sequence[Part]
    """Words and numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One pair of answers, for the browser."""

    model: int
    """Index of the model."""

    pair: str
    """The pair; it is the anchor of the row."""

    cell: Literal["both", "first_only", "second_only", "neither", "missing"]
    """Its cell."""

    question: str
    """What was asked, or the fact."""

    surfaces: tuple[str, str]
    """What differed: the two names, or the two forms of the query."""

    answers: tuple[str | None, str | None]
    """What was judged under each condition; None where there is nothing."""

    accepted: Sequence[str] = ()
    """All accepted answers, the reference first."""

    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values to filter by, by name of the filter, such as {"type": [...], "relation": [...]}."""

    note: str = ""
    """Why: the reason of a missing verdict, or where the answer came from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Pairs with both answers side by side; at most 500 a model stand on a page."""

    answers: Sequence[Answer]
    """The pairs, flips first."""

    n_pairs: Mapping[int, int]
    """All pairs by model index, so that the page says how many it shows."""

    conditions: tuple[str, str]
    """What the conditions are called."""

    cells: tuple[str, str, str, str]
    """What the cells are called: both, first only, second only, neither."""

    filters: Sequence[str] = ()
    """Names of the filters that `Answer.labels` has values for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question of trust, answered in a sentence."""

    level: Literal["warning", "ok"]
    """Whether it asks for attention."""

    title: str
    """The short form, for the strip under the finding."""

    text: Sequence[Part]
    """What was found."""

    anchor: str | None = None
    """Anchor of its evidence on the page; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """How one run was made."""

    label: str
    """Name of the run."""

    settings: Mapping[str, str]
    """Name and value of every setting, for the table side by side."""

    command: str
    """The command that makes it again."""

    signature: str
    """The run in one line."""


Block = (
    MosaicPlots
    | ForestPlot
    | Lines
    | StackedBars
    | AlluvialPlot
    | Matrix
    | Heatmap
    | Trace
    | Table
    | Prose
    | Answers
)
"""What a section may hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page with its heading."""

    anchor: str
    """Anchor, unique on the page."""

    title: str
    """Heading."""

    lead: Sequence[Part] = ()
    """A paragraph below the heading; none by default."""

    blocks: Sequence[Block] = ()
    """What it holds. Tables that follow each other are shown one at a time, to be switched."""

    is_folded: bool = False
    """Whether it is folded away at first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole page."""

    title: str
    """Title of the document."""

    study: str
    """What the study is called, such as "RedirectQA"."""

    question: str
    """What it asks, in half a sentence: "the same fact under a title and under a redirect"."""

    models: Sequence[str]
    """Labels of the runs; indices of models refer to it."""

    finding: Finding
    """The finding."""

    claims: Sequence[Mapping[str, object]] = ()
    """Records of what sentences without records of their own report."""

    sections: Sequence[Section]
    """What follows it, in order: squares, groups, tables, answers."""

    checks: Sequence[Check] = ()
    """Whether the numbers can be trusted, "warning" first."""

    provenance: Sequence[Provenance] = ()
    """How the runs were made."""

    method: Sequence[str] = ()
    """The method in paragraphs of prose, ready for an appendix."""

    citation: str = ""
    """What to cite besides this software, as BibTeX; none by default."""
