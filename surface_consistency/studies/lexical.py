"""Benchmarks in their authors' words and in others of the same meaning.

The study is section 5 of the study of lexical popularity: zero-shot scoring of LAMBADA, PIQA, COPA,
WinoGrande and four groups of BLiMP, as lm-evaluation-harness does it, before and after nouns and
verbs have been replaced by synonyms. The verdicts on one instance in both wordings are a pair.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field
from rapidfuzz.distance import LCSseq

from surface_consistency.data.benchmarks import BenchmarkName, load_benchmark
from surface_consistency.errors import DataError
from surface_consistency.inference.options import (
    OptionScore,
    check_scores_of_options,
    option_scores,
)
from surface_consistency.inference.runner import Runner
from surface_consistency.metrics import relative_change
from surface_consistency.perturbation import (
    FirstSense,
    RuleInflector,
    SenseChooser,
    StoredSense,
    WordNet,
    lemminflect_inflector,
    perturb_all,
)
from surface_consistency.prompts.benchmarks import benchmark_prompt
from surface_consistency.report.page import Section
from surface_consistency.report.table import Column, Table
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.loader import Run
from surface_consistency.schemas import DataSource, GenerationParams, ScoredText
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.benchmarks import (
    BenchmarkInstance,
    LexicalOutcome,
    LexicalVerdict,
    PartOfSpeech,
    PerturbedInstance,
)
from surface_consistency.settings_options import Settings
from surface_consistency.studies.paired import PairedReport
from surface_consistency.studies.study import Plan, PromptGroup, Study, StudySettings

__all__ = [
    "LexicalData",
    "LexicalJudge",
    "LexicalReport",
    "LexicalScoring",
    "LexicalSettings",
    "LexicalSource",
    "LexicalStudy",
]

_ORIGINAL: Final = "original"
_TARGETS: Final = ["target_id", "prompt_id", "answers", "fact_id", "question", "correct", "options"]


class LexicalSource(Settings):
    """Which benchmarks are asked."""

    task: Items[BenchmarkName]
    """Tasks: lambada, piqa, copa, winogrande, determiner_noun_agreement, subject_verb_agreement,
    anaphor_agreement, argument_structure."""

    source: str | None = None
    """Hub id, folder or file of the rows; the hub's repository of each task by default. With
    several tasks a folder with one subfolder a task, or BLiMP's own."""

    revision: str | None = None
    """Commit, tag or branch of the data."""

    split: str | None = None
    """Split of the data; by default the one that lm-evaluation-harness takes."""

    column: Mapping[str, str] = Field(default_factory=dict)
    """Column of a field, as FIELD=COLUMN, where the source uses a name of its own."""


class LexicalSettings(StudySettings):
    """How benchmarks are put into other words."""

    wordnet: str = "/usr/share/wordnet"
    """Folder of WordNet's database files; by default that of the Debian package wordnet-base."""

    pos: Items[PartOfSpeech] = ("noun", "verb")
    """Parts of speech that are replaced: noun, verb, adjective, adverb."""

    share: float = Field(default=1.0, gt=0.0, le=1.0)
    """Share of the words with a synonym that are replaced."""

    draws: int = Field(default=1, ge=1)
    """Draws of synonyms, each asked and compared with the original."""

    senses: str = "first"
    """How the sense of a word is chosen: first (the most frequent one), or a file of senses, as
    `perturbation.write_senses` writes it."""

    inflector: Literal["rules", "lemminflect"] = "rules"
    """Who restores the form of a replaced word; lemminflect needs the extra `lexical`."""

    may_keep: bool = False
    """Whether the original word is among those drawn from."""

    multi_word: bool = False
    """Whether several words may take the place of one."""

    targets: bool = False
    """Whether LAMBADA's last word, which is to be foretold, is replaced too."""

    limit: int | None = Field(default=None, ge=1)
    """Ask only the first so many instances of each task."""


