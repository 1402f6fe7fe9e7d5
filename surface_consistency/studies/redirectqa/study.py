"""RedirectQA: is the same fact answered alike under its canonical and redirect names?

The protocol is section 3.1 of RedirectQA (arXiv 2604.21882).
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, Field, model_validator

from surface_consistency.data.selection import warn_limited
from surface_consistency.engine.design import Design, Report, bibtex
from surface_consistency.engine.judging.judges import RuleJudge, judge_targets
from surface_consistency.engine.paired.checks import PAIRED_CHECKS, Tables
from surface_consistency.engine.paired.page import (
    PAIRED_SECTIONS,
    PageSpec,
    answers_section,
    checks_section,
)
from surface_consistency.engine.plan import Plan, PromptGroup
from surface_consistency.engine.score import align_predictions
from surface_consistency.engine.study import OptionSettings, RuleScoring, SourceSettings, Study
from surface_consistency.errors import (
    DataError,
    RunnerError,
    SurfaceConsistencyWarning,
    TruncatedPromptWarning,
)
from surface_consistency.matching.verdict_records import AnswerSpan
from surface_consistency.models.prediction_rows import PredictionSettings
from surface_consistency.models.reasoning import separate_stored
from surface_consistency.models.runner import Runner
from surface_consistency.report.page import Answer, Check
from surface_consistency.report.texts import Texts
from surface_consistency.rows.readers import read_rows
from surface_consistency.runs.answers import join_answers
from surface_consistency.runs.frames import shared_lists
from surface_consistency.runs.loader import Run
from surface_consistency.schemas import GenerationParams, PairedOutcome, Prompt, QuestionRealization
from surface_consistency.schemas._record import Items, NonEmpty
from surface_consistency.studies.redirectqa.data import RedirectQA, load_redirectqa, load_sample
from surface_consistency.studies.redirectqa.demonstrations import (
    DemonstrationPool,
    GivenDemonstrations,
    read_demonstration,
)
from surface_consistency.studies.redirectqa.prompts import FRAMES, build_prompts, resolve_frame
from surface_consistency.taxonomy import CATEGORIES, TEMPLATES, TYPES, is_template
from surface_consistency.text import guess_language

_TEXTS: Final = Texts("surface_consistency.studies.redirectqa")
_MOST_SHOTS = 15
_LOOKED_AT = 2_000


def _checked_frame(frame: str | None) -> str | None:
    """Refuse what is no frame; what is kept is what was given."""
    if frame is not None:
        resolve_frame(frame)
    return frame


class RedirectQASource(SourceSettings):
    """Where the questions come from."""

    source: str = "naist-nlp/RedirectQA"
    """Hub id, folder, Parquet, JSONL or CSV file, or "sample" for the rows that come along."""

    ask_by_template: bool = False
    """Whether rows without a question are asked in the words of this package's templates."""


class RedirectQASettings(OptionSettings):
    """How RedirectQA asks; the defaults are the paper's."""

    template: Literal["original", "paraphrase", "both"] = "original"
    """Question wording; "original" is that of the paper's figure 2, "paraphrase" all paraphrases
    that the data have."""

    shots: int | None = Field(default=None, ge=0)
    """Demonstrations before each question; one of each other relation, at most 15, by default."""

    seed: int = 0
    """Seed of demonstrations and of the repeated sample."""

    demonstrations: Literal["per_relation", "per_fact"] = "per_relation"
    """Whether the facts of a relation share their demonstrations or each draws its own."""

    demonstration_file: str | None = None
    """File of demonstrations of your own (.jsonl, .csv, .parquet: question, answer, and relation
    and template if known), used in its order in place of ones drawn from the data."""

    frame: Annotated[str | None, AfterValidator(_checked_frame)] = None
    """What stands around a question: a language that has a frame, such as ja ("en" is "Q: ... A:"),
    or a text of your own with {question} in it; the language of the questions by default."""

    chat: bool = False
    """Whether prompts are turns for the model's chat template rather than plain text."""

    truncate: bool = False
    """Whether demonstrations are dropped where a prompt exceeds the model's context."""

    limit: int | None = Field(default=None, ge=1)
    """Ask only so many facts, spread over the relations, each under all its names."""

    max_new_tokens: int = Field(default=15, ge=1)
    """Longest answer, in tokens."""

    stop: bool = True
    """Whether an answer ends at the newline; without, whole outputs can be judged."""

    repeat: int = Field(default=1_000, ge=0)
    """Questions asked a second time in other batches, for the noise floor; 0 for none."""

    @model_validator(mode="after")
    def _draws_or_reads(self) -> "RedirectQASettings":
        """Refuse a way of drawing demonstrations that are not drawn."""
        if self.demonstration_file is not None and "demonstrations" in self.model_fields_set:
            raise ValueError(
                "`demonstrations` says how they are drawn from the data, and `demonstration_file` "
                "gives them; leave one of the two out"
            )
        return self

    def templates_of(self, held: Iterable[str]) -> tuple[str, ...]:
        """List the wordings that are asked.

        Args:
            held: Templates of the data.

        Returns:
            Their names; "paraphrase" stands for all paraphrases.
        """
        named = TEMPLATES if self.template == "both" else (self.template,)
        further = {name for name in held if is_template(name)} - {*TEMPLATES}
        return (*named, *(sorted(further) if TEMPLATES[1] in named else ()))


