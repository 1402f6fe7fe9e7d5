"""Plots of the results of metrics."""

import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.patches import Rectangle

from surface_consistency.errors import ColumnNotFoundError, MissingDependencyError
from surface_consistency.metrics import Intervals, PairedTable, paired_by
from surface_consistency.report import plot_forms, plot_paired
from surface_consistency.report.plots import plot_estimates
from tests.report.example import LABELS
from tests.test_startup import loaded_by

pytestmark = pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")

SHARES = ("item", "form", "item_by_form", "sampling")


@pytest.fixture(autouse=True)
def axes():
    """Empty current axes, without a display."""
    matplotlib.use("agg")
    _, axes = pyplot.subplots()
    yield axes
    pyplot.close("all")


@pytest.fixture
def groups():
    rows = [
        {"model": LABELS[m], "kind": f"kind_{k}", "item": f"f{i}", "first_correct": True,
         "second_correct": i % (2 + k) > 0 or k == 2}
        for m in range(2) for k in range(3) for i in range(12)
    ]  # fmt: skip
    return paired_by(pd.DataFrame(rows), by=["model", "kind"], intervals=Intervals(resamples=100))


def labels_of(axes):
    return [tick.get_text() for tick in axes.get_yticklabels()]


def points_of(axes):
    """The drawn values, with the ends of their intervals."""
    return [
        (*line.get_xdata(), *(bars[0].get_segments()[0][:, 0] if bars else ()))
        for line, _, bars in axes.containers
    ]


def test_plot_paired_draws_cells_with_proportional_areas_on_current_axes(axes):
    table = PairedTable(both=126, first_only=34, second_only=0, neither=36)

    assert plot_paired(table, conditions=("title", "redirect"), title="toy_model") is axes

    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    areas = [box.get_width() * box.get_height() for box in boxes]
    assert areas == pytest.approx([count / 196 for count in (126, 34, 36)])
    assert [box.get_x() for box in boxes] == pytest.approx([0, 0, 160 / 196])
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["both\n126", "title only\n34", "neither\n36"]
    assert axes.get_title() == "toy_model"


def test_plot_paired_accepts_a_row_of_paired_by_and_axes(groups, axes):
    _, other = pyplot.subplots()
    row = groups.iloc[0]

    assert plot_paired(row, ax=other) is other
    texts = [text.get_text() for text in other.texts]
    assert texts == [f"both\n{row['both']}", f"first only\n{row['first_only']}"]
    plot_paired(PairedTable(both=0, first_only=0, second_only=0, neither=0), ax=axes)
    assert [text.get_text() for text in axes.texts] == ["no pairs"]


def test_plot_forms_draws_the_shares_that_are_not_missing(axes):
    shares = dict(zip(SHARES, (0.6, 0.1, 0.3, float("nan")), strict=True))
    row = {"model": "a", "n": 100, "n_clusters": 25}
    for name, share in shares.items():
        row |= {f"{name}_share": share}
        row |= {f"{name}_share_low": share - 0.05, f"{name}_share_high": share + 0.05}

    plot_forms(pd.DataFrame([row]))

    assert labels_of(axes) == ["item", "form", "item by form"]
    expected = [[60, 55, 65], [10, 5, 15], [30, 25, 35]]
    np.testing.assert_allclose(points_of(axes), expected)
    # The shares are fractions of the variance, drawn per hundred.
    assert axes.get_xlabel() == "proportion of the variance, %"


def test_plot_forms_draws_each_model_with_a_different_marker(axes):
    bounds = {f"{name}_share{end}": 0.25 for name in SHARES for end in ("", "_low", "_high")}

    plot_forms(pd.DataFrame([{"model": name, "n_clusters": 25, **bounds} for name in LABELS[:2]]))

    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(LABELS[:2])
    assert len({line.get_marker() for line, _, _ in axes.containers}) == 2


def test_plot_estimates_omits_rows_with_fewer_than_4_clusters_and_fades_few(axes):
    frame = pd.DataFrame({"n_clusters": [3, 4, 20]})
    frame = frame.assign(rate=0.5, rate_low=0.4, rate_high=0.6)

    plot_estimates(frame, key="rate", labels=["a", "b", "c"], axis="rate, %", unit=100.0)

    assert axes.get_legend() is None
    assert axes.get_xlabel() == "rate, %"
    assert labels_of(axes) == ["b", "c"]
    assert [line.get_alpha() for line, _, _ in axes.containers] == [0.45, 1.0]
    np.testing.assert_allclose(points_of(axes), [[50, 40, 60]] * 2)


def test_frames_without_a_column_are_rejected(groups):
    with pytest.raises(ColumnNotFoundError, match="column 'item_share' not found; pass the frame"):
        plot_forms(groups)


def test_error_without_matplotlib_names_the_extra(monkeypatch, groups):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(MissingDependencyError, match=r"surface-consistency\[plot\]"):
        plot_paired(groups.iloc[0])


def test_matplotlib_is_loaded_when_drawing_only():
    statement = "from surface_consistency.report import plot_forms, render_page"

    assert "matplotlib" not in loaded_by(statement=statement)