class LexicalScoring(Settings):
    """How an option is chosen."""

    option_score: OptionScore = "sum"
    """How options are compared: by the sum of their tokens' log-probabilities (harness' acc), or by
    its mean per token or per character (harness' acc_norm)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalData:
    """Instances of one or several tasks."""

    instances: tuple[BenchmarkInstance, ...]
    """The instances, task by task."""

    source: DataSource
    """Where they came from."""


class LexicalJudge:
    """Takes the most probable option; a single one is right where each of its tokens is greedy.

    Args:
        option_score: How options are compared.
    """

    name: str
    """How options are compared."""

    def __init__(self, option_score: OptionScore = "sum") -> None:
        self._option_score: OptionScore = option_score
        self.name = f"most probable option ({option_score})"

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers; see `studies.judging.Judge.judge`.

        Args:
            targets: What to judge, with scores, options and the place of the right one.

        Returns:
            prediction, is_correct, reason and log_probability.

        Raises:
            DataError: If an answer has more or fewer scores than its prompt has options.
        """
        check_scores_of_options(targets["prompt_id"], targets["options"], targets["scores"])
        rows = [
            self._judge(scores, list(options), int(correct))
            for scores, options, correct in zip(
                targets["scores"], targets["options"], targets["correct"], strict=True
            )
        ]
        columns = ["prediction", "is_correct", "reason", "log_probability"]
        return pd.DataFrame(rows, columns=columns, index=targets.index).astype(
            {
                "prediction": "str",
                "is_correct": "boolean",
                "reason": "str",
                "log_probability": "Float64",
            }
        )

    def _judge(
        self, scores: Sequence[ScoredText] | None, options: list[str], correct: int
    ) -> tuple[str | None, bool | None, str | None, float | None]:
        """Judge one answer."""
        if scores is None:
            return None, None, "no log-probabilities of the options", None
        told = scores[correct].log_probability
        if len(options) == 1:
            is_greedy = scores[0].is_greedy
            reason = (
                None if is_greedy is not None else "not known whether the word is the likeliest"
            )
            return (options[0] if is_greedy else None), is_greedy, reason, told
        values = option_scores(options, scores, self._option_score)
        if any(map(math.isnan, values)):
            return None, None, "no log-probability of an option", None
        chosen = values.index(max(values))
        return options[chosen], chosen == correct, None, told


class LexicalReport(PairedReport):
    """The paper's tables 1 and 2, and what the draws of synonyms do, beside the paired tables."""

    def tables(self) -> dict[str, Table]:
        """Compute accuracy and perplexity in both wordings, besides the paired tables.

        Returns:
            Tables by name: "lexical", one row a task; "lexical_draws" where there are several; and
            those of `PairedReport.tables`.
        """
        rows = [row for run in self.report.runs for row in _changes(run)]
        draws = [row for run in self.report.runs for row in _by_draw(run)]
        tables = {
            "lexical": Table(
                frame=pd.DataFrame(rows),
                caption="Tasks in the original and in other words",
                note="Change: accuracy in other words relative to that in the original words. "
                "Perplexity is that of the word to be foretold. Broken: a word was replaced in "
                "some options alone.",
                columns=[
                    Column(key="model", title="Model"),
                    Column(key="task", title="Task"),
                    Column(key="n", title="Pairs", kind="count"),
                    Column(key="original", title="Original", kind="rate", unit="right, %"),
                    Column(key="perturbed", title="Other words", kind="rate", unit="right, %"),
                    Column(key="change", title="Change", kind="number", unit="of the original"),
                    Column(key="original_perplexity", title="Perplexity", kind="number"),
                    Column(
                        key="perturbed_perplexity",
                        title="Perplexity",
                        kind="number",
                        unit="other words",
                    ),
                    Column(key="unchanged", title="Unchanged", kind="rate", unit="%"),
                    Column(key="broken", title="Broken", kind="rate", unit="%"),
                ],
            )
        }
        if len({row["draw"] for row in draws}) > 1:
            tables["lexical_draws"] = Table(
                frame=pd.DataFrame(draws),
                caption="Each draw of synonyms",
                note="What the draw alone does to the accuracy in other words.",
                columns=[
                    Column(key="model", title="Model"),
                    Column(key="task", title="Task"),
                    Column(key="draw", title="Draw", kind="count"),
                    Column(key="n", title="Pairs", kind="count"),
                    Column(key="perturbed", title="Other words", kind="rate", unit="right, %"),
                ],
            )
        return tables | super().tables()

    def sections(self, tables: Mapping[str, Table]) -> list[Section]:
        """Put the tasks first; see `PairedReport.sections`.

        Args:
            tables: The tables.

        Returns:
            The sections.
        """
        own = [tables[name] for name in ("lexical", "lexical_draws") if name in tables]
        return [
            Section(anchor="lexical", title="Tasks in other words", blocks=own),
            *super().sections(tables),
        ]

    def _own_tables(self) -> set[str]:
        """Name the tables that stand in other sections than that of checks."""
        return {*super()._own_tables(), "lexical", "lexical_draws"}


