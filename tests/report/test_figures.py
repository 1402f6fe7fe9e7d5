import subprocess
import sys

import pandas as pd
import pytest

from surface_consistency.errors import MissingDependencyError
from surface_consistency.report import (
    StudyRun,
    consistency_figure,
    save_figure,
    study_tables,
    write_figures,
)

pytest.importorskip("matplotlib")

BARS = ("both", "first_only", "neither", "second_only")
CELLS = {
    (True, True): "both",
    (True, False): "first_only",
    (False, False): "neither",
    (False, True): "second_only",
}


@pytest.fixture
def runs(random_outcomes, make_manifest):
    """Three models on pairs of all categories."""
    return [
        StudyRun(
            label=name,
            manifest=make_manifest(name),
            outcomes=random_outcomes(300, seed=seed, model=name),
        )
        for seed, name in enumerate(("small", "medium", "owner/a-rather-long-model-name-7b"))
    ]


def _naive_counts(run, belongs):
    """Count the cells of the pairs that belong to a panel, one pair at a time."""
    counts = dict.fromkeys(BARS, 0)
    for row in run.outcomes.to_dict("records"):
        if belongs(row):
            counts[CELLS[row["first_correct"], row["second_correct"]]] += 1
    return counts


def _panels(figure):
    """Return each panel's title without its count, and the panel."""
    return {ax.get_title().split("\n")[0]: ax for ax in figure.axes}


@pytest.mark.parametrize(
    ("title", "belongs"),
    [
        ("Overall", lambda row: True),
        ("Spelling variants", lambda row: "spelling_variants" in row["types"]),
        ("from initialisms", lambda row: "Redirects_from_initialisms" in row["categories"]),
    ],
)
def test_consistency_figure_agrees_with_naive_counts(title, belongs, runs):
    """Bars are stacked counts of pairs: left canonical right, right canonical wrong."""
    ax = _panels(consistency_figure(study_tables(runs, n_resamples=20)))[title]

    containers = dict(zip(BARS, ax.containers, strict=True))
    for place, run in enumerate(runs):
        expected = _naive_counts(run, belongs)
        bars = {cell: bars[place] for cell, bars in containers.items()}
        assert {cell: bar.get_height() for cell, bar in bars.items()} == expected
        assert bars["both"].get_y() == bars["neither"].get_y() == 0
        assert bars["first_only"].get_y() == expected["both"]
        assert bars["second_only"].get_y() == expected["neither"]
        assert bars["both"].get_x() < place < bars["neither"].get_x() + 0.1
        assert [bars[cell].get_hatch() for cell in BARS] == [None, "////", None, "////"]


def test_consistency_figure_is_labelled_with_the_split(make_outcomes, make_manifest):
    """Above each bar stands consistent:flipped in percent; the title counts the pairs."""
    verdicts = [(True, True)] * 5 + [(True, False)] * 2 + [(False, False)] * 4
    run = StudyRun(label="m", manifest=make_manifest("m"), outcomes=make_outcomes(verdicts))

    ax = consistency_figure(study_tables([run], n_resamples=20)).axes[0]

    assert ax.get_title() == "Overall\nn = 11"
    assert [(text.get_text(), text.xy[1]) for text in ax.texts] == [("71:29", 7), ("100:0", 4)]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["m"]


def test_consistency_figure_is_without_panels_that_hold_nothing(make_outcomes, make_manifest):
    """Types and categories without scored pairs have no panel; categories go by any spelling."""
    categories = [("Redirects_from_misspellings",), ("Redirects_from_long_names",)]
    run = StudyRun(
        label="m",
        manifest=make_manifest("m"),
        outcomes=make_outcomes([(True, True), (None, None)], categories=categories),
    )
    tables = study_tables([run], n_resamples=20)

    default = consistency_figure(tables)
    chosen = consistency_figure(tables, categories=["Category:Redirects from misspellings"])

    assert list(_panels(default)) == ["Overall", "Typical errors"]
    assert list(_panels(chosen)) == ["Overall", "Typical errors", "from misspellings"]


