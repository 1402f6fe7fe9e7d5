import subprocess
import sys

import numpy as np
import pytest

from surface_consistency.errors import PluginError
from surface_consistency.matching import (
    RULES,
    Match,
    Rule,
    match,
    match_columns,
)
from surface_consistency.plugins import importable

EVERY = pytest.mark.parametrize("judge", [*RULES.values(), match])


def test_match_is_the_papers_rule_by_default():
    """The default is "popqa"."""
    assert match("Tirana", ["Iran"]) == Match(is_match=True, answer="Iran", score=1.0, rule="popqa")


def test_match_rejects_unknown_rules():
    """The message lists what there is."""
    with pytest.raises(
        ValueError, match=r"one of popqa, exact, boundary, token_f1, fuzzy, .*; got 'contains'"
    ):
        match("x", ["x"], rule="contains")


def test_match_rejects_what_is_no_rule():
    """A rule is a name or a Rule."""
    with pytest.raises(TypeError, match="`rule` must be a name or a Rule, got function"):
        match("x", ["x"], rule=match)


RULES_OF_OTHERS = """
from surface_consistency.matching import ExactRule
class Lone(ExactRule):
    name = "lone"
class Nameless(ExactRule):
    name = None
class Changing(ExactRule):
    name = "changing"
    __hash__ = None
"""


def test_a_clash_of_two_packages_hides_no_other_rule(tmp_path, monkeypatch):
    (tmp_path / "rules_of_others.py").write_text(RULES_OF_OTHERS)
    for package in ("aa", "bb"):
        info = tmp_path / f"{package}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        points = f"clash = rules_of_others:{'Lone' if package == 'aa' else 'Changing'}"
        own = "lone = rules_of_others:Lone" if package == "bb" else ""
        (info / "entry_points.txt").write_text(f"[surface_consistency.rules]\n{points}\n{own}\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    for name in ("aa:clash", "bb:lone", "lone", "rules_of_others:Lone"):
        with importable(name):
            assert match("x", ["x"], rule=name).rule == "lone"
    with pytest.raises(PluginError, match="several packages have a matching rule 'clash'; name on"):
        match("x", ["x"], rule="clash")
    for name in ("rules_of_others:Nameless", "rules_of_others:Changing"):
        with (
            importable(name),
            pytest.raises(PluginError, match="must have a `name` and be hashable"),
        ):
            match("x", ["x"], rule=name)
    with pytest.raises(PluginError, match="available: boundary, exact, fuzzy, popqa, segmented"):
        match("x", ["x"], rule="nothing:Nope")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("json:JSONDecoder", "is a JSONDecoder; derive it from .*Rule, or name one of popqa"),
        ("pathlib:PurePath.joinpath", "is a function; derive it from"),
        ("http.client:HTTPConnection", "cannot be made: TypeError: .*host.*; repair or uninstall"),
        ("collections.abc:Sized", "lacks __len__, which a subclass must define"),
    ],
)
def test_match_rejects_importable_names_of_no_rule(rule, message):
    refused = pytest.raises(PluginError, match=f"matching rule '{rule}' {message}")
    with importable(rule), refused:
        match("x", ["x"], rule=rule)


@EVERY
def test_rules_reject_missing_predictions(judge):
    """A missing prediction is no wrong answer; the bulk form leaves it unscored."""
    with pytest.raises(TypeError, match="must be a string, got NoneType; `match_columns` leaves"):
        judge(None, ["x"])


@EVERY
def test_rules_reject_empty_answers(judge):
    """Nothing to match is not the same as no match."""
    with pytest.raises(ValueError, match="at least one accepted answer, got none"):
        judge("x", [])


@EVERY
@pytest.mark.parametrize("blank", ["", " ", "\n"])
def test_rules_reject_blank_answers(judge, blank):
    """A blank answer stands in every prediction."""
    with pytest.raises(ValueError, match=r"must not be blank, got .* every prediction contains it"):
        judge("x", ["y", blank])


@EVERY
def test_rules_reject_a_single_string_as_answers(judge):
    """The letters of a word are no accepted answers."""
    with pytest.raises(TypeError, match="must be a list of strings, got the string 'Paris'"):
        judge("Paris", "Paris")


@EVERY
def test_rules_reject_answers_that_are_no_strings(judge):
    """A null among the aliases is named."""
    with pytest.raises(TypeError, match="must be strings, got None; drop it"):
        judge("Paris", ["Paris", None])


@EVERY
def test_rules_take_arrays_of_answers(judge):
    """Answers may be what pandas reads from Parquet."""
    assert judge("Paris", np.array(["Rome", "Paris"], dtype=object)).answer == "Paris"


class LastWord(Rule[list[str]]):
    """Accepts an answer that ends the prediction."""

    name = "last_word"

    def keys(self, texts):
        return [text.split()[-1] if text.split() else "" for text in texts]

    def prepare(self, answers, keys):
        return list(keys)

    def judge(self, prediction, key, prepared):
        return (prepared.index(key), 1.0) if key in prepared else (-1, 0.0)


def test_a_rule_of_ones_own_works_wherever_a_name_does():
    """Three methods make a rule."""
    predictions, answers = ["in Paris", "Paris?", None], [["Rome", "Paris"]] * 3

    found = match(predictions[0], answers[0], rule=LastWord())
    columns = match_columns(predictions, answers, rule=LastWord())

    assert found == Match(is_match=True, answer="Paris", score=1.0, rule="last_word")
    assert columns.is_match == [True, False, None]


def test_importing_the_rules_is_light():
    """Neither pandas nor a model library is loaded."""
    code = (
        "import sys, surface_consistency.matching; "
        "heavy = {'pandas', 'torch', 'transformers', 'datasets', 'scipy'}; "
        "sys.exit(' '.join(heavy & set(sys.modules)) or None)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
