from .encoders import (
    BUNDLED_MINILM as BUNDLED_MINILM,
    MINILM as MINILM,
    CachedEncoder as CachedEncoder,
    Encoder as Encoder,
    SentenceEncoder as SentenceEncoder,
    bundled_minilm as bundled_minilm,
)
from .generate import (
    RunSummary as RunSummary,
    run_prompts as run_prompts,
)
from .options import (
    OptionRunner as OptionRunner,
    option_log_odds as option_log_odds,
    option_scores as option_scores,
)
from .predictions import (
    read_predictions as read_predictions,
)
from .registry import (
    available_runners as available_runners,
    load_runner as load_runner,
)
from .runner import (
    BatchPlanner as BatchPlanner,
    ConversationRenderer as ConversationRenderer,
    FakeRunner as FakeRunner,
    Rebatchable as Rebatchable,
    Runner as Runner,
    Scorer as Scorer,
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
from .thoughts import (
    THOUGHT_TAGS as THOUGHT_TAGS,
    SplitReply as SplitReply,
    split_thought as split_thought,
)
from .transformers_runner import (
    TransformersRunner as TransformersRunner,
)
