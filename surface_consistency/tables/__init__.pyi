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
from .sentences import (
    Sentence as Sentence,
    difference as difference,
    direction as direction,
    equivalence as equivalence,
    many as many,
    missing as missing,
    not_inferred as not_inferred,
    paragraph as paragraph,
    ranking as ranking,
    rate as rate,
    repeats as repeats,
)
from .table import (
    Column as Column,
    Table as Table,
    interval_column as interval_column,
)
from .tabulation import (
    describe as describe,
    tabulate as tabulate,
)
