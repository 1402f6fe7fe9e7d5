"""The settings records that all studies share: data, prompts, judges and reports.

Settings modules import pydantic and nothing that computes, so that the options of a command are
printed without loading it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, Field, model_validator

from surface_consistency.engine.published import read_published, refuse_contradiction, values_of
from surface_consistency.errors import PluginError
from surface_consistency.matching.rule import AnswerSpan
from surface_consistency.models.registry import RunnerName, load_runner
from surface_consistency.plugins import STUDIES
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.outcomes import PairedOutcome
from surface_consistency.schemas.scoring import OptionScore
from surface_consistency.schemas.settings import Rare, Settings, values_of_items
from surface_consistency.schemas.verdicts import Verdict

if TYPE_CHECKING:
    from surface_consistency.engine.judging.judges import LLMJudge
    from surface_consistency.models.runner import Runner
    from surface_consistency.schemas.prompts import GenerationParams

_NEED_A_MODEL: Final = ("openai", "transformers")
RecordT = TypeVar("RecordT", bound=Settings)


class SourceSettings(Settings):
    """Where the rows come from."""

    source: str
    """Hub id, folder, Parquet, JSONL or CSV file, or "sample" for the rows that come along."""

    revision: str | None = None
    """Commit, tag or branch of the data."""

    split: Rare[str] = "test"
    """Split of the data."""

    column: Mapping[str, str] = Field(default_factory=dict)
    """Column of a field, as FIELD=COLUMN, where the source uses a name of its own."""


class StudySettings(Settings):
    """How a study asks."""

    options_are_spellings: ClassVar[bool] = False
    """Whether options that differ only in letter case and outer spaces are one answer."""

    seed: int = 0
    """Seed of every choice, that of the repeated sample among them."""

    limit: int | None = Field(default=None, ge=1)
    """Ask only so many facts, each under both conditions."""

    repeat: int = Field(default=200, ge=0)
    """Prompts of each group asked a second time, for the noise floor; 0 for none."""

    max_reasoning_tokens: int | None = Field(default=None, ge=1)
    """Longest reasoning before an answer, in tokens, for reasoning models; without, reasoning and
    answer share the limit of the answer."""

    reasoning_tags: Rare[Items[str] | None] = None
    """Opening and closing tag between which a model thinks, where they are not among the known."""

    reasoning_opened: Rare[bool | None] = None
    """Whether every prompt ends within reasoning, so that an answer begins behind a closing tag; by
    default as the chat template says."""

    @model_validator(mode="after")
    def _has_pairs(self) -> "StudySettings":
        """Refuse an opening tag without a closing one."""
        if self.reasoning_tags is not None:
            from surface_consistency.models.reasoning import reasoning_tags

            reasoning_tags(self.reasoning_tags)
        return self

    def with_reasoning(self, params: "GenerationParams") -> "GenerationParams":
        """Add what these settings say of reasoning to how a group of prompts is decoded.

        Args:
            params: The decoding; what it says of reasoning itself stays.

        Returns:
            The decoding of a run.
        """
        names = ("max_reasoning_tokens", "reasoning_tags", "reasoning_opened")
        return params.model_copy(
            update={name: getattr(self, name) for name in names if getattr(params, name) is None}
        )

    def for_command(self, out: Path) -> Self:
        """Return these settings for a command that writes to a folder.

        Args:
            out: Folder of all runs of the command, for studies that keep something for all models.

        Returns:
            The settings; by default these.
        """
        return self

    def variants(self) -> Sequence[tuple[str, Self]]:
        """Split the settings of a sweep into those of each run.

        Returns:
            Name of a subfolder and settings of each run; by default one run with the name "".
        """
        return [("", self)]


class OptionSettings(StudySettings):
    """How a study asks that can read answers from the probabilities of options too."""

    read: Literal["generate", "log-odds", "multiple-choice"] = "generate"
    """Whether the model writes its answer, or chooses among the reference and those of other facts:
    the most probable one (multiple-choice), or none unless it is more probable than all others
    together (log-odds)."""

    options: Rare[int] = Field(default=4, ge=2)
    """Options of each fact where answers are not written, the reference among them."""

    option_score: Rare[OptionScore] = "sum"
    """How options are compared: by the sum of their tokens' log-probabilities, or by its mean per
    token or per character."""


class PaperSettings(Settings):
    """Settings of which a paper states some; `published.toml` in their package has the values."""

    as_published: bool = False
    """Use the paper's value of every setting that it states; of a study these include prompts,
    decoding, judge and weights. Another value of such a setting is refused."""

    @classmethod
    def protocols(cls) -> tuple[str | None, ...]:
        """List the values of the field `protocol`, the default first; only None without that field.

        Returns:
            The protocols.
        """
        field = cls.model_fields.get("protocol")
        return get_args(field.annotation) if field else (None,)

    @classmethod
    def paper(cls, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read what the paper states.

        Args:
            settings: Settings by name, with the `protocol` of a study that has several.

        Returns:
            See `engine.published.read_published`.
        """
        known, chosen = cls.protocols(), settings.get("protocol")
        # An unknown protocol is refused by its field.
        protocol = chosen if chosen in known else known[0]
        return read_published(cls.__module__.rpartition(".")[0], protocol)

    @model_validator(mode="before")
    @classmethod
    def _set_as_published(cls, given: object) -> object:
        """Set what the paper states, where nothing else is given."""
        if isinstance(given, Mapping) and str(given.get("as_published")).lower() == "true":
            return {**values_of(cls, cls.paper(given)["settings"]), **given}
        return given

    @model_validator(mode="after")
    def _is_as_published(self) -> Self:
        """Refuse what contradicts the paper."""
        if self.as_published:
            chosen = {name: getattr(self, name) for name in type(self).model_fields}
            published = values_of(type(self), self.paper(chosen)["settings"])
            refuse_contradiction(chosen, published)
        return self


