"""The lines of a run log."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

from surface_consistency.errors import RecordError, RunLogError
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.jsonl import parse_line

__all__ = ["key_of", "log_lines"]

_logger = logging.getLogger(__name__)

_REMEDY = (
    "Remove that line (its prompt is asked again) or restore the file, or choose another --out; "
    "predictions made elsewhere are scored as stored predictions instead"
)


def key_of(generation: Generation) -> str:
    """Name what was asked: by its content, or by its id in predictions made elsewhere."""
    return generation.prompt_key or generation.prompt_id


def log_lines(log: Path, *, keyed: bool) -> Iterator[tuple[int, Generation]]:
    """Read the good lines, each with the offset of its end; stop before a torn last one.

    Args:
        log: The file.
        keyed: Whether to refuse lines without `prompt_key`, which no run wrote.
    """
    size = log.stat().st_size
    end = 0
    with log.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            end += len(line)
            if end >= size and _is_torn(line):
                _logger.warning(
                    "%s:%d: the last line was cut off (%d bytes) and is dropped; its prompt is "
                    "asked again on resume",
                    log,
                    number,
                    len(line),
                )
            elif line.strip():
                yield end, _parse(line, log, number, keyed=keyed)


def _is_torn(line: bytes) -> bool:
    """Tell whether a last line was not written to its end."""
    if not line.endswith(b"\n"):
        return True
    try:
        json.loads(line)
    except (UnicodeDecodeError, json.JSONDecodeError):
        return bool(line.strip())
    return False


def _parse(line: bytes, log: Path, number: int, *, keyed: bool) -> Generation:
    """Read a line of the log."""
    try:
        generation = parse_line(line, Generation, source=str(log), number=number)
    except RecordError as error:
        raise RunLogError(f"{error}. {_REMEDY}") from error
    if keyed and generation.prompt_key is None:
        raise RunLogError(
            f"{log}:{number}: field 'prompt_key' is missing, so no run wrote this line. {_REMEDY}"
        )
    return generation
