"""Base classes of studies and analyses, and the functions that find and check them.

The engine (`run`, `score`, `report`) handles the run folder, resuming, prompting, the repeated
sample, scoring, tables on disk and the page. A study is a class that defines the prompts, the items
to score and the pairs to compare. It is found by an entry point of the group
`surface_consistency.studies`.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
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
from surface_consistency.engine.paired.page import PageSpec
from surface_consistency.engine.plan import Plan, check_groupings, check_pair_columns
from surface_consistency.engine.settings import (
    JudgeScoring,
    RuleScoring,
    StudyRecords,
    StudySettings,
    ToyModelSettings,
)
from surface_consistency.errors import ColumnNotFoundError, DataError, PluginError
from surface_consistency.matching.rule import folded
from surface_consistency.models.runner import Runner
from surface_consistency.plugins import ANALYSES, STUDIES, Plugins
from surface_consistency.reading import shown
from surface_consistency.report.page import Block, Check, Prose, Section
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.frames import make_frame
from surface_consistency.schemas import PairedOutcome
from surface_consistency.schemas.settings import Settings
from surface_consistency.tables.numbers import Part
from surface_consistency.tables.table import Table

AnalysisT = TypeVar("AnalysisT", bound=Settings, default=Any)
T = TypeVar("T")


_CONDITIONS: Final = ("first_condition", "second_condition")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """A scored run, for the checks and exports of a study."""

    folder: RunFolder
    """The run folder."""

    model: str
    """Label of the model."""

    items: pd.DataFrame
    """The scored items: `Plan.items` with group, prompt_key and the answers' `ANSWER_FIELDS`."""

    verdicts: pd.DataFrame
    """Correctness labels, in the order of `items`."""

    outcomes: pd.DataFrame
    """The outcomes frame."""

    scoring: Any
    """How it was scored: an instance of the scoring record of the study."""

    @property
    def labels(self) -> Path | None:
        """File of human labels with which the scores are compared; None without labels."""
        path: Path = self.scoring.labels or self.folder.labels
        return path if path.is_file() and self.scoring.judge != "human" else None

    @property
    def shown(self) -> pd.DataFrame:
        """The items with the scored part of each answer as shown to annotators and LLMs."""
        return judges.shown_answers(self.items, self.verdicts["prediction"])


class Study(ABC):
    """Base class of studies, which compare the same facts under two conditions.

    A study has seven members. It sets `name` and `design`, and defines `load` and `plan`. If the
    defaults are not sufficient, it also sets `records` (of its settings, correctness labels and
    pairs), `judge` and `report` (its tables, the sections of its page, and other files).
    """

    name: ClassVar[str]
    """Name of the study, which is also the name of its entry point and its command."""

    design: ClassVar[Design]
    """How its two conditions are compared, and their names in tables and on the page."""

    records: ClassVar[StudyRecords] = StudyRecords()
    """Records of the data source, the settings, the scoring, a correctness label and a pair."""

    report: ClassVar[PageSpec] = PageSpec()
    """The functions that make tables, page and files; by default those of any paired study."""

    def __init_subclass__(cls) -> None:
        """Raise an error if a record is set on the class, where it would be ignored."""
        for name in [field.name for field in fields(StudyRecords)]:
            if name in vars(cls):
                raise TypeError(
                    f"{cls.__name__}.{name} is not a member of a study; write records = "
                    f"StudyRecords({name}=...)"
                )

    @abstractmethod
    def load(self, source: Any) -> Any:  # noqa: ANN401 - the data of the study
        """Load the data.

        Args:
            source: An instance of `records.source`.

        Returns:
            The data, for `plan`.

        Raises:
            DataError: If they cannot be read.
        """

    @abstractmethod
    def plan(
        self,
        data: Any,  # noqa: ANN401 - returned by `load`
        settings: Any,  # noqa: ANN401 - of the study's own record
        *,
        runner: Runner | None = None,
    ) -> Plan:
        """Return the prompts, the items to score and the pairs to compare.

        Args:
            data: The data that `load` returned.
            settings: An instance of `records.settings`.
            runner: The model backend, for studies whose prompts depend on the context length of
                the model; None if predictions were made elsewhere.

        Returns:
            The plan.

        Raises:
            DataError: If no prompt is left.
        """

    def judge(self, scoring: Any, folder: RunFolder | None) -> judges.Judge:  # noqa: ANN401 - own
        """Make the default scorer of the study, with which LLM judges and labels are compared.

        Args:
            scoring: An instance of `records.scoring`.
            folder: The run; None for answers that do not belong to a run.

        Returns:
            The scorer.

        Raises:
            TypeError: If `scoring` is not a `RuleScoring`; such a study must define this method.
        """
        if not isinstance(scoring, RuleScoring):
            raise TypeError(
                f"{self.name} scores by {type(scoring).__name__}; define `judge` of the study"
            )
        rule = folded(scoring.rule, fold_accents=scoring.fold_accents)
        return judges.RuleJudge(rule or scoring.rule, region=scoring.region)


