"""Settings records that all studies share: data, prompts, scoring and reports.

Settings modules import only pydantic and no code that computes, so that `--help` is fast.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from surface_consistency.engine.published import read_published, reject_contradiction, values_of
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
    """Source of the rows."""

    source: str
    """Hub id, folder, Parquet, JSONL or CSV file, or "sample" for the bundled rows."""

    revision: str | None = None
    """Commit, tag or branch of the data."""

    split: Rare[str] = "test"
    """Split of the data."""

    column: Mapping[str, str] = Field(default_factory=dict)
    """Column of a field, as FIELD=COLUMN, if the source uses another name."""


class StudySettings(Settings):
    """How a study prompts the model."""

    options_are_spellings: ClassVar[bool] = False
    """Whether options that differ only in letter case and outer spaces are one answer."""

    seed: int = 0
    """Random seed (also used for the repeated sample)."""

    limit: int | None = Field(default=None, ge=1)
    """Maximum number of facts, each prompted under both conditions."""

    repeat: int = Field(default=200, ge=0)
    """Number of prompts per group that are sent a second time, for the test-retest flip rate (noise
    floor); 0 to omit it."""

    max_reasoning_tokens: int | None = Field(default=None, ge=1)
    """Maximum number of reasoning tokens before an answer, for reasoning models; by default
    reasoning counts towards the maximum of the answer."""

    reasoning_tags: Rare[Items[str] | None] = None
    """Opening and closing tag of the reasoning, if they are not among the known tags."""

    reasoning_opened: Rare[bool | None] = None
    """Whether every prompt ends within reasoning, so that an answer begins after a closing tag; by
    default determined from the chat template."""

    @model_validator(mode="after")
    def _has_pairs(self) -> "StudySettings":
        """Raise an error if an opening tag has no closing tag."""
        if self.reasoning_tags is not None:
            from surface_consistency.models.reasoning import reasoning_tags

            reasoning_tags(self.reasoning_tags)
        return self

    def with_reasoning(self, params: "GenerationParams") -> "GenerationParams":
        """Add the reasoning settings to the decoding parameters of a group of prompts.

        Args:
            params: Decoding parameters; reasoning parameters that are already set are kept.

        Returns:
            Decoding parameters of a run.
        """
        names = ("max_reasoning_tokens", "reasoning_tags", "reasoning_opened")
        return params.model_copy(
            update={name: getattr(self, name) for name in names if getattr(params, name) is None}
        )

    def for_command(self, out: Path) -> Self:
        """Return these settings for a command that writes to a folder.

        Args:
            out: Folder of all runs of the command, for studies that store files for all models.

        Returns:
            The settings; by default unchanged.
        """
        return self

    def variants(self) -> Sequence[tuple[str, Self]]:
        """Split the settings of a sweep into those of each run.

        Returns:
            Name of a subfolder and settings of each run; by default one run with the name "".
        """
        return [("", self)]


class OptionSettings(StudySettings):
    """How a study prompts the model if it can also read answers from option probabilities."""

    read: Literal["generate", "log-odds", "multiple-choice"] = "generate"
    """Source of the answer: generated text (generate), or a choice among the reference and
    references of other facts. The choice is the most probable option (multiple-choice), or the
    option that is more probable than all others together, if there is one (log-odds)."""

    options: Rare[int] = Field(default=4, ge=2)
    """Number of options per fact, including the reference, if answers are not written."""

    option_score: Rare[OptionScore] = "sum"
    """How options are compared: by the sum of the log-probabilities of their tokens, or by its mean
    per token or per character."""


class PaperSettings(Settings):
    """Settings of which a paper states some values, listed in `published.toml` of their package."""

    as_published: bool = False
    """Use the paper's value for every setting that the paper states, such as prompts, decoding, LLM
    judge and weights. Another value for such a setting raises an error."""

    @classmethod
    def protocols(cls) -> tuple[str | None, ...]:
        """List the values of the field `protocol`, the default first; (None,) without that field.

        Returns:
            The protocols.
        """
        field = cls.model_fields.get("protocol")
        return get_args(field.annotation) if field else (None,)

    @classmethod
    def paper(cls, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read the settings that the paper states.

        Args:
            settings: Settings by name, with the `protocol` if the study has several.

        Returns:
            See `engine.published.read_published`.
        """
        known, chosen = cls.protocols(), settings.get("protocol")
        # The field rejects an unknown protocol.
        protocol = chosen if chosen in known else known[0]
        return read_published(cls.__module__.rpartition(".")[0], protocol)

    @model_validator(mode="before")
    @classmethod
    def _set_as_published(cls, given: object) -> object:
        """Set the values that the paper states, unless another value is given."""
        if isinstance(given, Mapping) and str(given.get("as_published")).lower() == "true":
            return {**values_of(cls, cls.paper(given)["settings"]), **given}
        return given

    @model_validator(mode="after")
    def _is_as_published(self) -> Self:
        """Raise an error if a value contradicts the paper."""
        if self.as_published:
            chosen = {name: getattr(self, name) for name in type(self).model_fields}
            published = values_of(type(self), self.paper(chosen)["settings"])
            reject_contradiction(chosen, published)
        return self


