"""The log of a run: one line a generation, safe against kills, full disks and second writers."""

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
    "Remove that line (its prompt is asked again) or restore the file, or choose another `out`; "
    "predictions made elsewhere are scored as stored predictions instead"
)


class RunLog:
    """Generations on disk, keyed by the content of their prompts.

    Use as a context manager. Beside the log stand its manifest (`<stem>.manifest.json`) and, while
    it is open, a lock. In memory there are only the keys of what was answered.
    """

    def __init__(self, path: Path, manifest: RunManifest, lock: FileLock) -> None:
        """Take over a checked and locked log; call `RunLog.open` instead."""
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
        """Start a run's log, or take up the one that is there.

        A last line that was cut off by a kill is dropped, with a message in the log of the
        process. Answers that are errors do not count as done.

        Args:
            path: The log, JSON lines; its folder is made.
            manifest: The settings of the run that starts now.
            manifest_path: Where the settings stand; None for `<stem>.manifest.json` beside the log.

        Returns:
            The log, locked for this process.

        Raises:
            RunError: If another process writes to the run.
            RunError: If the run was made with other settings; names each of them.
            RunError: If a line is corrupt or of another kind, or the files cannot be written.
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
        """Tell whether the prompt of this `Prompt.key` was answered without an error."""
        return key in self._keys

    def __len__(self) -> int:
        """Count the prompts answered without an error."""
        return len(self._keys)

    def append(self, generations: Sequence[Generation]) -> None:
        """Write one batch: whole, in one piece, and flushed before this returns.

        Args:
            generations: What was answered, each with its `prompt_key`.

        Raises:
            ValueError: If a generation has no `prompt_key`.
            RunError: If the disk is full or cannot be written; the log then ends with the batch
                before and can be taken up again.
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
        """Close the file and free the run for others; a second call does nothing."""
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
        """Hand all bytes to the system, and force them to the disk."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        os.fsync(self._file.fileno())

    def _unwritable(self, error: OSError, n_lost: int) -> RunError:
        """Say what was kept and how to go on."""
        return RunError(
            f"{self._path}: writing {n_lost} generations failed ({error.strerror}); the log is "
            f"whole and keeps the {len(self):,} answers before them. Free disk space, then run the "
            "same command again: it resumes there"
        )


def lock_log(path: str | os.PathLike[str]) -> FileLock:
    """Keep a run log for this process, to write it or to judge what stands in it.

    Args:
        path: The log; its folder is made.

    Returns:
        The lock, held; a context manager.

    Raises:
        RunError: If another process holds it.
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
    """Say who writes to a run log.

    Args:
        path: The log.

    Returns:
        "process 123" or "this process"; None where nobody does.
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
    """Name the lock of a log."""
    return log.with_name(f"{log.name}.lock")


def read_generations(path: str | os.PathLike[str]) -> Iterator[Generation]:
    """Read a run log, one generation for each prompt content.

    The file is read line by line. An answer replaces the errors of earlier tries; errors that no
    answer replaced come last. A cut-off last line is passed over.

    Args:
        path: The log.

    Yields:
        The generations. Lines without `prompt_key`, of predictions made elsewhere, go by their id.

    Raises:
        SourceNotFoundError: If there is no such file.
        RunError: If a line is corrupt or of another kind; names file and line.
    """
    log = Path(path)
    if not log.is_file():
        raise SourceNotFoundError(f"no run log {log}; run the study first, or name its folder")
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
    """Read a run log as columns: what `read_generations` reads.

    Args:
        path: The log.

    Returns:
        One row for each prompt content, in the order of `read_generations`, with the columns
        `ANSWERS`.

    Raises:
        SourceNotFoundError: If there is no such file.
        RunError: If a line is corrupt or of another kind; names file and line.
    """
    from surface_consistency.runs.answers import answer_frame

    return answer_frame(read_generations(path))


class _Answers:
    """The answers of a log: which key was answered on which line, and that no line says otherwise.

    Of an answer only its hash is kept, so that a long log takes little memory.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self.lines: dict[str, tuple[int, int]] = {}

    def is_first(self, generation: Generation, number: int) -> bool:
        """Note an answer; tell whether its key had none, and refuse one that says otherwise."""
        content = hash((generation.text, generation.finish_reason))
        line, known = self.lines.setdefault(_key(generation), (number, content))
        if known != content:
            raise RunError(
                f"{self._log}:{number}: another answer to the prompt of line {line}, so one of the "
                "two is not of this run; remove the wrong line, or restore the file"
            )
        return line == number


def _key(generation: Generation) -> str:
    """Name what was asked: by its content, or by its id in predictions made elsewhere."""
    return generation.prompt_key or generation.prompt_id


def _generations(log: Path, *, keyed: bool) -> Iterator[tuple[int, int, Generation]]:
    """Read the good lines with number and offset of the end; `keyed` refuses those of no run."""
    for number, end, line in _lines(log):
        generation = _parse(line, log, number)
        if keyed and generation.prompt_key is None:
            raise RunError(
                f"{log}:{number}: field 'prompt_key' is missing, so no run wrote this line. "
                f"{_REMEDY}"
            )
        yield number, end, generation


def _lines(log: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, end and content of the lines that are not blank.

    A line and its end are written in one piece, so a last line without its end was torn, and is
    passed over. What has an end is somebody's line, whatever it holds.
    """
    size = log.stat().st_size
    end = 0
    for number, line in read_lines(log, keep_bom=True):
        end += len(line)
        if end >= size and not line.endswith(b"\n"):
            _logger.warning(
                "%s:%d: the last line was cut off (%d bytes) and is dropped; its prompt is "
                "asked again on resume",
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
                f"{log.parent} holds a run of {stored.study}, not of {manifest.study}; choose "
                "another `out`"
            )
        differences = stored.differences(manifest)
        if differences:
            raise RunError(_mismatch(log, differences))
        return stored
    if log.exists() and log.stat().st_size:
        raise RunError(
            f"{log} has lines but no settings beside it ({settings} is missing), so it cannot be "
            "continued; restore that file, or choose another `out`"
        )
    try:
        write_text(settings, manifest.model_dump_json(indent=2) + "\n")
    except (DataError, OSError) as error:
        raise RunError(f"the settings of the run cannot be written: {error}") from error
    return manifest


def read_manifest(settings: Path) -> RunManifest:
    """Read the manifest beside a log.

    Args:
        settings: The file.

    Returns:
        The manifest.

    Raises:
        RunError: If it is none.
    """
    try:
        return RunManifest.model_validate_json(settings.read_bytes())
    except ValidationError as error:
        raise RunError(
            f"{settings}: not the settings of a run: {describe_validation_error(error)}. Restore "
            "the file, or choose another `out`"
        ) from error


def _mismatch(log: Path, differences: Mapping[str, tuple[object, object]]) -> str:
    """Name every setting that differs, with both values."""
    named = "; ".join(
        f"{name} is {shown(old)} there and {shown(new)} now"
        for name, (old, new) in differences.items()
    )
    return (
        f"{log} belongs to a run with other settings: {named}. Use the same settings to continue "
        "it, or choose another `out`"
    )