def pair_outcomes(
    study: Study, pairs: pd.DataFrame, verdicts: pd.DataFrame, *, model: str
) -> pd.DataFrame:
    """Join the correctness labels of both conditions of each pair.

    Args:
        study: The study.
        pairs: `Plan.pairs`.
        verdicts: One row per target, with the columns of the label record of the study.
        model: Label of the model.

    Returns:
        One row per pair, with the columns of the outcome record of the study: those of `pairs`; for
        each `<name>_target` every field of its label record as `<name>_<field>`, `correct` as
        `<name>_correct`; and the derived columns of the record (`PairedOutcome.derived`). Fields
        that the record does not have are dropped. If `pairs` does not name the conditions, they are
        those of the study.
    """
    outcome = study.records.outcome
    pairs = pairs.reset_index(drop=True)
    columns: dict[str, Any] = {
        name: pairs[name] for name in pairs.columns if not name.endswith("_target")
    }
    columns |= outcome.derived(pairs, verdicts)
    places = pd.Index(verdicts["target_id"])
    for name in pairs.columns:
        if not name.endswith("_target"):
            continue
        side = name.removesuffix("_target")
        rows = places.get_indexer(pd.Index(pairs[name]))
        for field_name in verdicts.columns:
            column = f"{side}_{'correct' if field_name == 'correct' else field_name}"
            if column in outcome.model_fields and column not in columns:
                columns[column] = _take(verdicts[field_name], rows)
    columns |= {"study": study.name, "model": model}
    for name, condition in zip(_CONDITIONS, study.design.conditions, strict=True):
        columns.setdefault(name, condition)
    # Plans of earlier versions may lack an optional column.
    fields = outcome.model_fields.items()
    columns = {name: one.default for name, one in fields if not one.is_required()} | columns
    wanted = {name: columns[name] for name in outcome.model_fields if name in columns}
    return make_frame(wanted, outcome)


def outcomes_frame(study: Study, outcomes: pd.DataFrame) -> pd.DataFrame:
    """Return the outcomes of a study as the functions of the library read them.

    Args:
        study: The study.
        outcomes: Its outcomes.

    Returns:
        The outcomes with `cluster`: the first of `Design.clusters` that every pair has, such as the
        topic of SLAQ or the subject of RedirectQA, by which the study's report is clustered.
        Columns of several labels have singular names, such as `type`.
    """
    known = (
        name for name in study.design.clusters if name in outcomes and outcomes[name].notna().all()
    )
    singular = study.design.exploded_names.items()
    return outcomes.assign(cluster=outcomes[next(known, "item")]).rename(
        columns={old: new for old, new in singular if old not in PairedOutcome.model_fields}
    )


