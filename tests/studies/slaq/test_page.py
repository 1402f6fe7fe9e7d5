"""The page and the figures of SLAQ runs."""

import re

import pytest
from surface_consistency.report.slaq import (
    load_slaq_runs,
    momentum_figure,
    position_figure,
    slaq_run_tables,
    write_slaq_figures,
    write_slaq_report,
)

from surface_consistency.errors import DataError, SourceNotFoundError, UnjudgedWarning

FAST = {"n_resamples": 100, "n_null": 20}
ATTACK = '<script>alert("x")</script><img src=x onerror=alert(1)> & 結果'
HEADINGS = ("Main numbers", "By group", "Momentum", "Slots and orders", "Checks", "Examples")


@pytest.fixture
def page_of(tmp_path):
    """Writes the page of run folders and reads it."""

    def read(*folders, **options):
        runs = load_slaq_runs([folder.path for folder in folders])
        tables = slaq_run_tables(runs, **FAST)
        return write_slaq_report(runs, tmp_path / "page", tables=tables, **options).read_text()

    return read


def test_a_page_holds_every_section_and_needs_no_other_file(make_slaq_run, page_of):
    page = page_of(make_slaq_run("x", model="a"), make_slaq_run("y", model="b"))

    for heading in HEADINGS:
        assert f"{heading}</h2>" in page
    assert page.count("<figure") == 4
    assert "by slot" in page
    assert "Free form</h2>" not in page
    assert "The judge</h2>" not in page
    assert not re.search(r"<(script|link|iframe)\b|https?://(?!www\.w3\.org)[^ ]+\.(js|css)", page)


def test_html_in_answers_and_labels_is_text(make_slaq_run, page_of):
    folder = make_slaq_run("x", model=f"m {ATTACK[:-2]}", answer=ATTACK)

    page = page_of(folder, title=ATTACK)

    assert "<script" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;" in page
    assert "結果" in page


@pytest.mark.parametrize(
    "title",
    [
        "Right alone, wrong in the long answer",
        "Wrong alone, right in the long answer",
        "Right both times",
        "Wrong both times",
    ],
)
def test_each_cell_has_examples(make_slaq_run, page_of, title):
    import pandas as pd

    folder = make_slaq_run("x")
    frame = pd.read_parquet(folder.outcomes)
    wanted = {"R": True, "W": False}[title[0]]
    second = wanted if "both" in title else not wanted
    n = int(((frame["first_correct"] == wanted) & (frame["second_correct"] == second)).sum())

    page = page_of(folder, examples=3)

    assert f"{title}: {min(3, n)} of {n}" in page


def test_examples_can_be_left_out_and_cells_may_be_empty(make_slaq_run, page_of, coin):
    folder = make_slaq_run("x", judge=coin(share=1.0))

    assert "Examples</h2>" not in page_of(folder, examples=0)
    assert "Wrong both times: no fact." in page_of(folder)


def test_free_form_and_gaps_are_shown(make_slaq_run, page_of, coin):
    with pytest.warns(UnjudgedWarning, match="judgements are missing"):
        folder = make_slaq_run(
            "x", forms=("short", "long", "free"), judge=coin(unjudged=("long",)), n_permutations=1
        )

    page = page_of(folder)

    assert "Free form</h2>" in page
    assert "free form" in page
    assert "No figure: no model has balanced orders" in page
    assert "cannot be read" in page
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL).lower()


def test_figures_are_drawn_for_each_model(make_slaq_run, tmp_path):
    runs = load_slaq_runs(
        [make_slaq_run("x", model="a").path, make_slaq_run("y", model="b", n_permutations=2).path]
    )

    written = write_slaq_figures(slaq_run_tables(runs, **FAST), tmp_path / "figures")

    stems = sorted({path.stem for path in written})
    assert stems == ["alignment", "momentum-1", "momentum-2", "position"]
    assert all(path.stat().st_size > 1_000 for path in written)


def test_the_momentum_figure_draws_the_null_band(make_slaq_run):
    tables = slaq_run_tables(load_slaq_runs([make_slaq_run("x").path]), **FAST)

    figure = momentum_figure(tables, "m", null="topic")

    curves = tables["momentum"]
    rights = curves[(curves["null"] == "topic") & (curves["streak"] == 1) & (curves["n"] > 0)]
    line = figure.axes[0].lines[0]
    assert line.get_xdata().tolist() == rights["length"].tolist()
    assert line.get_ydata().tolist() == pytest.approx((100 * rights["probability"]).tolist())
    band = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() == pytest.approx(100 * rights["null_probability_low"].min())
    assert band.max() == pytest.approx(100 * rights["null_probability_high"].max())


def test_figures_that_cannot_be_drawn_say_why(make_slaq_run):
    tables = slaq_run_tables(load_slaq_runs([make_slaq_run("x", n_permutations=3).path]), **FAST)

    with pytest.raises(ValueError, match="no momentum curve of model 'nobody'"):
        momentum_figure(tables, "nobody")
    with pytest.raises(ValueError, match="no model has balanced orders"):
        position_figure(tables, ["m"])


def test_wrong_folders_are_rejected(make_slaq_run, tmp_path):
    folder = make_slaq_run("x")
    with pytest.raises(ValueError, match="each of them once"):
        load_slaq_runs([folder.path, folder.path])
    with pytest.raises(SourceNotFoundError, match="not a run folder"):
        load_slaq_runs([tmp_path / "nowhere"])
    text = folder.manifest.read_text("utf-8")
    folder.manifest.write_text(text.replace('"slaq"', '"redirectqa"'))
    with pytest.raises(DataError, match="is a run of the study 'redirectqa'"):
        load_slaq_runs([folder.path])
    folder.manifest.write_text(text)
    folder.outcomes.write_bytes(b"no parquet")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        load_slaq_runs([folder.path])
    folder.outcomes.unlink()
    with pytest.raises(SourceNotFoundError, match="not judged yet"):
        load_slaq_runs([folder.path])


def test_no_run_is_rejected(tmp_path):
    with pytest.raises(ValueError, match="runs must not be empty"):
        write_slaq_report([], tmp_path)
