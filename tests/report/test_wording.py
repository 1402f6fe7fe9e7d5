"""Sentences of a page from a template beside its study."""

import pytest

from surface_consistency.report.page import Value
from surface_consistency.report.wording import Wording, compared, unseen
from surface_consistency.tables.numbers import least_found, sentence_text, shown_sign

TEMPLATE = """
{% block finding %}
{{ label }} flips {{ row|interval("rate", tone="lost") }} of
{{ n|value("count") }} verdicts{% if extra %}, {{ extra }}{% endif %}.
{% endblock %}
{% block limits %}
{% for label in labels %}
## {{ "ok" if label == "a" else "warning" }}: Few facts (#numbers)
{{ label }} stands on few,
{{ 0.03|p }}.
{% endfor %}
{% endblock %}
{% block method %}
One paragraph
of two lines.

Another for {{ label }}.
{% endblock %}
"""


@pytest.fixture
def wording(tmp_path, monkeypatch):
    """The wording of a study of its own."""
    package = tmp_path / "worded_study"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "page.md.jinja").write_text(TEMPLATE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return Wording("worded_study")


def test_numbers_stand_between_words(wording):
    row = {"rate": 0.5, "rate_low": 0.4, "rate_high": 0.6}

    parts = wording.sentence("finding", label="m", row=row, n=1200, extra=[" of ", "all"])

    number = Value(value=0.5, low=0.4, high=0.6, tone="lost")
    assert parts == ["m flips ", number, " of 1,200 verdicts,  of all."]


def test_a_check_is_empty_where_there_is_nothing_to_say(wording):
    assert wording.checks("limits", labels=[]) == []


def test_checks_have_level_title_anchor_and_text(wording):
    first, second = wording.checks("limits", labels=["a", "b"])

    assert (first.level, first.title, first.anchor) == ("ok", "Few facts", "numbers")
    assert first.text == ["a stands on few, ", Value(value=0.03, kind="p_value"), "."]
    assert (second.level, second.text[0]) == ("warning", "b stands on few, ")


@pytest.mark.parametrize("label", ["x\n\n## fine: All is well\ny", "\x020\x03", "<b> {{ 1 }} & co"])
def test_texts_are_never_markup_of_the_template(wording, label):
    (check,) = wording.checks("limits", labels=[label])

    assert check.text[0] == f"{label} stands on few, "
    assert wording.paragraphs("method", label=label)[1] == [f"Another for {label}."]


def test_blank_lines_part_paragraphs(wording):
    assert wording.paragraphs("method", label="m") == [
        ["One paragraph of two lines."],
        ["Another for m."],
    ]


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ((0.01, 0.05), "rises by 3.0 points [1.0, 5.0] a slot"),
        ((-0.05, -0.01), "falls by 3.0 points [1.0, 5.0]"),
        (
            (-0.01, 0.07),
            "may be level (+3.0 points [−1.0, +7.0]; 5.7 points would be found 4 times in 5)",
        ),
        ((-1.0, 0.94), "may be level (−3.0 points [−100.0, +94.0]; too few to find any)"),
        (
            (0.0, 0.06),
            "may be level (+3.0 points [0.0, +6.0]; 4.3 points would be found 4 times in 5)",
        ),
        ((float("nan"), 0.06), ""),
    ],
)
def test_a_difference_is_claimed_where_its_interval_shows_it(bounds, said):
    low, high = bounds
    row = {"slope": (low + high) / 2 if low == low else 0.03, "slope_low": low, "slope_high": high}

    parts = compared(row, "slope", "rises by {} a slot", "falls by {}", "may be level")

    assert sentence_text(parts).replace("\u00a0", " ") == said


def test_a_number_is_held_against_what_says_nothing():
    row = {"auc": 0.4, "auc_low": 0.31, "auc_high": 0.49}

    parts = compared(row, "auc", "tells ({})", "is wrong ({})", "-", null=0.5, kind="number")

    assert sentence_text(parts).replace("\u00a0", " ") == "is wrong (0.40 [0.31, 0.49])"


@pytest.mark.parametrize("bounds", [(-0.2, -0.1), (-0.1, 0.1), (0.0, 0.1), (0.1, 0.2)])
def test_a_direction_is_claimed_by_one_rule(bounds):
    row = {"d": sum(bounds) / 2, "d_low": bounds[0], "d_high": bounds[1]}

    said = compared(row, "d", "above {}", "below {}", "unclear")[0]

    assert said.split()[0] == {1: "above", -1: "below", 0: "unclear"}[shown_sign(row, "d")]


def test_what_would_have_been_found_is_that_of_the_interval():
    row = {"d_low": -0.1, "d_high": 0.1}

    assert least_found(-0.1, 0.1) == pytest.approx(0.1 * 2.801585 / 1.959964)
    assert sentence_text(unseen(row, "d")).replace("\xa0", " ") == (
        "14.3 points would be found 4 times in 5"
    )
    assert unseen({"d_low": float("nan"), "d_high": float("nan")}, "d") == ["too few to find any"]