class PublishedSettings(PaperSettings, StudySettings):
    """How a study that implements a paper prompts the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideModel:
    """An auxiliary model, set by `<prefix>_model`, `<prefix>_runner` and `<prefix>_option`."""

    prefix: str
    """Prefix of the names of its settings, such as "judge"."""

    model: str | None
    """Hub id, folder or id on the server; None for runners without a model."""

    runner: str = "openai"
    """Name of its runner."""

    option: Mapping[str, str] = field(default_factory=dict)
    """Keyword arguments of the runner; values are JSON or text."""

    label: str | None = None
    """Name of the model in tables; None for the name of the model or of the runner."""

    @classmethod
    def of(cls, settings: BaseModel, prefix: str) -> "SideModel":
        """Read an auxiliary model from settings.

        Args:
            settings: The settings, with fields that begin with the prefix.
            prefix: The prefix, such as "judge".

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
        """Whether the runner needs a model and no model is named."""
        return self.model is None and self.runner in _NEED_A_MODEL

    def load(self) -> "Runner":
        """Load the runner.

        Returns:
            The runner.

        Raises:
            RunnerError: If it cannot be loaded.
            RecordError: If the JSON of an option exceeds the limits.
        """
        return load_runner(self.runner, model=self.model, options=self.options)

    @classmethod
    def all_of(cls, settings: BaseModel) -> "list[SideModel]":
        """List the models that settings name.

        Args:
            settings: The settings.

        Returns:
            The models of all prefixes.
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
            runner: The runner that `load` returned.

        Returns:
            The label, else the model, else the name of the runner.
        """
        return self.label or self.model or runner.name


class JudgeScoring(Settings):
    """How answers are scored: by a rule, by an LLM judge, or by human labels."""

    judge: Literal["rule", "llm", "human"] = "rule"
    """How answers are scored: by the rule of the study, an LLM judge, or human labels; llm if
    `judge_model` is given. An LLM judge and human labels are also compared with the rule."""

    judge_model: str | None = None
    """Model of `judge=llm`: a hub id, a folder, or the id on a server."""

    judge_label: Rare[str | None] = None
    """Name of the LLM judge in tables; `judge_model` by default."""

    judge_runner: Rare[RunnerName] = "openai"
    """Runner of `judge=llm`; openai reads OPENAI_BASE_URL."""

    judge_option: Mapping[str, str] = Field(default_factory=dict)
    """Keyword argument of the runner of the LLM judge; its value is JSON or text."""

    judge_max_new_tokens: Rare[int] = Field(default=64, ge=1)
    """Maximum number of tokens of a reply of the LLM judge."""

    judge_max_reasoning_tokens: Rare[int | None] = Field(default=None, ge=1)
    """Maximum number of reasoning tokens of the LLM judge before its reply, for reasoning models;
    if unset, both share `judge_max_new_tokens`."""

    labels: Path | None = None
    """CSV file of human labels. With `judge=human` they are the correctness labels (0/1); otherwise
    the rule or LLM judge is validated against them, and the scores are corrected for its errors."""

    labelling_sheet: Path | None = None
    """CSV file to write with randomly drawn answers for human annotators."""

    labelling_sample: Rare[int] = Field(default=50, ge=1)
    """Number of answers per kind (condition, form of query, state of the store) in
    `labelling_sheet`."""

    labelling_seed: Rare[int] = 0
    """Random seed of `labelling_sheet`."""

    def resolved(self, settings: Mapping[str, Any]) -> Self:
        """Complete the scoring by the settings with which the prompts were made.

        Args:
            settings: The settings of the study, as stored in the manifest.

        Returns:
            The scoring; by default unchanged.
        """
        return self

    def model_judge(self) -> "tuple[type[LLMJudge], str]":
        """Return the class of the LLM judge and the name of its prompts."""
        from surface_consistency.engine.judging.judges import LLMJudge
        from surface_consistency.engine.judging.prompts import OWN_WORDS

        return LLMJudge, OWN_WORDS

    @model_validator(mode="before")
    @classmethod
    def _named_model_judges(cls, given: object) -> object:
        """Set `judge=llm` if a model is named and `judge` is not given."""
        if isinstance(given, Mapping) and given.get("judge_model") is not None:
            return {"judge": "llm", **given}
        return given

    @model_validator(mode="after")
    def _is_complete(self) -> "JudgeScoring":
        """Raise an error if labels or the LLM judge are not given, before any prompt is sent."""
        if self.judge == "human" and self.labels is None:
            raise ValueError("`judge=human` needs `labels`, a CSV file of labels")
        if self.judge == "llm" and SideModel.of(self, "judge").lacks_model:
            raise ValueError("`judge=llm` needs `judge_model`, the model of the LLM judge")
        return self


