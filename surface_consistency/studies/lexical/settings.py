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
    """Which benchmarks are asked."""

    task: Items[BenchmarkName]
    """Tasks: lambada, piqa, copa, winogrande, determiner_noun_agreement, subject_verb_agreement,
    anaphor_agreement, argument_structure."""

    source: str | None = None
    """Hub id, folder or file of the rows; the hub's repository of each task by default. With
    several tasks a folder with one subfolder a task, or BLiMP's own."""

    revision: str | None = None
    """Commit, tag or branch of the data."""

    split: Rare[str | None] = None
    """Split of the data; by default the one that lm-evaluation-harness takes."""

    column: Mapping[str, str] = Field(default_factory=dict)
    """Column of a field, as FIELD=COLUMN, where the source uses a name of its own."""


class LexicalSettings(PublishedSettings):
    """How benchmarks are put into other words."""

    _home: Path | None = PrivateAttr(default=None)

    wordnet: str = "/usr/share/wordnet"
    """Folder of WordNet's database files; by default that of the Debian package wordnet-base."""

    pos: Items[PartOfSpeech] = ("noun", "verb")
    """Parts of speech that are replaced: noun, verb, adjective, adverb."""

    share: float = Field(default=1.0, gt=0.0, le=1.0)
    """Share of the words with a synonym that are replaced."""

    draws: Rare[int] = Field(default=1, ge=1)
    """Draws of synonyms, each asked and compared with the original."""

    senses: str = "first"
    """How the sense of a word is chosen: first (the most frequent one), judge (by a model, with
    `sense_model`), or a file of senses, as a judge writes it to senses.jsonl of its run."""

    sense_model: str | None = None
    """Model of `senses=judge`: a hub id, folder or server's id."""

    sense_runner: Rare[RunnerName] = "openai"
    """Runner of `senses=judge`; openai reads OPENAI_BASE_URL."""

    sense_option: Rare[Mapping[str, str]] = Field(default_factory=dict)
    """Keyword argument of that runner, its value JSON or text."""

    sense_read: Rare[Literal["generate", "multiple-choice"]] = "generate"
    """Whether `senses=judge` writes the number of a definition, or the most probable number is
    taken."""

    may_keep: Rare[bool] = False
    """Whether the original word is among those drawn from."""

    multi_word: Rare[bool] = False
    """Whether several words may take the place of one."""

    targets: Rare[bool] = False
    """Whether LAMBADA's last word, which is to be foretold, is replaced too."""

    limit: int | None = Field(default=None, ge=1)
    """Ask only the first so many instances of each task."""

    control: bool = False
    """Whether two further wordings are asked that replace the same words: by synonyms about as
    frequent, and by rarer ones."""

    word_counts: Path | None = None
    """Counts of words, for `control` and the curves of frequency: a folder of `count names
    --names words.csv` or `count ngrams --n 1`, or a table with word and count. WordNet's own counts
    of senses by default, which are coarse."""

    within: Rare[float] = Field(default=2.0, ge=1.0)
    """Factor of the count within which `control` takes a synonym for about as frequent."""

    memorization: bool = False
    """Whether whole texts and their second halves are scored, for `analyse memorization`."""

    neighbours: Rare[int] = Field(default=0, ge=0)
    """Neighbours of each text with some words replaced by synonyms, scored with `memorization`."""

    neighbour_file: Rare[Path | None] = None
    """JSONL file of neighbours made elsewhere, such as by a masked language model: text, and
    neighbours, a list of texts."""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> "LexicalSettings":
        """Refuse options that would do nothing, before anything is asked."""
        if self.senses == "judge":
            if SideModel.of(self, "sense").lacks_model:
                raise ValueError("`senses=judge` needs `sense_model`, the model that judges")
        elif self.sense_model is not None:
            raise ValueError("`sense_model` chooses senses with `senses=judge`; add it")
        if not self.memorization and (self.neighbours or self.neighbour_file is not None):
            option = "`neighbours`" if self.neighbours else "`neighbour_file`"
            raise ValueError(f"{option} is scored with `memorization`; add it")
        if self.neighbours and self.neighbour_file is not None:
            raise ValueError("give either `neighbours` or `neighbour_file`, not both")
        return self

    @property
    def home(self) -> Path | None:
        """Folder where a judge of senses logs and writes what it chose; None outside a command."""
        return self._home

    def for_command(self, out: Path) -> Self:
        """Share the choice of senses among models; see `StudySettings.for_command`."""
        settings = self.model_copy()
        settings._home = out
        return settings


class LexicalScoring(JudgeScoring):
    """How an option is chosen."""

    option_score: Rare[OptionScore] = "sum"
    """How options are compared: by the sum of their tokens' log-probabilities (harness' acc), or by
    its mean per token or per character (harness' acc_norm)."""

    encoder: Rare[str | None] = None
    """Sentence encoder with which wordings are compared: bundled-minilm, a hub id or a folder
    (extra `retrieval`); none by default."""

    meaning_model: str | None = None
    """Model that judges whether wordings mean the same: a hub id, folder or server's id; nobody by
    default."""

    meaning_runner: Rare[RunnerName] = "openai"
    """Runner of that model; openai reads OPENAI_BASE_URL."""

    meaning_option: Rare[Mapping[str, str]] = Field(default_factory=dict)
    """Keyword argument of that runner, its value JSON or text."""

    meaning_pairs: Rare[int] = Field(default=50, ge=1)
    """Pairs of each task that are judged."""


RECORDS: Final = StudyRecords(LexicalSource, LexicalSettings, LexicalScoring)
"""The settings records of the study."""
