"""Golden runs of the lexical and linking studies and of the frequency analysis."""

import json
from pathlib import Path

import pandas as pd

from surface_consistency.engine.score import score_run
from surface_consistency.studies.lexical.benchmarks import Benchmark, load_benchmark
from surface_consistency.studies.lexical.memorization import (
    MemorizationAnalysis,
    MemorizationSettings,
)
from surface_consistency.studies.lexical.popularity import PopularityAnalysis, PopularitySettings
from surface_consistency.studies.lexical.settings import LexicalSettings
from surface_consistency.studies.lexical.study import LexicalStudy
from surface_consistency.studies.linking.consistency import (
    LinkingConsistency,
    LinkingConsistencySettings,
)
from surface_consistency.studies.linking.settings import LinkingScoring, LinkingSettings
from surface_consistency.studies.linking.study import LinkingStudy
from surface_consistency.studies.redirectqa.frequency import FrequencyAnalysis, FrequencySettings
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from tests.golden_runs import inputs
from tests.golden_runs.files import GoldenRun
from tests.golden_runs.gather import load_redirectqa, of_study, scored_run

WORDNET = Path(__file__).parents[1] / "studies" / "lexical" / "perturbation" / "wordnet"


def lexical(home: Path) -> GoldenRun:
    """Run two models on three benchmarks, with the analyses of popularity and memorization."""
    rows = inputs.lexical_rows()
    loaded = [load_benchmark(task, of_task) for task, of_task in rows.items()]
    data = Benchmark(
        instances=tuple(instance for task in loaded for instance in task.instances),
        source=loaded[0].source,
    )
    documents = inputs.lexical_corpus(rows)
    words = home / "words.csv"
    pd.DataFrame(inputs.LEXICAL_COUNTS.items(), columns=["word", "count"]).to_csv(
        words, index=False
    )
    settings = LexicalSettings(
        wordnet=str(WORDNET),
        pos=("noun", "verb", "adjective", "adverb"),
        draws=2,
        seed=1,
        repeat=30,
        control=True,
        word_counts=words,
        memorization=True,
        neighbours=3,
    )
    folders = []
    for name, weight in (("ada", 0.6), ("bob", 1.5)):
        out = home / name
        runner = inputs.lexical_model(name, documents, weight=weight)
        of_run = settings.for_command(out)
        folders.append(scored_run(LexicalStudy(), data, runner, out, of_run))
    lines = (home / "ada" / "texts.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line) for line in lines]
    counts = home / "ngrams.parquet"
    pd.DataFrame(
        {
            "instance_id": [text["id"] for text in texts],
            "counts": inputs.ngram_counts(documents, [text["text"] for text in texts]),
        }
    ).to_parquet(counts)
    analyses = {
        PopularityAnalysis(): PopularitySettings(counts=(counts,)),
        MemorizationAnalysis(): MemorizationSettings(),
    }
    return of_study(
        LexicalStudy(), folders, {}, analyses=analyses, hidden=[home, WORDNET], answers=20
    )


def linking(home: Path) -> GoldenRun:
    """Run the linking study on two models; one of them is scored by calibrated odds."""
    folders = _linked(home)
    score_run(folders["bob"], study=LinkingStudy(), scoring=LinkingScoring(calibrated=True))
    return of_study(LinkingStudy(), list(folders.values()), {}, hidden=[home], answers=20)


def linking_vs_consistency(home: Path) -> GoldenRun:
    """Compare the linking of two names with the consistency of the answers under these names."""
    probes = _linked(home / "probes")
    folders = _answered(home)
    probed = tuple(folder.path for folder in probes.values())
    analyses = {LinkingConsistency(): LinkingConsistencySettings(linking=probed)}
    return of_study(RedirectQAStudy(), folders, {}, analyses=analyses, hidden=[home], answers=20)


def _linked(home: Path):
    """Return run folders of the linking study by model."""
    data = load_redirectqa()
    pairs = list(zip(data.pairs["surface"], data.pairs["canonical_surface"], strict=True))
    folders = {}
    for name, knows, habit in (("ada", 0.8, 0.0), ("bob", 0.5, 1.0)):
        runner = inputs.linking_model(name, pairs, knows=knows, habit=habit)
        settings = LinkingSettings(repeat=40, seed=2, shots=2)
        folders[name] = scored_run(LinkingStudy(), data, runner, home / name, settings)
    return folders


def _answered(home: Path):
    """Return run folders of two models on all questions."""
    data = load_redirectqa()
    settings = RedirectQASettings(shots=0, repeat=0, template="both")
    runners = [
        inputs.redirect_model(name, data.questions, knows=knows)
        for name, knows in (("ada", 0.75), ("bob", 0.5))
    ]
    return [scored_run(RedirectQAStudy(), data, one, home / one.name, settings) for one in runners]


def frequency(home: Path) -> GoldenRun:
    """Compare the answers of two models with the corpus frequency of the entity and its names."""
    questions = load_redirectqa().questions
    folders = _answered(home)
    counts = pd.DataFrame(inputs.count_rows(questions, measure="longest"))
    counts.astype({"pageviews": "Int64"}).to_parquet(home / "longest.parquet")
    settings = FrequencySettings(frequencies=home / "longest.parquet")
    analyses = {FrequencyAnalysis(): settings}
    return of_study(RedirectQAStudy(), folders, {}, analyses=analyses, hidden=[home], answers=20)
