"""The options of SLAQ."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

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
    """Source of the topics."""

    source: str = "WueNLP/SLAQ"
    """Hub id, folder, Parquet, JSONL or CSV file, or "sample" for the bundled topics."""


class SlaqSettings(settings.PublishedSettings, settings.OptionSettings):
    """Prompts and generation of SLAQ."""

    free: bool = False
    """Also run a long query that does not list its questions."""

    permutations: int = Field(default=5, ge=1)
    """Number of orders of each long query; multiples of five are balanced."""

    orders: Rare[Literal["balanced", "random"]] = "balanced"
    """Draw of the orders: each question equally often in each slot, or at random and all
    different, as in the paper."""

    seed: int = 0
    """Seed of the orders and of the repeated sample."""

    wording: Literal["auto", "query", "questions"] = "auto"
    """Source of the long queries: those of the data, or the short questions."""

    completion: Rare[bool] = False
    """Send prompts as plain text, for models without a chat template."""

    limit: int | None = Field(default=None, ge=1)
    """Maximum number of topics, spread over the categories."""

    short_tokens: int = Field(default=64, ge=1)
    """Maximum number of new tokens of a short answer."""

    long_tokens: int = Field(default=512, ge=1)
    """Maximum number of new tokens of a long answer."""

    free_tokens: Rare[int] = Field(default=768, ge=1)
    """Maximum number of new tokens of a free answer."""

    repeat: int = Field(default=200, ge=0)
    """Number of prompts of each form sent a second time in other batches, for the test-retest flip
    rate (noise floor); 0 to omit it."""

    prompts: Annotated[str, AfterValidator(partial(pin_prompts, role="instructions"))] = OWN_WORDS
    """Instructions and prompts of an LLM judge: own, or paper (tables 4, and 2 and 3 of the paper);
    stored with the digest of the texts. The paper has no free form."""

    short_instruction: Rare[str] = (
        "Give a factual answer to this question on the topic: {topic}. Write one sentence.\n"
        "Question: {question}"
    )
    """Instruction of one question; {topic} and {question} are replaced."""

    long_instruction: Rare[str] = (
        "Answer the question. Cover everything that it asks for, be clear and concise, and add "
        "nothing that it does not ask for.\n"
        "Question: {question}"
    )
    """Instruction of the query that lists five questions."""

    free_instruction: Rare[str] = (
        "Answer the question with the most important facts, clearly and concisely.\n"
        "Question: {question}"
    )
    """Instruction of the query that does not list questions."""

    @model_validator(mode="before")
    @classmethod
    def _in_words_of_paper(cls, given: object) -> object:
        """Set the paper's instructions if `prompts` requires them; reject others."""
        if not isinstance(given, Mapping) or given.get("prompts", OWN_WORDS) == OWN_WORDS:
            return given
        texts = {f"{form}_instruction": paper_prompt(f"slaq_{form}") for form in _FORMS[:2]}
        other = [name for name, text in texts.items() if given.get(name, text) != text]
        if other:
            raise ValueError(
                f"`{other[0]}` would replace the instruction that `prompts` {given['prompts']} "
                "sets; omit one of them"
            )
        return {**given, **texts}

    @model_validator(mode="after")
    def _has_questions(self) -> "SlaqSettings":
        """Reject an instruction without the question."""
        for form in _FORMS:
            if "{question}" not in getattr(self, f"{form}_instruction"):
                raise ValueError(
                    f"the {form} instruction needs {{question}} as the place of the question"
                )
        return self

    @property
    def forms(self) -> tuple[SlaqForm, ...]:
        """The forms of the run."""
        return _FORMS if self.free else _FORMS[:2]

    def params(self, form: SlaqForm) -> GenerationParams:
        """Return the decoding of a form: greedy; short answers in plain text stop at the newline.

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
    """Scoring of answers."""

    judge: Literal["matcher", "llm", "human"] = "matcher"  # type: ignore[assignment]
    """Scoring by a matching rule, an LLM judge or human labels; llm if `judge_model` is given."""

    judge_part: Rare[Literal["answering", "whole"]] = "answering"
    """Part of a long answer that `judge=matcher` reads: the item or sentences that answer the
    question, or all."""

    judge_rule: Annotated[str, BeforeValidator(settings.check_rule)] = "boundary"
    """Matching rule of `judge=matcher`."""

    all_facts: Rare[bool] = False
    """Also score answers that are not named entities; by default they have no score."""

    judge_prompts: Annotated[str, AfterValidator(partial(pin_prompts, role="judge"))] | None = None
    """Prompts of `judge=llm`: own, or paper (the paper's tables 2 and 3); by default the same as
    `prompts` of the run."""

    @model_validator(mode="after")
    def _prompts_need_model(self) -> "SlaqScoring":
        """Reject prompts for a judge that is not a model."""
        if self.judge != "llm" and self.judge_prompts is not None:
            raise ValueError(
                f"`judge_prompts` sets the prompts of an LLM judge, but `judge` is {self.judge}; "
                "name a model by `judge_model`, or omit it"
            )
        return self

    def resolved(self, settings: Mapping[str, Any]) -> Self:
        """Set the judge's prompts by those of the run; see `JudgeScoring.resolved`."""
        if self.judge != "llm" or self.judge_prompts is not None:
            return self
        # The digest of the run's prompts covers other texts than that of the judge's prompts.
        words = str(settings.get("prompts") or OWN_WORDS).partition("@")[0]
        if words == OWN_WORDS:
            return self
        return self.model_copy(update={"judge_prompts": pin_prompts(words, "judge")})

    def model_judge(self) -> "tuple[type[SlaqLLMJudge], str]":
        """Return the judge of long answers, and its prompts; see `JudgeScoring.model_judge`."""
        from surface_consistency.studies.slaq.judges import SlaqLLMJudge

        return SlaqLLMJudge, self.judge_prompts or OWN_WORDS


class SlaqToyModel(settings.ToyModelSettings):
    """Training of the toy model of SLAQ."""

    toy_model_steps: int = Field(default=260, ge=1)
    """Number of optimiser steps of its training, for `model=toy_model`."""

    toy_model_seed: Rare[int] = 0
    """Seed of its facts and of its weights."""

    def train(
        self, data: "Slaq", settings: SlaqSettings, out: Path, *, options: Mapping[str, object]
    ) -> "Runner":
        """Train a small model on the prompts of the run; it states fewer facts in later slots.

        Raises:
            MissingDependencyError: If torch or transformers is not installed.
            RunnerError: If the runner does not accept the options; raised before the training.
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
