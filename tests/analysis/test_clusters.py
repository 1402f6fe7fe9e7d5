"""Files read by rows, files read by sums, and frames have the same clusters."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from surface_consistency.analysis.measures import accuracy
from surface_consistency.analysis.models import compare
from surface_consistency.errors import UndefinedMetricWarning

N = 60
ITEM = np.arange(N)
SIZES = st.integers(1, 60)
"""Items per group: from groups of one item to one group of all items."""
LABEL_SIZES = {"topic": 5, "subject": 2, "domain": 4, "category": 3}
COLUMNS = st.dictionaries(
    st.sampled_from(["article", "video_id", "topic", "subject"]),
    st.tuples(SIZES, st.sampled_from([0, 0, 2, 30]), st.booleans()),
    max_size=3,
)


def made(columns, seed):
    """Scores with columns of groups: their size, number of empty cells, and if they are texts."""
    frame = pd.DataFrame({"item": ITEM, "correct": np.random.default_rng(seed).integers(0, 2, N)})
    for name, (size, n_empty, is_text) in columns.items():
        groups = pd.Series(ITEM // size).mask(n_empty > ITEM)
        frame[name] = groups.map("g{:.0f}".format, na_action="ignore") if is_text else groups
    return frame


def clusters(result):
    assert result.note.startswith("Clusters: ")
    return result.note


@settings(max_examples=15)  # six analyses per example
@given(COLUMNS)
def test_files_and_frames_have_the_same_clusters(tmp_path_factory, columns):
    folder, frames = tmp_path_factory.mktemp("files"), {m: made(columns, m) for m in (0, 1)}
    files = {"csv": {}, "parquet": {}}
    for model, frame in frames.items():
        files["csv"][model] = folder / f"{model}.csv"
        frame.to_csv(files["csv"][model], index=False)
        files["parquet"][model] = folder / f"{model}.parquet"
        frame.to_parquet(files["parquet"][model])

    by_frames, by_rows, by_sums = (compare(one) for one in (frames, *files.values()))

    assert by_frames.sentences == by_rows.sentences == by_sums.sentences
    expected = clusters(by_rows)
    n_clusters = by_rows.to_frame(all=True)["n_clusters"].tolist()
    for source in (frames[0], files["csv"][0], files["parquet"][0]):
        one = accuracy(source)
        note = one.note if one.note.startswith("Clusters: ") else "Clusters: items, assumed"
        start = note.partition("; pass cluster")[0].partition("; cluster=")[0].partition(" Col")[0]
        assert expected.startswith(start.rstrip("."))
        assert one.to_frame()["n_clusters"].tolist() == n_clusters


def test_items_without_a_context_are_separate_clusters():
    frame = made({"article": (6, 3, True)}, 0)
    filled = frame.assign(article=frame["article"].fillna(frame["item"].astype(str)))

    gaps, full = accuracy(frame), accuracy(filled)

    pd.testing.assert_frame_equal(gaps.to_frame(all=True), full.to_frame(all=True))
    assert "60 items in 13 (3 without article); pass cluster='item'" in gaps.note
    assert accuracy(frame, cluster="item").to_frame()["n_clusters"].tolist() == [60]
    pd.testing.assert_frame_equal(
        compare(frame).to_frame(all=True), compare(filled).to_frame(all=True)
    )


def test_context_of_an_item_is_taken_from_any_of_its_rows():
    frame = pd.concat([made({"article": (6, 0, True)}, m).assign(model=m) for m in (0, 1)])
    frame["article"] = frame["article"].mask(frame["model"] == 1)

    assert "60 items in 10;" in accuracy(frame).note
    assert "60 items in 10." in clusters(compare(frame))


def test_few_contexts_with_empty_cells_can_be_filled_and_named():
    frame = made({"article": (30, 1, True)}, 0)
    note = clusters(compare(frame))

    assert "article groups them into 3 (1 without article), too few" in note
    assert "(fill its empty cells; `cluster` article clusters by them)" in note
    filled = frame.fillna({"article": "none"})
    with pytest.warns(UndefinedMetricWarning, match=r"number of clusters 2\.07"):
        named = compare(filled, cluster="article")
    assert named.to_frame()["n_clusters"].tolist() == [3]


@pytest.mark.parametrize("name", ["topic", "subject"])
def test_labels_with_empty_cells_are_not_proposed(name):
    frame = made({name: (4, 2, True)}, 0)

    assert accuracy(frame).note == "Standard errors are clustered by item."
    assert name not in repr(compare(frame))


def test_notes_propose_the_three_labels_with_the_most_values():
    """Each proposed label requires one more comparison, so their number is limited."""
    frame = made({name: (size, 0, True) for name, size in LABEL_SIZES.items()}, 0)

    proposed = re.findall(r"Column (\w+) \((\d+) values\) labels the items", accuracy(frame).note)

    assert proposed == [("subject", "30"), ("category", "20"), ("domain", "15")]
