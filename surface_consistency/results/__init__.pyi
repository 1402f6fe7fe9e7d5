from .columns import (
    ResultColumns as ResultColumns,
)
from .frame import (
    Results as Results,
    read_results as read_results,
)
from .predictions import (
    PredictionSettings as PredictionSettings,
    read_predictions as read_predictions,
)
