from .columns import PredictionSettings as PredictionSettings, ResultColumns as ResultColumns
from .frame import Results as Results, read_results as read_results
from .predictions import read_predictions as read_predictions
