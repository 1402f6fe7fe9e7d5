from .prepare import prepare_model as prepare_model
from .scores import TokenizedAnswer as TokenizedAnswer, ablate as ablate, recover as recover
