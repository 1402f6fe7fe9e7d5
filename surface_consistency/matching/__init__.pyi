from .answering_part import (
    FUNCTION_WORDS as FUNCTION_WORDS,
    LongAnswer as LongAnswer,
    TopicQuestions as TopicQuestions,
    stem as stem,
)
from .boundary import (
    BoundaryRule as BoundaryRule,
    match_boundary as match_boundary,
)
from .bulk import (
    MatchColumns as MatchColumns,
    match_columns as match_columns,
)
from .exact import (
    ExactRule as ExactRule,
    match_exact as match_exact,
)
from .fuzzy import (
    FuzzyRule as FuzzyRule,
    match_fuzzy as match_fuzzy,
)
from .popqa import (
    PopqaRule as PopqaRule,
    match_popqa as match_popqa,
)
from .rule import (
    Match as Match,
    Rule as Rule,
)
from .rules import (
    RULES as RULES,
    match as match,
    resolve_rule as resolve_rule,
    rule_names as rule_names,
)
from .segmented import (
    SegmentedRule as SegmentedRule,
    match_segmented as match_segmented,
)
from .squad import (
    SquadEmRule as SquadEmRule,
    SquadF1Rule as SquadF1Rule,
    match_squad_em as match_squad_em,
    match_squad_f1 as match_squad_f1,
)
from .token_f1 import (
    TokenF1Rule as TokenF1Rule,
    match_token_f1 as match_token_f1,
)
from .verdict_records import (
    answer_span as answer_span,
    rule_agreement as rule_agreement,
    verdicts as verdicts,
)
