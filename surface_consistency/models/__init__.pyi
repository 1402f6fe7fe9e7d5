from .encoders import Encoder as Encoder, SentenceEncoder as SentenceEncoder
from .minimal import MinimalRunner as MinimalRunner
from .options import MultipleChoiceRunner as MultipleChoiceRunner, option_scores as option_scores
from .registry import load_runner as load_runner
from .runner import FakeRunner as FakeRunner, Runner as Runner
from .server.openai_compatible import OpenAICompatibleRunner as OpenAICompatibleRunner
from .stored import StoredRunner as StoredRunner
from .transformers_runner import TransformersRunner as TransformersRunner