class PublishedSettings(PaperSettings, StudySettings):
    """How a study asks that implements a paper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideModel:
    """Who is asked, as settings name it: `<prefix>_model`, `<prefix>_runner`, `<prefix>_option`."""

    prefix: str
    """What the names of its settings begin with, such as "judge"."""

    model: str | None
    """Hub id, folder or server's id; None for runners without a model."""

    runner: str = "openai"
    """Name of its runner."""

    option: Mapping[str, str] = field(default_factory=dict)
    """Keyword arguments of the runner, their values JSON or text."""

    label: str | None = None
    """Name of the model in tables; None for that of the model, or of the runner."""

    @classmethod
    def of(cls, settings: BaseModel, prefix: str) -> "SideModel":
        """Read off settings who is asked.

        Args:
            settings: The settings, with fields that begin with the prefix.
            prefix: The beginning, such as "judge".

        Returns:
            The model.
        """
        names = ("model", "runner", "option", "label")
        known = {
            name: f"{prefix}_{name}" for name in names if hasattr(settings, f"{prefix}_{name}")
        }
        return cls(prefix=prefix, **{name: getattr(settings, long) for name, long in known.items()})

    @property
    def lacks_model(self) -> bool:
        """Whether the runner needs a model and none is named."""
        return self.model is None and self.runner in _NEED_A_MODEL

    def load(self) -> "Runner":
        """Load the runner.

        Returns:
            The runner.

        Raises:
            RunnerError: If it cannot be loaded.
            RecordError: If an option is JSON beyond bounds.
        """
        return load_runner(self.runner, model=self.model, options=self.options)

    @classmethod
    def all_of(cls, settings: BaseModel) -> "list[SideModel]":
        """List the models that settings name.

        Args:
            settings: The settings.

        Returns:
            Those of all prefixes.
        """
        runners = [name for name in type(settings).model_fields if name.endswith("_runner")]
        sides = [cls.of(settings, name.removesuffix("_runner")) for name in runners]
        return [side for side in sides if side.model is not None]

    @property
    def options(self) -> dict[str, object]:
        """Keyword arguments of the runner."""
        return values_of_items(self.option, f"{self.prefix}_option")

    def name(self, runner: "Runner") -> str:
        """Name the model in tables and logs.

        Args:
            runner: What `load` returned.

        Returns:
            The label, else the model, else the runner's name.
        """
        return self.label or self.model or runner.name


