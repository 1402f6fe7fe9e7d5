"""Record batches of bounded size, made from stretches of rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from surface_consistency.wikimedia.sql._slow_rows import Value
from surface_consistency.wikimedia.sql.tables import SqlColumn, ValueKind

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BatchBuilder"]

_BATCH_ROWS = 1 << 16
_BATCH_BYTES = 1 << 24


class BatchBuilder:
    """Gathers columns until they make a batch.

    Args:
        columns: The columns, in the batches' order.
    """

    def __init__(self, columns: Sequence[SqlColumn]) -> None:
        import pyarrow as pa

        self.schema = pa.schema([(column.name, _arrow_type(column.kind)) for column in columns])
        """The batches' schema."""
        self.total_rows = 0
        """Rows of all batches, with the one in the making."""
        self._parts: list[list[pa.Array]] = [[] for _ in columns]
        self._n_rows = 0
        self._n_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether a batch should be taken."""
        return self._n_rows >= _BATCH_ROWS or self._n_bytes >= _BATCH_BYTES

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to take."""
        return self._n_rows == 0

    def add_columns(self, columns: "Sequence[pa.Array]", n_rows: int) -> None:
        """Add rows that are in columns already."""
        for parts, column in zip(self._parts, columns, strict=True):
            parts.append(column)
            self._n_bytes += column.nbytes
        self._n_rows += n_rows
        self.total_rows += n_rows

    def add_rows(self, rows: Sequence[tuple[Value, ...]]) -> None:
        """Add rows one by one."""
        import pyarrow as pa

        if rows:
            columns = zip(*rows, strict=True)
            types = self.schema.types
            self.add_columns(
                [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)],
                len(rows),
            )

    def take(self) -> "pa.RecordBatch":
        """Return the batch and start the next."""
        import pyarrow as pa

        columns = [pa.concat_arrays(parts) for parts in self._parts]
        self._parts = [[] for _ in columns]
        self._n_rows = self._n_bytes = 0
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _arrow_type(kind: ValueKind) -> "pa.DataType":
    """Return what a kind of value is stored as."""
    import pyarrow as pa

    numbers = {"integer": pa.int64(), "unsigned": pa.uint64(), "float": pa.float64()}
    return numbers.get(kind, pa.binary())
