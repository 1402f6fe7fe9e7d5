"""What a study is: what differs between the two conditions, and nothing of how runs are made.

The engine (`asking`, `scoring`, `reporting`, `variants`) owns the run folder, resume, asking, the
repeated sample, scoring, tables on disk and the page. A study is a class that says what is asked,
what is judged and what is compared; it is found by an entry point of the group
`surface_consistency.studies`.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

import pandas as pd
from pydantic import AfterValidator, BaseModel, Field, model_validator

from surface_consistency.engine.judging.judges import Judge, RuleJudge
from surface_consistency.engine.paired import PairedReport
from surface_consistency.errors import ColumnNotFoundError, DataError, PluginError
from surface_consistency.matching.rules import resolve_rule
from surface_consistency.matching.verdict_records import AnswerSpan
from surface_consistency.models.options import OptionScore
from surface_consistency.models.registry import load_runner
from surface_consistency.models.runner import Runner
from surface_consistency.models.thoughts import thought_tags as known_tags
from surface_consistency.plugins import ANALYSES, STUDIES, Plugins
from surface_consistency.report.page import Block, Check, Page, Prose, Section
from surface_consistency.report.table import Table
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.frames import make_frame
from surface_consistency.runs.loader import Run, load_runs
from surface_consistency.schemas import DataSource, GenerationParams, PairedOutcome, Prompt, Verdict
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Settings

__all__ = [
    "Analysis",
    "OptionSettings",
    "Plan",
    "PromptGroup",
    "Report",
    "ReportSettings",
    "RuleScoring",
    "Scored",
    "SourceSettings",
    "Study",
    "StudySettings",
    "check_rule",
    "find_analysis",
    "find_study",
]


_CONDITIONS: Final = ("first_condition", "second_condition")


class SourceSettings(Settings):
    """Where the rows come from."""

    source: str
    """Hub id, folder, Parquet, JSONL or CSV file, or "sample" for the rows that come along."""

    revision: str | None = None
    """Commit, tag or branch of the data."""

    split: str = "test"
    """Split of the data."""

    column: Mapping[str, str] = Field(default_factory=dict)
    """Column of a field, as FIELD=COLUMN, where the source uses a name of its own."""


class StudySettings(Settings):
    """How a study asks."""

    seed: int = 0
    """Seed of every choice, that of the repeated sample among them."""

    limit: int | None = Field(default=None, ge=1)
    """Ask only so many facts, each under both conditions."""

    repeat: int = Field(default=200, ge=0)
    """Prompts of each group asked a second time, for the noise floor; 0 for none."""

    max_thought_tokens: int | None = Field(default=None, ge=1)
    """Longest thought before an answer, in tokens, for reasoning models; without, thought and
    answer share the limit of the answer."""

    thought_tags: Items[str] | None = None
    """Opening and closing tag between which a model thinks, where they are not among the known."""

    thought_opened: bool | None = None
    """Whether every prompt ends within a thought, so that an answer begins behind a closing tag; by
    default as the chat template says."""

    @model_validator(mode="after")
    def _has_pairs(self) -> "StudySettings":
        """Refuse an opening tag without a closing one."""
        known_tags(self.thought_tags or ())
        return self

    def with_thoughts(self, params: GenerationParams) -> GenerationParams:
        """Add what these settings say of thoughts to how a group of prompts is decoded.

        Args:
            params: The decoding; what it says of thoughts itself stays.

        Returns:
            The decoding of a run.
        """
        names = ("max_thought_tokens", "thought_tags", "thought_opened")
        return params.model_copy(
            update={name: getattr(self, name) for name in names if getattr(params, name) is None}
        )


class OptionSettings(StudySettings):
    """How a study asks that can read answers from the probabilities of options too."""

    read: Literal["generate", "log-odds", "multiple-choice"] = "generate"
    """Whether the model writes its answer, or chooses among the reference and those of other facts:
    the most probable one (multiple-choice), or none unless it is more probable than all others
    together (log-odds)."""

    options: int = Field(default=4, ge=2)
    """Options of each fact where answers are not written, the reference among them."""

    option_score: OptionScore = "sum"
    """How options are compared: by the sum of their tokens' log-probabilities, or by its mean per
    token or per character."""


def check_rule(name: str) -> str:
    """Refuse a name of no matching rule, before anything is asked.

    Args:
        name: As for `matching.rules.resolve_rule`.

    Returns:
        The same.

    Raises:
        ValueError: If there is no such rule, or what is named is none.
        MissingDependencyError: If the rule needs a library that is not installed.
    """
    resolve_rule(name).keys(["漢字"])
    return name


class RuleScoring(Settings):
    """How answers are judged: by a matching rule."""

    rule: Annotated[str, AfterValidator(check_rule)] = "popqa"
    """Matching rule: a name of `matching.RULES` ("segmented" where words have no spaces between
    them), or one of another package as package:name."""

    region: AnswerSpan = "first_line"
    """Judged part of the output; first_text_line passes over blank lines before the answer."""

    agreement: bool = True
    """Whether the verdicts of all rules, and on both parts of the output, are compared."""


class ReportSettings(Settings):
    """How tables and page are computed."""

    cluster: str | None = None
    """What intervals take as a whole: a column of the outcomes; the study's by default."""

    resamples: int = Field(default=10_000, ge=1)
    """Draws of intervals that need draws, such as those of corrected scores."""

    bootstrap_seed: int = 0
    """Seed of these draws."""

    margin: float | None = Field(default=None, gt=0, lt=1)
    """Difference of two rates that counts as none, as a fraction: tests equivalence besides."""

    answers: int = Field(default=500, ge=0)
    """Pairs of each model whose answers stand on the page."""

    figures: Literal["pdf", "png", "svg", "all", "none"] = "pdf"
    """Form in which the pictures of the page are written to `figures/` for papers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptGroup:
    """Prompts that are decoded alike."""

    prompts: Sequence[Prompt]
    """The prompts; ids are unique in the run."""

    params: GenerationParams
    """How to decode."""

    is_shared: bool = False
    """Whether the answers depend on the model alone, so that the runs of a sweep share them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """What is asked, what is judged and what is compared.

    Raises:
        ColumnNotFoundError: If a column is missing.
        DataError: If an id stands twice, or a pair compares what is not judged.
    """

    data: DataSource
    """Which rows were used."""

    groups: Mapping[str, PromptGroup]
    """Prompts by group; one group is named ""."""

    targets: pd.DataFrame
    """What is judged, one row a target: target_id; prompt_id, whose answer is judged; answers, the
    accepted ones, the reference first; fact_id; and whatever the judge and the noise floor read
    besides, such as question. The engine adds group and prompt_key."""

    pairs: pd.DataFrame
    """What is compared, one row a pair: first_target and second_target, and the columns of the
    outcome record that are known before anyone is asked. A further `<name>_target` gives the
    verdict of a third condition."""

    settings: Any = None
    """The study's settings with what depends on the data settled, such as the number of
    demonstrations; None where nothing does."""

    checks: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Tables on what goes in, which a reader must see beside the numbers."""

    context: Any = None
    """Whatever the study's runner needs, such as a store; it is not written to the folder."""

    def __post_init__(self) -> None:
        """Refuse a plan that does not hold together."""
        for name, frame, wanted in (
            ("targets", self.targets, ("target_id", "prompt_id", "answers", "fact_id")),
            ("pairs", self.pairs, ("pair_id", "fact_id", "first_target", "second_target")),
        ):
            missing = [column for column in wanted if column not in frame]
            if missing:
                raise ColumnNotFoundError(
                    f"the {name} of a plan need the column {', '.join(missing)}; there are "
                    f"{', '.join(map(str, frame.columns))}"
                )
            repeated = frame[wanted[0]].duplicated()
            if repeated.any():
                raise DataError(
                    f"the {name} of a plan hold {frame.loc[repeated, wanted[0]].iloc[0]!r} twice "
                    f"in column {wanted[0]}; each needs an id of its own"
                )
        known = pd.Index(self.targets["target_id"])
        for column in self.pairs.columns:
            if not str(column).endswith("_target"):
                continue
            strange = self.pairs.loc[self.pairs[column].notna(), column]
            strange = strange[known.get_indexer(pd.Index(strange)) < 0]
            if len(strange):
                raise DataError(
                    f"pair column {column!r} names {strange.iloc[0]!r}, which is no target_id"
                )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """A run with its verdicts, for the checks and exports of a study."""

    folder: RunFolder
    """The run folder."""

    model: str
    """Label of the model."""

    targets: pd.DataFrame
    """What was judged: `Plan.targets` with group, prompt_key, text, finish_reason, error, lookups,
    scores, thought and thought_source of the answers."""

    verdicts: pd.DataFrame
    """Verdicts, row by row those of `targets`."""

    outcomes: pd.DataFrame
    """The outcomes frame."""

    repeated: pd.DataFrame | None
    """Verdicts on the second answers, columns of `verdicts`; None where none were asked."""

    scoring: Any
    """How it was judged: an instance of `Study.scoring`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """Scored runs and how to report them."""

    runs: Sequence[Run]
    """The runs, labels distinct."""

    settings: ReportSettings
    """How tables and page are computed."""

    cluster: str
    """The column of what intervals and tests take as a whole."""

    @property
    def frame(self) -> pd.DataFrame:
        """The outcomes of all runs, one below the other; `model` holds their labels."""
        return pd.concat([run.outcomes for run in self.runs], ignore_index=True)

    @property
    def index(self) -> dict[str, int]:
        """Place of each run by its label, which gives it its marker and its hue."""
        return {run.label: place for place, run in enumerate(self.runs)}


class Study(ABC):
    """The same fact under two conditions.

    A subclass sets the class attributes and defines `load` and `plan`; everything else has a
    default that serves studies with one group of prompts, a matching rule and a paired table.
    """

    name: ClassVar[str]
    """Name of the study, which is that of its entry point and its command."""

    title: ClassVar[str]
    """Name for people."""

    question: ClassVar[str]
    """What it asks, in half a sentence, for pages and lists."""

    citation: ClassVar[str] = ""
    """What to cite, as BibTeX."""

    printed_prompts: ClassVar[str] = ""
    """Where the words are that the study's paper prints, for who asks for a preset of them by
    --prompts and the study has none; "" where no paper prints any."""

    source: ClassVar[type[Settings]] = SourceSettings
    """Where the data come from: the argument of `load`."""

    settings: ClassVar[type[StudySettings]] = StudySettings
    """How the study asks: its fields are options, manifest entries and documentation."""

    scoring: ClassVar[type[Settings]] = RuleScoring
    """How answers are judged; may be chosen anew for a finished run."""

    runner: ClassVar[str] = "transformers"
    """Name of the runner that is loaded unless another is named."""

    organism: ClassVar[type[Settings] | None] = None
    """What a model organism of the study is taught; None where there is no organism."""

    outcome: ClassVar[type[PairedOutcome]] = PairedOutcome
    """The record of a pair: its fields are the columns of the outcomes frame."""

    verdict: ClassVar[type[Verdict]] = Verdict
    """The record of a judgement."""

    conditions: ClassVar[tuple[str, str]] = ("first", "second")
    """What the two conditions are called on the page."""

    cells: ClassVar[tuple[str, str, str, str]] = ("both", "first only", "second only", "neither")
    """What the cells of the square are called."""

    clusters: ClassVar[Mapping[str, str]] = {"fact_id": "facts"}
    """Columns that intervals and tests may take whole, the default first, and what they hold."""

    stratum: ClassVar[str | None] = None
    """Column of the targets by which the noise floor is told; None for all together."""

    panel: ClassVar[str | None] = None
    """Column of the outcomes whose values are never pooled, such as the template."""

    groupings: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Name of each further table to the columns of the outcomes that group it."""

    of_second: ClassVar[tuple[str, ...]] = ()
    """Columns of the outcomes that describe what the second condition asks with, such as the
    category of a redirect, and nothing of the first."""

    singular: ClassVar[Mapping[str, str]] = {}
    """Name in tables of columns that hold lists, such as {"types": "type"}."""

    report: ClassVar[type[PairedReport]] = PairedReport
    """Computes tables and page; a subclass of `PairedReport` adds what the study has besides."""

    labels: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Wording of labels for people, by column as tables name it; the order is that of tables."""

    def configured(self, settings: Mapping[str, Any]) -> "Study":
        """Take what the settings of a finished run say of its tables.

        Args:
            settings: The manifest's settings.

        Returns:
            The study; the same one by default.
        """
        return self

    def keeping(self, out: Path) -> "Study":
        """Take the folder of a run, for studies that make data of their own which a reader needs.

        Args:
            out: Folder of the run.

        Returns:
            The study; the same one by default.
        """
        return self

    @abstractmethod
    def load(self, source: Any) -> Any:  # noqa: ANN401 - each study has its own data
        """Load the data.

        Args:
            source: An instance of `source`.

        Returns:
            The data, for `plan`.

        Raises:
            DataError: If they cannot be read.
        """

    @abstractmethod
    def plan(self, data: Any, settings: Any, *, runner: Runner | None = None) -> Plan:  # noqa: ANN401
        """Say what is asked, what is judged and what is compared.

        Args:
            data: What `load` returned.
            settings: An instance of `settings`.
            runner: Who will answer, for studies whose prompts depend on what fits a model; None
                when predictions were made elsewhere.

        Returns:
            The plan.

        Raises:
            DataError: If nothing is left to ask.
        """

    def load_runner(self, name: str, *, model: str | None, options: Mapping[str, object]) -> Any:  # noqa: ANN401 - a runner, or what `prepare_runner` makes one of
        """Load who answers.

        Args:
            name: Name of the runner, as for `models.load_runner`.
            model: Its model; None for runners without.
            options: Its keyword arguments.

        Returns:
            The runner, or what `prepare_runner` makes one of.

        Raises:
            RunnerError: If it cannot be loaded, or needs a model and none is named.
        """
        return load_runner(name, model=model, options=options)

    def prepare_runner(self, runner: Any, plan: Plan, settings: Any) -> Runner:  # noqa: ANN401
        """Put what the study brings between the engine and the runner, such as a store of facts.

        Args:
            runner: Who answers, as the user named it.
            plan: The plan.
            settings: How the study asks.

        Returns:
            The runner that is asked; the one given by default.
        """
        return runner  # type: ignore[no-any-return]

    def train_organism(
        self,
        data: Any,  # noqa: ANN401
        settings: Any,  # noqa: ANN401
        organism: Any,  # noqa: ANN401
        out: Path,
        *,
        options: Mapping[str, object],
    ) -> Any:  # noqa: ANN401
        """Train a small model on what it will be asked, so that the study runs without a network.

        Args:
            data: What `load` returned.
            settings: How the study asks.
            organism: An instance of `organism`.
            out: Folder of the model.
            options: Keyword arguments of its runner.

        Returns:
            The runner.

        Raises:
            NotImplementedError: If the study has no organism.
        """
        raise NotImplementedError(f"{self.name} has no model organism")

    def story(self, folder: str | os.PathLike[str], fact_id: str) -> str:
        """Tell what became of one fact in a run, for a terminal.

        Args:
            folder: The run.
            fact_id: The fact, as the outcomes name it.

        Returns:
            Lines of plain text; what a model wrote stands in quotes, control characters escaped.

        Raises:
            DataError: If the run has no such fact.
        """
        run = load_runs([folder], outcome=self.outcome)[0]
        rows = run.outcomes[run.outcomes["fact_id"] == fact_id]
        if rows.empty:
            known = ", ".join(run.outcomes["fact_id"].drop_duplicates().head(3))
            raise DataError(f"{folder} has no fact {fact_id!r}; it has {known} and others")
        lines = []
        for row in rows.astype(object).where(rows.notna(), None).to_dict("records"):
            lines.append(f"{row['pair_id']}, by {run.label}")
            for side in ("first", "second"):
                said = json.dumps(row.get(f"{side}_prediction"), ensure_ascii=False)
                verdict = {True: "right", False: "wrong", None: "not judged"}[
                    row[f"{side}_correct"]
                ]
                lines.append(f"  {row[f'{side}_condition']}: {said} ({verdict})")
        return "\n".join(lines)

    def variants(self, settings: Any) -> Sequence[tuple[str, Any]]:  # noqa: ANN401
        """Take settings that stand for several runs apart: a sweep.

        Args:
            settings: How the study asks.

        Returns:
            Name of a subfolder and settings of each run; one run with the name "" by default.
        """
        return [("", settings)]

    def settle_scoring(
        self,
        scoring: Any,  # noqa: ANN401
        settings: Mapping[str, Any],
        *,
        is_new_run: bool = False,
    ) -> Any:  # noqa: ANN401
        """Complete how answers are judged by how they are asked.

        Args:
            scoring: An instance of `scoring`.
            settings: The study's settings, as the manifest holds them.
            is_new_run: Whether the run is about to be asked, rather than judged anew.

        Returns:
            The scoring; the one given by default.

        Raises:
            ValueError: If a new run would be judged otherwise than its settings say.
        """
        return scoring

    def judge(self, scoring: Any, folder: RunFolder) -> Judge:  # noqa: ANN401
        """Make the judge of a run.

        Args:
            scoring: An instance of `scoring`.
            folder: The run, where a judge may keep a log of its own.

        Returns:
            The judge.
        """
        return RuleJudge(scoring.rule, region=scoring.region)

    def outcomes(self, pairs: pd.DataFrame, verdicts: pd.DataFrame, *, model: str) -> pd.DataFrame:
        """Put the verdicts on each pair side by side.

        Args:
            pairs: `Plan.pairs`.
            verdicts: One row a target, columns of `verdict`.
            model: Label of the model.

        Returns:
            One row a pair, columns of `outcome`: those of `pairs`, and for each `<name>_target`
            every field of the verdict as `<name>_<field>`, `is_correct` as `<name>_correct`; fields
            that the record does not have are left out. Conditions that `pairs` does not name are
            those of the study.
        """
        pairs = pairs.reset_index(drop=True)
        columns: dict[str, Any] = {
            name: pairs[name] for name in pairs.columns if not name.endswith("_target")
        }
        place = pd.Series(range(len(verdicts)), index=pd.Index(verdicts["target_id"]))
        for name in pairs.columns:
            if not name.endswith("_target"):
                continue
            side = name.removesuffix("_target")
            rows = place.reindex(pairs[name]).to_numpy()
            for field_name in verdicts.columns:
                column = f"{side}_{'correct' if field_name == 'is_correct' else field_name}"
                if column in self.outcome.model_fields and column not in columns:
                    columns[column] = _take(verdicts[field_name], rows)
        columns |= {"study": self.name, "model": model}
        for name, condition in zip(_CONDITIONS, self.conditions, strict=True):
            columns.setdefault(name, condition)
        wanted = {name: columns[name] for name in self.outcome.model_fields if name in columns}
        return make_frame(wanted, self.outcome)

    def further_numbers(self, outcomes: pd.DataFrame) -> Mapping[str, float]:
        """Compute single numbers besides those of the pairs, for tools that show nothing else.

        Args:
            outcomes: One row a pair of one model: columns of `Plan.pairs`, first_correct and
                second_correct. Clusters are there as a whole.

        Returns:
            By name, the same names whatever the verdicts; NaN where undefined. None by default.
        """
        return {}

    def checks(self, scored: Scored) -> Mapping[str, pd.DataFrame]:
        """Make tables on the soundness of a scored run, besides those of the engine.

        Args:
            scored: The run.

        Returns:
            Tables by name, none by default.
        """
        return {}

    def export(self, scored: Scored) -> None:  # noqa: B027 - to be overridden where needed
        """Write files in formats of others, such as those of a published study.

        Args:
            scored: The run; nothing is written by default. Its folder is one beside the run, which
                is empty but for the verdicts: what is written there takes its place in the run
                together with them.
        """

    def tables(self, report: Report) -> Mapping[str, Table]:
        """Compute the tables.

        Args:
            report: The runs.

        Returns:
            By name; "overall" has the counts of the paired table.
        """
        return self.report(self, report).tables()

    def page(self, report: Report, tables: Mapping[str, Table]) -> Page:
        """Say what stands on the page.

        Args:
            report: The runs.
            tables: What `tables` returned, and the checks of the runs.

        Returns:
            The page.
        """
        return self.report(self, report).page(tables)


class Analysis(ABC):
    """Reads finished runs and something else, and adds tables and sections to their page.

    It asks nothing. It is found by an entry point of the group `surface_consistency.analyses`.
    """

    name: ClassVar[str]
    """Name of the analysis, which is that of its entry point."""

    title: ClassVar[str]
    """Name for people."""

    settings: ClassVar[type[Settings]] = Settings
    """What it reads besides the runs, and how."""

    studies: ClassVar[tuple[str, ...]] = ()
    """Studies whose runs it reads; none named means all."""

    reading: ClassVar[str] = ""
    """What a reader must know of the numbers, before them; none by default."""

    drawn: ClassVar[tuple[str, ...]] = ()
    """Tables that the page shows as figures alone."""

    @abstractmethod
    def tables(self, report: Report, settings: Any) -> Mapping[str, Table]:  # noqa: ANN401
        """Compute its tables.

        Args:
            report: The runs.
            settings: An instance of `settings`.

        Returns:
            By name; a name of the study's own tables is refused.
        """

    def figures(self, report: Report, tables: Mapping[str, Table]) -> Iterable[Block]:
        """Draw what stands before the tables.

        Args:
            report: The runs.
            tables: What `tables` returned.

        Returns:
            The figures, none by default.
        """
        return ()

    def sections(self, report: Report, tables: Mapping[str, Table]) -> Sequence[Section]:
        """Say what it adds to the page.

        Args:
            report: The runs.
            tables: What `tables` returned.

        Returns:
            One section with `reading`, the figures and all tables but those of `drawn`.
        """
        blocks: list[Block] = [Prose(parts=[self.reading])] if self.reading else []
        blocks += self.figures(report, tables)
        blocks += [table for name, table in tables.items() if name not in self.drawn]
        return [Section(anchor=self.name, title=self.title, blocks=blocks)]

    def checks(self, report: Report, tables: Mapping[str, Table]) -> Sequence[Check]:
        """Say what a reader must know before its numbers.

        Args:
            report: The runs.
            tables: What `tables` returned.

        Returns:
            Checks for the page; those to look at stand on the terminal too. None by default.
        """
        return ()


def _take(values: pd.Series, rows: Any) -> pd.Series:  # noqa: ANN401
    """Take rows by number, missing where there is none."""
    found = pd.Series(rows).astype("Int64")
    known = found.notna()
    if known.all():
        return values.take(found.to_numpy(dtype="int64")).reset_index(drop=True)
    taken = values.take(found[known].to_numpy(dtype="int64"))
    taken.index = found.index[known]
    return taken.reindex(found.index)


_MEMBERS: Final = ("name", "title", "question", "load", "plan", "outcomes", "tables", "page")
_ANALYSIS_MEMBERS: Final = ("name", "title", "settings", "studies", "tables", "sections")


def find_study(name: str) -> Study:
    """Load a study.

    Args:
        name: Its name, "package:name", or "module:attribute".

    Returns:
        The study.

    Raises:
        PluginError: If there is none of that name, two packages have it, it does not import, lacks
            a member or has another name than its entry point; names the distribution.
    """
    study: Study = _made(STUDIES, name, Study, _MEMBERS, ("source", "settings", "scoring"))
    return study


def find_analysis(name: str) -> Analysis:
    """Load an analysis.

    Args:
        name: Its name, "package:name", or "module:attribute".

    Returns:
        The analysis.

    Raises:
        PluginError: As for `find_study`.
    """
    analysis: Analysis = _made(ANALYSES, name, Analysis, _ANALYSIS_MEMBERS, ("settings",))
    return analysis


def _made(
    plugins: Plugins, spec: str, kind: type[Any], members: tuple[str, ...], records: tuple[str, ...]
) -> Any:  # noqa: ANN401
    """Make what is registered, and hold it to its kind, its settings records and its name."""
    found = plugins.make(spec)
    plugins.check(spec, found, members)
    whose = f"{plugins.what} {spec!r}{plugins.owner(spec)}"
    if not isinstance(found, kind):
        raise PluginError(
            f"{whose} is a {type(found).__name__}; derive it from "
            f"surface_consistency.studies.{kind.__name__}"
        )
    for name in records:
        record = getattr(found, name)
        if not (isinstance(record, type) and issubclass(record, BaseModel)):
            raise PluginError(f"{whose}: {name} must be a settings record, got {record!r}")
    registered = [entry.rpartition(":")[2] for entry in plugins.names()]
    if found.name != spec.rpartition(":")[2] and (":" not in spec or found.name in registered):
        raise PluginError(
            f"{whose} has the name {found.name!r}; entry point and {plugins.what} must have one "
            "name, which no other has"
        )
    return found
