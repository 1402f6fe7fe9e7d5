from .compare.verdicts import import_verdicts as import_verdicts
from .design import Design as Design, Report as Report
from .features import (
    make_features as make_features,
    read_parquet as read_parquet,
    to_parquet as to_parquet,
)
from .judging.judges import (
    NO_ANSWER as NO_ANSWER,
    Judge as Judge,
    LLMJudge as LLMJudge,
    RuleJudge as RuleJudge,
    facts_of as facts_of,
    generate_cached as generate_cached,
    judge_targets as judge_targets,
    make_chosen_judge as make_chosen_judge,
)
from .paired.page import PageSpec as PageSpec, model_dots as model_dots
from .paired.tables import paired_tables as paired_tables, with_detectable as with_detectable
from .plan import Plan as Plan, PromptGroup as PromptGroup
from .report import Reported as Reported, report_runs as report_runs
from .run import run_study as run_study
from .score import (
    answered_targets as answered_targets,
    import_predictions as import_predictions,
    score_files as score_files,
    score_run as score_run,
)
from .settings import (
    JudgeScoring as JudgeScoring,
    OptionSettings as OptionSettings,
    ReportSettings as ReportSettings,
    RuleScoring as RuleScoring,
    SideModel as SideModel,
    SourceSettings as SourceSettings,
    StudySettings as StudySettings,
    check_rule as check_rule,
)
from .study import (
    Analysis as Analysis,
    Scored as Scored,
    Study as Study,
    ToyModel as ToyModel,
    find_study as find_study,
)
from .sweep import run_sweep as run_sweep
