"""Lookup of rules by name: built-in, of other packages and of modules."""

import pytest

from surface_consistency.errors import PluginError
from surface_consistency.matching import Match, match
from surface_consistency.plugins import importable
from tests.distributions import install


def test_default_rule_is_popqa_and_unknown_rules_are_rejected():
    assert match("Tirana", ["Iran"]) == Match(
        is_match=True, reference="Iran", score=1.0, rule="popqa"
    )
    with pytest.raises(ValueError, match=r"one of popqa, exact, boundary, .*; got 'contains'"):
        match("x", ["x"], rule="contains")
    with pytest.raises(ValueError, match=r"followed by '\+fold_acc.* \(did you mean 'popqa\+f"):
        match("x", ["x"], rule="popqa+fold_accent")
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


def test_a_name_clash_of_two_packages_affects_only_the_clashing_rule(tmp_path, monkeypatch):
    (tmp_path / "rules_of_others.py").write_text(RULES_OF_OTHERS)
    lone, group = "rules_of_others:Lone", "surface_consistency.rules"
    install(tmp_path, "aa", group, {"clash": lone})
    install(tmp_path, "bb", group, {"clash": "rules_of_others:Changing", "lone": lone})
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
    with pytest.raises(PluginError, match=r"available: .*popqa, .*squad_f1"):
        match("x", ["x"], rule="nothing:Nope")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("json:JSONDecoder", "is a JSONDecoder; derive it from .*Rule, or name one of popqa"),
        ("pathlib:PurePath.joinpath", "is a function; derive it from"),
        (
            "http.client:HTTPConnection",
            "cannot be created: TypeError: .*host.*; fix or uninstall it",
        ),
        ("collections.abc:Sized", "lacks __len__, which a subclass must define"),
    ],
)
def test_match_rejects_importable_objects_that_are_not_rules(rule, message):
    refused = pytest.raises(PluginError, match=f"matching rule '{rule}' {message}")
    with importable(rule), refused:
        match("x", ["x"], rule=rule)
