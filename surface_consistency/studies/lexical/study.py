"""Benchmarks in their authors' words and in others of the same meaning.

The study is section 5 of the study of lexical popularity: zero-shot scoring of LAMBADA, PIQA, COPA,
WinoGrande and four groups of BLiMP, as lm-evaluation-harness does it, before and after nouns and
verbs have been replaced by synonyms. The verdicts on one instance in both wordings are a pair.
"""

import copy
import hashlib
import json
import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import pandas as pd
from pydantic import Field, model_validator

from surface_consistency.engine.design import Design
from surface_consistency.engine.judging.chosen_judges import JudgeScoring
from surface_consistency.engine.judging.judges import generate_cached
from surface_consistency.engine.selection import warn_limited
from surface_consistency.engine.study import Plan, PromptGroup, Scored, Study, StudySettings
from surface_consistency.errors import DataError, UnscoredWarning
from surface_consistency.models.options import (
    MultipleChoiceRunner,
    OptionScore,
    check_scores_of_options,
    option_scores,
)
from surface_consistency.models.registry import load_runner
from surface_consistency.models.runner import Runner
from surface_consistency.runs.files import write_csv, write_text
from surface_consistency.runs.folder import RunFolder
from surface_consistency.schemas import (
    DataSource,
    Generation,
    GenerationParams,
    Prompt,
    ScoredText,
)
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Settings, values_of_items
from surface_consistency.studies.lexical.benchmarks import BenchmarkName, load_benchmark
from surface_consistency.studies.lexical.memorization import (
    MEMORISATION,
    memorization_prompts,
    read_neighbours,
)
from surface_consistency.studies.lexical.perturbation.frequencies import (
    FrequencyMatch,
    WordFrequency,
    corpus_frequencies,
)
from surface_consistency.studies.lexical.perturbation.inflection import lemminflect_inflector
from surface_consistency.studies.lexical.perturbation.perturb import candidate_synonyms, perturb_all
from surface_consistency.studies.lexical.perturbation.senses import (
    FirstSense,
    JudgedSense,
    SenseChooser,
    SenseQuestion,
    StoredSense,
    write_senses,
)
from surface_consistency.studies.lexical.perturbation.wordnet import Synset, WordNet
from surface_consistency.studies.lexical.popularity import text_id
from surface_consistency.studies.lexical.prompts import benchmark_prompt
from surface_consistency.studies.lexical.quality import quality_checks, rouge_l
from surface_consistency.studies.lexical.records import (
    BenchmarkInstance,
    LexicalOutcome,
    LexicalVerdict,
    PartOfSpeech,
    PerturbedInstance,
)
from surface_consistency.studies.lexical.tables import LexicalReport

__all__ = [
    "LexicalData",
    "LexicalJudge",
    "LexicalReport",
    "LexicalScoring",
    "LexicalSettings",
    "LexicalSource",
    "LexicalStudy",
]

_ORIGINAL: Final = "original"
_TARGETS: Final = [
    *("target_id", "prompt_id", "answers", "fact_id", "question", "correct", "options"),
    *("texts", "words"),
]
_ARMS: Final = ("frequent", "rarer")
_NEIGHBOUR_SHARE: Final = 0.3


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

    split: str | None = None
    """Split of the data; by default the one that lm-evaluation-harness takes."""

    column: Mapping[str, str] = Field(default_factory=dict)
    """Column of a field, as FIELD=COLUMN, where the source uses a name of its own."""


