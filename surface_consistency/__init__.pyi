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
from .engine.whole import run as run
from .matching.bulk import match_many as match_many
from .matching.rules import match as match
from .studies.datasets import (
    FactDataset as FactDataset,
    list_datasets as list_datasets,
    load_dataset as load_dataset,
    load_example as load_example,
    score_predictions as score_predictions,
)
