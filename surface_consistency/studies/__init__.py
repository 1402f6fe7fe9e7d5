"""Studies end to end: the engine that runs any of them, what a study is, and those that come along.

`Study` and `Analysis` are what others extend; `run_study`, `score_run` and `report_runs` are the
stages of any study. Importing this package loads none of its modules.
"""

from typing import TYPE_CHECKING

from surface_consistency._lazy import attach

if TYPE_CHECKING:
    from surface_consistency.studies.engine import (
        Reported,
        import_predictions,
        report_runs,
        retest_flip_rate,
        run_study,
        run_variants,
        score_files,
        score_run,
    )
    from surface_consistency.studies.judging import Judge, RuleJudge
    from surface_consistency.studies.paired import PairedReport
    from surface_consistency.studies.redirectqa import RedirectQAStudy, score_predictions
    from surface_consistency.studies.study import (
        Analysis,
        Plan,
        PromptGroup,
        Report,
        ReportSettings,
        RuleScoring,
        Scored,
        SourceSettings,
        Study,
        StudySettings,
        find_study,
    )
    from surface_consistency.studies.verdicts import VerdictsStudy, import_verdicts

_MODULES = {
    "engine": "Reported import_predictions report_runs retest_flip_rate run_study run_variants "
    "score_files score_run",
    "judging": "Judge RuleJudge",
    "paired": "PairedReport",
    "redirectqa": "RedirectQAStudy score_predictions",
    "study": "Analysis Plan PromptGroup Report ReportSettings RuleScoring Scored SourceSettings "
    "Study StudySettings find_study",
    "verdicts": "VerdictsStudy import_verdicts",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "Analysis",
    "Judge",
    "PairedReport",
    "Plan",
    "PromptGroup",
    "RedirectQAStudy",
    "Report",
    "ReportSettings",
    "Reported",
    "RuleJudge",
    "RuleScoring",
    "Scored",
    "SourceSettings",
    "Study",
    "StudySettings",
    "VerdictsStudy",
    "find_study",
    "import_predictions",
    "import_verdicts",
    "report_runs",
    "retest_flip_rate",
    "run_study",
    "run_variants",
    "score_files",
    "score_predictions",
    "score_run",
]

__getattr__, __dir__ = attach(__name__, _HOMES)