class LexicalSettings(StudySettings):
    """How benchmarks are put into other words."""

    wordnet: str = "/usr/share/wordnet"
    """Folder of WordNet's database files; by default that of the Debian package wordnet-base."""

    pos: Items[PartOfSpeech] = ("noun", "verb")
    """Parts of speech that are replaced: noun, verb, adjective, adverb."""

    share: float = Field(default=1.0, gt=0.0, le=1.0)
    """Share of the words with a synonym that are replaced."""

    draws: int = Field(default=1, ge=1)
    """Draws of synonyms, each asked and compared with the original."""

    senses: str = "first"
    """How the sense of a word is chosen: first (the most frequent one), judge (by a model, with
    --sense-model), or a file of senses, as a judge writes it to senses.jsonl of its run."""

    sense_model: str | None = None
    """Model of --senses judge: a hub id, folder or server's id."""

    sense_runner: str = "openai"
    """Runner of --senses judge; openai reads OPENAI_BASE_URL."""

    sense_option: Mapping[str, str] = Field(default_factory=dict)
    """Keyword argument of that runner, its value JSON or text."""

    sense_read: Literal["generate", "multiple-choice"] = "generate"
    """Whether --senses judge writes the number of a definition, or the most probable number is
    taken."""

    may_keep: bool = False
    """Whether the original word is among those drawn from."""

    multi_word: bool = False
    """Whether several words may take the place of one."""

    targets: bool = False
    """Whether LAMBADA's last word, which is to be foretold, is replaced too."""

    limit: int | None = Field(default=None, ge=1)
    """Ask only the first so many instances of each task."""

    control: bool = False
    """Whether two further wordings are asked that replace the same words: by synonyms about as
    frequent, and by rarer ones."""

    word_counts: Path | None = None
    """Counts of words, for --control and the curves of frequency: a folder of `count mentions
    --names words.csv` or `count ngrams --n 1`, or a table with word and count. WordNet's own counts
    of senses by default, which are coarse."""

    within: float = Field(default=2.0, ge=1.0)
    """Factor of the count within which --control takes a synonym for about as frequent."""

    memorization: bool = False
    """Whether whole texts and their second halves are scored, for `analyse memorization`."""

    neighbours: int = Field(default=0, ge=0)
    """Neighbours of each text with some words replaced by synonyms, scored with --memorization."""

    neighbour_file: Path | None = None
    """JSONL file of neighbours made elsewhere, such as by a masked language model: text, and
    neighbours, a list of texts."""

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> "LexicalSettings":
        """Refuse options that would do nothing, before anything is asked."""
        if self.senses == "judge":
            if self.sense_model is None and self.sense_runner in ("openai", "transformers"):
                raise ValueError("--senses judge needs --sense-model, the model that judges")
        elif self.sense_model is not None:
            raise ValueError("--sense-model chooses senses with --senses judge; add it")
        if not self.memorization and (self.neighbours or self.neighbour_file is not None):
            option = "--neighbours" if self.neighbours else "--neighbour-file"
            raise ValueError(f"{option} is scored with --memorization; add it")
        if self.neighbours and self.neighbour_file is not None:
            raise ValueError("give either --neighbours or --neighbour-file, not both")
        return self


class LexicalScoring(JudgeScoring):
    """How an option is chosen."""

    option_score: OptionScore = "sum"
    """How options are compared: by the sum of their tokens' log-probabilities (harness' acc), or by
    its mean per token or per character (harness' acc_norm)."""

    encoder: str | None = None
    """Sentence encoder with which wordings are compared: bundled-minilm, a hub id or a folder
    (extra `retrieval`); none by default."""

    meaning_model: str | None = None
    """Model that judges whether wordings mean the same: a hub id, folder or server's id; nobody by
    default."""

    meaning_runner: str = "openai"
    """Runner of that model; openai reads OPENAI_BASE_URL."""

    meaning_option: Mapping[str, str] = Field(default_factory=dict)
    """Keyword argument of that runner, its value JSON or text."""

    meaning_pairs: int = Field(default=50, ge=1)
    """Pairs of each task that are judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalData:
    """Instances of one or several tasks."""

    instances: tuple[BenchmarkInstance, ...]
    """The instances, task by task."""

    source: DataSource
    """Where they came from."""


class LexicalJudge:
    """Takes the most probable option; a single one is right where each of its tokens is greedy.

    Args:
        option_score: How options are compared.
    """

    name: str
    """How options are compared."""

    def __init__(self, option_score: OptionScore = "sum") -> None:
        self._option_score: OptionScore = option_score
        self.name = f"most probable option ({option_score})"

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Judge answers; see `engine.judging.judges.Judge.judge`.

        Returns:
            prediction, is_correct, reason and log_probability.

        Raises:
            DataError: If an answer has more or fewer scores than its prompt has options.
        """
        check_scores_of_options(targets["prompt_id"], targets["options"], targets["scores"])
        rows = [
            self._judge(scores, list(options), int(correct))
            for scores, options, correct in zip(
                targets["scores"], targets["options"], targets["correct"], strict=True
            )
        ]
        columns = ["prediction", "is_correct", "reason", "log_probability"]
        return pd.DataFrame(rows, columns=columns, index=targets.index).astype(
            {
                "prediction": "str",
                "is_correct": "boolean",
                "reason": "str",
                "log_probability": "Float64",
            }
        )

    def _judge(
        self, scores: Sequence[ScoredText] | None, options: list[str], correct: int
    ) -> tuple[str | None, bool | None, str | None, float | None]:
        """Judge one answer."""
        if scores is None:
            return None, None, "no log-probabilities of the options", None
        told = scores[correct].log_probability
        if len(options) == 1:
            is_greedy = scores[0].is_greedy
            reason = (
                None if is_greedy is not None else "not known whether the word is the likeliest"
            )
            return (options[0] if is_greedy else None), is_greedy, reason, told
        values = option_scores(options, scores, self._option_score)
        if any(map(math.isnan, values)):
            return None, None, "no log-probability of an option", None
        chosen = values.index(max(values))
        return options[chosen], chosen == correct, None, told


