__version__: str

from .data.popqa import load_popqa as load_popqa
from .data.redirectqa import load_redirectqa as load_redirectqa
from .data.slaq import load_slaq as load_slaq
from .inference.fake import FakeRunner as FakeRunner
from .inference.openai_compatible import OpenAICompatibleRunner as OpenAICompatibleRunner
from .inference.runner import Runner as Runner
from .inference.transformers_runner import TransformersRunner as TransformersRunner
from .matching.rules import match as match
from .metrics.mcnemar_tests import mcnemar as mcnemar
from .metrics.paired_groups import paired_by as paired_by
from .metrics.paired_tables import PairedTable as PairedTable, paired_table as paired_table
from .studies.redirectqa import score_predictions as score_predictions
