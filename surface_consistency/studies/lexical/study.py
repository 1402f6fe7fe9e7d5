"""The lexical study: benchmarks in the original words and with synonyms.

It implements section 5 of the study of lexical popularity: zero-shot scoring of LAMBADA, PIQA,
COPA, WinoGrande and four groups of BLiMP, as in lm-evaluation-harness, before and after nouns and
verbs are replaced by synonyms. The correctness of one instance in both wordings is a pair.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from surface_consistency.data.selection import warn_limited
from surface_consistency.engine.design import Design, bibtex
from surface_consistency.engine.plan import Plan, PromptGroup
from surface_consistency.engine.study import Scored, Study
from surface_consistency.errors import DataError
from surface_consistency.models.options import TIE, check_scores_of_options, option_scores
from surface_consistency.models.runner import Runner
from surface_consistency.runs.files import write_csv, write_text
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.frames import TEXT
from surface_consistency.schemas import DataSource, GenerationParams
from surface_consistency.schemas.scoring import OptionScore, ScoredText, best_option
from surface_consistency.studies.lexical.benchmarks import Benchmark, load_benchmark
from surface_consistency.studies.lexical.perturbation.tagging import lemminflect_inflector
from surface_consistency.studies.lexical.prompts import (
    MEMORISATION,
    benchmark_prompt,
    memorization_prompts,
)
from surface_consistency.studies.lexical.quality import quality_checks
from surface_consistency.studies.lexical.records import (
    BenchmarkInstance,
    LexicalOutcome,
    LexicalVerdict,
    text_id,
)
from surface_consistency.studies.lexical.senses import choose_senses
from surface_consistency.studies.lexical.settings import (
    RECORDS,
    LexicalScoring,
    LexicalSettings,
    LexicalSource,
)
from surface_consistency.studies.lexical.tables import LEXICAL_PAGE
from surface_consistency.studies.lexical.wordings import neighbour_texts, reword


class LexicalJudge:
    """Selects the most probable option; a single one is correct if each of its tokens is greedy.

    Args:
        option_score: Score by which options are compared.
    """

    name: str
    """Rule and score by which options are compared."""

    def __init__(self, option_score: OptionScore = "sum") -> None:
        self._option_score: OptionScore = option_score
        self.name = f"most probable option ({option_score})"

    def judge(self, targets: pd.DataFrame) -> pd.DataFrame:
        """Score answers; see `engine.judging.judges.Judge.judge`.

        Returns:
            prediction, correct, reason and log_probability.

        Raises:
            DataError: If an answer has more or fewer scores than its prompt has options.
        """
        check_scores_of_options(targets["prompt_id"], targets["options"], targets["scores"])
        rows = [
            self._scored(scores, list(options), int(correct))
            for scores, options, correct in zip(
                targets["scores"], targets["options"], targets["correct"], strict=True
            )
        ]
        columns = ["prediction", "correct", "reason", "log_probability"]
        return pd.DataFrame(rows, columns=columns, index=targets.index).astype(
            {"prediction": TEXT, "correct": "boolean", "reason": TEXT, "log_probability": "Float64"}
        )

    def _scored(
        self, scores: Sequence[ScoredText] | None, options: list[str], correct: int
    ) -> tuple[str | None, bool | None, str | None, float | None]:
        """Return prediction, correctness, reason and log-probability of one answer."""
        if scores is None:
            return None, None, "no log-probabilities of the options", None
        log_probability = scores[correct].log_probability
        if len(options) == 1:
            is_greedy = scores[0].is_greedy
            reason = (
                None if is_greedy is not None else "not known whether the word is the likeliest"
            )
            return (options[0] if is_greedy else None), is_greedy, reason, log_probability
        values = option_scores(options, scores, self._option_score)
        if any(map(math.isnan, values)):
            return None, None, "no log-probability of an option", None
        chosen = best_option(values)
        if chosen is None:
            return None, None, TIE, log_probability
        return options[chosen], chosen == correct, None, log_probability


def _export(scored: Scored) -> None:
    """Write the texts and words to count in a corpus: `texts.jsonl` and `words.csv`.

    Args:
        scored: The run. The texts, with each option inserted, are the input of `count ngrams`; the
            words, those replaced and their synonyms, are the input of `count names --names`.
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


