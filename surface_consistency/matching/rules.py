"""The matching rules by name."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from surface_consistency.errors import PluginError
from surface_consistency.matching.boundary import BoundaryRule
from surface_consistency.matching.exact import ExactRule
from surface_consistency.matching.fuzzy import FuzzyRule
from surface_consistency.matching.popqa import PopqaRule
from surface_consistency.matching.rule import FOLDED, FoldedRule, Match, Rule
from surface_consistency.matching.segmented import SegmentedRule
from surface_consistency.matching.squad import SquadEmRule, SquadF1Rule
from surface_consistency.matching.token_f1 import TokenF1Rule
from surface_consistency.plugins import Plugins
from surface_consistency.text import did_you_mean

_logger = logging.getLogger(__name__)

RULES: Mapping[str, Rule[Any]] = MappingProxyType(
    {
        "popqa": PopqaRule(),
        "exact": ExactRule(),
        "boundary": BoundaryRule(),
        "token_f1": TokenF1Rule(),
        "fuzzy": FuzzyRule(),
        "squad_em": SquadEmRule(),
        "squad_f1": SquadF1Rule(),
        "segmented": SegmentedRule(),
    }
)
"""Every rule of this package with its default options."""


_PLUGINS: Final = Plugins(
    "surface_consistency.rules",
    "matching rule",
    built_in={
        name: f"{type(rule).__module__}:{type(rule).__name__}" for name, rule in RULES.items()
    },
)


def match(
    prediction: str,
    references: str | Sequence[str],
    *,
    rule: str | Rule[Any] = "popqa",
    fold_accents: bool = False,
) -> Match:
    """Score one prediction by a rule.

    Args:
        prediction: The scored part of the output; it is not cut. If a model continues after its
            answer, cut the output first, such as `prediction.splitlines()[0]`.
        references: Accepted answers; a string is one reference.
        rule: Name of a rule, one of `RULES`, or a rule with other options, such as
            `TokenF1Rule(threshold=0.5)`. Default is "popqa", RedirectQA's rule.
        fold_accents: Whether accents of Latin and Greek letters are ignored, so that "Zurich" is
            "Zürich"; see `text.without_accents`.

    Returns:
        The match, which is true exactly if the rule accepts the prediction; its score is in
        [0, 1] (higher is better).

    Raises:
        TypeError: If `prediction` or a reference is not a string.
        ValueError: If the rule is unknown, `references` is empty or a list written as text, or one
            of them is blank.

    Notes:
        Under every rule, an empty prediction is incorrect, and every answer matches itself. The
        exceptions are answers of articles or punctuation only ("The The", "!!!") under the rules of
        SQuAD, which remove these: there both cases follow SQuAD's script.

    References:
        Each rule's class: `PopqaRule`, `ExactRule`, `BoundaryRule`, `TokenF1Rule`, `FuzzyRule`,
        `SquadEmRule`, `SquadF1Rule`, `SegmentedRule`.

    Examples:
        >>> match("The capital is Tirana.", ["Tirana", "Tirane"])
        Match(is_match=True, reference='Tirana', score=1.0, rule='popqa')
        >>> bool(match("The capital is Tirana.", "Tirana", rule="exact"))
        False
        >>> match("It is Zurich.", "Zürich", rule="boundary", fold_accents=True).rule
        'boundary+fold_accents'
    """
    return foldable_rule(rule, fold_accents=fold_accents)(prediction, references)


def foldable_rule(rule: str | Rule[Any], *, fold_accents: bool) -> Rule[Any]:
    """Return a rule as `resolve_rule` does, which ignores accents if `fold_accents` is true.

    Args:
        rule: As for `match`; a rule that ignores accents is not changed.
        fold_accents: As for `match`.
    """
    chosen = resolve_rule(rule)
    return FoldedRule(chosen) if fold_accents and not isinstance(chosen, FoldedRule) else chosen


def resolve_rule(rule: str | Rule[Any]) -> Rule[Any]:
    """Return a rule by its name; a rule is returned unchanged.

    Args:
        rule: Name of a rule, one of `RULES`, followed by "+fold_accents" to ignore accents;
            "package:name", or only the name, of a rule that another
            package registers as entry point of the group `surface_consistency.rules`;
            "module:attribute" for an importable object, if the name is given by the user and not
            by a file (see `plugins.importable`); or a rule.

    Returns:
        The rule.

    Raises:
        TypeError: If it is neither a name nor a rule.
        ValueError: If no rule has that name.
        PluginError: If the named object cannot be imported or created, or is not a rule.

    References:
        None; the names are this package's own, "popqa" and "exact" after the papers that used them.

    Examples:
        >>> resolve_rule("exact")
        ExactRule(normalize=None)
    """
    if isinstance(rule, Rule):
        return rule
    if not isinstance(rule, str):
        raise TypeError(f"`rule` must be a name or a Rule, got {type(rule).__name__}")
    if rule in RULES:
        return RULES[rule]
    if rule.endswith(FOLDED):
        return foldable_rule(rule.removesuffix(FOLDED), fold_accents=True)
    names = list(dict.fromkeys([*RULES, *_PLUGINS.names()]))
    if ":" not in rule and rule not in {name.rpartition(":")[2] for name in names}:
        near = did_you_mean(rule, [*names, *(name + FOLDED for name in names)])
        raise ValueError(
            f"`rule` must be one of {', '.join(names)}, or one of these followed by {FOLDED!r} to "
            f"ignore accents; got {rule!r}{near}"
        )
    made = _PLUGINS.make(rule)
    if not isinstance(made, Rule):
        raise PluginError(
            f"{_PLUGINS.named(rule)} is a {type(made).__name__}; derive it "
            f"from surface_consistency.matching.Rule, or name one of {', '.join(names)}"
        )
    if not isinstance(getattr(made, "name", None), str) or type(made).__hash__ is None:
        raise PluginError(
            f"{_PLUGINS.named(rule)} must have a `name` and be hashable, "
            "such as a frozen dataclass; repair or uninstall it"
        )
    return made


def rule_in_file(rule: str, file: Path) -> str:
    """Return the name of a rule from a file of a run, which may name only registered rules.

    Args:
        rule: The name in the file.
        file: The file, for the message.

    Returns:
        The name; "token_f1" if no such rule is registered, with a warning in the log.
    """
    try:
        resolve_rule(rule)
    except (PluginError, ValueError) as error:
        _logger.warning("%s: settings.rule: %s; token_f1 is used instead", file, error)
        return "token_f1"
    return rule