class JudgeScoring(Settings):
    """How answers are judged: by rule, by a model, or by people."""

    judge: Literal["rule", "llm", "human"] = "rule"
    """Who judges: the study's own rule, a model, or labels of people; llm where `judge_model` is
    given. Another judge than the rule is held against it."""

    judge_model: str | None = None
    """Model of `judge=llm`: a hub id, folder or server's id."""

    judge_label: Rare[str | None] = None
    """Name of the judging model in tables; that of `judge_model` by default."""

    judge_runner: Rare[RunnerName] = "openai"
    """Runner of `judge=llm`; openai reads OPENAI_BASE_URL."""

    judge_option: Mapping[str, str] = Field(default_factory=dict)
    """Keyword argument of the judge's runner, its value JSON or text."""

    judge_max_new_tokens: Rare[int] = Field(default=64, ge=1)
    """Longest reply of the judge, in tokens."""

    judge_max_reasoning_tokens: Rare[int | None] = Field(default=None, ge=1)
    """Longest reasoning of the judge before its reply, in tokens, for models that think; without,
    both share `judge_max_new_tokens`."""

    labels: Path | None = None
    """CSV file of labels: the verdicts of `judge=human`; any other judge is held against them, and
    its errors are taken out of the scores."""

    labelling_sheet: Path | None = None
    """CSV file to write, of answers drawn at random, for people to label."""

    labelling_sample: Rare[int] = Field(default=50, ge=1)
    """Answers of each kind (condition, form of query, state of the store) in `labelling_sheet`."""

    labelling_seed: Rare[int] = 0
    """Seed of the draw of `labelling_sheet`."""

    def resolved(self, settings: Mapping[str, Any]) -> Self:
        """Complete how answers are judged by how they are asked.

        Args:
            settings: The study's settings, as the manifest holds them.

        Returns:
            The scoring; this one by default.
        """
        return self

    def model_judge(self) -> "tuple[type[LLMJudge], str]":
        """Return the class of judge that asks a model, and the words in which it asks."""
        from surface_consistency.engine.judging.judges import LLMJudge
        from surface_consistency.engine.judging.prompts import OWN_WORDS

        return LLMJudge, OWN_WORDS

    @model_validator(mode="before")
    @classmethod
    def _named_model_judges(cls, given: object) -> object:
        """Let the model that is named judge, unless another judge is."""
        if isinstance(given, Mapping) and given.get("judge_model") is not None:
            return {"judge": "llm", **given}
        return given

    @model_validator(mode="after")
    def _is_whole(self) -> "JudgeScoring":
        """Refuse a judge that cannot judge, before anything is asked."""
        if self.judge == "human" and self.labels is None:
            raise ValueError("`judge=human` needs `labels`, a CSV file of labels")
        if self.judge == "llm" and SideModel.of(self, "judge").lacks_model:
            raise ValueError("`judge=llm` needs `judge_model`, the model that judges")
        return self


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
    from surface_consistency.matching.rules import resolve_rule

    try:
        resolve_rule(name).keys(["漢字"])
    except PluginError as error:
        raise ValueError(str(error)) from error
    return name


class RuleScoring(JudgeScoring):
    """How answers are judged: by a matching rule, a model, or people."""

    rule: Annotated[str, AfterValidator(check_rule)] = "popqa"
    """Matching rule: a name of `matching.RULES` ("segmented" where words have no spaces between
    them), or one of another package as package:name."""

    fold_accents: bool = False
    """Ignore the accents of Latin and Greek letters: "Zurich" is "Zürich"."""

    region: Rare[AnswerSpan] = "first_line"
    """Judged part of the output; first_text_line passes over blank lines before the answer."""

    agreement: Rare[bool] = True
    """Whether the verdicts of all rules, and on both parts of the output, are compared."""


def _check_margin(margin: float | None) -> float | None:
    """Refuse a margin of 0, of which nothing is within, and one as wide as the scale."""
    if margin is None or 0.0 < margin < 1.0:
        return margin
    raise ValueError(f"must be above 0 and below 1, as 0.05 for 5 points; got {margin!r}")


class ReportSettings(Settings):
    """How tables and page are computed."""

    cluster: str | None = None
    """What intervals take as a whole: a column of the outcomes; the study's by default."""

    confidence: Rare[float] = Field(default=0.95, gt=0, lt=1)
    """Level of the intervals and tests of the report; those of `score`, such as the noise floor
    and the agreement with labels, have level 0.95."""

    resamples: Rare[int] = Field(default=10_000, ge=1)
    """Draws of intervals that need draws, such as those of corrected scores."""

    seed: Rare[int] = 0
    """Seed of these draws; in a command that runs a study, its seed."""

    margin: Annotated[float | None, AfterValidator(_check_margin)] = None
    """Equivalence margin of two rates, a fraction above 0 and below 1, such as 0.05 for 5 points;
    equivalence is then tested too."""

    answers: Rare[int] = Field(default=500, ge=0)
    """Pairs of each model whose answers stand on the page."""

    page: bool = True
    """Whether the page is written, or the tables alone."""