class Analysis(ABC, Generic[AnalysisT]):
    """Base class of analyses, which add tables and sections to the page of finished runs.

    An analysis can read further data, and sends no prompts. It is found by an entry point of the
    group `surface_consistency.analyses`.
    """

    name: ClassVar[str]
    """Name of the analysis, which is also the name of its entry point."""

    title: ClassVar[str]
    """Heading of its section."""

    settings: type[AnalysisT] = Settings  # type: ignore[assignment]
    """Record of its options, such as the further data that it reads."""

    studies: ClassVar[tuple[str, ...]] = ()
    """Studies whose runs it reads; empty for all studies."""

    caveat: ClassVar[str] = ""
    """Limitation of the numbers, shown before them; "" by default."""

    figure_only: ClassVar[tuple[str, ...]] = ()
    """Tables that the page shows only as figures."""

    def prepare(
        self, paths: Sequence[str | os.PathLike[str]], out: Path, settings: AnalysisT
    ) -> Sequence[str | os.PathLike[str]]:
        """Convert the given paths to run folders, if they are not run folders.

        Args:
            paths: Run folders, or files of other tools that the analysis reads.
            out: Folder of the page, in which folders of labels may be made (`import_verdicts`).
            settings: An instance of `settings`.

        Returns:
            The run folders to report; by default the given paths.
        """
        return paths

    @abstractmethod
    def tables(self, report: Report, settings: AnalysisT) -> Mapping[str, Table]:
        """Compute its tables.

        Args:
            report: The runs.
            settings: An instance of `settings`.

        Returns:
            Tables by name; the name of a table of the study is an error.
        """

    def figures(self, report: Report, tables: Mapping[str, Table]) -> Iterable[Block]:
        """Draw the figures that are shown before the tables.

        Args:
            report: The runs.
            tables: The tables of the analysis.

        Returns:
            The figures; empty by default.
        """
        return ()

    def sections(self, report: Report, tables: Mapping[str, Table]) -> Sequence[Section]:
        """Return the sections that it adds to the page.

        Args:
            report: The runs.
            tables: The tables of the analysis.

        Returns:
            One section with `caveat`, the figures and all tables except those of `figure_only`;
            empty if there is no such content.
        """
        blocks: list[Block] = [Prose(parts=[self.caveat])] if self.caveat else []
        blocks += self.figures(report, tables)
        blocks += [table for name, table in tables.items() if name not in self.figure_only]
        return [Section(anchor=self.name, title=self.title, blocks=blocks)] if blocks else []

    def checks(self, report: Report, tables: Mapping[str, Table]) -> Sequence[Check]:
        """Return checks that limit the interpretation of its numbers.

        Args:
            report: The runs.
            tables: The tables of the analysis.

        Returns:
            Checks for the page; warnings are also printed to the terminal. Empty by default.
        """
        return ()

    def finding(self, report: Report, tables: Mapping[str, Table]) -> Sequence[Part]:
        """Return the finding of the analysis, which replaces that of the study.

        Args:
            report: The runs.
            tables: The tables of the analysis.

        Returns:
            The first sentence of the page; empty by default. If it is given, the sections of the
            analysis come first. The finding of the study follows it, unless the analysis made the
            runs.
        """
        return ()


def _take(values: pd.Series, rows: npt.NDArray[np.int64]) -> pd.Series:
    """Take rows by number; -1 gives a missing value."""
    known = np.flatnonzero(rows >= 0)
    taken = values.take(rows[known])
    taken.index = pd.Index(known)
    return taken if len(known) == len(rows) else taken.reindex(range(len(rows)))


def make_plan(
    study: Study,
    data: Any,  # noqa: ANN401 - returned by `load`
    settings: StudySettings,
    runner: Runner | None = None,
) -> Plan:
    """Make the plan of a study and check it against the records of the study, before any prompt.

    Args:
        study: The study.
        data: The data that its `load` returned.
        settings: How to prompt the model.
        runner: The runner of the model, for studies whose prompts depend on its context length.

    Returns:
        The plan.

    Raises:
        DataError: If no prompt is left; if a column of the pairs is neither a field of the outcome
            record nor a target, or its field does not allow a value of it.
        ColumnNotFoundError: If neither the pairs nor the labels have a field of the outcome record.
        PluginError: If the groupings are invalid.
    """
    plan = study.plan(data, settings, runner=runner)
    check_pair_columns(plan.pairs, study.records.outcome)
    check_groupings(study.design.groupings, study.records.outcome, f"study {study.name!r}")
    _check_outcomes(study, plan)
    return plan


def _check_outcomes(study: Study, plan: Plan) -> None:
    """Make the outcome of a pair with empty labels, to find columns that would be missing."""
    if plan.pairs.empty:
        return
    blank = pd.DataFrame({"target_id": plan.items["target_id"][:1]})
    verdicts = blank.assign(**dict.fromkeys(set(study.records.verdict.model_fields) - {*blank}))
    try:
        pair_outcomes(study, plan.pairs[:1], verdicts, model="model")
    except ColumnNotFoundError as error:
        raise ColumnNotFoundError(
            f"the pairs of a plan: {error}; add it there, or add the field to the label record"
        ) from error
    except (DataError, KeyError, TypeError, ValueError):
        return  # Values are checked when there are correctness labels.


