"""The options of the lexical study."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from surface_consistency.engine.settings import (
    JudgeScoring,
    PublishedSettings,
    SideModel,
    StudyRecords,
)
from surface_consistency.models.registry import RunnerName
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.scoring import OptionScore
from surface_consistency.schemas.settings import Rare, Settings
from surface_consistency.studies.lexical.records import BenchmarkName, PartOfSpeech


class LexicalSource(Settings):
    """Source of the benchmarks."""

    task: Items[BenchmarkName]
    """Tasks: lambada, piqa, copa, winogrande, determiner_noun_agreement, subject_verb_agreement,
    anaphor_agreement, argument_structure."""

    source: str | None = None
    """Hub id, folder or file of the rows; the hub's repository of each task by default. With
    several tasks a folder with one subfolder per task, or that of BLiMP."""

    revision: str | None = None
    """Commit, tag or branch of the data."""

    split: Rare[str | None] = None
    """Split of the data; by default the one that lm-evaluation-harness uses."""

    column: Mapping[str, str] = Field(default_factory=dict)
    """Column of a field, as FIELD=COLUMN, if the source uses another name."""


class LexicalSettings(PublishedSettings):
    """Replacement of words by synonyms, and memorization."""

    _home: Path | None = PrivateAttr(default=None)

    wordnet: str = "/usr/share/wordnet"
    """Folder of WordNet's database files; by default that of the Debian package wordnet-base."""

    pos: Items[PartOfSpeech] = ("noun", "verb")
    """Parts of speech to replace: noun, verb, adjective, adverb."""

    share: float = Field(default=1.0, gt=0.0, le=1.0)
    """Proportion of the words with a synonym that are replaced."""

    draws: Rare[int] = Field(default=1, ge=1)
    """Number of draws of synonyms, each evaluated and compared with the original."""

    senses: str = "first"
    """Choice of the sense of a word: first (the most frequent one), judge (an LLM judge, with
    `sense_model`), or a file of senses, such as senses.jsonl of a run with an LLM judge."""

    sense_model: str | None = None
    """Model of `senses=judge`: a hub id, folder or server's id."""

    sense_runner: Rare[RunnerName] = "openai"
    """Runner of `senses=judge`; openai reads OPENAI_BASE_URL."""

    sense_option: Rare[Mapping[str, str]] = Field(default_factory=dict)
    """Keyword argument of that runner; its value is JSON or text."""

    sense_read: Rare[Literal["generate", "multiple-choice"]] = "generate"
    """Reading of `senses=judge`: the generated number of a definition, or the most probable number.
    """

    may_keep: Rare[bool] = False
    """Include the original word in the draw."""

    multi_word: Rare[bool] = False
    """Allow several words to replace one."""

    targets: Rare[bool] = False
    """Also replace the last word of LAMBADA, which is to be predicted."""

    limit: int | None = Field(default=None, ge=1)
    """Maximum number of instances per task, in the order of the data."""

    control: bool = False
    """Also evaluate two wordings that replace the same words: by synonyms of about the same
    frequency, and by rarer ones."""

    word_counts: Path | None = None
    """Counts of words, for `control` and the curves of frequency: a folder of `count names
    --names words.csv` or `count ngrams --n 1`, or a table with word and count. By default WordNet's
    counts of senses, which are coarse."""

    within: Rare[float] = Field(default=2.0, ge=1.0)
    """Maximum ratio of the counts of a word and its synonym of about the same frequency, for
    `control`."""

    memorization: bool = False
    """Also compute log-probabilities of whole texts and their second halves, for `analyse
    memorization`."""

    neighbours: Rare[int] = Field(default=0, ge=0)
    """Number of neighbours of each text, with some words replaced by synonyms, for `memorization`.
    """

    neighbour_file: Rare[Path | None] = None
    """JSONL file of neighbours from another source, such as a masked language model: text, and
    neighbours, a list of texts."""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> "LexicalSettings":
        """Reject options without effect before the run."""
        if self.senses == "judge":
            if SideModel.of(self, "sense").lacks_model:
                raise ValueError("`senses=judge` needs `sense_model`, the model that chooses them")
        elif self.sense_model is not None:
            raise ValueError("`sense_model` needs `senses=judge`; add it")
        if not self.memorization and (self.neighbours or self.neighbour_file is not None):
            option = "`neighbours`" if self.neighbours else "`neighbour_file`"
            raise ValueError(f"{option} needs `memorization`; add it")
        if self.neighbours and self.neighbour_file is not None:
            raise ValueError("give either `neighbours` or `neighbour_file`, not both")
        return self

    @property
    def home(self) -> Path | None:
        """Folder of the log and the senses of an LLM judge; None outside a command."""
        return self._home

    def for_command(self, out: Path) -> Self:
        """Use the same choice of senses for all models; see `StudySettings.for_command`."""
        settings = self.model_copy()
        settings._home = out
        return settings


class LexicalScoring(JudgeScoring):
    """Scoring of options, and measures of the quality of the wordings."""

    option_score: Rare[OptionScore] = "sum"
    """Score of an option: sum of the log-probabilities of its tokens (acc of the harness), or its
    mean per token or per character (acc_norm of the harness)."""

    encoder: Rare[str | None] = None
    """Sentence encoder by which wordings are compared: bundled-minilm, a hub id or a folder (extra
    `retrieval`); by default wordings are not compared."""

    meaning_model: str | None = None
    """LLM judge of whether wordings have the same meaning: a hub id, folder or server's id; by
    default meaning is not compared."""

    meaning_runner: Rare[RunnerName] = "openai"
    """Runner of that model; openai reads OPENAI_BASE_URL."""

    meaning_option: Rare[Mapping[str, str]] = Field(default_factory=dict)
    """Keyword argument of that runner; its value is JSON or text."""

    meaning_pairs: Rare[int] = Field(default=50, ge=1)
    """Number of pairs of each task that are sent to the LLM judge of meaning."""


RECORDS: Final = StudyRecords(LexicalSource, LexicalSettings, LexicalScoring)
"""The settings records of the study."""
