"""Instances of benchmarks that are solved by choosing an option, and what was changed in them."""

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
    """One item of a benchmark, as its authors wrote it, without anybody's prompt around it."""

    id: NonEmpty
    """Identifier, unique in its task."""

    task: NonEmpty
    """The task, such as "piqa" or "anaphor_agreement"."""

    kind: Literal["functional", "formal"]
    """Whether it asks for knowledge of the world or of the language."""

    context: str = ""
    """What stands before the options, or around them where it holds a "_"; empty where the options
    are whole sentences."""

    options: Items[NonEmpty]
    """What is chosen among; a single one is a word to be foretold."""

    correct: int = Field(ge=0)
    """Place of the right option, from 0."""

    group: str | None = None
    """What parts the task further, such as the paradigm of BLiMP or COPA's "cause" and "effect"."""

    @model_validator(mode="after")
    def _has_correct(self) -> "BenchmarkInstance":
        """Refuse a right option that is not there."""
        if self.correct >= len(self.options):
            raise ValueError(
                f"option {self.correct} of {len(self.options)} cannot be the right one; places "
                "count from 0"
            )
        if len(set(self.options)) < len(self.options):
            raise ValueError(
                f"two options read alike ({shown(self.options[0])}), so none can be chosen"
            )
        return self

    @property
    def context_id(self) -> str:
        """What instances share: the context, or the fillers of twin sentences of WinoGrande."""
        shared = " / ".join(sorted(self.options)) if self.task == "winogrande" else self.context
        return f"{self.task}/{shared or self.id}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The context, then the options."""
        return (self.context, *self.options)

    @property
    def texts(self) -> tuple[str, ...]:
        """The plain text with each option in its place, without anybody's prompt."""
        if self.task == "winogrande":
            return tuple(self.context.replace("_", option, 1) for option in self.options)
        return tuple(
            " ".join(part for part in (self.context, option) if part) for option in self.options
        )


class Edit(Record):
    """One word that was replaced."""

    part: int = Field(ge=0)
    """Where it stood: 0 the context, 1 the first option, and so on."""

    start: int = Field(ge=0)
    """Place of its first character in the original part."""

    original: NonEmpty
    """What stood there."""

    replacement: NonEmpty
    """What stands there now."""

    lemma: NonEmpty
    """Base form of the original."""

    synonym: NonEmpty
    """Base form of the replacement."""

    pos: PartOfSpeech
    """Part of speech of both."""

    synset: NonEmpty
    """The sense that both share, such as "02084071-n"."""


class PerturbedInstance(Record):
    """A benchmark instance in other words of the same meaning."""

    instance: BenchmarkInstance
    """The instance in other words, under the id of the original."""

    draw: int = Field(ge=0)
    """Which draw of synonyms."""

    edits: Items[Edit]
    """What was replaced, in order of place; empty where no word could be."""

    is_broken: bool
    """Whether a word was replaced in some options and not in all, so that they no longer differ in
    the words alone in which their authors let them differ."""


class LexicalVerdict(Verdict):
    """Which option of an instance a model finds the most probable."""

    log_probability: float | None = None
    """Log-probability of the right option, in nats; None where it was not told."""


class LexicalOutcome(PairedOutcome):
    """A benchmark instance in its authors' words and in others of the same meaning."""

    context: NonEmpty | None = None
    """The cluster, as of `BenchmarkInstance.context_id`; None in runs that did not record it."""

    task: NonEmpty
    """The task."""

    kind: Literal["functional", "formal"]
    """Whether it asks for knowledge of the world or of the language."""

    group: str | None
    """What parts the task further, such as the paradigm of BLiMP."""

    draw: int
    """Which draw of synonyms."""

    replaced: NonEmpty
    """Parts of speech of the replaced words, such as "noun and verb"; "none" where no word could be
    replaced."""

    n_edits: int
    """Words replaced."""

    is_broken: bool
    """Whether a word was replaced in some options and not in all."""

    first_surface: NonEmpty
    """Context and options in the original words."""

    second_surface: NonEmpty
    """Context and options in other words."""

    first_prediction: str | None
    """The option chosen in the original words."""

    second_prediction: str | None
    """The option chosen in other words."""

    first_log_probability: float | None
    """Log-probability of the right option in the original words, in nats."""

    second_log_probability: float | None
    """Log-probability of the right option in other words, in nats."""

    rouge_l: float | None = None
    """ROUGE-L's F1 of the text with the right option in both wordings, in [0, 1]."""

    n_control_edits: int | None = None
    """Words replaced in the control; None without control. The two wordings of the control replace
    the same words, one by synonyms about as frequent, the other by rarer ones."""

    frequent_surface: str | None = None
    """Context and options with synonyms about as frequent; None where no word has both kinds."""

    rarer_surface: str | None = None
    """Context and options with rarer synonyms; None where no word has both kinds."""

    frequent_correct: bool | None = None
    """Verdict with synonyms about as frequent."""

    rarer_correct: bool | None = None
    """Verdict with rarer synonyms."""


def text_id(target_id: str, option: int) -> str:
    """Name a text of a run, as `texts.jsonl` and the counts of its n-grams do.

    Args:
        target_id: The instance in one wording.
        option: Place of the option that stands in the text.

    Returns:
        "TARGET/OPTION".
    """
    return f"{target_id}/{option}"