class LexicalStudy(Study):
    """Does a model still solve a benchmark in other words of the same meaning?"""

    name = "lexical"
    title = "Lexical perturbation"
    question = "whether a model solves a benchmark alike when nouns and verbs give way to synonyms"
    source = LexicalSource
    settings = LexicalSettings
    scoring = LexicalScoring
    outcome = LexicalOutcome
    verdict = LexicalVerdict
    report = LexicalReport
    conditions = ("original", "other words")
    cells = ("right in both", "right in the original only", "in other words only", "neither")
    clusters = {"fact_id": "instances"}  # noqa: RUF012
    panel = "task"
    groupings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "by_replaced": ("replaced",),
        "by_group": ("group",),
    }

    def load(self, source: LexicalSource) -> LexicalData:
        """Load the tasks.

        Args:
            source: Which, and where they are.

        Returns:
            Their instances.

        Raises:
            DataError: If no task is named, or one cannot be read.
        """
        if not source.task:
            raise DataError("no task is named; give --task, such as --task piqa")
        loaded = [
            load_benchmark(
                task,
                _source_of(task, source.source),
                revision=source.revision,
                split=source.split,
                columns=source.column,
            )
            for task in dict.fromkeys(source.task)
        ]
        first = loaded[0].source
        if len(loaded) > 1:
            digests = "".join(item.source.digest for item in loaded)
            first = DataSource(
                id=" ".join(dict.fromkeys(item.source.id for item in loaded)),
                revision=first.revision,
                digest=hashlib.sha256(digests.encode()).hexdigest(),
                n_questions=sum(item.source.n_questions for item in loaded),
            )
        instances = tuple(instance for item in loaded for instance in item.instances)
        return LexicalData(instances=instances, source=first)

    def plan(
        self, data: LexicalData, settings: LexicalSettings, *, runner: Runner | None = None
    ) -> Plan:
        """Ask every instance in the original words and in each draw of others.

        Args:
            data: The instances.
            settings: How words are replaced.
            runner: Who will answer, on whom nothing depends here.

        Returns:
            One target an instance and wording, one pair an instance and draw; the check
            "perturbation" counts what was replaced.

        Raises:
            SourceNotFoundError: If WordNet or the file of senses is not there.
            MissingDependencyError: If lemminflect is asked for and not installed.
        """
        instances = _limited(data.instances, settings.limit)
        lexicon = WordNet(settings.wordnet)
        senses: SenseChooser = (
            FirstSense() if settings.senses == "first" else StoredSense(settings.senses)
        )
        inflect = (
            lemminflect_inflector()
            if settings.inflector == "lemminflect"
            else RuleInflector(lexicon)
        )
        perturbed = list(
            perturb_all(
                instances,
                lexicon=lexicon,
                senses=senses,
                inflect=inflect,
                pos=settings.pos,
                share=settings.share,
                may_keep=settings.may_keep,
                multi_word=settings.multi_word,
                targets=settings.targets,
                seed=settings.seed,
                draws=range(settings.draws),
            )
        )
        wordings = {f"{_fact(instance)}/{_ORIGINAL}": instance for instance in instances}
        wordings |= {f"{_fact(item.instance)}/{item.draw}": item.instance for item in perturbed}
        targets = pd.DataFrame(
            [
                (
                    name,
                    name,
                    [instance.options[instance.correct]],
                    _fact(instance),
                    instance.context,
                    instance.correct,
                    list(instance.options),
                )
                for name, instance in wordings.items()
            ],
            columns=_TARGETS,
        )
        originals = {_fact(instance): instance for instance in instances}
        return Plan(
            data=data.source,
            groups={
                "": PromptGroup(
                    prompts=[benchmark_prompt(name, item) for name, item in wordings.items()],
                    params=GenerationParams(),
                )
            },
            targets=targets,
            pairs=pd.DataFrame([_pair(originals[_fact(p.instance)], p) for p in perturbed]),
            checks={"perturbation": _quality(originals, perturbed)},
        )

    def judge(self, scoring: LexicalScoring, folder: RunFolder) -> LexicalJudge:
        """Make the judge of a run.

        Args:
            scoring: How options are compared.
            folder: The run.

        Returns:
            The judge.
        """
        return LexicalJudge(scoring.option_score)


def _source_of(task: str, source: str | None) -> str | None:
    """Find the rows of a task: in a subfolder of its name where there is one."""
    if source is not None and (Path(source) / task).is_dir():
        return str(Path(source) / task)
    return source


