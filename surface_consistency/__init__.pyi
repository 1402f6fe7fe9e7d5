__version__: str

from . import (
    analysis as analysis,
    data as data,
    engine as engine,
    errors as errors,
    matching as matching,
    metrics as metrics,
    models as models,
    report as report,
    results as results,
    schemas as schemas,
    text as text,
)
from .analysis.measures import (
    accuracy as accuracy,
    alignment as alignment,
    consistency as consistency,
    forgetting as forgetting,
    paired as paired,
    partial_correlation as partial_correlation,
)
from .analysis.models import compare as compare
from .analysis.result import Result as Result
from .data.popqa import load_popqa as load_popqa
from .data.redirectqa import load_redirectqa as load_redirectqa
from .data.slaq import load_slaq as load_slaq
from .matching.rules import match as match
from .studies.redirectqa.study import score_predictions as score_predictions
