from .boundary import BoundaryRule as BoundaryRule
from .boundary import match_boundary as match_boundary
from .bulk import MatchColumns as MatchColumns
from .bulk import match_columns as match_columns
from .exact import ExactRule as ExactRule
from .exact import match_exact as match_exact
from .fuzzy import FuzzyRule as FuzzyRule
from .fuzzy import match_fuzzy as match_fuzzy
from .popqa import PopqaRule as PopqaRule
from .popqa import match_popqa as match_popqa
from .rule import Match as Match
from .rule import Rule as Rule
from .rules import (
    RULES as RULES,
)
from .rules import (
    match as match,
)
from .rules import (
    resolve_rule as resolve_rule,
)
from .rules import (
    rule_names as rule_names,
)
from .token_f1 import TokenF1Rule as TokenF1Rule
from .token_f1 import match_token_f1 as match_token_f1
from .verdict_records import (
    answer_region as answer_region,
)
from .verdict_records import (
    rule_agreement as rule_agreement,
)
from .verdict_records import (
    verdicts as verdicts,
)