def label_checks(study: Study, scored: Scored, labels: Path) -> dict[str, pd.DataFrame]:
    """Validate the scores against human labels, and correct rates for errors of the scorer.

    Args:
        study: The study.
        scored: The run.
        labels: File of labels of some of its answers.

    Returns:
        "judge_agreement" by `Design.kind`, see `agreement_by_kind`; "corrected", see
        `corrected_table`, empty if no rate can be corrected.

    Raises:
        DataError: If the labels cannot be read, belong to another run, or are all empty.
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


def make_judge(study: Study, scoring: JudgeScoring, folder: RunFolder) -> judges.Judge:
    """Make the scorer of a run: the rule of the study, an LLM judge, or human labels.

    Args:
        study: The study.
        scoring: How answers are scored.
        folder: The run; an LLM judge writes its log to a subfolder of it.

    Returns:
        The scorer.

    Raises:
        SourceNotFoundError: If there is no file of labels.
        DataError: If labels cannot be read or belong to another run, or the labelling sheet exists.
        RunnerError: If the LLM judge cannot be loaded.
    """
    judges.check_labelling(scoring, folder)
    own, by = study.judge(scoring, folder), judges.make_chosen_judge(scoring, folder)
    if by is None:
        return own
    if isinstance(own, judges.Overrulable):
        return own.overruled(by)
    return judges.OverrulingJudge(own, by, study.records.verdict)


_MEMBERS: Final = ("name", "design", "records", "load", "plan", "judge", "report")
_ANALYSIS_MEMBERS: Final = ("name", "title", "settings", "studies", "tables", "sections")


def find_study(name: str) -> Study:
    """Load a study.

    Args:
        name: Its name, "package:name", or "module:attribute".

    Returns:
        The study.

    Raises:
        PluginError: If there is no study of that name, or two packages have one; if it cannot be
            imported, lacks a member, or has another name than its entry point; or if a settings
            record or a grouping is invalid. The message names the distribution.
    """
    if name == VERDICTS:
        raise PluginError(
            f"study {name!r} not found: the folder contains correctness labels that were made "
            "elsewhere, without prompts; use `surface-consistency compare`, or make the page "
            "again with `report`"
        )
    study = _made(STUDIES, name, Study, _MEMBERS)  # type: ignore[type-abstract]
    whose = STUDIES.named(name)
    if not isinstance(study.records, StudyRecords):
        raise PluginError(
            f"{whose}: records must be StudyRecords, got {study.records!r}; write records = "
            "StudyRecords(settings=..., outcome=...)"
        )
    toy_model = study.records.toy_model
    for part in ("source", "settings", "scoring", *(["toy_model"] if toy_model else [])):
        _check_record(getattr(study.records, part), f"{whose}: {part}")
    if toy_model is not None and not issubclass(toy_model, ToyModelSettings):
        raise PluginError(f"{whose}: toy_model must be a ToyModelSettings, got {toy_model!r}")
    if not issubclass(study.records.scoring, JudgeScoring):
        raise PluginError(
            f"{whose}: scoring {study.records.scoring.__name__} lacks the option `judge`; "
            "derive it from surface_consistency.engine.settings.JudgeScoring"
        )
    if not isinstance(study.design, Design):
        raise PluginError(
            f"{whose}: design must be a Design, got {study.design!r}; write design = "
            "Design(title='...', conditions=('...', '...'))"
        )
    check_groupings(study.design.groupings, study.records.outcome, whose)
    return study


def study_of(folder: RunFolder) -> Study:
    """Find the study that the manifest of a run names.

    Args:
        folder: The run.

    Returns:
        The study.

    Raises:
        PluginError: As for `find_study`; only registered studies are imported.
    """
    name, reason = folder.read_manifest().study, ""
    try:
        return find_study(name)
    except PluginError as error:
        if name not in {VERDICTS, *(one.rpartition(":")[2] for one in STUDIES.names())}:
            reason = (
                f"study {shown(name)} not found; available: {', '.join(STUDIES.names())}. Register "
                f"it as an entry point of {STUDIES.group}. Without an entry point, repeat the "
                "command `surface-consistency run`: it writes the report, and scores by another "
                "`rule` if you name one. In Python, pass study= to score_run and report_runs, and "
                "the frames of outcomes.parquet to compare"
            )
        raise PluginError(f"{folder.manifest}: {reason or error}") from error


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
    """Make a registered object, and check its class and its name."""
    plugin = plugins.make(spec)
    plugins.check(spec, plugin, members)
    if not isinstance(plugin, kind):
        raise PluginError(
            f"{plugins.named(spec)} is a {type(plugin).__name__}; derive it from "
            f"surface_consistency.studies.{kind.__name__}"
        )
    name = plugin.name  # type: ignore[attr-defined]
    if name != spec.rpartition(":")[2] and (
        ":" not in spec or name in [entry.rpartition(":")[2] for entry in plugins.names()]
    ):
        raise PluginError(
            f"{plugins.named(spec)} has the name {name!r}; entry point and {plugins.what} must "
            "have the same name, which must be unique"
        )
    return plugin


def _check_record(record: object, where: str) -> None:
    """Raise an error if an object is not a settings record."""
    if not (isinstance(record, type) and issubclass(record, BaseModel)):
        raise PluginError(f"{where} must be a settings record, got {record!r}")
