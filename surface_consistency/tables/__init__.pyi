from .numbers import table_text as table_text
from .sentences import (
    difference as difference,
    equivalence as equivalence,
    ranking as ranking,
    rate as rate,
)
from .table import Column as Column, Table as Table, interval_column as interval_column
from .tabulation import describe as describe