class RedirectOutcome(PairedOutcome):
    """A canonical-redirect pair of RedirectQA."""

    subject_id: str | None
    """Wikidata item of the subject: the coarser cluster."""

    relation: NonEmpty
    """Name of the relation."""

    template: NonEmpty
    """Which wording of the question."""

    categories: Items[str]
    """Redirect category labels of the second surface."""

    types: Items[str]
    """Redirect type names of the second surface."""

    first_surface: NonEmpty
    """Canonical name of the subject."""

    second_surface: NonEmpty
    """Redirect name of the subject."""

    first_prediction: str | None
    """Judged part of the answer under the canonical name."""

    second_prediction: str | None
    """Judged part of the answer under the redirect name."""


def _answer(report: Report, run: Run, row: Mapping[Any, Any], answer: Answer) -> Answer:
    """Show a pair with the relation that it is about."""
    relation = str(row["relation"]).replace("_", " ")
    return replace(answer, question=f"{row['first_surface']}, {relation}")


def frame_checks(report: Report, tables: Tables) -> Iterator[Check]:
    """Report runs whose questions are in another language than the frame around them."""
    for run in report.runs:
        frame = run.manifest.settings.get("frame")
        if not isinstance(frame, str) or frame not in FRAMES or not run.folder.targets.exists():
            continue
        questions = pd.read_parquet(run.folder.targets, columns=["question"])["question"]
        language = guess_language(questions.head(_LOOKED_AT).tolist())
        if language == frame or (language is None and frame != "en"):
            continue
        own = "--frame and a text of your own with {question} in it"
        yield _TEXTS.check(
            "unknown_language" if language is None else "other_frame",
            label=run.label,
            language=language,
            frame=FRAMES[frame],
            way=f"--frame {language}" if language in FRAMES else own,
        )


_PAGE: Final = PageSpec(
    sections=(
        *PAIRED_SECTIONS[:-2],
        partial(answers_section, answer=_answer),
        checks_section,
    ),
    checks=(*PAIRED_CHECKS, frame_checks),
)


