"""The control of frequency, the judges of senses and meaning, and the similarity of wordings."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from surface_consistency.engine import run_study, score_run
from surface_consistency.engine.report import build_page
from surface_consistency.errors import DataError, RecordError, SourceNotFoundError, UnscoredWarning
from surface_consistency.models import FakeRunner
from surface_consistency.plugins import importable
from surface_consistency.schemas import Prompt
from surface_consistency.studies.lexical.benchmarks import load_benchmark
from surface_consistency.studies.lexical.memorization import memorization_scores
from surface_consistency.studies.lexical.perturbation import WordNet, perturb_all
from surface_consistency.studies.lexical.perturbation.frequencies import (
    corpus_frequencies,
    match_frequency,
    read_word_counts,
)
from surface_consistency.studies.lexical.prompts import memorization_prompts, read_neighbours
from surface_consistency.studies.lexical.quality import proportion_columns, rouge_l
from surface_consistency.studies.lexical.records import BenchmarkInstance
from surface_consistency.studies.lexical.settings import LexicalScoring, LexicalSettings
from surface_consistency.studies.lexical.study import LexicalStudy
from surface_consistency.studies.lexical.wordings import neighbour_texts
from tests.made_scores import Scoring

pytestmark = pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")

WORDNET = str(Path(__file__).parent / "perturbation" / "wordnet")
ROWS = [
    {"sentence_good": f"{name} used the dog.", "sentence_bad": f"{name} used the dogs."}
    | {"UID": "anaphor_number_agreement"}
    for name in ("Mary", "John", "Sue", "Tom")
]
COUNTS = {"use": 900, "utilise": 5, "employ": 700, "dog": 400, "hound": 20}


def rejecting(*words):
    """Make a runner that selects the incorrect option if a text contains one of some words."""

    def fields(request):
        is_disliked = any(word in request.continuation for word in words)
        value = -1.0 if ("s." not in request.continuation) != is_disliked else -2.0
        return {"token_ids": (1,), "log_probabilities": (value,)}

    return Scoring(fields)


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "words.csv"
    pd.DataFrame({"word": list(COUNTS), "count": list(COUNTS.values())}).to_csv(path, index=False)
    return path


def asked(runner, out, **settings):
    given = {"wordnet": WORDNET, "repeat": 0} | settings
    study, data = LexicalStudy(), load_benchmark("anaphor_agreement", ROWS)
    settings = LexicalSettings(**given).for_command(out)
    options = {"model": "m", "settings": settings, "progress": False}
    folder = run_study(study, data, runner, out, **options)
    score_run(folder)
    return folder


@pytest.mark.parametrize(
    ("disliked", "frequent", "rarer"),
    [
        # Models that are sensitive to rare words, to any change, and to neither.
        (("utilise",), 1.0, 0.0),
        (("utilise", "employ"), 0.0, 0.0),
        ((), 1.0, 1.0),
    ],
)
def test_control_separates_frequency_from_mere_change(tmp_path, counts, disliked, frequent, rarer):
    folder = asked(rejecting(*disliked), tmp_path / "run", control=True, word_counts=counts)

    outcomes = pd.read_parquet(folder.outcomes)
    # "used" is in both options; "dog" has no synonym of about the same frequency.
    assert outcomes["n_control_edits"].tolist() == [2] * 4
    assert outcomes["frequent_surface"][0] == "Mary employed the dog. | Mary employed the dogs."
    assert outcomes["rarer_surface"][0] == "Mary utilised the dog. | Mary utilised the dogs."
    _, tables, _ = build_page([folder.path])
    (row,) = tables["lexical_control"].frame.to_dict("records")
    assert (row["original"], row["frequent"], row["rarer"]) == (1.0, frequent, rarer)
    assert row["change"] == frequent - 1.0
    assert row["rarity"] == rarer - frequent
    # The pairs of the study are the same as without control.
    assert tables["overall"].frame["n"].tolist() == [4]


@pytest.fixture
def plain(tmp_path):
    """Return a run with neither control nor memorization."""
    return asked(rejecting(), tmp_path / "run")


def test_runs_without_control_omit_its_table(plain):
    outcomes = pd.read_parquet(plain.outcomes)
    assert outcomes["frequent_correct"].isna().all()
    assert "lexical_control" not in build_page([plain.path])[1]
    texts = list(map(json.loads, (plain.path / "texts.jsonl").read_text().splitlines()))
    assert texts[0] == {
        "id": "anaphor_agreement/anaphor_number_agreement/0/original/0",
        "text": "Mary used the dog.",
    }
    words = pd.read_csv(plain.path / "words.csv")["surface"].tolist()
    assert words == ["dog", "employ", "hound", "use", "utilise"]
    with pytest.raises(DataError, match="run the study with `memorization`"):
        memorization_scores(plain)


def test_frequencies_of_wordnet_and_of_counts(tmp_path, counts):
    lexicon = WordNet(WORDNET)
    assert corpus_frequencies(lexicon)("dog", "noun") == 42.0
    assert corpus_frequencies(counts)("dog", "noun") == 400.0
    assert np.isnan(corpus_frequencies(counts)("cat", "noun"))
    instance = BenchmarkInstance(
        id="0", task="t", kind="formal", options=("Use a dog.", "Use a cat."), correct=0
    )
    with pytest.raises(ValueError, match="within must be a factor of at least 1"):
        match_frequency(corpus_frequencies(counts), "rarer", within=0.5)
    rarer = match_frequency(corpus_frequencies(counts), "rarer")
    (changed,) = perturb_all([instance], lexicon=lexicon, synonyms=rarer)
    assert changed.instance.options == ("Utilise a dog.", "Utilise a cat.")


def test_word_counts_of_count_and_of_tables(tmp_path):
    surfaces = {"surface": ["dog", "Dog", "cat"], "n_bounded": [3, 1, 2]}
    pd.DataFrame(surfaces).to_parquet(tmp_path / "surfaces.parquet")
    assert read_word_counts(tmp_path) == {"dog": 4.0, "cat": 2.0}
    ngrams = pd.DataFrame({"instance_id": ["dog", "cat"], "counts": [[7], []]})
    ngrams.to_parquet(tmp_path / "n.parquet")
    assert read_word_counts(tmp_path / "n.parquet") == {"dog": 7.0}


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("words.csv", "word\ndog\n", DataError, "lacks the column count"),
        ("words.csv", "word,count\ndog,-1\n", DataError, "the count of 'dog' is not a num"),
        ("words.csv", "word,count\ndog,many\n", DataError, "the count of 'dog' is not a num"),
        ("words.parquet", "PAR", DataError, "is not a table of counts"),
        ("other.csv", None, SourceNotFoundError, "has no counts of words"),
        (
            "ngrams.parquet",
            {"instance_id": ["a dog"], "counts": [[7, 9]]},
            *(DataError, "'a dog' has 2 n-grams, so it is not a word"),
        ),
    ],
)
def test_invalid_word_counts_raise_errors(tmp_path, name, content, error, message):
    if isinstance(content, dict):
        pd.DataFrame(content).to_parquet(tmp_path / name)
    elif content:
        (tmp_path / name).write_text(content)
    with pytest.raises(error, match=message):
        read_word_counts(tmp_path / name)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"senses": "judge"}, "`senses=judge` needs `sense_model`"),
        ({"sense_model": "m"}, "`sense_model` needs `senses=judge`"),
        ({"neighbours": 3}, "`neighbours` needs `memorization`"),
        ({"neighbour_file": Path("f")}, "`neighbour_file` needs `memorization`"),
        (
            {"memorization": True, "neighbours": 3, "neighbour_file": Path("f")},
            "either `neighbours` or `neighbour_file`",
        ),
    ],
)
def test_options_without_effect_raise_errors(settings, message):
    with pytest.raises(ValueError, match=message):
        LexicalSettings(**settings)


@pytest.fixture(autouse=True)
def named():
    """Let settings name the runners of this file, as on the command line."""
    with importable(*(f"{__name__}:judge_of_{what}" for what in ("senses", "meaning"))):
        yield


def judge_of_senses(model=None):
    """Runner that writes the number of the second meaning, and counts its prompts."""

    def reply(prompt):
        JUDGED.append(prompt.text)
        return " 2." if "Text: Mary" in prompt.text else "I do not know"

    return FakeRunner(reply, name="fake")


JUDGED: list[str] = []


def test_judge_chooses_senses_once_and_resumes_its_log(tmp_path):
    JUDGED.clear()
    judge = "tests.studies.lexical.test_wordings:judge_of_senses"
    settings = {"senses": "judge", "sense_runner": judge}
    with pytest.warns(UnscoredWarning, match="did not choose a sense for 3 of 8 words"):
        folder = asked(rejecting(), tmp_path / "run", control=True, **settings)

    # "use" has one sense as a verb, "dog" two as a noun; equal prompts are sent once.
    assert len(JUDGED) == 4
    surfaces = pd.read_parquet(folder.outcomes)["second_surface"]
    assert "the fellow." in surfaces[0]
    assert "the dog." in surfaces[1]
    with pytest.warns(UnscoredWarning, match="did not choose a sense"):
        asked(rejecting(), tmp_path / "run", control=True, **settings)
    assert len(JUDGED) == 4
    stored = asked(rejecting(), tmp_path / "stored", senses=str(folder.path / "senses.jsonl"))
    again = pd.read_parquet(stored.outcomes)["second_surface"]
    assert again.tolist() == surfaces.tolist()


def test_as_published_uses_a_judge_of_senses(tmp_path):
    judge = "tests.studies.lexical.test_wordings:judge_of_senses"
    settings = {"as_published": True, "sense_model": "m", "sense_runner": judge}
    with pytest.warns(UnscoredWarning, match="did not choose a sense"):
        folder = asked(rejecting(), tmp_path / "run", **settings)

    assert folder.read_manifest().settings["senses"] == "judge"


def judge_of_meaning(model=None):
    """Runner that replies "different" for texts with John."""

    def reply(prompt):
        text = str(prompt.messages)
        return "I am not sure" if "Tom" in text else "different" if "John" in text else "Same."

    return FakeRunner(reply, name="fake")


def test_judge_of_meaning_scores_a_sample(plain):
    folder = plain
    runner = "tests.studies.lexical.test_wordings:judge_of_meaning"
    score_run(folder, scoring=LexicalScoring(meaning_runner=runner))

    checked = pd.read_csv(folder.checks / "meaning.csv").iloc[0]
    assert (checked["n"], checked["n_unclear"]) == (3, 1)
    assert checked["same"] == pytest.approx(2 / 3)
    pairs = pd.read_csv(folder.checks / "meaning_pairs.csv").set_index("first")
    assert not pairs.loc["John used the dog.", "is_same"]
    _, tables, _ = build_page([folder.path])
    assert tables["meaning"].frame["n"].tolist() == [3]
    score_run(folder, scoring=LexicalScoring(meaning_runner=runner, meaning_pairs=2))
    assert len(pd.read_csv(folder.checks / "meaning_pairs.csv")) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The woman was arrested. She committed assault.", "The woman was collared. She did it."),
        ("Don't stop-and-go!", "don't stop and  GO"),
        ("a b c d", "d c b a"),
        ("", "a"),
    ],
)
def test_rouge_l_agrees_with_rouge_score(first, second):
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"])
    assert rouge_l(first, second) == pytest.approx(scorer.score(first, second)["rougeL"].fmeasure)


class LengthEncoder:
    """Encoder of the numbers of letters and words of a text."""

    def __init__(self, model):
        assert model == "lengths"

    def encode(self, texts):
        return np.array([[len(text), 4.0 * len(text.split())] for text in texts], dtype=np.float32)


def test_wordings_are_compared_by_a_sentence_encoder(plain, monkeypatch):
    monkeypatch.setattr("surface_consistency.models.encoders.SentenceEncoder", LengthEncoder)
    folder = plain
    score_run(folder, scoring=LexicalScoring(encoder="lengths"))

    outcomes = pd.read_parquet(folder.outcomes)
    expected = []
    for first, second in zip(outcomes["first_surface"], outcomes["second_surface"], strict=True):
        left, right = LengthEncoder("lengths").encode([t.split(" | ")[0] for t in (first, second)])
        expected.append(left @ right / np.linalg.norm(left) / np.linalg.norm(right))
    checked = pd.read_csv(folder.checks / "similarity.csv").set_index("measure")
    assert checked.loc["cosine", "mean"] == pytest.approx(np.mean(expected))
    assert checked.loc["rouge_l", "mean"] == pytest.approx(0.5)


def test_neighbours_and_whole_texts_have_prompts(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_text('{"text": "A b.", "neighbours": ["A c.", "A c.", "A b."]}\n')
    instance = BenchmarkInstance(id="0", task="t", kind="formal", options=("A b.", "C"), correct=0)
    prompts = {p.id: p for p in memorization_prompts("f", instance, read_neighbours(path))}
    prefix = "memorisation/f"
    assert [name.removeprefix(prefix) for name in prompts] == [
        *("/0/text", "/0/half", "/0/neighbours"),
        "/1/text",
    ]
    half = prompts[f"{prefix}/0/half"]
    assert (half.text, half.options) == ("A", (" b.",))
    assert prompts[f"{prefix}/0/neighbours"].options == ("A c.",)
    plain = Prompt(id="x", text="", options=("A b.",))
    assert prompts[f"{prefix}/0/text"].key != plain.key


def test_file_of_neighbours_is_used_instead_of_replaced_words(tmp_path):
    """WordNet yields another neighbour of this text than the one in the file."""
    path = tmp_path / "n.jsonl"
    path.write_text('{"text": "Mary used the dog.", "neighbours": ["Mary saw the dog."]}\n')
    (instance,) = load_benchmark("anaphor_agreement", ROWS[:1]).instances
    lexicon = WordNet(WORDNET)

    options = {"memorization": True, "neighbours": 1}
    made = neighbour_texts([instance], LexicalSettings(**options), lexicon)
    options = {"memorization": True, "neighbour_file": path}
    given = neighbour_texts([instance], LexicalSettings(**options), lexicon)

    assert "Mary saw the dog." not in made["Mary used the dog."] != ()
    assert given == {"Mary used the dog.": ("Mary saw the dog.",)}


@pytest.mark.parametrize("line", ['{"text": "a"}', '{"text": "a", "neighbours": "b"}'])
def test_invalid_neighbours_raise_errors(tmp_path, line):
    path = tmp_path / "n.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(RecordError, match=r"n.jsonl:1: a line must have text and neighbours"):
        read_neighbours(path)


def proportions(values, facts):
    return proportion_columns("same", pd.Series(values, dtype=object), pd.Series(facts))


def test_repeated_texts_of_an_instance_do_not_narrow_the_interval():
    values = np.random.default_rng(1).random(40) < 0.3

    once = proportions(values, range(40))
    thrice = proportions(np.repeat(values, 3), np.repeat(range(40), 3))

    assert thrice == pytest.approx(once, abs=1e-12)
    assert once["same"] == values.mean()
    assert once["same_low"] < once["same"] < once["same_high"]


def test_unknown_values_are_excluded_and_a_proportion_of_no_values_is_nan():
    assert proportions([True, None, False, True], list("abcd"))["same"] == pytest.approx(2 / 3)
    assert all(map(math.isnan, proportions([None, None], list("ab")).values()))
