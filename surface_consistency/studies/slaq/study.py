"""SLAQ: every fact alone, all five of a topic at once in balanced orders, and free form.

The protocol is section 4.1 of SLAQ (arXiv 2510.11218), with orders that are balanced rather than
random.
"""

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import pandas as pd
from pydantic import AfterValidator, Field, model_validator

from surface_consistency.engine.design import Design
from surface_consistency.engine.judging.chosen_judges import (
    JudgeScoring,
    make_chosen_judge,
)
from surface_consistency.engine.judging.judges import Judge
from surface_consistency.engine.judging.labels import read_labels
from surface_consistency.engine.judging.paper_prompts import OWN_WORDS, paper_prompt, pin_prompts
from surface_consistency.engine.selection import warn_limited
from surface_consistency.engine.study import (
    OptionSettings,
    Plan,
    PromptGroup,
    Scored,
    SourceSettings,
    Study,
    check_rule,
)
from surface_consistency.errors import SurfaceConsistencyWarning
from surface_consistency.models.registry import check_runner_options, load_runner
from surface_consistency.models.runner import Runner
from surface_consistency.runs.folder import RunFolder
from surface_consistency.schemas import GenerationParams
from surface_consistency.schemas.settings import Settings
from surface_consistency.studies.slaq.data import SLAQ_ID, Slaq, load_slaq, load_slaq_sample
from surface_consistency.studies.slaq.judges import MatcherJudge, SlaqLLMJudge
from surface_consistency.studies.slaq.labels import judge_checks
from surface_consistency.studies.slaq.page import SlaqReport
from surface_consistency.studies.slaq.prompts import (
    DEFAULT_INSTRUCTIONS,
    SlaqInstructions,
    SlaqPrompts,
    slaq_prompts,
)
from surface_consistency.studies.slaq.records import SlaqForm, SlaqOutcome, SlaqTopic, SlaqVerdict
from surface_consistency.studies.slaq.tables import reasons_unjudged, slot_numbers

__all__ = [
    "SlaqScoring",
    "SlaqSettings",
    "SlaqSource",
    "SlaqStudy",
    "SlaqToyModel",
    "topic_prompts",
]

_FORMS: Final[tuple[SlaqForm, ...]] = ("short", "long", "free")


def _instructions(prompts: str) -> str:
    """Name the instructions with their digest; refuse what is no preset."""
    return pin_prompts(prompts, "instructions")


def _judging(prompts: str | None) -> str | None:
    """Name the judge's prompts with their digest; refuse what is no preset."""
    return None if prompts is None else pin_prompts(prompts, "judge")


class SlaqSource(SourceSettings):
    """Where the topics come from."""

    source: str = SLAQ_ID
    """Hub id, folder, Parquet, JSONL or CSV file, or "sample" for the topics that come along."""