class RedirectQAStudy(Study[RedirectQASource, RedirectQASettings, RedirectQA, RuleScoring]):
    """Canonical names against Wikipedia redirects."""

    name = "redirectqa"
    design = Design(
        title="RedirectQA",
        citation=bibtex("surface_consistency.studies.redirectqa"),
        question="the same fact under its article’s title and under a redirect to it",
        conditions=("title", "redirect"),
        cells=("both right", "title only", "redirect only", "neither"),
        clusters={"subject_id": "subjects", "fact_id": "facts", "relation": "relations"},
        stratum="template",
        facet="template",
        paper_prompts='the defaults are the paper\'s words already, "Q: ... A:" (section 3.1)',
        groupings={
            "by_type": ("types",),
            "by_category": ("categories",),
            "by_relation": ("relation",),
        },
        second_condition_columns=("types", "categories"),
        exploded_names={"types": "type", "categories": "category"},
        labels={
            "template": {name: name for name in TEMPLATES},
            "type": {name: kind.title for name, kind in TYPES.items()},
            "category": {name: category.name for name, category in CATEGORIES.items()},
        },
    )
    source = RedirectQASource
    settings = RedirectQASettings
    outcome = RedirectOutcome
    report = _PAGE

    def load(self, source: RedirectQASource) -> RedirectQA:
        """Load the questions; see `Study.load`.

        Raises:
            ValueError: If columns are named for the sample, whose columns are known.
            DataError: If they cannot be read.
        """
        if source.source == "sample" and source.column:
            raise ValueError("--column belongs to data of your own; the sample's are known")
        if source.source == "sample":
            return load_sample()
        return load_redirectqa(
            source.source,
            revision=source.revision,
            split=source.split,
            columns=dict(source.column) or None,
            ask_by_template=source.ask_by_template,
        )

    def plan(
        self, data: RedirectQA, settings: RedirectQASettings, *, runner: Runner | None = None
    ) -> Plan:
        """Ask every question once; demonstrations are drawn from all data, whatever is asked.

        Returns:
            One group of prompts, one target a question, one pair a redirect.

        Raises:
            DataError: If no pair is left to ask, or the demonstrations that were given may stand
                before none of some questions.
        """
        chosen = data
        held = sorted(pc.unique(data.table.column("template")).to_pylist())
        # Predictions made elsewhere are of all wordings unless one is named.
        by_template = runner is not None or "template" in settings.model_fields_set
        if by_template or settings.limit is not None:
            templates = settings.templates_of(held) if by_template else None
            chosen = data.select(templates=templates, limit=settings.limit)
            n_asked, n_held = (
                len(pc.unique(one.table.column("fact_id"))) for one in (chosen, data)
            )
            warn_limited(settings.limit, n_asked, n_held, "facts")
        pairs = _pairs(chosen)
        if pairs.empty:
            raise DataError(
                f"no canonical-redirect pair to ask in {data.source.id} with templates "
                f"{', '.join(settings.templates_of(()))}; the rows hold "
                f"{', '.join(held) or 'no questions'}"
            )
        groups = {}
        if runner is not None:
            pool = _pool(data, settings)
            settings = settings.model_copy(
                update={
                    "shots": _shots(chosen.questions, pool, settings),
                    "frame": settings.frame or _frame_of(data),
                }
            )
            prompts = _prompts(chosen.questions, pool, runner, settings)
            params = GenerationParams(
                max_new_tokens=settings.max_new_tokens, stop=("\n",) if settings.stop else ()
            )
            groups[""] = PromptGroup(prompts=prompts, params=params)
        return Plan(
            data=chosen.source,
            groups=groups,
            items=question_targets(chosen),
            pairs=pairs,
            settings=settings,
        )


def question_targets(data: RedirectQA) -> pd.DataFrame:
    """List what is judged: every question.

    Args:
        data: The questions.

    Returns:
        One row a question: target_id and prompt_id, its id; answers; fact_id; subject_id; question;
        template.
    """
    ids = data.table.column("id")
    names = ("fact_id", "subject_id", "question", "template")
    frame = _frame(
        {"target_id": ids, "prompt_id": ids} | {name: data.table.column(name) for name in names}
    )
    accepted = shared_lists(data.table.facts["answers"])
    answers = [accepted[fact] for fact in data.table.column("fact").to_numpy()]
    frame.insert(2, "answers", pd.Series(answers, dtype=object))
    return frame


def score_predictions(
    data: RedirectQA,
    predictions: Mapping[str, str] | Sequence[str | None],
    *,
    model: str,
    rule: str = "popqa",
    region: AnswerSpan = "first_line",
    settings: RedirectQASettings | None = None,
    reading: PredictionSettings | None = None,
) -> pd.DataFrame:
    """Score anyone's predictions on RedirectQA.

    Args:
        data: The questions and their pairs.
        predictions: Generated text by question id or by question text; or one text a question, in
            the order of `engine.selection`, None where there is none.
        model: Label of the model in the frame.
        rule: Name of the matching rule, one of `matching.RULES`.
        region: "first_line", as the papers do, "first_text_line" or "whole".
        settings: How reasoning is told from answers; None for the tags that are known.
        reading: What becomes of prompts in the outputs and of blanks; None for the defaults.

    Returns:
        The outcomes frame: one row a canonical-redirect pair, columns of `RedirectOutcome`. A pair
        with a question that has no prediction has a missing verdict.

    Raises:
        DataError: If a sequence has another length than the questions, or no key of a mapping is
            the id or the text of a question.
    """
    study = RedirectQAStudy()
    targets = question_targets(data)
    texts = align_predictions(targets, predictions, reading=reading)
    params = (settings or RedirectQASettings()).with_reasoning(GenerationParams())
    answered = join_answers(targets, separate_stored(texts, params))
    verdicts = judge_targets(RuleJudge(rule, region=region), answered, study.verdict)
    return study.outcomes(_pairs(data), verdicts, model=model)