class ToyModelSettings(Settings, ABC):
    """How a small model is trained on the prompts of a study, without a network."""

    @abstractmethod
    def train(
        self,
        data: Any,  # noqa: ANN401 - the data of the study
        settings: Any,  # noqa: ANN401 - of the study's own record
        out: Path,
        *,
        options: Mapping[str, object],
    ) -> "Runner":
        """Train the model.

        Args:
            data: The data of the study.
            settings: How the study asks.
            out: Folder of the model.
            options: Options of its runner.

        Returns:
            The runner of the trained model.
        """


@dataclass(frozen=True, slots=True)
class StudyRecords:
    """The settings, the default runner and the records of results of a study."""

    source: type[Settings] = SourceSettings
    """Where the data come from: the argument of `Study.load`."""

    settings: type[StudySettings] = StudySettings
    """How prompts are made and sent: options, entries of the manifest and documentation."""

    scoring: type[JudgeScoring] = RuleScoring
    """How answers are scored; may be chosen again for a finished run."""

    toy_model: type[ToyModelSettings] | None = None
    """How its toy model is trained; None for a study without one."""

    runner: str = "transformers"
    """Name of the runner that is used unless another is named."""

    verdict: type[Verdict] = Verdict
    """The record of a judgement."""

    outcome: type[PairedOutcome] = PairedOutcome
    """The record of a pair: its fields are the columns of the outcomes frame."""

    summary: str = ""
    """The study in one line; `study_records` takes it from the docstring of the study."""

    def published(
        self, settings: Mapping[str, Any], table: str, record: type[BaseModel]
    ) -> dict[str, Any]:
        """Look up what a run that is as published has in another record than its settings.

        Args:
            settings: The study's settings, as the manifest contains them.
            table: Name of the record: "scoring" or "model".
            record: The record.

        Returns:
            Values by field; none if the run is not as published.
        """
        if not settings.get("as_published") or not issubclass(self.settings, PublishedSettings):
            return {}
        return values_of(record, self.settings.paper(settings)[table])

    def as_published(
        self, given: RecordT, table: str, settings: Mapping[str, Any], *, is_new_run: bool = True
    ) -> RecordT:
        """Set what the paper states in another record than the settings, if these are as published.

        Args:
            given: The record.
            table: As for `published`.
            settings: As for `published`.
            is_new_run: Whether other values are refused; a finished run can be judged otherwise.

        Returns:
            The record.

        Raises:
            ValueError: If a new run would differ from the paper.
        """
        published = self.published(settings, table, type(given))
        chosen = {name: getattr(given, name) for name in given.model_fields_set}
        if is_new_run:
            refuse_contradiction(chosen, published)
        if chosen.get("judge", published.get("judge")) != published.get("judge"):
            published = {name: published[name] for name in published if name[:6] != "judge_"}
        return type(given)(**{**published, **chosen}) if published else given

    def judged(
        self, scoring: JudgeScoring, settings: Mapping[str, Any], *, is_new_run: bool = False
    ) -> JudgeScoring:
        """Complete how answers are judged by how they are asked, as published where that is so.

        Args:
            scoring: An instance of `scoring`.
            settings: The study's settings, as the manifest contains them.
            is_new_run: Whether the run is about to be asked, rather than judged again.

        Returns:
            The scoring.

        Raises:
            ValueError: If a new run would be judged otherwise than its settings say.
        """
        whole = self.as_published(scoring, "scoring", settings, is_new_run=is_new_run)
        return whole.resolved(settings)


def study_records(name: str) -> StudyRecords:
    """Find the settings records of a study; a study of this package is not loaded for that.

    Args:
        name: The study, as for `engine.study.find_study`.

    Returns:
        `RECORDS` of the module `settings` of a study of this package, with the general records of
        verdicts and outcomes; the records of the study itself for one of another package.

    Raises:
        PluginError: If there is no such study, or it cannot be loaded.
    """
    try:
        own = STUDIES.own_source(name)
    except PluginError:
        own = None  # `find_study` says why.
    if own is not None:
        module, summary = own
        records: StudyRecords = import_module(f"{module.rpartition('.')[0]}.settings").RECORDS
        return replace(records, summary=summary)
    from surface_consistency.engine.study import find_study

    study = find_study(name)
    summary = (type(study).__doc__ or study.name).strip().partition("\n")[0]
    return replace(study.records, summary=summary)
