"""The command line of the current process, for manifests and pages."""

from contextvars import ContextVar

COMMAND: ContextVar[str | None] = ContextVar("COMMAND", default=None)
"""The command line without secrets; None if the package is used from Python."""