def test_consistency_figure_is_fair_to_models_without_the_category(make_outcomes, make_manifest):
    """A model that lacks a panel's pairs keeps its place there with bars of no height."""
    runs = [
        StudyRun(
            label=name,
            manifest=make_manifest(name),
            outcomes=make_outcomes([(True, False)] * 3, model=name, categories=[(label,)]),
        )
        for name, label in (("x", "Redirects_from_misspellings"), ("y", "Redirects_to_acronyms"))
    ]

    ax = _panels(consistency_figure(study_tables(runs, n_resamples=20)))["Typical errors"]

    assert [bar.get_height() for bar in ax.containers[1]] == [3, 0]
    assert ax.get_title() == "Typical errors\nn = 0 to 3"


def test_consistency_figure_rejects_a_template_without_verdicts(make_outcomes, make_manifest):
    run = StudyRun(
        label="m", manifest=make_manifest("m"), outcomes=make_outcomes([(None, True)] * 3)
    )
    tables = study_tables([run], n_resamples=20)

    with pytest.raises(ValueError, match=r"template 'original' has no pair with both verdicts"):
        consistency_figure(tables)
    with pytest.raises(ValueError, match=r"template 'other' .* the tables hold 'original'"):
        consistency_figure(tables, template="other")


def test_consistency_figure_names_the_extra_without_matplotlib(runs, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(MissingDependencyError, match=r"surface-consistency\[plot\]"):
        consistency_figure(study_tables(runs, n_resamples=20))


def test_save_figure_is_reproducible(runs, tmp_path):
    """Equal tables give equal files, byte for byte, and the files are what they are named."""
    tables = study_tables(runs, n_resamples=20)

    first = save_figure(consistency_figure(tables), tmp_path / "one")
    second = save_figure(consistency_figure(tables), tmp_path / "two", "consistency")

    assert [path.name for path in first] == ["consistency.png", "consistency.svg"]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]
    assert first[0].read_bytes().startswith(b"\x89PNG\r\n")
    assert b"<svg" in first[1].read_bytes()


def test_consistency_figure_is_literal_about_dollar_signs(make_outcomes, make_manifest, tmp_path):
    """A label of a model or category is no formula and no markup, whoever renders the figure."""
    label = "a$\\frac{b</svg><script>$"
    run = StudyRun(
        label=label,
        manifest=make_manifest("m"),
        outcomes=make_outcomes([(True, False)] * 3, categories=[(label,)]),
    )
    figure = consistency_figure(study_tables([run], n_resamples=20), categories=[label])

    figure.savefig(tmp_path / "own.svg")
    _, svg = save_figure(figure, tmp_path)

    for path in (svg, tmp_path / "own.svg"):
        assert "<script" not in path.read_text("utf-8")
        assert path.read_text("utf-8").count("</svg>") == 1


def test_write_figures_is_one_pair_of_files_a_template(make_outcomes, make_manifest, tmp_path):
    """Templates without verdicts have none, and odd names become file names."""
    frames = [
        make_outcomes([(True, False)] * 3),
        make_outcomes([(True, True)] * 3, template="my own/2"),
        make_outcomes([(None, True)] * 3, template="lost"),
    ]
    run = StudyRun(label="m", manifest=make_manifest("m"), outcomes=pd.concat(frames))

    written = write_figures(study_tables([run], n_resamples=20), tmp_path / "figures")

    assert [path.name for path in written] == [
        "consistency-original.png",
        "consistency-original.svg",
        "consistency-my-own-2.png",
        "consistency-my-own-2.svg",
    ]
    assert all(path.stat().st_size > 1000 for path in written)


def test_figures_is_free_of_pyplot():
    """Neither the import nor the drawing touches matplotlib's global state."""
    code = (
        "import sys, pandas as pd\n"
        "from surface_consistency.report import consistency_figure\n"
        "assert 'matplotlib' not in sys.modules\n"
        "row = {'model': 'm', 'template': 'original', 'n': 2, 'both': 1, 'first_only': 1,\n"
        "       'second_only': 0, 'neither': 0, 'type': 'x', 'category': 'y'}\n"
        "tables = dict.fromkeys(('overall', 'by_type', 'by_category'), pd.DataFrame([row]))\n"
        "consistency_figure(tables)\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True)
