import subprocess
import sys
from pathlib import Path

import datasets
import pytest

from surface_consistency.data.popqa import PopQA
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.data.slaq import load_slaq
from surface_consistency.data.sources import SAMPLES
from surface_consistency.errors import SourceNotFoundError
from surface_consistency.studies.lexical.benchmarks import Benchmark
from surface_consistency.studies.slaq.queries import free_query
from surface_consistency.taxonomy import CATEGORIES, RELATIONS
from surface_consistency.text import padded_words


def test_sample_covers_all_relations_and_categories():
    """At least 60 facts over all relations, 1 to 4 redirects each, all categories present."""
    data = load_redirectqa("sample")
    original = data.pairs[data.pairs["template"] == "original"]
    n_redirects = original.groupby("item").size()

    assert data.rows["item"].nunique() == len(n_redirects) >= 60
    assert set(data.rows["relation"]) == set(RELATIONS)
    assert n_redirects.between(1, 4).all()
    assert set(data.pairs["categories"].explode()) == set(CATEGORIES)
    assert data.rows["references"].map(bool).all()
    assert data.unpaired.empty


def test_sample_is_a_folder_in_the_layout_of_the_hub(tmp_path):
    """`load_dataset` reads the folder, and both ways give the same data without a warning."""
    folder = SAMPLES / "redirectqa"
    loaded = datasets.load_dataset(str(folder), split="test", cache_dir=str(tmp_path))

    digests = {data.source.digest for data in map(load_redirectqa, ("sample", folder, loaded))}

    assert len(digests) == 1


def test_sample_is_loaded_without_datasets_torch_and_the_hub_client():
    """The sample loads without datasets, torch or the hub's client; Arrow imports pandas itself."""
    code = (
        "import sys; from surface_consistency.data.redirectqa import load_redirectqa\n"
        "load_redirectqa('sample')\n"
        "print([name for name in ('datasets', 'torch', 'huggingface_hub') "
        "if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


SAMPLE = load_slaq("sample")
# Appendix A.1 of the paper.
SLAQ_CATEGORIES = {
    *("Aesthetics", "Algebra", "Anthropology", "Applied sciences", "Artificial intelligence"),
    *("Astronomy", "Cultural studies", "Sociology", "Software engineering", "Spirituality"),
    *("Statistics", "Technology", "Telecommunications", "Theology", "Virtual reality"),
}


def test_slaq_sample_covers_categories_halves_and_kinds_of_answers():
    topics = SAMPLE.rows.drop_duplicates("topic_id")

    assert len(topics) == len(topics.drop_duplicates(["category", "popularity"])) == 24
    assert set(topics["category"]) <= SLAQ_CATEGORIES
    assert {"NA", "null", "None", "NaN", "Na"} <= set(SAMPLE.rows["answer"])
    assert "NaN" in set(topics["topic"])
    assert SAMPLE.rows["is_entity"].sum() > 40
    assert (~SAMPLE.rows["is_entity"]).sum() > 30
    assert SAMPLE.rows["is_entity"].notna().all()


def test_questions_do_not_contain_their_answers():
    """An echo of the short question or of the long query is never correct."""
    for fact in SAMPLE.rows.itertuples():
        queries = [fact.question, fact.long_question, free_query(fact.topic)]
        answer, *queries_in_words = padded_words([fact.answer, *queries])
        assert not any(answer in text for text in queries_in_words)


def test_sample_is_loaded_through_its_card_without_loss(tmp_path):
    """`load_dataset` with only the card keeps names such as "NA"."""
    loaded = datasets.load_dataset(
        str(SAMPLES / "slaq"), split="test", cache_dir=str(tmp_path / "cache")
    )

    assert load_slaq(loaded).source.digest == SAMPLE.source.digest
    assert load_slaq(SAMPLES / "slaq").topics == SAMPLE.topics
    assert loaded.features["Pageviews"].dtype == "int64"


def test_sample_is_read_as_a_name_and_not_as_a_path(tmp_path, monkeypatch):
    """A file or folder of that name in the working folder is given as "./sample"."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sample").mkdir()

    named = load_redirectqa("sample")

    assert (named.source.id, named.source.n_questions) == ("redirectqa-sample", len(named.rows))
    for path in ("./sample", Path("sample")):
        with pytest.raises(SourceNotFoundError, match="sample contains no data files"):
            load_redirectqa(path)


def test_repr_of_loaded_data_summarises_the_content():
    """It does not list all records, because a notebook displays it."""
    sample, slaq = load_redirectqa("sample"), load_slaq("sample")

    assert repr(sample) == (
        f"<RedirectQA 'redirectqa-sample': {len(sample.questions)} questions, "
        f"{len(sample.pairs)} pairs>"
    )
    assert repr(slaq) == "<Slaq 'slaq-sample': 24 topics>"
    popqa = PopQA(rows=sample.rows, source=sample.source)
    assert repr(popqa) == f"<PopQA 'redirectqa-sample': {len(sample.questions)} questions>"
    benchmark = Benchmark(instances=(), source=sample.source)
    assert repr(benchmark) == "<Benchmark 'redirectqa-sample': 0 instances>"
