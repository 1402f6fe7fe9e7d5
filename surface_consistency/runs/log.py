"""The log of a run, one line per generation, safe against kills, full disks and two writers."""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pydantic import ValidationError

from surface_consistency.errors import DataError, RecordError, RunError, SourceNotFoundError
from surface_consistency.reading import read_lines, shown, within
from surface_consistency.runs.files import write_text
from surface_consistency.runs.locks import FileLock
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.jsonl import describe_validation_error, parse_line, writing_error

if TYPE_CHECKING:
    import pandas as pd

_logger = logging.getLogger(__name__)

_REMEDY = (
    "Remove that line (its prompt is sent again) or restore the file, or choose another `out`; "
    "score predictions made elsewhere as stored predictions"
)


class RunLog:
    """Generations on disk, keyed by the content of their prompts.

    Use as a context manager. The folder of the log also contains its manifest
    (`<stem>.manifest.json`) and, while it is open, a lock. Only the keys of answered prompts are
    kept in memory.
    """

    def __init__(self, path: Path, manifest: RunManifest, lock: FileLock) -> None:
        """Use a checked and locked log; call `RunLog.open` instead."""
        self._path = path
        self._manifest = manifest
        self._lock = lock
        self._size = 0
        answers = _Answers(path)
        for number, self._size, generation in (
            _generations(path, keyed=True) if path.exists() else ()
        ):
            if generation.finish_reason != "error":
                answers.is_first(generation, number)
        self._keys = set(answers.lines)
        try:
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise writing_error(path, error) or error from error
        self._file.truncate(self._size)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        manifest: RunManifest,
        *,
        manifest_path: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Create the log of a run, or open the existing one.

        A last line that was cut off when a process was killed is dropped, with a logged warning.
        Prompts whose answer is an error count as unanswered.

        Args:
            path: The log, JSON lines; its folder is created.
            manifest: The settings of the run that starts now.
            manifest_path: File of the settings; None for `<stem>.manifest.json` next to the log.

        Returns:
            The log, locked for this process.

        Raises:
            RunError: If another process writes to the run.
            RunError: If the run was made with other settings; names each of them.
            RunError: If a line is corrupt or of another format, or the files cannot be written.
        """
        log = Path(path)
        settings = Path(manifest_path or log.with_name(f"{log.stem}.manifest.json"))
        for file in (log, settings):
            within(file.parent, file.name)
        lock = lock_log(log)
        try:
            return cls(log, _agree_on_settings(log, settings, manifest), lock)
        except BaseException:
            lock.release()
            raise

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def manifest(self) -> RunManifest:
        """The settings of the run, as written at its first start."""
        return self._manifest

    def __contains__(self, key: object) -> bool:
        """Return whether the prompt of this `Prompt.key` was answered without an error."""
        return key in self._keys

    def __len__(self) -> int:
        """Count the prompts answered without an error."""
        return len(self._keys)

    def append(self, generations: Sequence[Generation]) -> None:
        """Write one batch completely and flush it to disk.

        Args:
            generations: The answers, each with its `prompt_key`.

        Raises:
            ValueError: If a generation has no `prompt_key`.
            RunError: If the disk is full or cannot be written; the log then ends with the previous
                batch, and the run can be resumed.
        """
        done = {_key(item) for item in generations if item.finish_reason != "error"}
        if any(item.prompt_key is None for item in generations):
            raise ValueError("every generation of a run log needs `prompt_key` (`Prompt.key`)")
        data = b"".join(item.model_dump_json().encode("utf-8") + b"\n" for item in generations)
        try:
            self._write(data)
        except BaseException as error:
            with suppress(OSError):
                self._file.truncate(self._size)
            if isinstance(error, OSError):
                raise self._unwritable(error, len(generations)) from error
            raise
        self._size += len(data)
        self._keys |= done

    def close(self) -> None:
        """Close the file and release the lock; a second call does nothing."""
        self._file.close()
        self._lock.release()

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def _write(self, data: bytes) -> None:
        """Write all bytes, and flush them to disk."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        os.fsync(self._file.fileno())

    def _unwritable(self, error: OSError, n_lost: int) -> RunError:
        """Make the error for a failed write, with the number of stored answers and a remedy."""
        return RunError(
            f"{self._path}: writing {n_lost} generations failed ({error.strerror}); the log is "
            f"valid and contains the {len(self):,} answers before them. Free disk space, then "
            "repeat the same command to resume"
        )


def lock_log(path: str | os.PathLike[str]) -> FileLock:
    """Lock a run log, to write it or to score its answers.

    Args:
        path: The log; its folder is created.

    Returns:
        The acquired lock; a context manager.

    Raises:
        RunError: If another process has the lock.
        RunError: If the folder cannot be written.
    """
    log = Path(path)
    lock_file = _lock_of(log)
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(
            lock_file,
            lambda owner: RunError(
                f"{owner} writes to this run (lock {lock_file}); wait for it to end, or choose "
                "another `out`"
            ),
        )
    except OSError as error:
        raise RunError(
            f"{error.filename or log}: cannot be opened for writing ({error.strerror}); choose "
            "another `out`"
        ) from error


def log_owner(path: str | os.PathLike[str]) -> str | None:
    """Return the process that writes to a run log.

    Args:
        path: The log.

    Returns:
        "process 123" or "this process"; None if no process writes to it.
    """
    if not _lock_of(Path(path)).exists():
        return None
    try:
        lock_log(path).release()
    except RunError as error:
        owner, is_locked, _ = str(error).partition(" writes to this run (lock ")
        return owner if is_locked else None
    return None


