__version__: str

from .matching.rules import match as match
from .metrics.forms.form_groups import forms_by as forms_by
from .metrics.paired.mcnemar_tests import mcnemar as mcnemar
from .metrics.paired.paired_groups import paired_by as paired_by
from .metrics.paired.paired_tables import PairedTable as PairedTable, paired_table as paired_table
from .metrics.uncertainty.intervals import Intervals as Intervals
from .models.runner import FakeRunner as FakeRunner, Runner as Runner
from .models.server.openai_compatible import OpenAICompatibleRunner as OpenAICompatibleRunner
from .models.transformers_runner import TransformersRunner as TransformersRunner
from .studies.datasets import (
    FactDataset as FactDataset,
    list_datasets as list_datasets,
    load_dataset as load_dataset,
    load_example as load_example,
    score_predictions as score_predictions,
)
