from ._batching import (
    PromptEncoder as PromptEncoder,
)
from ._decoding import (
    model_context as model_context,
)
from ._engine import (
    cache_name as cache_name,
    is_out_of_memory as is_out_of_memory,
)
from .encoders import (
    BUNDLED_MINILM as BUNDLED_MINILM,
    MINILM as MINILM,
    CachedEncoder as CachedEncoder,
    Encoder as Encoder,
    SentenceEncoder as SentenceEncoder,
    bundled_minilm as bundled_minilm,
)
from .loading import (
    ModelSource as ModelSource,
    check_dependencies as check_dependencies,
    find_model as find_model,
    load_model as load_model,
)
from .options import (
    MultipleChoiceRunner as MultipleChoiceRunner,
    option_log_odds as option_log_odds,
    option_scores as option_scores,
)
from .reasoning import (
    REASONING_TAGS as REASONING_TAGS,
)
from .registry import (
    RunnerName as RunnerName,
    load_runner as load_runner,
)
from .runner import (
    FakeRunner as FakeRunner,
    Runner as Runner,
)
from .server.openai_compatible import (
    OpenAICompatibleRunner as OpenAICompatibleRunner,
)
from .stored import (
    StoredRunner as StoredRunner,
)
from .stored_scores import (
    StoredScores as StoredScores,
)
from .transformers_runner import (
    TransformersRunner as TransformersRunner,
)
