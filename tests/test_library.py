"""The documented calls of the library are valid."""

import inspect

import numpy as np
import pandas as pd
import pytest

import surface_consistency as sc
from tests.analysis.made_answers import answers, outcomes

CALLS = {
    "accuracy": 'sc.accuracy(df, score="correct", cluster="article")',
    "consistency": 'sc.consistency(df, item="item", form="form", score="correct", '
    'cluster="article")',
    "paired": 'sc.paired(pairs, first="first_correct", second="second_correct", cluster="fact", '
    'by=["type"])',
    "paired by type": 'sc.paired(outcomes, by=["type"])',
    "compare": 'sc.compare(df_a, df_b, names=["a", "b"])',
    "compare by name": 'sc.compare({"a": df_a, "b": df_b})',
    "forgetting": 'sc.forgetting(facts, full="full", del_on="del_on", del_off="del_off", '
    'gold_retrieved=None, cluster="fact")',
    "alignment": 'sc.alignment(topics, short="short", long="long", topic="topic", '
    "permutation=None, cluster=None)",
    "partial_correlation": 'sc.partial_correlation(counts, x="log_surface", y="accuracy", '
    'controls=["log_entity"], method="pearson", cluster=None, by=())',
}
ARRAYS = (
    "consistency(first, second)",
    "flip_rate(first, second)",
    "consistency_given(first, second, first_correct=True)",
    "alignment(first, second, topics=None)",
    "signed_alignment(first, second, topics=None)",
    "leakage(second)",
    "retrieval_mediated(first, second)",
    "interference(first, second)",
    "artifact_rate(first, second)",
    "partial_correlation(x, y, x**2)",
)


@pytest.fixture(scope="module")
def names():
    """Frames and arrays in the calls."""
    rng = np.random.default_rng(3)
    frame, pairs = answers(n_repeats=1), outcomes()
    ada = pairs[pairs["model"] == "ada"].rename(columns={"item": "fact"})
    state = ada.rename(columns={"first_correct": "del_on", "second_correct": "del_off"})
    state = state.drop(columns="pair")
    counts = pd.DataFrame(
        rng.normal(size=(60, 3)), columns=["log_surface", "accuracy", "log_entity"]
    )
    return {
        "sc": sc,
        "df": frame,
        "df_a": frame,
        "df_b": frame.assign(correct=1 - frame["correct"]),
        "pairs": ada,
        "outcomes": pairs,
        "facts": state.assign(full=True),
        "topics": state.rename(columns={"del_on": "short", "del_off": "long", "topic_id": "topic"}),
        "counts": counts,
        "first": ada["first_correct"],
        "second": ada["second_correct"],
        "x": counts["log_surface"],
        "y": counts["accuracy"],
    }


@pytest.mark.parametrize("line", CALLS.values(), ids=CALLS)
def test_functions_of_a_frame_return_a_result(line, names):
    result = eval(line, names)

    assert isinstance(result, sc.Result)
    assert result.kind == line.split("(")[0].removeprefix("sc.")
    assert result.sentences


@pytest.mark.parametrize("line", ARRAYS)
def test_metrics_of_arrays_return_a_float(line, names):
    assert isinstance(eval(f"sc.metrics.{line}", names), float)


def test_top_level_has_at_most_40_documented_names(request):
    page = request.config.rootpath / "docs" / "reference" / "library.md"
    text = page.read_text("utf-8")

    assert len(sc.__all__) <= 40
    assert [name for name in sc.__all__ if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", sorted({line.split("(")[0][3:] for line in CALLS.values()}))
def test_functions_have_a_documented_example(name):
    text = inspect.getdoc(getattr(sc, name))

    for part in ("Args:", "Returns:", "Raises:", "References:", "Examples:"):
        assert part in text


def test_unknown_name_suggests_its_subpackage_or_a_similar_name():
    with pytest.raises(AttributeError, match="mcnemar; it is"):
        sc.mcnemar  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'accuracy'"):
        sc.acuracy  # noqa: B018
    assert not hasattr(sc, "_repr_html_")
