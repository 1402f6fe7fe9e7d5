"""What a study is: what differs between the two conditions, and nothing of how runs are made.

The engine (`run`, `score`, `report`) owns the run folder, resume, asking, the
repeated sample, scoring, tables on disk and the page. A study is a class that says what is asked,
what is judged and what is compared; it is found by an entry point of the group
`surface_consistency.studies`.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Generic

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import BaseModel
from typing_extensions import TypeVar

from surface_consistency.engine.design import VERDICTS, Design, Report
from surface_consistency.engine.judging import judges
from surface_consistency.engine.judging.labels import (
    agreement_by_kind,
    corrected_table,
    labels_by_target,
)
from surface_consistency.engine.paired.page import PageSpec, fact_trace
from surface_consistency.engine.plan import Plan, check_groupings, check_pair_columns
from surface_consistency.engine.settings import (
    JudgeScoring,
    RuleScoring,
    SourceSettings,
    StudySettings,
)
from surface_consistency.errors import ColumnNotFoundError, DataError, PluginError
from surface_consistency.models.runner import Runner
from surface_consistency.plugins import ANALYSES, STUDIES, Plugins
from surface_consistency.report.page import Block, Check, Prose, Section
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.frames import make_frame
from surface_consistency.schemas import PairedOutcome, Verdict
from surface_consistency.schemas.settings import Settings
from surface_consistency.tables.numbers import Part
from surface_consistency.tables.table import Table

SourceT = TypeVar("SourceT", bound=Settings, default=Any)
SettingsT = TypeVar("SettingsT", bound="StudySettings", default=Any)
AnalysisT = TypeVar("AnalysisT", bound=Settings, default=Any)
DataT = TypeVar("DataT", default=Any)
ScoringT = TypeVar("ScoringT", bound=JudgeScoring, default=Any)
T = TypeVar("T")


_CONDITIONS: Final = ("first_condition", "second_condition")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """A run with its verdicts, for the checks and exports of a study."""

    folder: RunFolder
    """The run folder."""

    model: str
    """Label of the model."""

    items: pd.DataFrame
    """What was judged: `Plan.items` with group, prompt_key and the answers' `ANSWER_FIELDS`."""

    verdicts: pd.DataFrame
    """Verdicts, row by row those of `targets`."""

    outcomes: pd.DataFrame
    """The outcomes frame."""

    scoring: Any
    """How it was judged: an instance of `Study.scoring`."""

    @property
    def labels(self) -> Path | None:
        """Labels of people that the judge is held against; None where there are none."""
        path: Path = self.scoring.labels or self.folder.labels
        return path if path.is_file() and self.scoring.judge != "human" else None

    @property
    def shown(self) -> pd.DataFrame:
        """The targets with the judged part of each answer as text, as people and models see it."""
        return judges.shown_answers(self.items, self.verdicts["prediction"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyModel:
    """A small model that learns what it will be asked, so that a study runs without a network."""

    settings: type[Settings]
    """What it is taught and how, as options of the command."""

    train: Callable[..., Runner]
    """Trains it: called with the data, how the study asks, an instance of `settings`, the folder of
    the model, and by name the `options` of its runner; returns who answers."""


class Study(ABC, Generic[SourceT, SettingsT, DataT, ScoringT]):
    """The same fact under two conditions.

    An author knows seven members: `name` and `design` are set, `load` and `plan` defined, and where
    the defaults do not serve, `settings` (how it asks), `judge` and `report` (its tables and the
    sections of its page). `source`, `scoring`, `outcome` and `verdict` are records that these read
    and write; the others are for the few that need them, such as a sweep. The types that it may
    name are those of where the data come from, how it asks, its data, and how it judges:
    `Study[MySource, MySettings, MyData, MyScoring]`.
    """

    name: ClassVar[str]
    """Name of the study, which is that of its entry point and its command."""

    design: ClassVar[Design]
    """How its two conditions are compared, and what tables and page call them."""

    source: type[SourceT] = SourceSettings  # type: ignore[assignment]
    """Where the data come from: the argument of `load`."""

    settings: type[SettingsT] = StudySettings  # type: ignore[assignment]
    """How the study asks: its fields are options, manifest entries and documentation."""

    scoring: type[ScoringT] = RuleScoring  # type: ignore[assignment]
    """How answers are judged; may be chosen anew for a finished run."""

    outcome: ClassVar[type[PairedOutcome]] = PairedOutcome
    """The record of a pair: its fields are the columns of the outcomes frame."""

    verdict: ClassVar[type[Verdict]] = Verdict
    """The record of a judgement."""

    report: ClassVar[PageSpec] = PageSpec()
    """The functions that make tables and page; by default those of any paired study."""

    runners: ClassVar[Mapping[str, Callable[..., Runner]]] = {}
    """Runners of the study's own by name, each called with the model and the options; the first is
    loaded unless another is named, and where there is none, transformers."""

    toy_model: ClassVar[ToyModel | None] = None
    """A small model that the study can train on what it asks; None where there is none."""

    def with_output_dir(self, out: Path) -> "Study":
        """Take the folder of a run, for studies that make data of their own which a reader needs.

        Args:
            out: Folder of the run.

        Returns:
            The study; the same one by default.
        """
        return self

    @abstractmethod
    def load(self, source: SourceT) -> DataT:
        """Load the data.

        Args:
            source: An instance of `source`.

        Returns:
            The data, for `plan`.

        Raises:
            DataError: If they cannot be read.
        """

    @abstractmethod
    def plan(self, data: DataT, settings: SettingsT, *, runner: Runner | None = None) -> Plan:
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

    def trace(self, folder: str | os.PathLike[str], fact_id: str) -> str:
        """Tell what became of one fact in a run, for a terminal.

        Args:
            folder: The run.
            fact_id: The fact, as the outcomes name it.

        Returns:
            Lines of plain text; what a model wrote stands in quotes, control characters escaped.

        Raises:
            DataError: If the run has no such fact.
        """
        return fact_trace(folder, fact_id, outcome=self.outcome)

    def sweep(self, settings: SettingsT) -> Sequence[tuple[str, SettingsT]]:
        """Take settings that stand for several runs apart: a sweep.

        Args:
            settings: How the study asks.

        Returns:
            Name of a subfolder and settings of each run; one run with the name "" by default.
        """
        return [("", settings)]

    def judge(self, scoring: ScoringT, folder: RunFolder) -> judges.Judge:
        """Make the study's own judge, which models and people are held against.

        Args:
            scoring: An instance of `scoring`.
            folder: The run.

        Returns:
            The judge.
        """
        if not isinstance(scoring, RuleScoring):
            raise TypeError(
                f"{self.name} judges by {type(scoring).__name__}; define `judge` of the study"
            )
        return judges.RuleJudge(scoring.rule, region=scoring.region)

    def chosen_judge(self, scoring: ScoringT, folder: RunFolder) -> judges.Judge | None:
        """Make the model or the people that judge in place of the study's own judge.

        Args:
            scoring: An instance of `scoring`.
            folder: The run, where a model that judges keeps a log of its own.

        Returns:
            The judge; None where the study's own judges.
        """
        return judges.make_chosen_judge(scoring, folder)

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
        places = pd.Index(verdicts["target_id"])
        for name in pairs.columns:
            if not name.endswith("_target"):
                continue
            side = name.removesuffix("_target")
            rows = places.get_indexer(pd.Index(pairs[name]))
            for field_name in verdicts.columns:
                column = f"{side}_{'correct' if field_name == 'is_correct' else field_name}"
                if column in self.outcome.model_fields and column not in columns:
                    columns[column] = _take(verdicts[field_name], rows)
        columns |= {"study": self.name, "model": model}
        for name, condition in zip(_CONDITIONS, self.design.conditions, strict=True):
            columns.setdefault(name, condition)
        wanted = {name: columns[name] for name in self.outcome.model_fields if name in columns}
        return make_frame(wanted, self.outcome)

    def extra_metrics(self, outcomes: pd.DataFrame) -> Mapping[str, float]:
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
            Tables by name, none by default. Of the names of `label_checks` they take its place.
        """
        return {}

    def export(self, scored: Scored) -> None:
        """Write files in formats of others, such as those of a published study.

        Args:
            scored: The run; nothing is written by default. Its folder is one beside the run, which
                is empty but for the verdicts: what is written there takes its place in the run
                together with them.
        """


class Analysis(ABC, Generic[AnalysisT]):
    """Reads finished runs and something else, and adds tables and sections to their page.

    It asks nothing. It is found by an entry point of the group `surface_consistency.analyses`.
    """

    name: ClassVar[str]
    """Name of the analysis, which is that of its entry point."""

    title: ClassVar[str]
    """Name for people."""

    settings: type[AnalysisT] = Settings  # type: ignore[assignment]
    """What it reads besides the runs, and how."""

    studies: ClassVar[tuple[str, ...]] = ()
    """Studies whose runs it reads; none named means all."""

    caveat: ClassVar[str] = ""
    """What a reader must know of the numbers, before them; none by default."""

    figure_only: ClassVar[tuple[str, ...]] = ()
    """Tables that the page shows as figures alone."""

    def prepare(
        self, paths: Sequence[str | os.PathLike[str]], out: Path, settings: AnalysisT
    ) -> Sequence[str | os.PathLike[str]]:
        """Make the runs that are reported of what the user names, where these are none yet.

        Args:
            paths: Run folders, or files of other tools that the analysis reads.
            out: Folder of the page, in which folders of verdicts may be made (`import_verdicts`).
            settings: An instance of `settings`.

        Returns:
            The run folders that are reported; the same by default.
        """
        return paths

    @abstractmethod
    def tables(self, report: Report, settings: AnalysisT) -> Mapping[str, Table]:
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
            One section with `caveat`, the figures and all tables but those of `figure_only`; none
            where there is nothing of these.
        """
        blocks: list[Block] = [Prose(parts=[self.caveat])] if self.caveat else []
        blocks += self.figures(report, tables)
        blocks += [table for name, table in tables.items() if name not in self.figure_only]
        return [Section(anchor=self.name, title=self.title, blocks=blocks)] if blocks else []

    def checks(self, report: Report, tables: Mapping[str, Table]) -> Sequence[Check]:
        """Say what a reader must know before its numbers.

        Args:
            report: The runs.
            tables: What `tables` returned.

        Returns:
            Checks for the page; those to look at stand on the terminal too. None by default.
        """
        return ()

    def finding(self, report: Report, tables: Mapping[str, Table]) -> Sequence[Part]:
        """Say what the page begins with, where that is the analysis's own.

        Args:
            report: The runs.
            tables: What `tables` returned.

        Returns:
            The sentence in the place of the study's, whose finding then follows it where the
            analysis did not make the runs, and the sections of the analysis come first; nothing by
            default.
        """
        return ()


def _take(values: pd.Series, rows: npt.NDArray[np.int64]) -> pd.Series:
    """Take rows by number, missing where it is -1."""
    known = np.flatnonzero(rows >= 0)
    taken = values.take(rows[known])
    taken.index = pd.Index(known)
    return taken if len(known) == len(rows) else taken.reindex(range(len(rows)))


def make_plan(
    study: Study[Any, SettingsT, DataT],
    data: DataT,
    settings: SettingsT,
    runner: Runner | None = None,
) -> Plan:
    """Let a study plan, and hold the plan to what the study declares, before anything is asked.

    Args:
        study: The study.
        data: What its `load` returned.
        settings: How to ask.
        runner: The runner of the model, for studies whose prompts depend on what fits it.

    Returns:
        The plan.

    Raises:
        DataError: If nothing is left to ask, or a column of the pairs is neither a field of the
            outcome record nor a target, or holds what its field does not allow.
        ColumnNotFoundError: If a field of the outcome record is told by neither pairs nor verdicts.
        PluginError: If the groupings are none.
    """
    plan = study.plan(data, settings, runner=runner)
    check_pair_columns(plan.pairs, study.outcome)
    check_groupings(study.design.groupings, study.outcome, f"study {study.name!r}")
    _check_outcomes(study, plan)
    return plan


def _check_outcomes(study: Study, plan: Plan) -> None:
    """Lay out a pair whose answers nobody has judged yet, and so see what no row would have."""
    if plan.pairs.empty:
        return
    blank = pd.DataFrame({"target_id": plan.items["target_id"][:1]})
    verdicts = blank.assign(**dict.fromkeys(set(study.verdict.model_fields) - {*blank}))
    try:
        study.outcomes(plan.pairs[:1], verdicts, model="model")
    except ColumnNotFoundError as error:
        raise ColumnNotFoundError(
            f"the pairs of a plan: {error}; put it there, or give the field to the verdict record"
        ) from error
    except (DataError, KeyError, TypeError, ValueError):
        return  # What the fields hold is seen once there are verdicts.


def label_checks(study: Study, scored: Scored, labels: Path) -> dict[str, pd.DataFrame]:
    """Hold the judge against labels of people, and take its errors out of the scores.

    Args:
        study: The study.
        scored: The run.
        labels: File of labels of some of its answers.

    Returns:
        "judge_agreement" by `Design.kind`, see `agreement_by_kind`; "corrected", see
        `corrected_table`, empty where nothing can be corrected.

    Raises:
        DataError: If the labels cannot be read, are not of this run, or label nothing.
    """
    truth = labels_by_target(scored.shown, labels)
    table = agreement_by_kind(scored.items[study.design.kind], scored.verdicts, truth)
    corrected = corrected_table(
        scored.outcomes,
        table,
        kind=study.design.kind,
        cluster=next(iter(study.design.clusters)),
        facet=study.design.facet,
    )
    return {"judge_agreement": table, "corrected": corrected}


def make_judge(
    study: Study[Any, Any, Any, ScoringT], scoring: ScoringT, folder: RunFolder
) -> judges.Judge:
    """Make the judge of a run: the study's own, or a model or people in its place.

    Args:
        study: The study.
        scoring: How answers are judged.
        folder: The run, where a model that judges keeps its log, in a folder of its own.

    Returns:
        The judge.

    Raises:
        SourceNotFoundError: If there is no file of labels.
        DataError: If labels cannot be read or are not of this run, or the labelling sheet is there
            already.
        RunnerError: If the judging model cannot be loaded.
    """
    judges.check_labelling(scoring, folder)
    own, by = study.judge(scoring, folder), study.chosen_judge(scoring, folder)
    if by is None:
        return own
    if isinstance(own, judges.Overrulable):
        return own.overruled(by)
    return judges.OverrulingJudge(own, by, study.verdict)


_MEMBERS: Final = ("name", "design", "load", "plan", "outcomes", "report")
_ANALYSIS_MEMBERS: Final = ("name", "title", "settings", "studies", "tables", "sections")


def find_study(name: str) -> Study:
    """Load a study.

    Args:
        name: Its name, "package:name", or "module:attribute".

    Returns:
        The study.

    Raises:
        PluginError: If there is none of that name, two packages have it, it does not import, lacks
            a member, has another name than its entry point, a settings record that no options can
            be made of, or groupings that are none; names the distribution.
    """
    if name == VERDICTS:
        raise PluginError(
            f"no study {name!r}: a folder of it holds verdicts from elsewhere, which are judged "
            "already and compared, not asked; use `surface-consistency compare`, or make the page "
            "anew with `report`"
        )
    study = _made(STUDIES, name, Study, _MEMBERS)  # type: ignore[type-abstract]
    whose = STUDIES.named(name)
    for part in ("source", "settings", "scoring"):
        _check_record(getattr(study, part), f"{whose}: {part}")
    if study.toy_model is not None:
        _check_record(study.toy_model.settings, f"{whose}: toy_model.settings")
    if not issubclass(study.scoring, JudgeScoring):
        raise PluginError(
            f"{whose}: scoring {study.scoring.__name__} lacks the options of who judges; derive it "
            "from surface_consistency.engine.settings.JudgeScoring"
        )
    if not isinstance(study.design, Design):
        raise PluginError(
            f"{whose}: design must be a Design, got {study.design!r}; write design = "
            "Design(title='...', conditions=('...', '...'))"
        )
    check_groupings(study.design.groupings, study.outcome, whose)
    return study


def study_of(folder: RunFolder) -> Study:
    """Find the study that the manifest of a run names.

    Args:
        folder: The run.

    Returns:
        The study.

    Raises:
        PluginError: As for `find_study`; a name in a file imports nothing that is not registered.
    """
    try:
        return find_study(folder.read_manifest().study)
    except PluginError as error:
        raise PluginError(f"{folder.manifest}: study: {error}") from error


def find_analysis(name: str) -> Analysis:
    """Load an analysis.

    Args:
        name: Its name, "package:name", or "module:attribute".

    Returns:
        The analysis.

    Raises:
        PluginError: As for `find_study`.
    """
    analysis = _made(ANALYSES, name, Analysis, _ANALYSIS_MEMBERS)  # type: ignore[type-abstract]
    _check_record(analysis.settings, f"{ANALYSES.named(name)}: settings")
    return analysis


def _made(plugins: Plugins, spec: str, kind: type[T], members: tuple[str, ...]) -> T:
    """Make what is registered, and hold it to its kind and its name."""
    plugin = plugins.make(spec)
    plugins.check(spec, plugin, members)
    if not isinstance(plugin, kind):
        raise PluginError(
            f"{plugins.named(spec)} is a {type(plugin).__name__}; derive it from "
            f"surface_consistency.studies.{kind.__name__}"
        )
    registered = [entry.rpartition(":")[2] for entry in plugins.names()]
    name = plugin.name  # type: ignore[attr-defined]
    if name != spec.rpartition(":")[2] and (":" not in spec or name in registered):
        raise PluginError(
            f"{plugins.named(spec)} has the name {name!r}; entry point and {plugins.what} must "
            "have one name, which no other has"
        )
    return plugin


def _check_record(record: object, where: str) -> None:
    """Refuse an object that is not a settings record."""
    if not (isinstance(record, type) and issubclass(record, BaseModel)):
        raise PluginError(f"{where} must be a settings record, got {record!r}")
