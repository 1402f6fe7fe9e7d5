from .columns import (
    POPQA_COLUMNS as POPQA_COLUMNS,
    REDIRECTQA_COLUMNS as REDIRECTQA_COLUMNS,
    resolve_columns as resolve_columns,
)
from .log import (
    RunLog as RunLog,
    read_answers as read_answers,
    read_generations as read_generations,
)
