"""Sentences of a page from a template beside its study."""

import pytest

from surface_consistency.report.page import Value
from surface_consistency.report.wording import Wording

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