def check_rule(name: str) -> str:
    """Raise an error if a matching rule does not exist, before any prompt is sent.

    Args:
        name: Name as for `matching.rules.resolve_rule`.

    Returns:
        The name.

    Raises:
        ValueError: If there is no such rule, or the named object is not a rule.
        MissingDependencyError: If the rule needs a library that is not installed.
    """
    from surface_consistency.matching.rules import resolve_rule

    if not isinstance(name, str):
        raise ValueError(
            f"{name!r} is not the name of a matching rule; pass a name, such as 'popqa', "
            "'package:name' of a registered rule, or 'module:attribute' within "
            "surface_consistency.plugins.importable('module:attribute')"
        )
    try:
        resolve_rule(name).keys(["漢字"])
    except PluginError as error:
        raise ValueError(str(error)) from error
    return name


class RuleScoring(JudgeScoring):
    """How answers are scored: by a matching rule, an LLM judge, or human labels."""

    rule: Annotated[str, BeforeValidator(check_rule)] = "popqa"
    """Matching rule: a name of `matching.RULES` ("segmented" for scripts without spaces between
    words), or a rule of another package as package:name."""

    fold_accents: bool = False
    """Ignore the accents of Latin and Greek letters, so that "Zurich" matches "Zürich"."""

    region: Rare[AnswerSpan] = "first_line"
    """Scored part of the output; first_text_line skips blank lines before the answer."""

    agreement: Rare[bool] = True
    """Compare the correctness labels of all rules, and those of both parts of the output."""


def _check_margin(margin: float | None) -> float | None:
    """Reject a margin of 0, which contains no value, and a margin as wide as the scale."""
    if margin is None or 0.0 < margin < 1.0:
        return margin
    raise ValueError(f"must be in (0, 1), such as 0.05 for 5 percentage points; got {margin!r}")


