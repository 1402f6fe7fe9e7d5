"""The command line that is being run, for what records it."""

from contextvars import ContextVar

COMMAND: ContextVar[str | None] = ContextVar("COMMAND", default=None)
"""The command line without secrets; None in Python."""