def _limited(instances: Sequence[BenchmarkInstance], limit: int | None) -> list[BenchmarkInstance]:
    """Take the first instances of each task."""
    taken: dict[str, list[BenchmarkInstance]] = {}
    for instance in instances:
        of_task = taken.setdefault(instance.task, [])
        if limit is None or len(of_task) < limit:
            of_task.append(instance)
    return [instance for of_task in taken.values() for instance in of_task]


def _fact(instance: BenchmarkInstance) -> str:
    """Name an instance among those of all tasks."""
    return f"{instance.task}/{instance.id}"


def _pair(original: BenchmarkInstance, perturbed: PerturbedInstance) -> dict[str, object]:
    """Describe a pair."""
    replaced = sorted({edit.pos for edit in perturbed.edits})
    fact = _fact(original)
    return {
        "pair_id": f"{fact}/{perturbed.draw}",
        "fact_id": fact,
        "first_target": f"{fact}/{_ORIGINAL}",
        "second_target": f"{fact}/{perturbed.draw}",
        "task": original.task,
        "kind": original.kind,
        "group": original.group,
        "draw": perturbed.draw,
        "replaced": " and ".join(replaced) or "none",
        "n_edits": len(perturbed.edits),
        "is_broken": perturbed.is_broken,
        "first_surface": _surface(original),
        "second_surface": _surface(perturbed.instance),
    }


def _surface(instance: BenchmarkInstance) -> str:
    """Write context and options on one line."""
    return " | ".join(part for part in instance.parts if part)


def _quality(
    originals: Mapping[str, BenchmarkInstance], perturbed: Sequence[PerturbedInstance]
) -> pd.DataFrame:
    """Count, by task and draw, what was replaced and how alike the wordings are."""
    rows = [
        {
            "task": item.instance.task,
            "draw": item.draw,
            "is_unchanged": not item.edits,
            "is_broken": item.is_broken,
            "n_edits": len(item.edits),
            "rouge_l": _rouge_l(originals[_fact(item.instance)], item.instance),
        }
        for item in perturbed
    ]
    return (
        pd.DataFrame(rows)
        .groupby(["task", "draw"], sort=False)
        .agg(
            n=("n_edits", "size"),
            n_unchanged=("is_unchanged", "sum"),
            n_broken=("is_broken", "sum"),
            edits=("n_edits", "mean"),
            rouge_l=("rouge_l", "mean"),
        )
        .reset_index()
    )


def _rouge_l(original: BenchmarkInstance, perturbed: BenchmarkInstance) -> float:
    """Return ROUGE-L's F1 of the words in both wordings, in [0, 1]."""
    first, second = (_surface(item).lower().split() for item in (original, perturbed))
    return 2.0 * LCSseq.similarity(first, second) / (len(first) + len(second))


def _changes(run: Run) -> list[dict[str, object]]:
    """Compute the row of each task of a run."""
    rows: list[dict[str, object]] = []
    for task, frame in run.outcomes.groupby("task", sort=False):
        judged = frame[frame["first_correct"].notna() & frame["second_correct"].notna()]
        first, second = (
            float(judged[f"{side}_correct"].astype(float).mean()) for side in ("first", "second")
        )
        perplexities = [math.nan, math.nan]
        if task == "lambada":
            perplexities = [
                float(np.exp(-judged[f"{side}_log_probability"].astype(float).mean()))
                for side in ("first", "second")
            ]
        rows.append(
            {
                "model": run.label,
                "task": task,
                "n": len(judged),
                "original": first,
                "perturbed": second,
                "change": relative_change(first, second) if first > 0.0 else math.nan,
                "original_perplexity": perplexities[0],
                "perturbed_perplexity": perplexities[1],
                "unchanged": float((judged["n_edits"] == 0).mean()),
                "broken": float(judged["is_broken"].astype(float).mean()),
            }
        )
    return rows


def _by_draw(run: Run) -> list[dict[str, object]]:
    """Compute the accuracy of each task and draw of a run."""
    rows: list[dict[str, object]] = []
    for (task, draw), frame in run.outcomes.groupby(["task", "draw"], sort=False):
        right = frame["second_correct"].dropna().astype(float)
        rows.append(
            {
                "model": run.label,
                "task": task,
                "draw": draw,
                "n": len(right),
                "perturbed": float(right.mean()),
            }
        )
    return rows
