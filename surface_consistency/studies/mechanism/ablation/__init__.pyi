from .components import (
    Component as Component,
    ComponentMap as ComponentMap,
    find_components as find_components,
)
from .engine import (
    AblationModel as AblationModel,
)
from .prepare import (
    prepare_model as prepare_model,
)
from .readout import (
    Readout as Readout,
    Replacement as Replacement,
)
from .replacement import (
    mean_replacement as mean_replacement,
    resample_replacement as resample_replacement,
)
from .scores import (
    AblationScores as AblationScores,
    RecoveredSet as RecoveredSet,
    TokenizedAnswer as TokenizedAnswer,
    ablate as ablate,
    recover as recover,
)
from .texts import (
    AnswerEncoder as AnswerEncoder,
    EncodedAnswer as EncodedAnswer,
    LoadedModel as LoadedModel,
    load_ablation_model as load_ablation_model,
)
