import subprocess
import sys
from collections import Counter

import datasets
import pytest

from surface_consistency.data.popqa import PopQA
from surface_consistency.data.redirectqa import SAMPLE_PATH, load_redirectqa, load_sample
from surface_consistency.data.slaq import SLAQ_SAMPLE_PATH, load_slaq, load_slaq_sample
from surface_consistency.errors import SourceNotFoundError
from surface_consistency.studies.lexical.benchmarks import Benchmark
from surface_consistency.studies.slaq.queries import free_query
from surface_consistency.taxonomy import CATEGORIES, RELATIONS
from surface_consistency.text import padded_words


def test_sample_covers_the_vocabulary():
    """At least 60 facts over all relations, 1 to 4 redirects each, all categories present."""
    data = load_sample()
    original = data.pairs[data.pairs["template"] == "original"]
    n_redirects = original.groupby("fact_id").size()

    assert data.rows["fact_id"].nunique() == len(n_redirects) >= 60
    assert set(data.rows["relation"]) == set(RELATIONS)
    assert n_redirects.between(1, 4).all()
    assert set(data.pairs["categories"].explode()) == set(CATEGORIES)
    assert data.rows["answers"].map(bool).all()
    assert data.unpaired.empty


def test_sample_is_a_folder_in_the_hubs_layout(tmp_path):
    """`load_dataset` reads the folder, and both ways give the same data without a warning."""
    loaded = datasets.load_dataset(str(SAMPLE_PATH), split="test", cache_dir=str(tmp_path))

    digests = {
        data.source.digest
        for data in (load_sample(), load_redirectqa(SAMPLE_PATH), load_redirectqa(loaded))
    }

    assert len(digests) == 1


def test_sample_has_a_name_of_its_own():
    """A manifest names the sample alike on every machine."""
    source = load_sample().source

    assert source.id == "redirectqa-sample"
    assert source.n_questions == len(load_sample().questions)


def test_load_sample_needs_no_heavy_library():
    """The sample loads without datasets, torch or the hub's client; Arrow imports pandas itself."""
    code = (
        "import sys; from surface_consistency.data.redirectqa import load_sample\n"
        "load_sample()\n"
        "print([name for name in ('datasets', 'torch', 'huggingface_hub') "
        "if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


SAMPLE = load_slaq_sample()
# Appendix A.1 of the paper.
SLAQ_CATEGORIES = {
    "Aesthetics",
    "Algebra",
    "Anthropology",
    "Applied sciences",
    "Artificial intelligence",
    "Astronomy",
    "Cultural studies",
    "Sociology",
    "Software engineering",
    "Spirituality",
    "Statistics",
    "Technology",
    "Telecommunications",
    "Theology",
    "Virtual reality",
}


def test_sample_is_spread_over_categories_and_halves():
    counts = Counter((topic.category, topic.popularity) for topic in SAMPLE.topics)

    assert len(SAMPLE.topics) == 24
    assert {category for category, _ in counts} <= SLAQ_CATEGORIES
    assert len(counts) == 24
    assert set(counts.values()) == {1}


def test_sample_holds_names_that_look_like_nothing():
    answers = {question.answer for question in SAMPLE.questions}

    assert {"NA", "null", "None", "NaN", "Na"} <= answers
    assert "NaN" in {topic.topic for topic in SAMPLE.topics}


def test_sample_has_both_kinds_of_answer():
    flags = Counter(question.is_entity for question in SAMPLE.questions)

    assert flags[True] > 40
    assert flags[False] > 30
    assert flags[None] == 0


@pytest.mark.parametrize("topic", SAMPLE.topics, ids=lambda topic: topic.id)
def test_no_answer_stands_in_what_is_asked(topic):
    """An echo of the short question or of the long query never scores."""
    queries = [topic.long_question, free_query(topic.topic)]
    for question in topic.questions:
        answer, *asked = padded_words([question.answer, question.question, *queries])
        assert not any(answer in text for text in asked)


def test_card_loads_the_sample_without_loss(tmp_path):
    """`load_dataset` with the card alone keeps "NA" and the like."""
    loaded = datasets.load_dataset(
        str(SLAQ_SAMPLE_PATH), split="test", cache_dir=str(tmp_path / "cache")
    )

    assert load_slaq(loaded).source.digest == SAMPLE.source.digest
    assert load_slaq(SLAQ_SAMPLE_PATH).topics == SAMPLE.topics
    assert loaded.features["Pageviews"].dtype == "int64"


def test_the_sample_goes_by_its_name(tmp_path, monkeypatch):
    """As on the command line; a file of that name goes first."""
    named = load_redirectqa("sample")
    assert named.source == load_sample().source
    assert named.questions == load_sample().questions
    with pytest.raises(ValueError, match='"sample" is the bundled sample, whose columns are known'):
        load_redirectqa("sample", columns={"question": "q"})

    monkeypatch.chdir(tmp_path)
    (tmp_path / "sample").mkdir()
    with pytest.raises(SourceNotFoundError, match="folder sample holds no data files"):
        load_redirectqa("sample")


def test_loaded_data_say_what_they_hold():
    """Not every record: a notebook shows what stands alone in its cell."""
    sample, slaq = load_redirectqa("sample"), load_slaq_sample()

    assert repr(sample) == (
        f"<RedirectQA 'redirectqa-sample': {len(sample.questions)} questions, "
        f"{len(sample.pairs)} pairs>"
    )
    assert repr(slaq) == "<Slaq 'slaq-sample': 24 topics>"
    popqa = PopQA(rows=sample.rows, source=sample.source)
    assert repr(popqa) == f"<PopQA 'redirectqa-sample': {len(sample.questions)} questions>"
    benchmark = Benchmark(instances=(), source=sample.source)
    assert repr(benchmark) == "<Benchmark 'redirectqa-sample': 0 instances>"
