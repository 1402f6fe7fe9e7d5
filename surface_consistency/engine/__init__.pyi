from .compare.verdicts import import_verdicts as import_verdicts
from .design import Design as Design, Report as Report
from .judging.judges import Judge as Judge, LLMJudge as LLMJudge, RuleJudge as RuleJudge
from .paired.page import PageSpec as PageSpec
from .plan import Plan as Plan, PromptGroup as PromptGroup
from .report import Reported as Reported, report_runs as report_runs
from .run import run_study as run_study
from .score import score_run as score_run
from .settings import (
    JudgeScoring as JudgeScoring,
    ReportSettings as ReportSettings,
    RuleScoring as RuleScoring,
    SourceSettings as SourceSettings,
    StudyRecords as StudyRecords,
    StudySettings as StudySettings,
    ToyModelSettings as ToyModelSettings,
)
from .study import Analysis as Analysis, Study as Study, find_study as find_study
from .sweep import run_sweep as run_sweep
