"""Loaders of benchmarks with local folders in the layouts of the hub."""

import json

import pandas as pd
import pytest

from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SourceNotFoundError,
)
from surface_consistency.studies.lexical.benchmarks import BLIMP_PARADIGMS, load_benchmark
from surface_consistency.studies.lexical.records import BenchmarkInstance
from tests.made_data import own_caches  # noqa: F401 - fixture

PIQA = [
    {"goal": "To open a jar,", "sol1": "twist the lid.", "sol2": "eat the lid.", "label": 0},
    {"goal": "To boil eggs,", "sol1": "freeze them.", "sol2": "heat water.", "label": 1},
]
COPA = [
    {"premise": "The man fell.", "choice1": "He slipped.", "choice2": "He slept."}
    | {"question": "cause", "idx": 0, "label": 0},
    {"premise": "I ate.", "choice1": "I grew hungry.", "choice2": "I was full."}
    | {"question": "effect", "idx": 1, "label": 1},
]
PAID = "Ann paid Sue because _ was owed."
WINOGRANDE = [{"sentence": PAID, "option1": "Ann", "option2": "Sue", "answer": "2"}]


def parquet(folder, name, rows):
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_parquet(folder / name)


def test_lambada_rows_are_read(tmp_path):
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "lambada_test.jsonl"
    path.write_text(json.dumps({"text": "he said “no\nway”, said Ann"}) + "\n")
    loaded = load_benchmark("lambada", tmp_path)
    (one,) = loaded.instances
    assert (one.context, one.options, one.correct) == ("he said “no\nway”, said", ("Ann",), 0)
    assert (one.task, one.kind, one.id) == ("lambada", "functional", "0")
    assert load_benchmark("lambada", path).source.digest == loaded.source.digest
    with pytest.raises(RecordError, match="must be a passage that ends in a separate word"):
        load_benchmark("lambada", [{"text": "word"}])


def test_piqa_rows_are_read(tmp_path):
    parquet(tmp_path / "plain_text", "validation-00000-of-00001.parquet", PIQA)
    parquet(tmp_path / "plain_text", "train-00000-of-00001.parquet", PIQA[:1])
    loaded = load_benchmark("piqa", tmp_path)
    assert [item.correct for item in loaded.instances] == [0, 1]
    assert loaded.instances[1].parts == ("To boil eggs,", "freeze them.", "heat water.")
    assert loaded.source.n_questions == 2
    assert len(load_benchmark("piqa", str(tmp_path), split="train").instances) == 1
    renamed = pd.DataFrame(PIQA).rename(columns={"goal": "aim"}).to_dict("records")
    assert load_benchmark("piqa", renamed, columns={"goal": "aim"}).instances == loaded.instances
    with pytest.raises(ColumnNotFoundError, match="goal"):
        load_benchmark("piqa", renamed)
    with pytest.raises(RecordError, match=r"'label'.*got -1|'label' has no label"):
        load_benchmark("piqa", [{**PIQA[0], "label": -1}])
    with pytest.raises(RecordError, match="option 2 of 2 cannot be the correct one"):
        load_benchmark("piqa", [{**PIQA[0], "label": 2}])
    with pytest.raises(RecordError, match=r"list:1: .*two options are equal"):
        load_benchmark("piqa", [{**PIQA[0], "sol2": PIQA[0]["sol1"]}])


def test_copa_rows_are_read(tmp_path):
    parquet(tmp_path / "copa", "validation-00000-of-00001.parquet", COPA)
    parquet(tmp_path / "boolq", "validation-00000-of-00001.parquet", PIQA)
    loaded = load_benchmark("copa", tmp_path)
    assert [item.group for item in loaded.instances] == ["cause", "effect"]
    assert [item.correct for item in loaded.instances] == [0, 1]
    with pytest.raises(RecordError, match="must be cause or effect, got 'why'"):
        load_benchmark("copa", [{**COPA[0], "question": "why"}])


def test_winogrande_rows_are_read(tmp_path):
    parquet(tmp_path / "winogrande_xl", "validation-00000-of-00001.parquet", WINOGRANDE)
    (one,) = load_benchmark("winogrande", tmp_path).instances
    assert (one.context, one.options, one.correct) == (PAID, ("Ann", "Sue"), 1)
    with pytest.raises(RecordError, match="the answer 1 or 2"):
        load_benchmark("winogrande", [{**WINOGRANDE[0], "answer": ""}])


@pytest.mark.parametrize("group", BLIMP_PARADIGMS)
def test_blimp_rows_are_read(tmp_path, group):
    rows = [{"sentence_good": "a dog", "sentence_bad": "a dogs"}] * 2
    for paradigm in BLIMP_PARADIGMS[group]:
        parquet(
            tmp_path / paradigm,
            "train-00000-of-00001.parquet",
            [{**row, "UID": paradigm, "field": "f"} for row in rows],
        )
    parquet(tmp_path / "wh_island", "train-00000-of-00001.parquet", rows)
    loaded = load_benchmark(group, tmp_path)
    assert len(loaded.instances) == 2 * len(BLIMP_PARADIGMS[group])
    assert {item.task for item in loaded.instances} == {group}
    assert {item.kind for item in loaded.instances} == {"formal"}
    assert [item.group for item in loaded.instances[::2]] == list(BLIMP_PARADIGMS[group])
    assert len({item.id for item in loaded.instances}) == len(loaded.instances)
    assert loaded.instances[0].options == ("a dog", "a dogs")
    rows = [{**rows[0], "UID": paradigm} for paradigm in (*BLIMP_PARADIGMS[group], "wh_island")]
    assert len(load_benchmark(group, rows).instances) == len(BLIMP_PARADIGMS[group])
    with pytest.raises(DataError, match=f"has no instances of {group}"):
        load_benchmark(group, rows[-1:])
    last = BLIMP_PARADIGMS[group][-1]
    (tmp_path / last / "train-00000-of-00001.parquet").unlink()
    (tmp_path / last).rmdir()
    with pytest.raises(SourceNotFoundError, match=f"lacks the configurations {last} of {group}"):
        load_benchmark(group, tmp_path)


def test_unknown_tasks_raise_an_error():
    with pytest.raises(DataError, match="unknown task 'blimps'; the tasks are lambada, piqa"):
        load_benchmark("blimps", PIQA)


def test_instances_with_one_context_and_twin_sentences_share_their_context_id():
    def shared(task, context, *options):
        fields = {"id": context or options[0], "task": task, "kind": "formal", "correct": 0}
        return BenchmarkInstance(context=context, options=options, **fields).context_id

    goal, twin = (
        shared("piqa", "Open a jar", "a", "b"),
        shared("winogrande", "_ won.", "Ann", "Eve"),
    )
    assert goal == shared("piqa", "Open a jar", "c", "d") != shared("piqa", "Open a tin", "a", "b")
    assert twin == shared("winogrande", "_ lost.", "Ann", "Eve")
    assert twin != shared("winogrande", "_ won.", "Ann", "Ida")
    assert shared("blimp", "", "He sees.", "He see.") != shared("blimp", "", "I see.", "I sees.")
