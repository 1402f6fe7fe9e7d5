"""Records of the content of a report page. Studies create them, and `html` renders them.

Rates and differences are fractions with their intervals; they are converted and rounded when they
are rendered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from surface_consistency.tables.numbers import Part, Value
from surface_consistency.tables.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The first part of a page: the main result, in a form that a paper can quote."""

    sentence: Sequence[Part]
    """The finding, with its numbers."""

    definition: str = ""
    """Definition of the counts, in one line below the finding; none by default."""

    summary: Sequence[Part]
    """Further results below it: accuracies, the noise floor, the asymmetry of flips."""

    warning: str = ""
    """Reason why the finding must not be quoted, such as a sample or a toy model, shown in red;
    none by default."""

    facts: Sequence[tuple[str, str]] = ()
    """Facts about the run, name and value: data, pairs, rule, date, version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MosaicPlot:
    """The contingency table of one model, with areas proportional to counts."""

    title: str
    """Name of the model or the group."""

    model: int | None
    """Index of the model, which determines marker and hue; None if it is not of one model."""

    both: int
    """Number of pairs correct under both conditions."""

    first_only: int
    """Number of pairs correct under the first condition only."""

    second_only: int
    """Number of pairs correct under the second condition only."""

    neither: int
    """Number of pairs incorrect under both conditions."""

    facts: Sequence[tuple[str, Value, str]] = ()
    """Lines below it: name, number, and a remark such as the test that was used."""

    filters: Mapping[str, str] = field(default_factory=dict)
    """Further filters of the answers that a cell links to, such as {"model": "gpt2"}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MosaicPlots:
    """Mosaic plots side by side, one per model or group."""

    squares: Sequence[MosaicPlot]
    """The squares."""

    conditions: tuple[str, str]
    """Names of the conditions, such as ("title", "redirect")."""

    cells: tuple[str, str, str, str]
    """Names of the cells: both, first only, second only, neither."""

    size: Literal["figure", "small"] = "figure"
    """Large figures, or small multiples."""

    note: Sequence[Part] = ()
    """Paragraph below them, such as the contrast of two models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """The estimate of one group of one model."""

    model: int
    """Index of the model."""

    value: Value
    """The rate with its interval."""

    n: int
    """Number of pairs."""

    n_clusters: int
    """Number of clusters. Below `FEW_CLUSTERS` the estimate is faded; below `LEAST_CLUSTERS` it is
    only in the table."""

    unit: str = "pairs"
    """What `n` counts, in the plural."""

    is_certain: bool = False
    """Whether its test is significant after correction for several groups, shown as a filled
    marker."""

    is_above_noise: bool = False
    """Whether the rate is significantly above that of identical prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestPlot:
    """A rate by group with its intervals, and the noise floor (test-retest flip rate)."""

    name: str
    """Short name, for files and anchors."""

    title: str
    """Title."""

    axis: str
    """Label of the scale with its unit, such as "flip rate, %"."""

    rows: Sequence[tuple[str, int, Sequence[Dot]]]
    """Groups from top to bottom: label, level (0 for heads, 1 for their members), dots."""

    noise: Mapping[int, float] = field(default_factory=dict)
    """Upper bound of the noise floor by model index; models without one are omitted."""

    clusters: str = "facts"
    """Name of the clusters, whose number is in the column on the right."""

    certain: str = "flips are asymmetric (Holm)"
    """Meaning of a filled marker; "" if filling has no meaning."""

    margin: float | None = None
    """Equivalence margin, drawn as a grey band around 0; None without one."""

    ticks: Sequence[float] = ()
    """Ticks from end to end of the scale; chosen by the intervals by default."""

    remarks: Mapping[str, str] = field(default_factory=dict)
    """Text on the right of a group, by its label, instead of the number of clusters. Rows with a
    remark are models, which the legend then omits."""

    note: str = ""
    """Note below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A point of a curve."""

    x: float
    """Horizontal position."""

    value: Value
    """The number with its interval."""

    n: int | None = None
    """Number of observations; None if unknown. Below 5 it is faded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One curve."""

    label: str
    """Name."""

    model: int | None
    """Index of the model; None for a reference."""

    points: Sequence[Point]
    """The points, by x."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Curves over a scale, with a grey band of the values expected by chance."""

    name: str
    """Short name, for files and anchors."""

    title: str
    """Title."""

    x_title: str
    """Label of the horizontal scale."""

    series: Sequence[Series]
    """The curves."""

    band: Sequence[tuple[float, float, float, float]] = ()
    """The grey band: x, lower bound, middle, upper bound; none by default."""

    reference: tuple[str, Value] | None = None
    """A level to compare with, drawn as a line with its interval; None without one."""

    facts: Sequence[tuple[str, Value, str]] = ()
    """Lines below it: name, number, remark."""

    note: str = ""
    """Note below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackedBars:
    """Stacked proportions, one bar per row."""

    name: str
    """Short name, for files and anchors."""

    title: str
    """Title."""

    parts: Sequence[tuple[str, Literal["both", "first_only", "second_only", "neither", "other"]]]
    """The parts of a bar from left to right: label, and the cell whose colour it takes."""

    rows: Sequence[tuple[str, int | None, Sequence[int]]]
    """Bars from top to bottom: label, index of the model or None, counts of the parts."""

    shares: Sequence[Sequence[Value]] = ()
    """Proportions of the parts of each bar with their intervals; none by default."""

    note: str = ""
    """Note below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlluvialPlot:
    """Numbers of pairs by their correctness in successive states, as an alluvial plot."""

    name: str
    """Short name, for files and anchors."""

    title: str
    """Title."""

    states: Sequence[tuple[str, str, Value]]
    """The states from left to right: name, meaning, proportion correct."""

    counts: Mapping[tuple[bool, ...], int]
    """Numbers of pairs by their correctness in all states."""

    note: str = ""
    """Note below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Named cells in rows and columns, each in the colour of an outcome."""

    title: str
    """Title."""

    columns: Sequence[str]
    """Headings of the columns."""

    rows: Sequence[
        tuple[
            str,
            Sequence[tuple[str, str, Literal["both", "first_only", "second_only", "neither", ""]]],
        ]
    ]
    """Rows from top to bottom: label, and per column text, remark and outcome ("" without one)."""

    note: str = ""
    """Note below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heatmap:
    """Proportions in rows and columns as colours, in panels side by side on one scale."""

    name: str
    """Short name, for files and anchors."""

    title: str
    """Title."""

    columns: Sequence[str]
    """Headings of the columns."""

    panels: Sequence[tuple[str, Sequence[tuple[str, Sequence[float]]]]]
    """Panels from left to right: title, and rows from top to bottom, each a label and one
    proportion per column; NaN if it is undefined."""

    row_title: str = ""
    """Heading of the labels of rows; none by default."""

    note: str = ""
    """Note below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The answers about one fact, step by step."""

    title: str
    """The fact."""

    facts: Sequence[tuple[str, str]] = ()
    """Names and texts of its properties: prompt, gold answer, deleted entries."""

    steps: Sequence[tuple[str, str, Sequence[tuple[str, str, str]], str, bool | None]] = ()
    """From left to right: name of the step; description; entries with score, text and mark
    ("deleted", "selected" or ""); the answer; whether it is correct."""

    note: str = ""
    """Origin of the answer."""


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
    """Id of the pair, which is the anchor of its row."""

    cell: Literal["both", "first_only", "second_only", "neither", "missing"]
    """Its cell."""

    question: str
    """The question, or the fact."""

    surfaces: tuple[str, str]
    """The two names, or the two forms of the question."""

    answers: tuple[str | None, str | None]
    """The scored text under each condition; None without an answer."""

    accepted: Sequence[str] = ()
    """All accepted answers, the reference first."""

    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values to filter by, by name of the filter, such as {"type": [...], "relation": [...]}."""

    note: str = ""
    """Reason of a missing label, or origin of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Pairs with both answers side by side; a page shows at most 500 per model."""

    answers: Sequence[Answer]
    """The pairs, flips first."""

    n_pairs: Mapping[int, int]
    """Number of all pairs by model index; the page reports how many of these it shows."""

    conditions: tuple[str, str]
    """Names of the conditions."""

    cells: tuple[str, str, str, str]
    """Names of the cells: both, first only, second only, neither."""

    filters: Sequence[str] = ()
    """Names of the filters that `Answer.labels` has values for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check of the data, in a sentence."""

    level: Literal["warning", "ok"]
    """Whether it needs attention."""

    title: str
    """Short form, for the list below the finding."""

    text: Sequence[Part]
    """The result."""

    anchor: str | None = None
    """Anchor of its evidence on the page; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Settings and command of one run."""

    label: str
    """Name of the run."""

    settings: Mapping[str, str]
    """Name and value of each setting, for the table of all runs."""

    command: str
    """The command that reproduces it."""

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
"""The blocks that a section can contain."""


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
    """Its blocks. Of successive tables one is shown at a time, and a switch selects it."""

    is_folded: bool = False
    """Whether it is collapsed when the page is opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page."""

    title: str
    """Title of the document."""

    study: str
    """Name of the study, such as "RedirectQA"."""

    question: str
    """Question of the study as a phrase, such as "the same fact under a title and under a
    redirect"."""

    models: Sequence[str]
    """Labels of the runs; indices of models refer to it."""

    finding: Finding
    """The finding."""

    claims: Sequence[Mapping[str, object]] = ()
    """Records of numbers in sentences that do not contain their records."""

    sections: Sequence[Section]
    """The sections in order: squares, groups, tables, answers."""

    checks: Sequence[Check] = ()
    """Checks of the data, "warning" first."""

    provenance: Sequence[Provenance] = ()
    """Settings and commands of the runs."""

    method: Sequence[str] = ()
    """The method in paragraphs, for an appendix."""

    citation: str = ""
    """References in addition to this software, as BibTeX; none by default."""