class LexicalStudy(Study[LexicalSource, LexicalSettings, LexicalData, LexicalScoring]):
    """Does a model still solve a benchmark in other words of the same meaning?"""

    name = "lexical"
    paper_prompts_note = (
        "the paper prints those of the judge alone (appendix A.3), which --meaning-model asks; "
        "the benchmarks are asked in the words of lm-evaluation-harness"
    )
    design = Design(
        title="Lexical perturbation",
        question="whether a model solves a benchmark alike when nouns and verbs give way to "
        "synonyms",
        conditions=("original", "other words"),
        cells=("right in both", "right in the original only", "in other words only", "neither"),
        clusters={"fact_id": "instances"},
        facet="task",
        groupings={"by_replaced": ("replaced",), "by_group": ("group",)},
    )
    source = LexicalSource
    settings = LexicalSettings
    scoring = LexicalScoring
    outcome = LexicalOutcome
    verdict = LexicalVerdict
    report = LexicalReport
    _home: Path | None = None

    def load(self, source: LexicalSource) -> LexicalData:
        """Load the tasks; see `Study.load`.

        Raises:
            MissingDependencyError: If lemminflect is not installed, before anything is read.
            DataError: If no task is named, or one cannot be read.
        """
        lemminflect_inflector()
        if not source.task:
            raise DataError("no task is named; give --task, such as --task piqa")
        loaded = [
            load_benchmark(
                task,
                _source_of(task, source.source),
                revision=source.revision,
                split=source.split,
                columns=source.column,
            )
            for task in dict.fromkeys(source.task)
        ]
        first = loaded[0].source
        if len(loaded) > 1:
            digests = "".join(item.source.digest for item in loaded)
            first = DataSource(
                id=" ".join(dict.fromkeys(item.source.id for item in loaded)),
                revision=first.revision,
                digest=hashlib.sha256(digests.encode()).hexdigest(),
                n_questions=sum(item.source.n_questions for item in loaded),
            )
        instances = tuple(instance for item in loaded for instance in item.instances)
        return LexicalData(instances=instances, source=first)

    def plan(
        self, data: LexicalData, settings: LexicalSettings, *, runner: Runner | None = None
    ) -> Plan:
        """Ask every instance in the original words and in each draw of others; see `Study.plan`.

        Returns:
            One target an instance and wording, one pair an instance and draw; the checks
            "perturbation" and "replaced_words" count what was replaced. With `memorization` a group
            of prompts of that name, which are scored and not judged.

        Raises:
            SourceNotFoundError: If WordNet, or a file of senses, counts or neighbours is not there.
            RunnerError: If the judge of senses cannot be asked.
            MissingDependencyError: If lemminflect is not installed.
        """
        instances = _limited(data.instances, settings.limit)
        warn_limited(settings.limit, len(instances), len(data.instances), "instances")
        lexicon = WordNet(settings.wordnet)
        frequency = corpus_frequencies(settings.word_counts or lexicon)
        reword = partial(
            perturb_all,
            lexicon=lexicon,
            inflect=lemminflect_inflector(),
            pos=settings.pos,
            multi_word=settings.multi_word,
            seed=settings.seed,
        )
        of_instances = partial(
            reword,
            instances,
            senses=_Once(self._senses(settings)),
            share=settings.share,
            may_keep=settings.may_keep,
            targets=settings.targets,
            draws=range(settings.draws),
        )
        perturbed = list(of_instances())
        arms: dict[str, dict[tuple[str, int], PerturbedInstance]] = {}
        if settings.control:
            match = FrequencyMatch(frequency, within=settings.within)
            for arm in _ARMS:
                made = of_instances(synonyms=getattr(match, arm))
                arms[arm] = {(_fact(item.instance), item.draw): item for item in made if item.edits}
        wordings = {f"{_fact(instance)}/{_ORIGINAL}": instance for instance in instances}
        wordings |= {f"{_fact(item.instance)}/{item.draw}": item.instance for item in perturbed}
        for arm, of_arm in arms.items():
            wordings |= {f"{fact}/{draw}/{arm}": p.instance for (fact, draw), p in of_arm.items()}
        words = _words(perturbed, lexicon, multi_word=settings.multi_word)
        originals = {_fact(instance): instance for instance in instances}
        groups = {
            "": PromptGroup(
                prompts=[benchmark_prompt(name, item) for name, item in wordings.items()],
                params=GenerationParams(),
            )
        }
        if settings.memorization:
            neighbours = _neighbours(instances, settings, reword)
            groups[MEMORISATION] = PromptGroup(
                prompts=[
                    prompt
                    for fact, instance in originals.items()
                    for prompt in memorization_prompts(fact, instance, neighbours)
                ],
                params=GenerationParams(),
            )
        return Plan(
            data=data.source,
            groups=groups,
            items=pd.DataFrame(
                [_target(name, item, words) for name, item in wordings.items()], columns=_TARGETS
            ),
            pairs=pd.DataFrame([_pair(originals[_fact(p.instance)], p, arms) for p in perturbed]),
            checks={
                "perturbation": _quality(originals, perturbed),
                "replaced_words": _replaced(perturbed, frequency),
            },
        )

    def with_output_dir(self, out: Path) -> "LexicalStudy":
        """Take the folder where a judge of senses logs and writes what it chose."""
        study = copy.copy(self)
        study._home = out
        return study

    def checks(self, scored: Scored) -> Mapping[str, pd.DataFrame]:
        """Measure how alike the wordings are; see `lexical_quality.quality_checks`."""
        return quality_checks(scored)

    def export(self, scored: Scored) -> None:
        """Write what is to be counted in a corpus: `texts.jsonl` and `words.csv`.

        Args:
            scored: The run. The texts are those for `count ngrams`, each option in its place; the
                words those that were replaced and their synonyms, for `count mentions --names`.
        """
        lines = [
            json.dumps({"id": text_id(target, number), "text": text}, ensure_ascii=False)
            for target, texts in zip(scored.items["target_id"], scored.items["texts"], strict=True)
            for number, text in enumerate(texts)
        ]
        write_text(scored.folder.path / "texts.jsonl", "\n".join([*lines, ""]))
        words = sorted({word for words in scored.items["words"] for word in words})
        frame = pd.DataFrame({"entity_id": words, "surface": words})
        write_csv(scored.folder.path / "words.csv", frame)

    def _senses(self, settings: LexicalSettings) -> SenseChooser:
        """Find who chooses senses."""
        if settings.senses == "first":
            return FirstSense()
        if settings.senses == "judge":
            return _LoggedSenses(settings, self._home)
        return StoredSense(settings.senses)

    def judge(self, scoring: LexicalScoring, folder: RunFolder) -> LexicalJudge:
        """Make the judge of a run; see `Study.judge`."""
        return LexicalJudge(scoring.option_score)


