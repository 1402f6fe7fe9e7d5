"""Instances of multiple-choice benchmarks, and their edits."""

from typing import Literal

from pydantic import Field, model_validator

from surface_consistency.reading import shown
from surface_consistency.schemas._record import Items, NonEmpty, Record
from surface_consistency.schemas.outcomes import PairedOutcome
from surface_consistency.schemas.verdicts import Verdict

BenchmarkName = Literal[
    "lambada",
    "piqa",
    "copa",
    "winogrande",
    "determiner_noun_agreement",
    "subject_verb_agreement",
    "anaphor_agreement",
    "argument_structure",
]
"""The tasks of the study of lexical popularity, the four of functional knowledge first."""

PartOfSpeech = Literal["noun", "verb", "adjective", "adverb"]
"""A part of speech of WordNet."""


class BenchmarkInstance(Record):
    """One item of a benchmark in its original words, without a prompt template."""

    id: NonEmpty
    """Identifier, unique in its task."""

    task: NonEmpty
    """The task, such as "piqa" or "anaphor_agreement"."""

    kind: Literal["functional", "formal"]
    """Whether it tests knowledge of the world (functional) or of the language (formal)."""

    context: str = ""
    """Text before the options, or around them if it contains a "_"; empty if the options are whole
    sentences."""

    options: Items[NonEmpty]
    """The options; a single one is a word to predict."""

    correct: int = Field(ge=0)
    """Position of the correct option, from 0."""

    group: str | None = None
    """Subdivision of the task, such as the paradigm of BLiMP or COPA's "cause" and "effect"."""

    @model_validator(mode="after")
    def _has_correct(self) -> "BenchmarkInstance":
        """Reject a position without an option, and equal options."""
        if self.correct >= len(self.options):
            raise ValueError(
                f"option {self.correct} of {len(self.options)} cannot be the correct one; positions"
                " count from 0"
            )
        if len(set(self.options)) < len(self.options):
            raise ValueError(
                f"two options are equal ({shown(self.options[0])}); options must be different"
            )
        return self

    @property
    def context_id(self) -> str:
        """Cluster of instances: the context, or the fillers of twin sentences of WinoGrande."""
        shared = " / ".join(sorted(self.options)) if self.task == "winogrande" else self.context
        return f"{self.task}/{shared or self.id}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The context, then the options."""
        return (self.context, *self.options)

    @property
    def texts(self) -> tuple[str, ...]:
        """The plain text with each option inserted, without a prompt template."""
        if self.task == "winogrande":
            return tuple(self.context.replace("_", option, 1) for option in self.options)
        return tuple(
            " ".join(part for part in (self.context, option) if part) for option in self.options
        )


class Edit(Record):
    """One word that was replaced."""

    part: int = Field(ge=0)
    """Part that contains the word: 0 the context, 1 the first option, and so on."""

    start: int = Field(ge=0)
    """Position of its first character in the original part."""

    original: NonEmpty
    """The original word."""

    replacement: NonEmpty
    """The word that replaces it."""

    lemma: NonEmpty
    """Base form of the original."""

    synonym: NonEmpty
    """Base form of the replacement."""

    pos: PartOfSpeech
    """Part of speech of both."""

    synset: NonEmpty
    """The sense of both, such as "02084071-n"."""


class PerturbedInstance(Record):
    """A benchmark instance in other words of the same meaning."""

    instance: BenchmarkInstance
    """The instance in other words, under the id of the original."""

    draw: int = Field(ge=0)
    """Number of the draw of synonyms."""

    edits: Items[Edit]
    """The replaced words, in order of position; empty if no word is replaceable."""

    is_broken: bool
    """Whether a word was replaced in some options only, so that the options differ in further words
    than in the original."""


class LexicalVerdict(Verdict):
    """The most probable option of an instance under a model, and its correctness label."""

    log_probability: float | None = None
    """Log-probability of the correct option, in nats; None if missing."""


class LexicalOutcome(PairedOutcome):
    """A benchmark instance in its original words and in synonyms."""

    context: NonEmpty | None = None
    """The cluster, as of `BenchmarkInstance.context_id`; None in runs that did not record it."""

    task: NonEmpty
    """The task."""

    kind: Literal["functional", "formal"]
    """Whether it tests knowledge of the world (functional) or of the language (formal)."""

    group: str | None
    """Subdivision of the task, such as the paradigm of BLiMP."""

    draw: int
    """Number of the draw of synonyms."""

    replaced: NonEmpty
    """Parts of speech of the replaced words, such as "noun and verb"; "none" without a replaced
    word."""

    n_edits: int
    """Number of replaced words."""

    is_broken: bool
    """Whether a word was replaced in some options only."""

    first_surface: NonEmpty
    """Context and options in the original words."""

    second_surface: NonEmpty
    """Context and options in other words."""

    first_prediction: str | None
    """The option chosen in the original words."""

    second_prediction: str | None
    """The option chosen in other words."""

    first_log_probability: float | None
    """Log-probability of the correct option in the original words, in nats."""

    second_log_probability: float | None
    """Log-probability of the correct option in other words, in nats."""

    rouge_l: float | None = None
    """F1 of ROUGE-L of the text with the correct option in both wordings, in [0, 1]."""

    n_control_edits: int | None = None
    """Number of words replaced in the control; None without control. The two wordings of the
    control replace the same words, one by synonyms of about the same frequency, the other by rarer
    ones."""

    frequent_surface: str | None = None
    """Context and options with synonyms of about the same frequency; None if no word has both
    kinds of synonyms."""

    rarer_surface: str | None = None
    """Context and options with rarer synonyms; None if no word has both kinds of synonyms."""

    frequent_correct: bool | None = None
    """Correctness label with synonyms of about the same frequency."""

    rarer_correct: bool | None = None
    """Correctness label with rarer synonyms."""


def text_id(target_id: str, option: int) -> str:
    """Return the id of a text of a run in `texts.jsonl` and in the counts of its n-grams.

    Args:
        target_id: The instance in one wording.
        option: Position of the option in the text.

    Returns:
        "TARGET/OPTION".
    """
    return f"{target_id}/{option}"