def _pairs(data: RedirectQA) -> pd.DataFrame:
    """List what is compared: each redirect with its canonical question."""
    table = data.table
    canonical, redirect, _ = table.pair()
    columns = {
        "pair_id": table.column("id", redirect),
        "fact_id": table.column("fact_id", redirect),
        "first_condition": "canonical",
        "second_condition": "redirect",
        "first_target": table.column("id", canonical),
        "second_target": table.column("id", redirect),
        **{
            name: table.column(name, redirect)
            for name in ("subject_id", "relation", "template", "categories", "types")
        },
        "first_surface": table.column("surface", canonical),
        "second_surface": table.column("surface", redirect),
    }
    return _frame(columns)


def _frame(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Make a frame of Arrow columns; equal lists are one object, a single text is of all rows."""
    made: dict[str, Any] = {}
    for name, column in columns.items():
        if isinstance(column, str):
            made[name] = column
        elif pa.types.is_list(column.type):
            made[name] = pd.Series(shared_lists(column), dtype=object)
        else:
            made[name] = column.to_pandas()
    return pd.DataFrame(made)


def _pool(
    data: RedirectQA, settings: RedirectQASettings
) -> DemonstrationPool | GivenDemonstrations:
    """Take the demonstrations from the data, or from the file that was given."""
    if settings.demonstration_file is None:
        return DemonstrationPool(data.questions, seed=settings.seed, scope=settings.demonstrations)
    path = Path(settings.demonstration_file)
    return GivenDemonstrations(
        [read_demonstration(place, row) for place, row in read_rows(path)], questions=data.questions
    )


def _frame_of(data: RedirectQA) -> str:
    """Choose the frame of the questions' language; where there is none, say so."""
    language = data.language
    # "pt-BR" and "zh-Hans" have the frame of their language.
    known = next(
        (name for name in (language, (language or "").partition("-")[0]) if name in FRAMES), None
    )
    if known is not None:
        return known
    what = (
        f"the questions are in {language!r}, a language without a frame here"
        if language
        else "what language the questions are in is not known"
    )
    warnings.warn(
        f"{what}: they stand in the English frame {FRAMES['en']!r}. Name a language with --frame "
        f"({', '.join(FRAMES)}), or give a text of your own: --frame '... {{question}} ...:'",
        SurfaceConsistencyWarning,
        stacklevel=4,
    )
    return "en"


def _prompts(
    questions: Sequence[QuestionRealization],
    pool: DemonstrationPool | GivenDemonstrations,
    runner: Runner,
    settings: RedirectQASettings,
) -> list[Prompt]:
    """Build all prompts, shortened to the model's context when asked."""
    shots = settings.shots or 0
    prompts = list(
        build_prompts(
            questions,
            pool,
            shots=shots,
            prompt_format="chat" if settings.chat else "completion",
            frame=settings.frame or "en",
            fits=_fitting(runner, settings) if settings.truncate else None,
        )
    )
    n_short = sum(not (prompt.group or "").endswith(f"|{shots}") for prompt in prompts)
    if n_short:
        warnings.warn(
            f"{n_short} of {len(prompts)} prompts have fewer than {shots} demonstrations, because "
            f"{runner.name!r} cannot read more",
            TruncatedPromptWarning,
            stacklevel=4,
        )
    return prompts


def _shots(
    questions: Sequence[QuestionRealization],
    pool: DemonstrationPool | GivenDemonstrations,
    settings: RedirectQASettings,
) -> int:
    """Settle the number of demonstrations: one of each other relation unless told.

    Of demonstrations that were given, all that may stand before every question.
    """
    if settings.shots is not None:
        return settings.shots
    if isinstance(pool, GivenDemonstrations):
        least = min(questions, key=pool.available)
        if not (shots := pool.available(least)):
            raise DataError(
                f"no demonstration of {settings.demonstration_file} may stand before questions of "
                f"{least.triple.relation!r} under template {least.template!r} (none of their own "
                "relation or fact may), so that all would be asked without; give more, or ask for "
                "none by --shots 0"
            )
        return shots
    wordings = sorted({question.template for question in questions})
    n_relations = min(len(pool.relations(wording)) for wording in wordings)
    return min(_MOST_SHOTS, max(n_relations - 1, 0))


def _fitting(runner: Runner, settings: RedirectQASettings) -> Callable[[Prompt], bool]:
    """Ask the runner whether prompts fit its model."""
    fits = getattr(runner, "fits", None)
    if fits is None:
        raise RunnerError(
            f"runner {runner.name!r} cannot tell whether a prompt fits its model (it has no method "
            "`fits`), so demonstrations cannot be dropped; leave --truncate off or ask for fewer "
            "--shots"
        )
    params = settings.with_reasoning(GenerationParams(max_new_tokens=settings.max_new_tokens))
    return lambda prompt: bool(fits(prompt, params))
