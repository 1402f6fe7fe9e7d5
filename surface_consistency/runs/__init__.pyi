from .loader import Run as Run
from .log import (
    RunLog as RunLog,
    read_answers as read_answers,
    read_generations as read_generations,
)