class LexicalStudy(Study):
    """Compare accuracy on a benchmark before and after words are replaced by synonyms."""

    name = "lexical"
    design = Design(
        title="Lexical perturbation",
        citation=bibtex("surface_consistency.studies.lexical"),
        question="whether correctness on a benchmark changes when nouns and verbs are replaced by "
        "synonyms",
        conditions=("original", "other words"),
        cells=("correct in both", "correct in the original only", "in other words only", "neither"),
        clusters={"context": "contexts", "item": "instances"},
        facet="task",
        paper_prompts="the paper prints only those of the LLM judge (appendix A.3), which "
        "`meaning_model` uses; the benchmarks have the prompts of lm-evaluation-harness",
        groupings={"by_replaced": ("replaced",), "by_group": ("group",)},
    )
    records = replace(RECORDS, verdict=LexicalVerdict, outcome=LexicalOutcome)
    report = replace(LEXICAL_PAGE, run_checks=quality_checks, export=_export)

    def load(self, source: LexicalSource) -> Benchmark:
        """Load the tasks; see `Study.load`.

        Raises:
            MissingDependencyError: If lemminflect is not installed; raised before reading.
            DataError: If no task is named, or a task cannot be read.
        """
        lemminflect_inflector()
        if not source.task:
            raise DataError("no task is named; give `task`, such as `task=piqa`")
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
        return Benchmark(instances=instances, source=first)

    def plan(
        self, data: Benchmark, settings: LexicalSettings, *, runner: Runner | None = None
    ) -> Plan:
        """Plan the prompts of each instance in the original words and each draw; see `Study.plan`.

        Returns:
            One target per instance and wording, one pair per instance and draw; the checks
            "perturbation" and "replaced_words" count the replaced words. With `memorization` also a
            group of prompts of that name, which have log-probabilities but no targets.

        Raises:
            SourceNotFoundError: If WordNet, or a file of senses, counts or neighbours is missing.
            RunnerError: If the LLM judge of senses cannot be queried.
            MissingDependencyError: If lemminflect is not installed.
        """
        instances = _limited(data.instances, settings.limit)
        warn_limited(settings.limit, len(instances), len(data.instances), "instances")
        wordings = reword(instances, settings, choose_senses(settings))
        prompts = {"": [benchmark_prompt(name, item) for name, item in wordings.instances.items()]}
        if settings.memorization:
            neighbours = neighbour_texts(instances, settings, wordings.lexicon)
            prompts[MEMORISATION] = [
                prompt
                for fact, instance in wordings.originals.items()
                for prompt in memorization_prompts(fact, instance, neighbours)
            ]
        return Plan(
            data=data.source,
            groups={
                name: PromptGroup(prompts=of_group, params=GenerationParams())
                for name, of_group in prompts.items()
            },
            items=wordings.targets(),
            pairs=wordings.pairs(),
            checks={
                "perturbation": wordings.quality(),
                "replaced_words": wordings.replaced_words(),
            },
        )

    def judge(self, scoring: LexicalScoring, folder: RunFolder | None) -> LexicalJudge:
        """Return the scorer of a run; see `Study.judge`."""
        return LexicalJudge(scoring.option_score)


def _source_of(task: str, source: str | None) -> str | None:
    """Return the source of a task: the subfolder of its name if it exists."""
    if source is not None and (Path(source) / task).is_dir():
        return str(Path(source) / task)
    return source


def _limited(instances: Sequence[BenchmarkInstance], limit: int | None) -> list[BenchmarkInstance]:
    """Select the first instances of each task."""
    taken: dict[str, list[BenchmarkInstance]] = {}
    for instance in instances:
        of_task = taken.setdefault(instance.task, [])
        if limit is None or len(of_task) < limit:
            of_task.append(instance)
    return [instance for of_task in taken.values() for instance in of_task]
