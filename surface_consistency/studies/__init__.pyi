from .engine import (
    Reported as Reported,
)
from .engine import (
    import_predictions as import_predictions,
)
from .engine import (
    report_runs as report_runs,
)
from .engine import (
    retest_flip_rate as retest_flip_rate,
)
from .engine import (
    run_study as run_study,
)
from .engine import (
    run_variants as run_variants,
)
from .engine import (
    score_files as score_files,
)
from .engine import (
    score_run as score_run,
)
from .judging import Judge as Judge
from .judging import RuleJudge as RuleJudge
from .paired import PairedReport as PairedReport
from .redirectqa import RedirectQAStudy as RedirectQAStudy
from .redirectqa import score_predictions as score_predictions
from .study import (
    Analysis as Analysis,
)
from .study import (
    Plan as Plan,
)
from .study import (
    PromptGroup as PromptGroup,
)
from .study import (
    Report as Report,
)
from .study import (
    ReportSettings as ReportSettings,
)
from .study import (
    RuleScoring as RuleScoring,
)
from .study import (
    Scored as Scored,
)
from .study import (
    SourceSettings as SourceSettings,
)
from .study import (
    Study as Study,
)
from .study import (
    StudySettings as StudySettings,
)
from .study import (
    find_study as find_study,
)
from .verdicts import VerdictsStudy as VerdictsStudy
from .verdicts import import_verdicts as import_verdicts