class ReportSettings(Settings):
    """How tables and page are computed."""

    cluster: str | None = None
    """Column of the outcomes by which intervals and tests are clustered; by default that of the
    study."""

    confidence: Rare[float] = Field(default=0.95, gt=0, lt=1)
    """Confidence level of the intervals and tests of the report; those of `score`, such as the
    noise floor and the agreement with labels, have level 0.95."""

    resamples: Rare[int] = Field(default=10_000, ge=1)
    """Number of bootstrap resamples, for intervals that need them, such as those of corrected
    scores."""

    seed: Rare[int] = 0
    """Random seed of the resamples; in a command that runs a study, the seed of the study."""

    margin: Annotated[float | None, AfterValidator(_check_margin)] = None
    """Equivalence margin for the difference of two rates, above 0 and below 1, such as 0.05 for 5
    percentage points; if set, equivalence is also tested."""

    answers: Rare[int] = Field(default=500, ge=0)
    """Maximum number of pairs per model whose answers are shown on the page."""

    page: bool = True
    """Write an HTML page in addition to the tables."""


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
            settings: The settings of the study.
            out: Folder of the model.
            options: Options of its runner.

        Returns:
            The runner of the trained model.
        """


@dataclass(frozen=True, slots=True)
class StudyRecords:
    """The settings, the default runner and the records of results of a study."""

    source: type[Settings] = SourceSettings
    """Source of the data: the argument of `Study.load`."""

    settings: type[StudySettings] = StudySettings
    """How prompts are made and sent: options, entries of the manifest and documentation."""

    scoring: type[JudgeScoring] = RuleScoring
    """How answers are scored; a finished run can be scored again with other settings."""

    toy_model: type[ToyModelSettings] | None = None
    """How its toy model is trained; None for a study without one."""

    runner: str = "transformers"
    """Name of the default runner."""

    verdict: type[Verdict] = Verdict
    """The record of a correctness label."""

    outcome: type[PairedOutcome] = PairedOutcome
    """The record of a pair: its fields are the columns of the outcomes frame."""

    summary: str = ""
    """Description of the study in one line, which `study_records` takes from its docstring."""

    def published(
        self, settings: Mapping[str, Any], table: str, record: type[BaseModel]
    ) -> dict[str, Any]:
        """Look up the published values of a record other than the settings of the study.

        Args:
            settings: The study's settings, as the manifest contains them.
            table: Name of the record: "scoring" or "model".
            record: The record.

        Returns:
            Values by field; empty if the run is not as published.
        """
        if not settings.get("as_published") or not issubclass(self.settings, PublishedSettings):
            return {}
        return values_of(record, self.settings.paper(settings)[table])

    def as_published(
        self, given: RecordT, table: str, settings: Mapping[str, Any], *, is_new_run: bool = True
    ) -> RecordT:
        """Set the paper's values in a record other than the settings, if the run is as published.

        Args:
            given: The record.
            table: As for `published`.
            settings: As for `published`.
            is_new_run: Whether other values are an error; a finished run can be scored with other
                values.

        Returns:
            The record.

        Raises:
            ValueError: If a new run would differ from the paper.
        """
        published = self.published(settings, table, type(given))
        chosen = {name: getattr(given, name) for name in given.model_fields_set}
        if is_new_run:
            reject_contradiction(chosen, published)
        if chosen.get("judge", published.get("judge")) != published.get("judge"):
            published = {name: published[name] for name in published if name[:6] != "judge_"}
        return type(given)(**{**published, **chosen}) if published else given

    def judged(
        self, scoring: JudgeScoring, settings: Mapping[str, Any], *, is_new_run: bool = False
    ) -> JudgeScoring:
        """Complete the scoring by the settings of the study; as published if the run is.

        Args:
            scoring: An instance of `scoring`.
            settings: The study's settings, as the manifest contains them.
            is_new_run: Whether a new run starts, rather than a finished run being scored again.

        Returns:
            The scoring.

        Raises:
            ValueError: If the scoring of a new run contradicts its settings.
        """
        published = self.as_published(scoring, "scoring", settings, is_new_run=is_new_run)
        return published.resolved(settings)


def study_records(name: str) -> StudyRecords:
    """Find the settings records of a study; a study of this package is not loaded for this.

    Args:
        name: The study, as for `engine.study.find_study`.

    Returns:
        `RECORDS` of the module `settings` of a study of this package, with the general records of
        correctness labels and outcomes; for a study of another package, the records of the study.

    Raises:
        PluginError: If there is no such study, or it cannot be loaded.
    """
    try:
        own = STUDIES.own_source(name)
    except PluginError:
        own = None  # `find_study` raises the error.
    if own is not None:
        module, summary = own
        records: StudyRecords = import_module(f"{module.rpartition('.')[0]}.settings").RECORDS
        return replace(records, summary=summary)
    from surface_consistency.engine.study import find_study

    study = find_study(name)
    summary = (type(study).__doc__ or study.name).strip().partition("\n")[0]
    return replace(study.records, summary=summary)