class SlaqSettings(OptionSettings):
    """How SLAQ asks; the defaults are the paper's, but for the balance of orders."""

    free: bool = False
    """Whether to ask also a long query that does not list its questions."""

    permutations: int = Field(default=5, ge=1)
    """Orders of each long query; multiples of five are balanced."""

    seed: int = 0
    """Seed of the orders and of the repeated sample."""

    wording: Literal["auto", "query", "questions"] = "auto"
    """Long queries from the data's own, or from the short questions."""

    completion: bool = False
    """Whether prompts are plain text, for models without a chat template."""

    limit: int | None = Field(default=None, ge=1)
    """Ask only so many topics, spread over the categories."""

    short_tokens: int = Field(default=64, ge=1)
    """Longest short answer, in tokens."""

    long_tokens: int = Field(default=512, ge=1)
    """Longest long answer, in tokens."""

    free_tokens: int = Field(default=768, ge=1)
    """Longest free answer, in tokens."""

    repeat: int = Field(default=200, ge=0)
    """Prompts of each form asked a second time in other batches, for the noise floor; 0 for none.
    """

    prompts: Annotated[str, AfterValidator(_instructions)] = OWN_WORDS
    """Words of the instructions: own, or paper for those of the paper's table 4, and of a judging
    model: tables 2 and 3; kept with the digest of the texts. The free form has none there."""

    short_instruction: str = DEFAULT_INSTRUCTIONS.short
    """Wording around one question; {topic} and {question} are replaced."""

    long_instruction: str = DEFAULT_INSTRUCTIONS.long
    """Wording around the query that lists five questions."""

    free_instruction: str = DEFAULT_INSTRUCTIONS.free
    """Wording around the query that lists none."""

    @model_validator(mode="before")
    @classmethod
    def _in_words_of_paper(cls, given: Any) -> Any:  # noqa: ANN401 - not yet checked
        """Put the paper's instructions in place of the own; refuse others beside them."""
        if not isinstance(given, Mapping) or given.get("prompts", OWN_WORDS) == OWN_WORDS:
            return given
        texts = {f"{form}_instruction": paper_prompt(f"slaq_{form}") for form in _FORMS[:2]}
        other = [name for name, text in texts.items() if given.get(name, text) != text]
        if other:
            raise ValueError(
                f"`{other[0]}` would replace the instruction that `prompts` {given['prompts']} "
                "brings; leave one of them out"
            )
        return {**given, **texts}

    @model_validator(mode="after")
    def _has_questions(self) -> "SlaqSettings":
        """Refuse a wording without the question."""
        _ = self.instructions
        return self

    @property
    def forms(self) -> tuple[SlaqForm, ...]:
        """The forms that are asked."""
        return _FORMS if self.free else _FORMS[:2]

    @property
    def instructions(self) -> SlaqInstructions:
        """The wording around the questions."""
        return SlaqInstructions(
            short=self.short_instruction, long=self.long_instruction, free=self.free_instruction
        )

    def params(self, form: SlaqForm) -> GenerationParams:
        """Return how a form is decoded: greedy; plain text stops at the newline when short.

        Args:
            form: The form.

        Returns:
            The decoding.
        """
        return GenerationParams(
            max_new_tokens=getattr(self, f"{form}_tokens"),
            stop=("\n",) if self.completion and form == "short" else (),
        )


class SlaqScoring(JudgeScoring):
    """How answers are judged."""

    judge: Literal["matcher", "llm", "human"] = "matcher"  # type: ignore[assignment]
    """Who judges: a matching rule, a model, or labels of people; llm where --judge-model is given.
    """

    judge_part: Literal["answering", "whole"] = "answering"
    """What --judge matcher reads of a long answer: the item or sentences that answer, or all."""

    judge_rule: Annotated[str, AfterValidator(check_rule)] = "boundary"
    """Matching rule of --judge matcher."""

    all_facts: bool = False
    """Whether answers that are no named entities are matched too; else they stay unjudged."""

    judge_prompts: Annotated[str | None, AfterValidator(_judging)] = None
    """Words of --judge llm: own, or paper for those of the paper's tables 2 and 3; those that the
    run was asked in by default."""

    @model_validator(mode="after")
    def _words_are_asked(self) -> "SlaqScoring":
        """Refuse words for a judge that is no model."""
        if self.judge != "llm" and self.judge_prompts is not None:
            raise ValueError(
                f"--judge-prompts words what a judging model is asked; --judge is {self.judge}; "
                "name a model by --judge-model, or leave it out"
            )
        return self


class SlaqToyModel(Settings):
    """What the toy model of SLAQ is taught."""

    toy_model_steps: int = Field(default=260, ge=1)
    """Optimiser steps of its training, for --model toy_model."""

    toy_model_seed: int = 0
    """Seed of what it is taught and of its weights."""


