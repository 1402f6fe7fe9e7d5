"""RedirectQA: are facts answered consistently under their canonical and redirect names?

The protocol of section 3.1 of RedirectQA (arXiv 2604.21882) is set by `as_published`.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd

from surface_consistency.data.questions import questions_of
from surface_consistency.data.redirectqa import RedirectQA, load_redirectqa
from surface_consistency.data.selection import warn_limited
from surface_consistency.engine.design import Design, Report, bibtex
from surface_consistency.engine.paired.checks import PAIRED_CHECKS, Tables
from surface_consistency.engine.paired.page import (
    PAIRED_SECTIONS,
    PageSpec,
    answers_section,
    checks_section,
)
from surface_consistency.engine.plan import Plan, PromptGroup
from surface_consistency.engine.settings import PublishedSettings
from surface_consistency.engine.study import Study
from surface_consistency.errors import DataError, DataWarning, SurfaceConsistencyWarning
from surface_consistency.models.runner import Runner
from surface_consistency.report.page import Answer, Check
from surface_consistency.rows.columnar import open_parquet
from surface_consistency.rows.readers import read_rows
from surface_consistency.runs.loader import Run
from surface_consistency.schemas import GenerationParams, PairedOutcome, Prompt
from surface_consistency.schemas._record import Items, NonEmpty
from surface_consistency.studies.redirectqa import consistency
from surface_consistency.studies.redirectqa.demonstrations import (
    DemonstrationPool,
    GivenDemonstrations,
    read_demonstration,
)
from surface_consistency.studies.redirectqa.prompts import FRAMES, build_prompts
from surface_consistency.studies.redirectqa.settings import (
    RECORDS,
    RedirectQASettings,
    RedirectQASource,
)
from surface_consistency.taxonomy import CATEGORIES, TEMPLATES, TYPES
from surface_consistency.text import guess_language

_MAXIMUM_SHOTS = 15
_N_DETECTED = 2_000


class RedirectOutcome(PairedOutcome):
    """A canonical-redirect pair of RedirectQA."""

    subject_id: str | None
    """Wikidata item of the subject: the coarser cluster."""

    relation: NonEmpty
    """Name of the relation."""

    template: NonEmpty
    """Template of the question."""

    categories: Items[str]
    """Redirect category labels of the second surface."""

    types: Items[str]
    """Redirect type names of the second surface."""

    first_surface: NonEmpty
    """Canonical name of the subject."""

    second_surface: NonEmpty
    """Redirect name of the subject."""

    first_prediction: str | None
    """Scored part of the answer under the canonical name."""

    second_prediction: str | None
    """Scored part of the answer under the redirect name."""


def _answer(report: Report, run: Run, row: Mapping[Any, Any], answer: Answer) -> Answer:
    """Show a pair with its relation."""
    relation = str(row["relation"]).replace("_", " ")
    return replace(answer, question=f"{row['first_surface']}, {relation}")


def frame_checks(report: Report, tables: Tables) -> Iterator[Check]:
    """Report runs whose questions and frame are in different languages."""
    for run in report.runs:
        frame = run.manifest.settings.get("frame")
        if not isinstance(frame, str) or frame not in FRAMES or not run.folder.targets.exists():
            continue
        with open_parquet(run.folder.targets) as file:
            questions = file.read(["question"])["question"]
        language = guess_language(questions[:_N_DETECTED].to_pylist())
        if language == frame or (language is None and frame != "en"):
            continue
        own = "`frame` set to a custom text that contains {question}"
        yield consistency.TEXTS.check(
            "unknown_language" if language is None else "other_frame",
            label=run.label,
            language=language,
            frame=FRAMES[frame],
            way=f"`frame={language}`" if language in FRAMES else own,
        )


_PAGE: Final = PageSpec(
    tables=(consistency.consistency_tables,),
    finding=consistency.finding,
    sections=(
        PAIRED_SECTIONS[0],
        consistency.consistency_section,
        *PAIRED_SECTIONS[1:-2],
        partial(answers_section, answer=_answer),
        checks_section,
    ),
    papers=consistency.TEXTS,
    checks=(*PAIRED_CHECKS, frame_checks),
)


class RedirectQAStudy(Study):
    """Compare answers about canonical names with answers about Wikipedia redirects."""

    name = "redirectqa"
    design = Design(
        title="RedirectQA",
        citation=bibtex("surface_consistency.studies.redirectqa"),
        question="the same fact under its article’s title and under a redirect to it",
        conditions=("title", "redirect"),
        cells=("both correct", "title only correct", "redirect only correct", "neither correct"),
        clusters={"subject_id": "subjects", "item": "facts", "relation": "relations"},
        stratum="template",
        facet="template",
        paper_prompts='the default is the paper\'s "Q: ... A:" already (section 3.1)',
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
    records = replace(RECORDS, outcome=RedirectOutcome)
    report = _PAGE

    def load(self, source: RedirectQASource) -> RedirectQA:
        """Load the questions; see `Study.load`.

        Raises:
            DataError: If they cannot be read.
        """
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
        """Plan one prompt per question; demonstrations come from all data, not only the selection.

        Returns:
            One group of prompts, one target per question, one pair per redirect.

        Raises:
            DataError: If the selection has no pairs, or all given demonstrations are excluded for
                some question.
        """
        if settings.as_published:
            reject_other_data(data, settings)
        chosen = data
        available = sorted(data.rows["template"].unique())
        # Predictions made elsewhere cover all templates unless one is named.
        by_template = runner is not None or "template" in settings.model_fields_set
        if by_template or settings.limit is not None:
            templates = settings.templates_of(available) if by_template else None
            chosen = data.select(templates=templates, limit=settings.limit)
            n_selected, n_available = (one.rows["item"].nunique() for one in (chosen, data))
            warn_limited(settings.limit, n_selected, n_available, "facts")
        pairs = _pairs(chosen)
        if pairs.empty:
            raise DataError(
                f"no canonical-redirect pairs in {data.source.id} with templates "
                f"{', '.join(settings.templates_of(()))}; the rows contain "
                f"{', '.join(available) or 'no questions'}"
            )
        groups = {}
        if runner is not None:
            pool = _pool(data, settings)
            settings = settings.model_copy(
                update={
                    "shots": _shots(chosen.rows, pool, settings),
                    "frame": settings.frame or _frame_of(data),
                }
            )
            prompts = _prompts(chosen.rows, pool, runner, settings)
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


def reject_other_data(data: RedirectQA, settings: PublishedSettings) -> None:
    """Reject another version of the published data than the paper's.

    Args:
        data: The questions.
        settings: Settings of a run as published.

    Raises:
        DataError: If the data are from the published repository, with another number of rows.
    """
    source = data.source
    n_rows = settings.paper(settings.model_dump())["rows"].get(source.id)
    if n_rows not in (None, source.n_questions):
        raise DataError(
            f"`as_published` needs {n_rows:,} questions, but {source.id} has {source.n_questions:,}"
            f" at {source.revision}; name another `revision`, or omit `as_published`"
        )


def question_targets(data: RedirectQA) -> pd.DataFrame:
    """List the targets to score: every question.

    Args:
        data: The questions.

    Returns:
        One row per question: target_id and prompt_id (its id), references, item, subject_id,
        question, template.
    """
    names = ["references", "item", "subject_id", "question", "template"]
    targets = data.rows[["id", *names]].rename(columns={"id": "target_id"})
    targets.insert(1, "prompt_id", targets["target_id"])
    return targets


def _pairs(data: RedirectQA) -> pd.DataFrame:
    """List the pairs: each redirect with its canonical question."""
    pairs = data.pairs
    shared = ["item", "subject_id", "relation", "template", "categories", "types"]
    return pairs[shared].assign(
        pair=pairs["id"],
        first_condition="canonical",
        second_condition="redirect",
        first_target=pairs["canonical_id"],
        second_target=pairs["id"],
        first_surface=pairs["canonical_surface"],
        second_surface=pairs["surface"],
    )


def _pool(
    data: RedirectQA, settings: RedirectQASettings
) -> DemonstrationPool | GivenDemonstrations:
    """Take the demonstrations from the data, or from the given file."""
    if settings.demonstration_file is None:
        return DemonstrationPool(data.rows, seed=settings.seed, scope=settings.demonstrations)
    path = Path(settings.demonstration_file)
    given = [read_demonstration(place, row) for place, row in read_rows(path)]
    return GivenDemonstrations(given, data.rows)


def _frame_of(data: RedirectQA) -> str:
    """Choose the frame of the questions' language; warn if it has no frame."""
    language = data.language
    # "pt-BR" and "zh-Hans" use the frame of their language.
    known = next(
        (name for name in (language, (language or "").partition("-")[0]) if name in FRAMES), None
    )
    if known is not None:
        return known
    what = (
        f"the questions are in {language!r}, a language without a frame"
        if language
        else "the language of the questions could not be detected"
    )
    warnings.warn(
        f"{what}: the English frame {FRAMES['en']!r} is used. Name a language with `frame` "
        f"({', '.join(FRAMES)}), or give a custom text: `frame` '... {{question}} ...:'",
        SurfaceConsistencyWarning,
        stacklevel=4,
    )
    return "en"


