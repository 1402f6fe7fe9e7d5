"""Sources of the reader, and the labels of its files."""

from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest

from surface_consistency.errors import DataError
from surface_consistency.results.frame import read_results
from surface_consistency.results.inputs import files_of, path_labels

PATHS = st.lists(
    st.lists(st.sampled_from(["a", "b_c", "a_b", "x"]), min_size=1, max_size=3).map(
        lambda parts: Path(*parts)
    ),
    min_size=1,
    unique=True,
)


@hypothesis.given(PATHS)
def test_path_labels_are_distinct(paths):
    labels = path_labels(paths)

    assert list(labels) == paths
    assert len(set(labels.values())) == len(paths)


def test_path_labels_contain_folder_and_name_if_both_are_needed():
    paths = [Path(folder, f"{name}.csv") for folder in ("x", "y") for name in ("a", "b")]

    assert list(path_labels(paths).values()) == ["x/a", "x/b", "y/a", "y/b"]


def test_companion_files_of_scores_are_not_listed(data_files):
    helm, vlm = data_files / "forms" / "helm" / "alpha", data_files / "forms" / "vlmevalkit"

    assert [file.name for file in files_of(helm)] == ["per_instance_stats.json"]
    assert [file.name for file in files_of(vlm / "beta")] == ["beta_Forms_result.tsv"]


TWICE = [Path("a/x"), Path("a/x"), Path("a/y")]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: read_results(3), TypeError, "results must be a path, .* got int"),
        (lambda: read_results(["a", 3]), TypeError, "results must be a path, .* got int"),
        (lambda: path_labels(TWICE), DataError, "^a/x is given twice; give it once$"),
    ],
)
def test_invalid_and_repeated_sources_are_rejected(call, error, message):
    with pytest.raises(error, match=message):
        call()
