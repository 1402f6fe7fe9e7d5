"""Predictions and accepted answers -> verdicts: the rules by name, one by one and in bulk."""

from surface_consistency.matching.boundary import BoundaryRule, match_boundary
from surface_consistency.matching.bulk import MatchColumns, match_columns
from surface_consistency.matching.exact import ExactRule, match_exact
from surface_consistency.matching.fuzzy import FuzzyRule, match_fuzzy
from surface_consistency.matching.popqa import PopqaRule, match_popqa
from surface_consistency.matching.rule import Match, Rule
from surface_consistency.matching.rules import RULES, match
from surface_consistency.matching.token_f1 import TokenF1Rule, match_token_f1
from surface_consistency.matching.verdicts import answer_region, rule_agreement, verdicts

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
    "rule_agreement",
    "verdicts",
]