def _source_of(task: str, source: str | None) -> str | None:
    """Find the rows of a task: in a subfolder of its name where there is one."""
    if source is not None and (Path(source) / task).is_dir():
        return str(Path(source) / task)
    return source


def _limited(instances: Sequence[BenchmarkInstance], limit: int | None) -> list[BenchmarkInstance]:
    """Take the first instances of each task."""
    taken: dict[str, list[BenchmarkInstance]] = {}
    for instance in instances:
        of_task = taken.setdefault(instance.task, [])
        if limit is None or len(of_task) < limit:
            of_task.append(instance)
    return [instance for of_task in taken.values() for instance in of_task]


def _fact(instance: BenchmarkInstance) -> str:
    """Name an instance among those of all tasks."""
    return f"{instance.task}/{instance.id}"


def _target(
    name: str, instance: BenchmarkInstance, words: Mapping[str, list[str]]
) -> tuple[object, ...]:
    """Describe what is judged, in the order of `_TARGETS`."""
    fact = _fact(instance)
    return (
        name,
        name,
        [instance.options[instance.correct]],
        fact,
        instance.context,
        instance.correct,
        list(instance.options),
        list(instance.texts),
        words.get(fact, []) if name.endswith(f"/{_ORIGINAL}") else [],
    )


def _neighbours(
    instances: Sequence[BenchmarkInstance],
    settings: LexicalSettings,
    reword: Any,  # noqa: ANN401
) -> dict[str, tuple[str, ...]]:
    """Find the neighbours of the instances' texts: stored ones, or with some words replaced."""
    if settings.neighbour_file is not None:
        return read_neighbours(settings.neighbour_file)
    texts = list(dict.fromkeys(text for instance in instances for text in instance.texts))
    whole = [
        # A text as a context with nothing to foretell that could be replaced.
        BenchmarkInstance(
            id=str(number), task="text", kind="formal", context=text, options=("-",), correct=0
        )
        for number, text in enumerate(texts)
    ]
    found: dict[str, dict[str, None]] = {text: {} for text in texts}
    draws = range(settings.neighbours)
    # Short texts, of whose few words none was drawn, have all of them replaced.
    for share in (_NEIGHBOUR_SHARE, 1.0) if settings.neighbours else ():
        lacking = [item for item in whole if not found[item.context]]
        for item in reword(lacking, share=share, draws=draws):
            text = texts[int(item.instance.id)]
            if item.instance.context != text:
                found[text][item.instance.context] = None
    return {text: tuple(others) for text, others in found.items()}


