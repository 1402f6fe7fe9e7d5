from .columns import (
    ResultColumns as ResultColumns,
)
from .frame import (
    Results as Results,
    read_results as read_results,
)
