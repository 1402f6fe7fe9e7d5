"""SLAQ: every fact alone, all five of a topic at once in balanced orders, and free form.

The protocol is section 4.1 of SLAQ (arXiv 2510.11218), with orders that are balanced rather than
random.
"""

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from surface_consistency.data.selection import warn_limited
from surface_consistency.engine.design import Design, bibtex
from surface_consistency.engine.judging.chosen_judges import make_chosen_judge
from surface_consistency.engine.judging.judges import Judge
from surface_consistency.engine.judging.labels import read_labels
from surface_consistency.engine.judging.paper_prompts import OWN_WORDS
from surface_consistency.engine.plan import Plan, PromptGroup
from surface_consistency.engine.study import Scored, Study, ToyModel
from surface_consistency.errors import SurfaceConsistencyWarning
from surface_consistency.models.registry import check_runner_options, load_runner
from surface_consistency.models.runner import Runner
from surface_consistency.runs.folder import RunFolder
from surface_consistency.studies.slaq.data import Slaq, load_slaq, load_slaq_sample
from surface_consistency.studies.slaq.judges import MatcherJudge, SlaqLLMJudge
from surface_consistency.studies.slaq.labels import judge_checks
from surface_consistency.studies.slaq.page import SLAQ_PAGE
from surface_consistency.studies.slaq.prompts import SlaqPrompts, slaq_prompts
from surface_consistency.studies.slaq.records import SlaqOutcome, SlaqTopic, SlaqVerdict
from surface_consistency.studies.slaq.settings import (
    SlaqScoring,
    SlaqSettings,
    SlaqSource,
    SlaqToyModel,
)
from surface_consistency.studies.slaq.tables import reasons_unjudged, slot_numbers


def _train_toy_model(
    data: Slaq,
    settings: SlaqSettings,
    toy_model: SlaqToyModel,
    out: Path,
    *,
    options: Mapping[str, object],
) -> Runner:
    """Train a small model that knows fewer facts in later slots, on what it will be asked.

    Raises:
        MissingDependencyError: If torch or transformers is not installed.
        RunnerError: If the runner does not take the options; before anything is trained.
    """
    from surface_consistency.studies.slaq.toy_model import train_slaq_toy_model

    options = {"device": "cpu", "dtype": "float32", **options}
    check_runner_options("transformers", options)
    chosen = data if settings.limit is None else data.select(limit=settings.limit)
    model = train_slaq_toy_model(
        chosen.topics,
        topic_prompts(chosen, settings),
        out,
        steps=toy_model.toy_model_steps,
        seed=toy_model.toy_model_seed,
    )
    return load_runner("transformers", model=str(model), options=options)


class SlaqStudy(Study[SlaqSource, SlaqSettings, Slaq, SlaqScoring]):
    """Short questions against long queries."""

    name = "slaq"
    design = Design(
        title="SLAQ",
        citation=bibtex("surface_consistency.studies.slaq"),
        question="the same fact asked alone and as one of five in a long query",
        conditions=("short query", "long query"),
        cells=(
            "right both times",
            "right when asked alone only",
            "right in the long answer only",
            "wrong both times",
        ),
        clusters={"topic_id": "topics", "fact_id": "facts"},
        stratum="form",
        kind="form",
        facet="second_condition",
        groupings={
            "by_category": ("category",),
            "by_popularity": ("popularity",),
            "by_entity": ("is_entity",),
        },
        exploded_names={"second_condition": "condition"},
        labels={
            "condition": {"long": "long query", "free": "free form"},
            "popularity": {"popular": "popular", "obscure": "obscure", "unknown": "unknown"},
            "is_entity": {"True": "named entity", "False": "description", "unknown": "unknown"},
        },
    )
    source = SlaqSource
    settings = SlaqSettings
    scoring = SlaqScoring
    toy_model = ToyModel(settings=SlaqToyModel, train=_train_toy_model)
    outcome = SlaqOutcome
    verdict = SlaqVerdict
    report = SLAQ_PAGE

    def load(self, source: SlaqSource) -> Slaq:
        """Load the topics.

        Args:
            source: Where they come from.

        Returns:
            The topics.

        Raises:
            ValueError: If columns are named for the sample, whose columns are known.
            DataError: If they cannot be read.
        """
        if source.source == "sample":
            if source.column:
                raise ValueError("--column belongs to data of your own; the sample's are known")
            return load_slaq_sample()
        return load_slaq(
            source.source,
            revision=source.revision,
            split=source.split,
            columns=dict(source.column) or None,
        )

    def plan(self, data: Slaq, settings: SlaqSettings, *, runner: Runner | None = None) -> Plan:
        """Ask every fact alone, and the five of a topic at once.

        Args:
            data: The topics.
            settings: How to ask.
            runner: Who will answer, on whom nothing depends here.

        Returns:
            A group of prompts a form; one target a fact of a prompt; one pair a fact of a long or
            free prompt.

        Warns:
            SurfaceConsistencyWarning: If the long query of a topic had to be built from its short
                questions.
        """
        chosen = data if settings.limit is None else data.select(limit=settings.limit)
        warn_limited(settings.limit, len(chosen.topics), len(data.topics), "topics")
        prompts = topic_prompts(chosen, settings)
        if prompts.rebuilt:
            warnings.warn(
                f"the long query of {len(prompts.rebuilt)} of {len(chosen.topics)} topics was "
                "built from its short questions, because its own cannot be put into other orders, "
                f"such as that of {prompts.rebuilt[0]!r}",
                SurfaceConsistencyWarning,
                stacklevel=3,
            )
        by_form = {form: [] for form in settings.forms}  # type: ignore[var-annotated]
        for prompt, detail in zip(prompts.prompts, prompts.details, strict=True):
            by_form[detail.form].append(prompt)
        targets = _targets(chosen.topics, prompts)
        return Plan(
            data=chosen.source,
            groups={
                form: PromptGroup(prompts=part, params=settings.params(form))
                for form, part in by_form.items()
            },
            items=targets,
            pairs=_pairs(chosen.topics, targets),
        )

    def judge(self, scoring: SlaqScoring, folder: RunFolder) -> Judge:
        """Make the matcher; see `Study.judge`."""
        return MatcherJudge(
            scoring.judge_rule, entities_only=not scoring.all_facts, part=scoring.judge_part
        )

    def chosen_judge(self, scoring: SlaqScoring, folder: RunFolder) -> Judge | None:
        """Make the model or the people that judge; see `Study.chosen_judge`.

        Raises:
            ValueError: If the prompts are of another version.
        """
        prompts = scoring.judge_prompts or _prompts_of(folder)
        return make_chosen_judge(scoring, folder, SlaqLLMJudge, prompts=prompts)

    def outcomes(self, pairs: pd.DataFrame, verdicts: pd.DataFrame, *, model: str) -> pd.DataFrame:
        """Put the verdicts on each pair side by side; see `Study.outcomes`.

        Args:
            pairs: `Plan.pairs`.
            verdicts: One row a target.
            model: Label of the model.

        Returns:
            One row a pair, columns of `SlaqOutcome`; is_recalled is that of the long answer.
        """
        recalled = verdicts.set_index("target_id")["is_recalled"].astype("boolean")
        is_recalled = recalled.reindex(pairs["second_target"]).array
        return super().outcomes(pairs.assign(is_recalled=is_recalled), verdicts, model=model)

    def extra_metrics(self, outcomes: pd.DataFrame) -> Mapping[str, float]:
        """Compute the accuracy by slot of the long query, momentum, and the effect of orders.

        Args:
            outcomes: One row a pair.

        Returns:
            See `slot_numbers`.
        """
        return slot_numbers(outcomes)

    def checks(self, scored: Scored) -> Mapping[str, pd.DataFrame]:
        """Count what the judge left out, and hold it against labels; see `judge_checks`."""
        checks = {"unjudged": reasons_unjudged(scored.verdicts)}
        if scored.labels is None:
            return checks
        labels = read_labels(scored.labels)
        return checks | judge_checks(scored.items, scored.verdicts, scored.outcomes, labels)