def _pair(
    original: BenchmarkInstance,
    perturbed: PerturbedInstance,
    arms: Mapping[str, Mapping[tuple[str, int], PerturbedInstance]],
) -> dict[str, object]:
    """Describe a pair, and the control of its words where there is one."""
    replaced = sorted({edit.pos for edit in perturbed.edits})
    fact = _fact(original)
    control: dict[str, object] = {"n_control_edits": None}
    both = [arms.get(arm, {}).get((fact, perturbed.draw)) for arm in _ARMS]
    told = [item for item in both if item is not None]
    # A word may lack the form that one of the two synonyms would need.
    is_whole = len(told) == len(both) and len({_places(item) for item in told}) == 1
    if arms:
        control["n_control_edits"] = len(told[0].edits) if is_whole else 0
    for arm, item in zip(_ARMS, both, strict=True):
        is_there = is_whole and item is not None
        control[f"{arm}_target"] = f"{fact}/{perturbed.draw}/{arm}" if is_there else None
        control[f"{arm}_surface"] = _surface(item.instance) if item and is_whole else None
    return {
        **control,
        "pair_id": f"{fact}/{perturbed.draw}",
        "fact_id": fact,
        "first_target": f"{fact}/{_ORIGINAL}",
        "second_target": f"{fact}/{perturbed.draw}",
        "task": original.task,
        "kind": original.kind,
        "group": original.group,
        "draw": perturbed.draw,
        "replaced": " and ".join(replaced) or "none",
        "n_edits": len(perturbed.edits),
        "is_broken": perturbed.is_broken,
        "rouge_l": _rouge_l(original, perturbed.instance),
        "first_surface": _surface(original),
        "second_surface": _surface(perturbed.instance),
    }


def _places(perturbed: PerturbedInstance) -> frozenset[tuple[int, int]]:
    """Tell where words were replaced."""
    return frozenset((edit.part, edit.start) for edit in perturbed.edits)


def _surface(instance: BenchmarkInstance) -> str:
    """Write context and options on one line."""
    return " | ".join(part for part in instance.parts if part)


def _quality(
    originals: Mapping[str, BenchmarkInstance], perturbed: Sequence[PerturbedInstance]
) -> pd.DataFrame:
    """Count, by task and draw, what was replaced and how alike the wordings are."""
    rows = [
        {
            "task": item.instance.task,
            "draw": item.draw,
            "is_unchanged": not item.edits,
            "is_broken": item.is_broken,
            "n_edits": len(item.edits),
            "rouge_l": _rouge_l(originals[_fact(item.instance)], item.instance),
        }
        for item in perturbed
    ]
    return (
        pd.DataFrame(rows)
        .groupby(["task", "draw"], sort=False)
        .agg(
            n=("n_edits", "size"),
            n_unchanged=("is_unchanged", "sum"),
            n_broken=("is_broken", "sum"),
            edits=("n_edits", "mean"),
            rouge_l=("rouge_l", "mean"),
        )
        .reset_index()
    )


