from .features import (
    make_features as make_features,
    read_parquet as read_parquet,
    to_parquet as to_parquet,
)
from .judging.judges import (
    Judge as Judge,
    LLMJudge as LLMJudge,
    RuleJudge as RuleJudge,
)
from .paired import (
    PairedReport as PairedReport,
)
from .paired_tables import (
    interval_value as interval_value,
)
from .report import (
    Reported as Reported,
    report_runs as report_runs,
)
from .run import (
    run_study as run_study,
)
from .score import (
    answered_targets as answered_targets,
    import_predictions as import_predictions,
    retest_flip_rate as retest_flip_rate,
    score_files as score_files,
    score_run as score_run,
)
from .sources import (
    open_source as open_source,
)
from .study import (
    Analysis as Analysis,
    OptionSettings as OptionSettings,
    Plan as Plan,
    PromptGroup as PromptGroup,
    Report as Report,
    ReportSettings as ReportSettings,
    RuleScoring as RuleScoring,
    Scored as Scored,
    SourceSettings as SourceSettings,
    Study as Study,
    StudySettings as StudySettings,
    find_study as find_study,
)
from .sweep import (
    run_variants as run_variants,
)
from .verdicts import (
    VerdictsStudy as VerdictsStudy,
    import_verdicts as import_verdicts,
)
