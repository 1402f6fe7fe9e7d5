"""SQL dumps as `mysqldump` writes them: the table's columns, and its rows as Arrow batches."""

from surface_consistency.wikimedia.sql.reader import read_create_table, read_sql
from surface_consistency.wikimedia.sql.rows import SqlRows
from surface_consistency.wikimedia.sql.tables import SqlColumn, SqlTable

__all__ = ["SqlColumn", "SqlRows", "SqlTable", "read_create_table", "read_sql"]
