"""Predictions and accepted answers -> verdicts: the rules by name, one by one and in bulk."""

from typing import TYPE_CHECKING

from surface_consistency._lazy import attach

if TYPE_CHECKING:
    from surface_consistency.matching.boundary import BoundaryRule, match_boundary
    from surface_consistency.matching.bulk import MatchColumns, match_columns
    from surface_consistency.matching.exact import ExactRule, match_exact
    from surface_consistency.matching.fuzzy import FuzzyRule, match_fuzzy
    from surface_consistency.matching.popqa import PopqaRule, match_popqa
    from surface_consistency.matching.rule import Match, Rule
    from surface_consistency.matching.rules import RULES, match, resolve_rule, rule_names
    from surface_consistency.matching.token_f1 import TokenF1Rule, match_token_f1
    from surface_consistency.matching.verdict_records import answer_region, rule_agreement, verdicts

_HOMES = {
    "BoundaryRule": "boundary",
    "ExactRule": "exact",
    "FuzzyRule": "fuzzy",
    "Match": "rule",
    "MatchColumns": "bulk",
    "PopqaRule": "popqa",
    "RULES": "rules",
    "Rule": "rule",
    "TokenF1Rule": "token_f1",
    "answer_region": "verdict_records",
    "match": "rules",
    "match_boundary": "boundary",
    "match_columns": "bulk",
    "match_exact": "exact",
    "match_fuzzy": "fuzzy",
    "match_popqa": "popqa",
    "match_token_f1": "token_f1",
    "resolve_rule": "rules",
    "rule_agreement": "verdict_records",
    "rule_names": "rules",
    "verdicts": "verdict_records",
}

__all__ = [
    "RULES",
    "BoundaryRule",
    "ExactRule",
    "FuzzyRule",
    "Match",
    "MatchColumns",
    "PopqaRule",
    "Rule",
    "TokenF1Rule",
    "answer_region",
    "match",
    "match_boundary",
    "match_columns",
    "match_exact",
    "match_fuzzy",
    "match_popqa",
    "match_token_f1",
    "resolve_rule",
    "rule_agreement",
    "rule_names",
    "verdicts",
]

__getattr__, __dir__ = attach(__name__, _HOMES)