def _prompts_of(folder: RunFolder) -> str:
    """Name the preset that a run was asked in, without the digest, which is of other texts."""
    if not folder.manifest.is_file():
        return OWN_WORDS
    prompts = folder.read_manifest().settings.get("prompts")
    return prompts.partition("@")[0] if isinstance(prompts, str) else OWN_WORDS


def topic_prompts(data: Slaq, settings: SlaqSettings) -> SlaqPrompts:
    """Build the prompts of topics.

    Args:
        data: The topics, all of which are asked.
        settings: How to ask.

    Returns:
        The prompts, form by form.
    """
    return slaq_prompts(
        data.topics,
        forms=settings.forms,
        n_permutations=settings.permutations,
        seed=settings.seed,
        wording=settings.wording,
        prompt_format="completion" if settings.completion else "chat",
        instructions=settings.instructions,
    )


def _targets(topics: tuple[SlaqTopic, ...], prompts: SlaqPrompts) -> pd.DataFrame:
    """List what is judged: each fact of each prompt, in the order of the source."""

    def rows() -> Iterator[tuple[object, ...]]:
        known = {topic.id: topic for topic in topics}
        for detail in prompts.details:
            for question in known[detail.topic_id].questions:
                if detail.form == "short" and question.id != detail.question_id:
                    continue
                alone = detail.form == "short"
                yield (
                    detail.prompt_id if alone else f"{detail.prompt_id}/{question.index}",
                    detail.prompt_id,
                    [question.answer],
                    question.id,
                    detail.topic_id,
                    known[detail.topic_id].topic,
                    detail.form,
                    question.question,
                    question.is_entity,
                    question.index,
                    detail.permutation,
                    detail.order.index(question.index) + 1 if detail.order else None,
                    detail.order_id,
                )

    columns = ["target_id", "prompt_id", "answers", "fact_id", "topic_id", "topic", "form"]
    columns += ["question", "is_entity", "question_index", "permutation", "slot", "order_id"]
    whole = dict.fromkeys(("question_index", "permutation", "slot"), "Int64")
    return pd.DataFrame(list(rows()), columns=columns).astype({"is_entity": "boolean", **whole})


def _pairs(topics: tuple[SlaqTopic, ...], targets: pd.DataFrame) -> pd.DataFrame:
    """List what is compared: each fact of a long or free prompt with the fact asked alone."""
    among = targets[targets["form"] != "short"].reset_index(drop=True)
    is_long = among["form"] == "long"
    known: dict[str, Any] = {topic.id: topic for topic in topics}
    return pd.DataFrame(
        {
            "pair_id": among["target_id"],
            "fact_id": among["fact_id"],
            "first_condition": "short",
            "second_condition": among["form"],
            "first_target": among["fact_id"] + "/short",
            "second_target": among["target_id"],
            "topic_id": among["topic_id"],
            "category": among["topic_id"].map({name: t.category for name, t in known.items()}),
            "popularity": among["topic_id"].map(
                {name: topic.popularity for name, topic in known.items()}
            ),
            "is_entity": among["is_entity"],
            "question_index": among["question_index"],
            "permutation": among["permutation"],
            "slot": among["slot"],
            "n_slots": is_long.map({True: 5, False: None}).astype("Int64"),
            "order_id": among["order_id"],
        }
    )