class SlaqStudy(Study[SlaqSource, SlaqSettings, Slaq, SlaqScoring]):
    """Short questions against long queries."""

    name = "slaq"
    design = Design(
        title="SLAQ",
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
    toy_model = SlaqToyModel
    outcome = SlaqOutcome
    verdict = SlaqVerdict
    report = SlaqReport
    kind = "form"

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
        asked = data if settings.limit is None else data.select(limit=settings.limit)
        warn_limited(settings.limit, len(asked.topics), len(data.topics), "topics")
        prompts = topic_prompts(asked, settings)
        if prompts.rebuilt:
            warnings.warn(
                f"the long query of {len(prompts.rebuilt)} of {len(asked.topics)} topics was built "
                "from its short questions, because its own cannot be put into other orders, such "
                f"as that of {prompts.rebuilt[0]!r}",
                SurfaceConsistencyWarning,
                stacklevel=3,
            )
        by_form = {form: [] for form in settings.forms}  # type: ignore[var-annotated]
        for prompt, detail in zip(prompts.prompts, prompts.details, strict=True):
            by_form[detail.form].append(prompt)
        targets = _targets(asked.topics, prompts)
        return Plan(
            data=asked.source,
            groups={
                form: PromptGroup(prompts=part, params=settings.params(form))
                for form, part in by_form.items()
            },
            items=targets,
            pairs=_pairs(asked.topics, targets),
        )

    def train_toy_model(
        self,
        data: Slaq,
        settings: SlaqSettings,
        toy_model: SlaqToyModel,
        out: Path,
        *,
        options: Mapping[str, object],
    ) -> Runner:
        """Train a small model that knows fewer facts in later slots, on what it will be asked.

        Args:
            data: The topics.
            settings: How the study asks.
            toy_model: How to train.
            out: Folder of the model.
            options: Keyword arguments of its runner.

        Returns:
            The runner.

        Raises:
            MissingDependencyError: If torch or transformers is not installed.
            RunnerError: If the runner does not take the options; before anything is trained.
        """
        from surface_consistency.studies.slaq.toy_model import train_slaq_toy_model

        options = {"device": "cpu", "dtype": "float32", **options}
        check_runner_options("transformers", options)
        asked = data if settings.limit is None else data.select(limit=settings.limit)
        model = train_slaq_toy_model(
            asked.topics,
            topic_prompts(asked, settings),
            out,
            steps=toy_model.toy_model_steps,
            seed=toy_model.toy_model_seed,
        )
        return load_runner("transformers", model=str(model), options=options)

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
        told = recalled.reindex(pairs["second_target"]).array
        return super().outcomes(pairs.assign(is_recalled=told), verdicts, model=model)

    def extra_metrics(self, outcomes: pd.DataFrame) -> Mapping[str, float]:
        """Compute the accuracy by slot of the long query, momentum, and the effect of orders.

        Args:
            outcomes: One row a pair.

        Returns:
            See `slot_numbers`.
        """
        return slot_numbers(outcomes)

    def checks(self, scored: Scored) -> Mapping[str, pd.DataFrame]:
        """Count what the judge left out: the table "unjudged"."""
        return {"unjudged": reasons_unjudged(scored.verdicts)}

    def label_checks(self, scored: Scored, labels: Path) -> Mapping[str, pd.DataFrame]:
        """Hold the judge against labels; see `judge_checks`."""
        return judge_checks(scored.items, scored.verdicts, scored.outcomes, read_labels(labels))


def _prompts_of(folder: RunFolder) -> str:
    """Name the preset that a run was asked in, without the digest, which is of other texts."""
    if not folder.manifest.is_file():
        return OWN_WORDS
    asked = folder.read_manifest().settings.get("prompts")
    return asked.partition("@")[0] if isinstance(asked, str) else OWN_WORDS


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


def _targets(topics: tuple[SlaqTopic, ...], asked: SlaqPrompts) -> pd.DataFrame:
    """List what is judged: each fact of each prompt, in the order of the source."""

    def rows() -> Iterator[tuple[object, ...]]:
        known = {topic.id: topic for topic in topics}
        for detail in asked.details:
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