def _rouge_l(original: BenchmarkInstance, perturbed: BenchmarkInstance) -> float:
    """Compare the texts with the right option."""
    return rouge_l(original.texts[original.correct], perturbed.texts[perturbed.correct])


def _replaced(perturbed: Iterable[PerturbedInstance], frequency: WordFrequency) -> pd.DataFrame:
    """Count each replaced word with its synonym, and tell how frequent both are."""
    counted = Counter(
        (edit.lemma, edit.synonym, edit.pos) for item in perturbed for edit in item.edits
    )
    return pd.DataFrame(
        [
            (lemma, pos, synonym, n, frequency(lemma, pos), frequency(synonym, pos))
            for (lemma, synonym, pos), n in counted.items()
        ],
        columns=["word", "pos", "synonym", "n", "frequency", "synonym_frequency"],
    )


def _words(
    perturbed: Iterable[PerturbedInstance], lexicon: WordNet, *, multi_word: bool
) -> dict[str, list[str]]:
    """List by instance the words that were replaced, and all that could take their places."""
    found: dict[str, dict[str, None]] = {}
    known: dict[tuple[str, str], list[str]] = {}
    for item in perturbed:
        words = found.setdefault(_fact(item.instance), {})
        for edit in item.edits:
            key = (edit.lemma, edit.synset)
            if key not in known:
                sense = next(
                    sense
                    for sense in lexicon.synsets(edit.lemma, edit.pos)
                    if sense.id == edit.synset
                )
                known[key] = candidate_synonyms(sense, edit.pos, multi_word=multi_word)
            words |= dict.fromkeys([edit.lemma, *known[key]])
    return {fact: list(words) for fact, words in found.items()}


class _Once:
    """Asks for senses once, however many wordings are made of the same words."""

    def __init__(self, chooser: SenseChooser) -> None:
        self._chooser = chooser
        self._chosen: Sequence[Synset | None] | None = None

    def choose(self, questions: Sequence[SenseQuestion]) -> Sequence[Synset | None]:
        """Choose senses; see `SenseChooser.choose`."""
        if self._chosen is None:
            self._chosen = self._chooser.choose(questions)
        return self._chosen


class _LoggedSenses:
    """Asks a judge for senses, logs its answers beside the run, and writes the senses down."""

    def __init__(self, settings: "LexicalSettings", home: Path | None) -> None:
        self._settings = settings
        self._home = home

    def choose(self, questions: Sequence[SenseQuestion]) -> Sequence[Synset | None]:
        """Choose senses; see `SenseChooser.choose`."""
        runner = load_runner(
            self._settings.sense_runner,
            model=self._settings.sense_model,
            options=values_of_items(self._settings.sense_option, "sense_option"),
        )
        if self._settings.sense_read == "multiple-choice":
            runner = MultipleChoiceRunner(runner)
        self._runner: Runner = runner
        chosen = JudgedSense(self, batch_size=max(1, len(questions))).choose(questions)
        if self._home is not None:
            write_senses(questions, chosen, self._home / "senses.jsonl")
        n_unclear = sum(sense is None for sense in chosen)
        if n_unclear:
            warnings.warn(
                f"the judge told no sense of {n_unclear} of {len(questions)} words, which stay as "
                "they are",
                UnscoredWarning,
                stacklevel=2,
            )
        return chosen

    def generate(self, prompts: Sequence[Prompt], params: GenerationParams) -> Iterator[Generation]:
        """Ask what the log does not answer yet."""
        if self._settings.sense_read == "generate":
            prompts = [prompt.model_copy(update={"options": None}) for prompt in prompts]
        if self._home is None:
            yield from self._runner.generate(prompts, params)
            return
        answers = generate_cached(
            self._runner,
            prompts,
            params,
            self._home / "senses-generations.jsonl",
            manifest_path=self._home / "senses-manifest.json",
            model=self._settings.sense_model or self._runner.name,
            data=DataSource(
                id="senses of words", revision="1", digest="senses-of-words-v1", n_questions=0
            ),
        )
        for prompt in prompts:
            yield answers[prompt.key].model_copy(update={"prompt_id": prompt.id})
