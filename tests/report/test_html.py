"""The HTML of the page: its content, and errors for invalid blocks."""

import base64
import hashlib
import re
from collections import Counter
from dataclasses import replace

import html5lib
import pandas as pd
import pytest

import surface_consistency
from surface_consistency.report import write_page
from surface_consistency.report.answers import find_text, shown_answers
from surface_consistency.report.html import render_page
from surface_consistency.report.page import Dot, ForestPlot, Heatmap, MosaicPlot, Section
from surface_consistency.report.rows import table_view
from surface_consistency.tables.numbers import Value, format_cell
from surface_consistency.tables.table import Column, Table
from tests.report.example import LABELS, answers, dots, flow, group_table, page, squares


def read(document):
    """Parse a page; invalid HTML raises an error."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(document)


def visible_text(document):
    return " ".join("".join(read(document).itertext()).split())


@pytest.mark.parametrize("n_models", [1, 2, 4, 7])
@pytest.mark.parametrize("has_noise", [True, False])
def test_page_is_valid_html_without_external_links(n_models, has_noise):
    elements = list(read(render_page(page(n_models, has_noise=has_noise))).iter())

    ids = [one.get("id") for one in elements if one.get("id")]
    links = {one.get(name) for one in elements for name in ("href", "src")} - {None}
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    assert links <= {f"#{name}" for name in ids} | {"data:,"}
    assert not any(one.get("style") for one in elements)
    tags = Counter(one.tag for one in elements)
    # One script, and the records of what the sentences report as JSON.
    assert (tags["script"], tags["h1"]) == (2, 1)


@pytest.mark.parametrize(
    ("smallest", "column", "has_note"),
    [(19, "n_clusters", True), (20, "n_clusters", False), (19, None, False)],
)
def test_note_on_grey_rows_is_shown_only_if_there_are_any(smallest, column, has_note):
    """A row is grey if its column of clusters has fewer than 20."""
    frame = pd.DataFrame({"group": ["a", "b"], "n_clusters": [smallest, 30]})
    described = {"frame": frame, "caption": "", "columns": [Column(key="group", title="Group")]}
    table = Table(**described, model=None, cluster_column=column)

    note = "Grey rows have fewer than 20 clusters."
    assert table_view(table, [])["note"] == (note if has_note else "")


def test_content_policy_allows_only_the_style_and_script_of_the_page():
    document = render_page(page(1))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', document)[1]

    for tag in ("style", "script"):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", document, flags=re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in policy
    assert "default-src &#39;none&#39;" in policy
    assert "unsafe" not in policy


def test_text_of_models_is_escaped():
    document = render_page(page(2))

    assert "<script>window.hacked" not in document
    assert "&lt;script&gt;window.hacked" in document
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]", document)
    document.encode("utf-8")


def test_numbers_on_the_page_are_those_of_the_values():
    visible = visible_text(render_page(page(2)))

    for text in (
        *("17.3 % [12.1, 23.1]", "−8.2 points [−15.3, −1.0]", "(p = 0.032)", "p < 0.001"),
        "120 of 1,200 pairs, drawn within cells",
        "noise floor: up to 1.3 % toy_model, to 7.0 % SmolLM2-135M-it",
    ):
        assert text in visible


def test_every_cell_of_a_table_is_on_the_page():
    table = group_table(2, by="category")
    visible = visible_in(table)

    for row in table.frame.to_dict("records"):
        for column in table.columns:
            text = " ".join(filter(None, format_cell(row, column)))
            assert " ".join(text.split()) in visible
    assert "Nothing" in visible_in(replace(table, frame=table.frame.iloc[:0], caption="Nothing"))


def visible_in(*blocks, **changes):
    return visible_text(render_page(_one(*blocks, **changes)))


def _one(*blocks, **changes):
    full = page(2, has_all=False)
    section = Section(anchor="only", title="Only", blocks=blocks)
    return replace(full, sections=[section], **changes)


@pytest.mark.parametrize("place", range(5))
def test_empty_cells_keep_their_labels(place):
    names = ("both", "first_only", "second_only", "neither")
    counts = {name: 5 * (number == place) for number, name in enumerate(names)}
    square = MosaicPlot(title="s", model=0, **counts)

    visible = visible_in(replace(squares(1), squares=[square]))

    assert ("no pairs" in visible) == (place == 4)
    for name in ("title only", "redirect only") if place < 4 else ():
        assert visible.count(name) >= 2


def test_sections_without_content_are_omitted():
    bare = {"checks": (), "provenance": (), "method": (), "citation": ""}
    ids = {one.get("id") for one in read(render_page(_one(squares(1), **bare))).iter()}

    assert not {"checks", "made", "method"} & ids


def test_every_page_has_citations():
    """The paper of the study, if there is one, and the version of this software."""
    bare = visible_in(squares(1), provenance=(), citation="")
    cited = visible_in(squares(1), citation="@article{one,\n}")

    assert "@article" not in bare
    assert "@article{one" in cited
    for text in (bare, cited):
        assert "@software{surface_consistency," in text
        assert f"version = {{{surface_consistency.__version__}}}" in text


def test_mosaic_cells_are_links_only_if_the_page_has_answers():
    assert "data-go" not in render_page(_one(squares(1))).split("<script>")[0]
    link = 'data-go="cell=first_only&amp;model=toy_model"'
    assert link in render_page(page(1))
    # Answers may be in a section with other blocks.
    assert link in render_page(_one(squares(1), answers(1)))


def test_settings_that_differ_are_bold():
    document = render_page(page(2))

    assert '<tr class="differs"><th scope="row">shots</th>' in document
    assert '<tr><th scope="row">data</th>' in document


def test_many_models_give_small_squares_and_a_heat_map():
    four, seven = (render_page(page(n, has_all=False)) for n in (4, 7))

    assert 'class="squares"' in four
    assert 'class="smalls"' in seven
    assert 'class="heat"' in four
    assert 'class="heat"' not in render_page(page(2, has_all=False))


def test_groups_with_few_facts_are_faded_or_only_in_the_table():
    chart = dots(2)
    remarks = {label: "words" for label, *_ in chart.rows}
    value = Value(value=0.2, low=0.1, high=0.3)
    pair = [Dot(model=index, value=value, n=9, n_clusters=n) for index, n in enumerate((28, 196))]
    two = ForestPlot(name="d", title="D", axis="%", rows=[("all", 0, pair)])

    facts, clusters = visible_in(chart), visible_in(replace(chart, clusters="", remarks=remarks))

    assert "from personal names" in facts
    assert "with diacritics" not in facts
    for visible, unit in ((facts, "facts"), (clusters, "clusters")):
        assert f"1 group of fewer than 4 {unit} is shown only in the table." in visible
        assert f"Paler groups have fewer than 20 {unit}." in visible
    # Models on different numbers of facts.
    assert "28–196" in visible_in(two)


def test_consecutive_squares_are_in_one_row():
    alone = replace(squares(1), note=())

    assert render_page(_one(alone, squares(1))).count('class="squares"') == 1
    assert render_page(_one(squares(1), squares(1))).count('class="squares"') == 2
    other = replace(alone, cells=("a", "b", "c", "d"))
    assert render_page(_one(alone, other)).count('class="squares"') == 2


def test_flows_of_several_runs_have_a_switch_and_empty_states_no_text():
    one = replace(flow(), counts={(True, True, False): 5})

    document = render_page(_one(one, replace(flow(), name="other")))

    assert "<legend>Runs</legend>" in document
    assert ">0 wrong<" not in document


def test_long_findings_and_names_and_folded_sections_are_marked():
    full = page(1, has_all=False)
    finding = replace(full.finding, sentence=["It does so. " * 30])
    folded = replace(full.sections[1], is_folded=True)

    document = render_page(replace(full, finding=finding, sections=[folded]))

    assert '<h1 dir="auto" class="long">' in document
    assert '<h1 dir="auto">' in render_page(full)
    assert re.search(r'<details class="folded">\s*<summary><h2 id="flips-title">', document)
    assert "an-<wbr>organisation/<wbr>a-<wbr>model" in render_page(page(3))


def test_page_of_fifty_runs_is_less_than_10_mb():
    full = page(50, has_all=False)
    many = replace(full.sections[3], blocks=[answers(50, 500, length=1000)])

    document = render_page(replace(full, sections=[*full.sections[:3], many]))

    assert len(document.encode()) < 10_000_000
    assert len(LABELS) == 50


def test_shown_answers_are_sampled_within_cells():
    block = answers(2, 1000)

    shown = shown_answers(block, 2)

    counts = Counter((answer.model, answer.cell) for answer in shown)
    assert len(counts) == 10
    assert set(counts.values()) == {100}


@pytest.mark.parametrize(
    ("text", "part", "found"),
    [
        ("It is the UNITED-KINGDOM.", "United Kingdom", "UNITED-KINGDOM"),
        ("artist, art", "art", "art"),
        ("cartoon", "art", "art"),
        ("東京です", "東京", "東京"),
        ("nothing", "art", None),
        ("anything", "...", None),
    ],
)
def test_find_text_finds_whole_words_first(text, part, found):
    place = find_text(text, part)

    assert (None if place is None else text[slice(*place)]) == found
    if text == "artist, art":
        assert place == (8, 11)


FLIPS = page(1, has_all=False).sections[1]


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ([FLIPS, FLIPS], r"anchor 'flips' of section .* is in use; .* unique"),
        ([Section(anchor="checks", title="T")], "anchor 'checks' .* not one of finding, checks"),
        ([Section(anchor="made", title="T")], "anchor 'made' .* not one of finding, checks"),
        ([Section(anchor="two words", title="T")], "must be a letter followed by"),
        (
            [Section(anchor="s", title="S", blocks=[squares(5)])],
            "model index 2 is out of range; the page has 2 models",
        ),
    ],
)
def test_render_page_rejects_invalid_anchors_and_models(sections, message):
    with pytest.raises(ValueError, match=message):
        render_page(replace(page(2), sections=sections))


def test_write_page_writes_utf8(tmp_path):
    target = write_page(page(1), tmp_path / "report.html")

    assert target.read_text(encoding="utf-8") == render_page(page(1))
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def maps(n_columns=3):
    """A heat map with two panels, a negative value and a missing value."""
    rows = [("0", [0.5, -0.25, float("nan"), *[0.0] * (n_columns - 3)]), ("1", [0.0] * n_columns)]
    return Heatmap(
        name="components",
        title="Components of a fact",
        columns=[*map(str, range(n_columns - 1)), "MLP"],
        panels=[("short", rows), ("long", rows)],
        row_title="Layer",
        note="Shares.",
    )


def test_heat_maps_colour_values_on_one_scale():
    """Wide maps show numbers only in titles; rows of unequal length are rejected."""
    document = render_page(_one(maps()))

    read(document)
    assert document.count('class="heat map"') == 2
    assert document.count('class="heat-5" title="Layer 0, 0: 50.0\u00a0%">50.0<') == 2
    assert document.count('class="cold-3" title="Layer 0, 1: −25.0\u00a0%">−25.0<') == 2
    assert document.count('title="Layer 0, MLP: not defined"') == 2
    assert 'title="Layer 0, 0: 50.0\u00a0%"></td>' in render_page(_one(maps(20)))
    with pytest.raises(ValueError, match=r"must have one number per column \(2 columns"):
        render_page(_one(replace(maps(), columns=["0", "MLP"])))
