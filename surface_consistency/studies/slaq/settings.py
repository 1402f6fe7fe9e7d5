"""The options of SLAQ."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from surface_consistency.engine import settings
from surface_consistency.engine.judging.prompts import OWN_WORDS, paper_prompt, pin_prompts
from surface_consistency.models.registry import check_runner_options, load_runner
from surface_consistency.schemas import GenerationParams
from surface_consistency.schemas.settings import Rare
from surface_consistency.studies.slaq.records import SlaqForm

if TYPE_CHECKING:
    from surface_consistency.data.slaq import Slaq
    from surface_consistency.models.runner import Runner
    from surface_consistency.studies.slaq.judges import SlaqLLMJudge

_FORMS: Final[tuple[SlaqForm, ...]] = ("short", "long", "free")


class SlaqSource(settings.SourceSettings):
    """Where the topics come from."""

    source: str = "WueNLP/SLAQ"
    """Hub id, folder, Parquet, JSONL or CSV file, or "sample" for the topics that come along."""


class SlaqSettings(settings.PublishedSettings, settings.OptionSettings):
    """How SLAQ asks."""

    free: bool = False
    """Whether to ask also a long query that does not list its questions."""

    permutations: int = Field(default=5, ge=1)
    """Orders of each long query; multiples of five are balanced."""

    orders: Rare[Literal["balanced", "random"]] = "balanced"
    """How the orders are drawn: each question equally often in each place, or at random and all
    different, as in the paper."""

    seed: int = 0
    """Seed of the orders and of the repeated sample."""

    wording: Literal["auto", "query", "questions"] = "auto"
    """Long queries from the data's own, or from the short questions."""

    completion: Rare[bool] = False
    """Whether prompts are plain text, for models without a chat template."""

    limit: int | None = Field(default=None, ge=1)
    """Ask only so many topics, spread over the categories."""

    short_tokens: int = Field(default=64, ge=1)
    """Longest short answer, in tokens."""

    long_tokens: int = Field(default=512, ge=1)
    """Longest long answer, in tokens."""

    free_tokens: Rare[int] = Field(default=768, ge=1)
    """Longest free answer, in tokens."""

    repeat: int = Field(default=200, ge=0)
    """Prompts of each form asked a second time in other batches, for the noise floor; 0 for none.
    """

    prompts: Annotated[str, AfterValidator(partial(pin_prompts, role="instructions"))] = OWN_WORDS
    """Words of the instructions: own, or paper for those of the paper's table 4, and of a judging
    model: tables 2 and 3; kept with the digest of the texts. The free form has none there."""

    short_instruction: Rare[str] = (
        "Give a factual answer to this question on the topic: {topic}. Write one sentence.\n"
        "Question: {question}"
    )
    """Wording around one question; {topic} and {question} are replaced."""

    long_instruction: Rare[str] = (
        "Answer the question. Cover everything that it asks for, be clear and concise, and add "
        "nothing that it does not ask for.\n"
        "Question: {question}"
    )
    """Wording around the query that lists five questions."""

    free_instruction: Rare[str] = (
        "Answer the question with the most important facts, clearly and concisely.\n"
        "Question: {question}"
    )
    """Wording around the query that lists none."""

    @model_validator(mode="before")
    @classmethod
    def _in_words_of_paper(cls, given: object) -> object:
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
        for form in _FORMS:
            if "{question}" not in getattr(self, f"{form}_instruction"):
                raise ValueError(
                    f"the {form} instruction needs {{question}} where the question goes"
                )
        return self

    @property
    def forms(self) -> tuple[SlaqForm, ...]:
        """The forms that are asked."""
        return _FORMS if self.free else _FORMS[:2]

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


class SlaqScoring(settings.JudgeScoring):
    """How answers are judged."""

    judge: Literal["matcher", "llm", "human"] = "matcher"  # type: ignore[assignment]
    """Who judges: a matching rule, a model, or labels of people; llm where `judge_model` is given.
    """

    judge_part: Rare[Literal["answering", "whole"]] = "answering"
    """What `judge=matcher` reads of a long answer: the item or sentences that answer, or all."""

    judge_rule: Annotated[str, AfterValidator(settings.check_rule)] = "boundary"
    """Matching rule of `judge=matcher`."""

    all_facts: Rare[bool] = False
    """Whether answers that are no named entities are matched too; else they stay unjudged."""

    judge_prompts: Annotated[str, AfterValidator(partial(pin_prompts, role="judge"))] | None = None
    """Words of `judge=llm`: own, or paper for those of the paper's tables 2 and 3; those that the
    run was asked in by default."""

    @model_validator(mode="after")
    def _words_are_asked(self) -> "SlaqScoring":
        """Refuse words for a judge that is no model."""
        if self.judge != "llm" and self.judge_prompts is not None:
            raise ValueError(
                f"`judge_prompts` words what a judging model is asked; `judge` is {self.judge}; "
                "name a model by `judge_model`, or leave it out"
            )
        return self

    def resolved(self, settings: Mapping[str, Any]) -> Self:
        """Take the words of the judge from those of the run; see `JudgeScoring.resolved`."""
        if self.judge != "llm" or self.judge_prompts is not None:
            return self
        # The digest of the run's prompts is of other texts than the judge's.
        words = str(settings.get("prompts") or OWN_WORDS).partition("@")[0]
        if words == OWN_WORDS:
            return self
        return self.model_copy(update={"judge_prompts": pin_prompts(words, "judge")})

    def model_judge(self) -> "tuple[type[SlaqLLMJudge], str]":
        """Return the judge of long answers, and its words; see `JudgeScoring.model_judge`."""
        from surface_consistency.studies.slaq.judges import SlaqLLMJudge

        return SlaqLLMJudge, self.judge_prompts or OWN_WORDS


class SlaqToyModel(settings.ToyModelSettings):
    """What the toy model of SLAQ is taught."""

    toy_model_steps: int = Field(default=260, ge=1)
    """Optimiser steps of its training, for `model=toy_model`."""

    toy_model_seed: Rare[int] = 0
    """Seed of what it is taught and of its weights."""

    def train(
        self, data: "Slaq", settings: SlaqSettings, out: Path, *, options: Mapping[str, object]
    ) -> "Runner":
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
            chosen.rows, settings, out, steps=self.toy_model_steps, seed=self.toy_model_seed
        )
        return load_runner("transformers", model=str(model), options=options)


RECORDS: Final = settings.StudyRecords(SlaqSource, SlaqSettings, SlaqScoring, SlaqToyModel)
"""The settings records of the study."""
