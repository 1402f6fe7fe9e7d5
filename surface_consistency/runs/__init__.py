"""What a run leaves on disk: its log, its lock, and files that appear whole or not at all."""

from typing import TYPE_CHECKING

from surface_consistency._lazy import attach

if TYPE_CHECKING:
    from surface_consistency.runs.log import RunLog, read_answers, read_generations

__all__ = ["RunLog", "read_answers", "read_generations"]

__getattr__, __dir__ = attach(__name__, dict.fromkeys(__all__, "log"))