def _lock_of(log: Path) -> Path:
    """Return the path of the lock of a log."""
    return log.with_name(f"{log.name}.lock")


def read_generations(path: str | os.PathLike[str]) -> Iterator[Generation]:
    """Read a run log, one generation for each prompt content.

    The file is read line by line. An answer replaces the errors of earlier attempts; errors without
    a later answer come last. A last line that is cut off is skipped.

    Args:
        path: The log.

    Yields:
        The generations. Lines without `prompt_key`, of predictions made elsewhere, are identified
        by `prompt_id`.

    Raises:
        SourceNotFoundError: If there is no such file.
        RunError: If a line is corrupt or of another format; names file and line.
    """
    log = Path(path)
    if not log.is_file():
        raise SourceNotFoundError(f"run log {log} not found; run the study first")
    answers = _Answers(log)
    errors: dict[str, Generation] = {}
    for number, _, generation in _generations(log, keyed=False):
        if generation.finish_reason == "error":
            errors[_key(generation)] = generation
        elif answers.is_first(generation, number):
            yield generation
    for key, generation in errors.items():
        if key not in answers.lines:
            yield generation


def read_answers(path: str | os.PathLike[str]) -> "pd.DataFrame":
    """Read the generations of `read_generations` as columns.

    Args:
        path: The log.

    Returns:
        One row for each prompt content, in the order of `read_generations`, with the columns
        `ANSWERS`.

    Raises:
        SourceNotFoundError: If there is no such file.
        RunError: If a line is corrupt or of another format; names file and line.
    """
    from surface_consistency.runs.answers import answer_frame

    return answer_frame(read_generations(path))


class _Answers:
    """The answers of a log: line number and hash by key; detects contradicting lines.

    Only the hash of an answer is kept, so that a long log needs little memory.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self.lines: dict[str, tuple[int, int]] = {}

    def is_first(self, generation: Generation, number: int) -> bool:
        """Record an answer; return whether its key is new, and raise an error if answers differ."""
        content = hash((generation.text, generation.finish_reason))
        line, known = self.lines.setdefault(_key(generation), (number, content))
        if known != content:
            raise RunError(
                f"{self._log}:{number}: another answer to the prompt of line {line}, so one of the "
                "two is not of this run; remove the incorrect line, or restore the file"
            )
        return line == number


def _key(generation: Generation) -> str:
    """Return the key of the prompt, or its id for predictions made elsewhere."""
    return generation.prompt_key or generation.prompt_id


def _generations(log: Path, *, keyed: bool) -> Iterator[tuple[int, int, Generation]]:
    """Yield number, end offset and generation of each line; `keyed` requires `prompt_key`."""
    for number, end, line in _lines(log):
        generation = _parse(line, log, number)
        if keyed and generation.prompt_key is None:
            raise RunError(
                f"{log}:{number}: field 'prompt_key' is missing, so the line is not from a run. "
                f"{_REMEDY}"
            )
        yield number, end, generation


def _lines(log: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, end and content of the lines that are not blank.

    A line and its line feed are written together, so a last line without a line feed is incomplete
    and is skipped. All other lines are yielded, even if they are invalid.
    """
    size = log.stat().st_size
    end = 0
    for number, line in read_lines(log, keep_bom=True):
        end += len(line)
        if end >= size and not line.endswith(b"\n"):
            _logger.warning(
                "%s:%d: the last line was cut off (%d bytes) and is dropped; its prompt is "
                "sent again on resume",
                log,
                number,
                len(line),
            )
        elif line.strip():
            yield number, end, line


def _parse(line: bytes, log: Path, number: int) -> Generation:
    """Read a line of the log."""
    try:
        return parse_line(line, Generation, source=str(log), number=number)
    except RecordError as error:
        raise RunError(f"{error}. {_REMEDY}") from error


def _agree_on_settings(log: Path, settings: Path, manifest: RunManifest) -> RunManifest:
    """Compare with the settings on disk, or write them for a new run; return those on disk."""
    if settings.is_file():
        stored = read_manifest(settings)
        if stored.study != manifest.study:
            raise RunError(
                f"{log.parent} contains a run of {stored.study}, not of {manifest.study}; choose "
                "another `out`"
            )
        differences = stored.differences(manifest)
        if differences:
            raise RunError(_mismatch(log, differences))
        return stored
    if log.exists() and log.stat().st_size:
        raise RunError(
            f"{log} has lines but no settings ({settings} is missing), so it cannot be resumed; "
            "restore that file, or choose another `out`"
        )
    try:
        write_text(settings, manifest.model_dump_json(indent=2) + "\n")
    except (DataError, OSError) as error:
        raise RunError(f"the settings of the run cannot be written: {error}") from error
    return manifest


def read_manifest(settings: Path) -> RunManifest:
    """Read the manifest of a log.

    Args:
        settings: The file.

    Returns:
        The manifest.

    Raises:
        RunError: If it is not a manifest.
    """
    try:
        return RunManifest.model_validate_json(settings.read_bytes())
    except ValidationError as error:
        raise RunError(
            f"{settings}: not the settings of a run: {describe_validation_error(error)}. Restore "
            "the file, or choose another `out`"
        ) from error


def _mismatch(log: Path, differences: Mapping[str, tuple[object, object]]) -> str:
    """Make the message that lists every different setting with both values."""
    named = "; ".join(
        f"{name} is {shown(old)} there and {shown(new)} now"
        for name, (old, new) in differences.items()
    )
    return (
        f"{log} belongs to a run with other settings: {named}. Use the same settings to continue "
        "it, or choose another `out`"
    )
