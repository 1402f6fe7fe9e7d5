from .answering_part import LongAnswer as LongAnswer, TopicQuestions as TopicQuestions
from .boundary import BoundaryRule as BoundaryRule
from .bulk import match_columns as match_columns, match_many as match_many
from .exact import ExactRule as ExactRule
from .fuzzy import FuzzyRule as FuzzyRule
from .popqa import PopqaRule as PopqaRule
from .rule import Match as Match, Rule as Rule
from .rules import RULES as RULES, match as match, resolve_rule as resolve_rule
from .segmented import SegmentedRule as SegmentedRule
from .squad import SquadEmRule as SquadEmRule, SquadF1Rule as SquadF1Rule
from .token_f1 import TokenF1Rule as TokenF1Rule
from .verdict_records import rule_agreement as rule_agreement, verdicts as verdicts
