"""The rows of one INSERT, stretch by stretch: by the fast reader where it can, else by the slow."""

import re
from collections.abc import Sequence
from typing import Literal

from surface_consistency.wikimedia.sql._batches import BatchBuilder
from surface_consistency.wikimedia.sql._fast_rows import FastRows
from surface_consistency.wikimedia.sql._slow_rows import SlowRows
from surface_consistency.wikimedia.sql._window import MAX_STATEMENT_BYTES, DumpFaultError, Window
from surface_consistency.wikimedia.sql.tables import SqlColumn

__all__ = ["RowReader"]

_STRETCH_BYTES = 1 << 18
_LEAST_FAST_BYTES = 1 << 13
_END = re.compile(rb";\n")


class RowReader:
    """Reads rows of one shape.

    Args:
        names: Names of all columns, in the rows' order.
        columns: The wanted columns, in the batches' order.
        window: The dump, where a row starts.
        builder: What gathers the rows.
    """

    def __init__(
        self,
        names: Sequence[str],
        columns: Sequence[SqlColumn],
        window: Window,
        builder: BatchBuilder,
    ) -> None:
        positions = [names.index(column.name) for column in columns]
        wanted = sorted(positions)
        kinds = [columns[positions.index(position)].kind for position in wanted]
        self._order = [wanted.index(position) for position in positions]
        self._fast = FastRows(len(names), wanted, kinds)
        self._slow = SlowRows(len(names), wanted, kinds)
        self._window = window
        self._builder = builder

    def read_stretch(self) -> Literal["more", "over", "cut off"]:
        """Read some rows.

        Returns:
            "over" after the INSERT's last row, "cut off" if the dump ends before that.

        Raises:
            DumpFaultError: If a row is not as it should be; those before it have been added.
        """
        window = self._window
        if window.unused < _STRETCH_BYTES:
            window.fill()
        size = _STRETCH_BYTES
        while True:
            start = window.position
            is_over = self._parse(size)
            if is_over:
                return "over"
            if window.position > start:
                return "more"
            if size < window.unused:
                size *= 2
            elif not self._hold_more():
                return "cut off"

    def _parse(self, size: int) -> bool:
        """Read the whole rows of a stretch; say whether the INSERT ended."""
        window = self._window
        data, start = window.data, window.position
        stop = min(start + size, len(data))
        # mysqldump escapes line ends within strings; where one is not, the rows are found as well.
        end = _END.search(data, start, stop)
        stop = end.end() - 1 if end else stop
        if stop - start >= _LEAST_FAST_BYTES:
            fast = self._fast.parse(data, start, stop)
            if fast is not None and fast.n_rows:
                self._builder.add_columns([fast.columns[i] for i in self._order], fast.n_rows)
                window.position = fast.end
                return fast.is_statement_over
        slow = self._slow.parse(data, start, stop)
        self._builder.add_rows([tuple([row[i] for i in self._order]) for row in slow.rows])
        window.position = slow.end
        if slow.fault:
            raise DumpFaultError(f"a row has a wrong value: {slow.fault}")
        return slow.is_statement_over

    def _hold_more(self) -> bool:
        """Hold more of the dump, if a row that is not whole could become so."""
        window = self._window
        fault = self._slow.fault(window.data, window.position)
        if fault:
            raise DumpFaultError(f"a row is broken: {fault}")
        if window.unused > MAX_STATEMENT_BYTES:
            raise DumpFaultError(f"a row is longer than {MAX_STATEMENT_BYTES:,} bytes")
        return window.fill()
