"""Figures for papers, drawn from the blocks of a page."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from surface_consistency.errors import ColumnNotFoundError, MissingDependencyError
from surface_consistency.metrics import Intervals, PairedTable, paired_by
from surface_consistency.report import plot_forms, plot_groups, plot_square, write_figures
from surface_consistency.report.colours import LIGHT, heat_colours
from surface_consistency.report.figures import _figure
from surface_consistency.report.page import Heatmap, MosaicPlot, Section, StackedBars
from surface_consistency.report.scene import Words
from surface_consistency.report.squares import square_scene
from tests.report.example import LABELS, page, squares

pytestmark = [
    pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning"),
    pytest.mark.usefixtures("rendered_figures"),
]

FORMATS = ("pdf", "png", "svg")
STEMS = ("squares", "taught", "flips-by-type", "slots", "momentum", "states", "origins")


@pytest.fixture(scope="module")
def written(rendered_figures, tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    return folder, write_figures(page(4), folder, formats=FORMATS)


def test_every_figure_is_drawn_once_in_each_format(written):
    folder, files = written

    assert [path.name for path in files] == [f"{stem}.{kind}" for stem in STEMS for kind in FORMATS]
    assert {path.name for path in folder.iterdir()} == {path.name for path in files}
    assert all(path.stat().st_size > 1000 for path in files)


def test_figures_are_reproducible(written, tmp_path):
    whole = page(4)
    some = replace(whole, sections=[s for s in whole.sections if s.anchor in ("squares", "states")])

    for path in write_figures(some, tmp_path, formats=FORMATS):
        assert path.read_bytes() == (written[0] / path.name).read_bytes()


def test_figures_of_one_name_do_not_replace_each_other(tmp_path):
    whole = page(1, has_all=False)
    twice = replace(whole.sections[0], blocks=[squares(1), squares(1)])

    files = write_figures(replace(whole, sections=[twice]), tmp_path)

    assert {path.stem for path in files} == {"squares", "squares-2"}


def test_page_without_figures_writes_none(tmp_path):
    assert write_figures(replace(page(1), sections=[]), tmp_path / "none") == []


def test_plot_square_draws_cells_on_an_axis():
    table = PairedTable(both=126, first_only=34, second_only=0, neither=36)

    axes = plot_square(table, conditions=("title", "redirect"), title="toy_model")

    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    areas = [box.get_width() * box.get_height() for box in boxes]
    assert areas[:3] == pytest.approx([90_000 * count / 196 for count in (126, 34, 36)])
    assert axes.get_title(loc="left") == "toy_model"
    assert plot_square(table, ax=axes) is axes


def test_a_square_says_how_often_the_first_condition_is_right():
    square = MosaicPlot(title="m", model=0, both=126, first_only=34, second_only=4, neither=36)

    scene = square_scene(square, ("both", "title", "redirect", "neither"), "Title")

    words = [mark.text for mark in scene.marks if isinstance(mark, Words)]
    assert words[-4:] == ["Title right", "80.0\u00a0%", "Title wrong", "20.0\u00a0%"]


def test_plot_square_of_no_pairs():
    axes = plot_square(PairedTable(both=0, first_only=0, second_only=0, neither=0))

    assert [text.get_text() for text in axes.texts] == ["no pairs"]


@pytest.fixture
def groups():
    rows = [
        {"model": LABELS[m], "kind": f"kind_{k}", "fact_id": f"f{i}", "first_correct": True,
         "second_correct": i % (2 + k) > 0 or k == 2}
        for m in range(2) for k in range(3) for i in range(12)
    ]  # fmt: skip
    return paired_by(pd.DataFrame(rows), by=["model", "kind"], intervals=Intervals(n_resamples=100))


def test_plot_groups_draws_a_frame_of_paired_by(groups):
    axes = plot_groups(groups, noise={"toy_model": 0.02})

    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["kind 0", "kind 1", "kind 2"]
    assert axes.get_xlabel().startswith("flip rate, %")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == sorted(LABELS[:2])
    assert plot_groups(groups, ax=axes, by="kind", noise=0.1) is axes


def test_plot_groups_without_models(groups):
    alone = groups[groups["model"] == "toy_model"].drop(columns="model")

    axes = plot_groups(alone, rate="first_accuracy")

    assert axes.get_legend() is None
    assert axes.get_xlabel().startswith("first accuracy, %")


def test_plot_groups_rejects_frames_without_the_rate(groups):
    with pytest.raises(ColumnNotFoundError, match="without the column 'kappa'; the frame has"):
        plot_groups(groups, rate="kappa")


def test_figures_without_matplotlib_name_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(MissingDependencyError, match=r"surface-consistency\[plot\]"):
        write_figures(page(1), tmp_path)


def test_matplotlib_is_loaded_when_drawing_only():
    program = (
        "import sys\n"
        "from surface_consistency.report import plot_groups, render_page\n"
        "assert 'matplotlib' not in sys.modules\n"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_key_of_bars_begins_where_their_axes_begin():
    one = page(1)
    [block] = [b for s in one.sections for b in s.blocks if isinstance(b, StackedBars)]

    figure = _figure(block, one.models)

    [(ax, key)] = [(ax, ax.get_legend()) for ax in figure.axes if ax.get_legend()]
    anchor = key.get_bbox_to_anchor().transformed(ax.transAxes.inverted())
    assert (anchor.x0, anchor.y0) == pytest.approx((0, 1))


def test_heat_maps_are_drawn_on_one_scale_around_nothing(tmp_path):
    from matplotlib.colors import to_rgb

    block = Heatmap(
        name="components",
        title="Components of a fact",
        columns=["0", "MLP"],
        panels=[("short", [("0", [0.5, -0.25])]), ("long", [("0", [0.0, 0.1])])],
        row_title="Layer",
    )
    one = replace(page(1), sections=[Section(anchor="maps", title="Maps", blocks=[block])])

    written = write_figures(one, tmp_path)

    assert [path.name for path in written] == ["components.pdf"]
    figure = _figure(block, one.models)
    pictures = [image.get_array() for ax in figure.axes for image in ax.images]
    # 50 % is the greatest size, and colours go by its sixths: the page's own steps.
    heat = heat_colours(LIGHT)
    drawn = [to_rgb(heat[name]) for name in ("heat-5", "cold-3", "heat-0", "heat-1")]
    np.testing.assert_allclose(np.concatenate([rows[0] for rows in pictures]), drawn)
    texts = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert texts == ["50.0", "−25.0", "0.0", "10.0"]


def test_plot_forms_draws_the_shares_that_are_there():
    shares = {"item": 0.6, "form": 0.1, "item_by_form": 0.3, "sampling": float("nan")}
    row = {"model": "a", "n": 100, "n_clusters": 25}
    for name, share in shares.items():
        row |= {f"{name}_share": share}
        row |= {f"{name}_share_low": share - 0.05, f"{name}_share_high": share + 0.05}

    axes = plot_forms(pd.DataFrame([row]))

    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert [one for one in labels if one] == ["which item", "form", "item by form"]


def test_plot_forms_refuses_another_table():
    with pytest.raises(ColumnNotFoundError, match="'item_share'; give what `variance_shares_by`"):
        plot_forms(pd.DataFrame({"n": [1], "n_clusters": [1]}))
