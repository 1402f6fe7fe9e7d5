from .columns import (
    COLUMNS as COLUMNS,
    catalogue as catalogue,
)
from .numbers import (
    Part as Part,
    Value as Value,
    interval_value as interval_value,
    table_text as table_text,
)
from .table import (
    Column as Column,
    Table as Table,
    interval_column as interval_column,
)
from .tabulation import (
    describe as describe,
    spread as spread,
    tabulate as tabulate,
)
