"""Positions and sizes of the marks in charts."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from surface_consistency.report.layout import (
    bars_cells,
    dot_rows,
    dots_scale,
    lines_scales,
    nice_scale,
    square_cells,
)
from surface_consistency.report.page import Dot, ForestPlot, MosaicPlot
from surface_consistency.report.pictures import flow_scene, forest_strips, square_scene
from surface_consistency.report.scene import Box, Stroke, Words
from surface_consistency.tables.numbers import Value
from tests.report.example import curves, flow

COUNTS = st.integers(min_value=0, max_value=10_000)


def _square(*counts):
    names = ("both", "first_only", "second_only", "neither")
    return MosaicPlot(title="s", model=None, **dict(zip(names, counts, strict=True)))


@given(st.tuples(COUNTS, COUNTS, COUNTS, COUNTS))
def test_areas_of_a_mosaic_plot_are_proportions(counts):
    cells = square_cells(_square(*counts))
    n = sum(counts)

    for cell, count in zip(cells, counts, strict=True):
        assert cell.width * cell.height == pytest.approx(count / n if n else 0)
        assert cell.x + cell.width <= 1 + 1e-9
        assert cell.y + cell.height <= 1 + 1e-9
        assert math.isnan(cell.share) == (n == 0)


def test_width_is_first_accuracy_and_height_the_second_given_the_first():
    cells = square_cells(_square(126, 34, 3, 33))

    assert cells[0].width == pytest.approx(160 / 196)
    assert cells[0].height == pytest.approx(126 / 160)
    assert cells[2].height == pytest.approx(3 / 36)
    with pytest.raises(ValueError, match="square 's' must not be negative"):
        square_cells(_square(1, -1, 0, 0))


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_nice_scale_contains_its_values(low, high):
    scale = nice_scale(low, high)

    assert scale.low <= min(low, high) + 1e-9 or high <= low
    assert scale.high >= high - 1e-9
    assert 2 <= len(scale.ticks) <= 12
    assert all(0 <= scale.share(tick) <= 1 for tick in scale.ticks)


def _dots(*dots, noise=None):
    found = [
        Dot(model=0, value=Value(value=v, low=low, high=high), n=2 * n, n_clusters=n)
        for v, low, high, n in dots
    ]
    rows = [(f"g{place}", 0, [dot]) for place, dot in enumerate(found)]
    return ForestPlot(name="d", title="D", axis="%", rows=rows, noise=noise or {})


def test_group_without_variation_has_a_wilson_interval():
    rows, n_hidden = dot_rows(_dots((0.0, 0.0, 0.0, 27), (1.0, 1.0, 1.0, 27), (0.5, 0.2, 0.8, 3)))

    assert n_hidden == 1
    # R: binom::binom.wilson(0, 27) gives upper 0.1245581
    assert rows[0][2][0].high == pytest.approx(0.1245581, abs=1e-4)
    assert rows[1][2][0].low == pytest.approx(1 - 0.1245581, abs=1e-4)
    assert rows[0][2][0].is_wilson
    assert not rows[0][2][0].is_faded


def test_headings_are_drawn_with_their_groups_and_not_counted_as_hidden():
    (_, _, many), (_, _, few) = _dots((0.5, 0.4, 0.6, 30), (0.5, 0.2, 0.8, 3)).rows
    rows = [("a", 0, []), ("low", 1, many), ("high", 1, few), ("b", 0, []), ("low", 1, few)]

    drawn, n_hidden = dot_rows(replace(_dots(), rows=rows))

    assert [(label, len(marks)) for label, _, marks in drawn] == [("a", 0), ("low", 1)]
    assert n_hidden == 2


def test_scale_covers_certain_groups_and_the_noise_floor():
    assert 0.33 <= dots_scale(_dots((0.2, 0.1, 0.33, 20), (0.5, 0.1, 0.9, 5))).high <= 0.4
    assert dots_scale(_dots((0.2, 0.1, 0.3, 20), noise={0: 0.55})).high >= 0.55
    assert dots_scale(_dots()).high > 0


def test_scale_of_differences_contains_both_margins():
    block = replace(_dots((-0.2, -0.3, -0.1, 20)), margin=0.05)
    strips = forest_strips(block, ["m"])

    assert strips.scale.high >= 0.05
    (band,) = strips.bands
    assert band.x == pytest.approx(100 * strips.scale.share(-0.05))
    assert band.width == pytest.approx(100 * 0.1 / (strips.scale.high - strips.scale.low))


def test_given_ticks_are_the_scale_and_numbers_are_not_percentages():
    dot = Dot(model=0, value=Value(value=2.0, low=1.0, high=3.0, kind="number"), n=9, n_clusters=9)
    block = ForestPlot(
        name="r", title="R", axis="rank", rows=[("a", 0, [dot]), ("b", 0, [dot])],
        ticks=(1, 2, 3), remarks={"a": "1–3"},
    )  # fmt: skip
    strips = forest_strips(block, ["m"])

    assert strips.ticks == [(0.0, "1"), (50.0, "2"), (100.0, "3")]
    assert [row.remark for row in strips.rows] == ["1–3", ""]


def test_heights_of_a_flow_are_proportional_to_counts():
    scene = flow_scene(flow())

    boxes = [mark for mark in scene.marks if isinstance(mark, Box)]
    counts = [("both", 222), ("neither", 858), ("first_only", 73), ("neither", 1007)]
    counts.append(("neither", 1080))
    assert [box.css for box in boxes] == [f"c-{cell}" for cell, _ in counts]
    heights = [0.975 * 330 * count / 1080 for _, count in counts]
    assert [box.height for box in boxes] == pytest.approx(heights)
    ribbons = [mark.css for mark in scene.marks if isinstance(mark, Stroke)]
    assert set(ribbons) == {"ribbon r-first_only", "ribbon r-neither"}
    assert len(ribbons) == 2 * 3
    with pytest.raises(ValueError, match="the plot 'states' must have two states or more and one"):
        flow_scene(replace(flow(), counts={(True,): 5}))


def test_curves_above_one_half_have_the_scale_0_to_1():
    horizontal, vertical = lines_scales(curves())

    assert (vertical.low, vertical.high) == (0, 1)
    assert horizontal.ticks == (1, 2, 3, 4, 5)
    assert horizontal.low < 1
    assert horizontal.high > 5


def test_parts_of_a_bar_fill_its_length():
    assert bars_cells([1, 0, 3]) == [(0.0, 0.25), (0.25, 0.0), (0.25, 0.75)]
    assert bars_cells([0, 0]) == [(0.0, 0.0), (0.0, 0.0)]


def test_headings_of_a_mosaic_plot_contain_the_first_accuracy():
    square = MosaicPlot(title="m", model=0, both=126, first_only=34, second_only=4, neither=36)

    scene = square_scene(square, ("both", "title", "redirect", "neither"), "Title")

    words = [mark.text for mark in scene.marks if isinstance(mark, Words)]
    assert words[-4:] == ["Title correct", "80.0\u00a0%", "Title incorrect", "20.0\u00a0%"]