def _prompts(
    rows: pd.DataFrame,
    pool: DemonstrationPool | GivenDemonstrations,
    runner: Runner,
    settings: RedirectQASettings,
) -> list[Prompt]:
    """Build all prompts, shortened to the model's context if `truncate` is set."""
    shots = settings.shots or 0
    prompts = list(
        build_prompts(
            rows,
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
            f"more exceed the context of {runner.name!r}",
            DataWarning,
            stacklevel=4,
        )
    return prompts


def _shots(
    rows: pd.DataFrame, pool: DemonstrationPool | GivenDemonstrations, settings: RedirectQASettings
) -> int:
    """Return the number of demonstrations: `shots`, or by default one of each other relation.

    The default of given demonstrations is the largest number available for every question.
    """
    if settings.shots is not None:
        return settings.shots
    if isinstance(pool, GivenDemonstrations):
        least = min(questions_of(rows), key=pool.available)
        if not (shots := pool.available(least)):
            raise DataError(
                f"no demonstration of {settings.demonstration_file} may precede questions of "
                f"{least.relation!r} under template {least.template!r} (those of the same relation "
                "or fact are excluded), so all questions would have 0; add demonstrations, or set "
                "`shots=0`"
            )
        return shots
    n_relations = min(len(pool.relations(wording)) for wording in rows["template"].unique())
    return min(_MAXIMUM_SHOTS, max(n_relations - 1, 0))


def _fitting(runner: Runner, settings: RedirectQASettings) -> Callable[[Prompt], bool]:
    """Return a function that checks whether a prompt fits the runner's model."""
    params = settings.with_reasoning(GenerationParams(max_new_tokens=settings.max_new_tokens))
    return lambda prompt: runner.fits(prompt, params)
