from .log import (
    RunLog as RunLog,
)
from .log import (
    read_answers as read_answers,
)
from .log import (
    read_generations as read_generations,
)
