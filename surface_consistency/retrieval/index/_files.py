"""An index on disk: a folder with `vectors.npy` and `meta.json`, whole or not there."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from surface_consistency.errors import RetrievalError

__all__ = ["IndexMeta", "read_index", "write_index"]

_FILES = _VECTORS, _META = "vectors.npy", "meta.json"
_TRIES = 3


class IndexMeta(BaseModel):
    """What `meta.json` holds."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    identity: str
    """What the vectors were made of."""
    n_keys: int
    """Number of vectors."""
    dimension: int
    """Length of each."""
    vectors_sha256: str
    """Digest of `vectors.npy`, all bytes of it."""


def write_index(
    folder: Path, blocks: Iterable[npt.NDArray[np.float32]], *, identity: str, n_keys: int
) -> None:
    """Write an index beside its place, then move it there as one.

    Raises:
        RetrievalError: If the folder cannot be written, or holds something else.
    """
    _check_place(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name[:16]}-", dir=folder.parent))
        try:
            digest, dimension = _write_vectors(draft / _VECTORS, blocks, n_keys)
            meta = IndexMeta(
                identity=identity, n_keys=n_keys, dimension=dimension, vectors_sha256=digest
            )
            _write_whole(draft / _META, meta.model_dump_json(indent=2).encode())
            draft.chmod(0o755)
            _publish(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise RetrievalError(
            f"{folder}: the index cannot be written ({error.strerror or error}); free disk space "
            "or choose another folder"
        ) from error


def read_index(folder: Path, *, verify: bool) -> tuple[npt.NDArray[np.float32], IndexMeta]:
    """Map the vectors of an index, after a look at whether they are whole.

    Raises:
        RetrievalError: If a file is missing, torn or changed; says which and how.
    """
    remedy = "delete the folder and build the index again"
    try:
        meta = IndexMeta.model_validate_json((folder / _META).read_bytes())
        mapped = np.load(folder / _VECTORS, mmap_mode="r", allow_pickle=False)
        digest = _digest(folder / _VECTORS) if verify else meta.vectors_sha256
    except ValidationError as error:
        raise RetrievalError(f"{folder / _META}: torn or of another kind; {remedy}") from error
    except (OSError, ValueError, EOFError) as error:
        raise RetrievalError(f"{folder}: no whole index ({error}); {remedy}") from error
    vectors: npt.NDArray[np.float32] = np.asarray(mapped)
    if vectors.dtype != np.float32 or vectors.shape != (meta.n_keys, meta.dimension):
        raise RetrievalError(
            f"{folder / _VECTORS}: holds {vectors.shape} of {vectors.dtype}, but its meta.json "
            f"says ({meta.n_keys}, {meta.dimension}) of float32; {remedy}"
        )
    if digest != meta.vectors_sha256:
        raise RetrievalError(
            f"{folder / _VECTORS}: its bytes are not those that were written; {remedy}"
        )
    return vectors, meta


def _write_vectors(
    path: Path, blocks: Iterable[npt.NDArray[np.float32]], n_keys: int
) -> tuple[str, int]:
    """Write the blocks as one array; return digest and dimension."""
    digest, dimension, n_written = hashlib.sha256(), 0, 0
    with path.open("w+b") as file:
        for block in blocks:
            if not n_written:
                dimension = block.shape[1]
                shape = (n_keys, dimension)
                header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                file.seek(0)
                digest.update(file.read())
            data = np.ascontiguousarray(block, dtype="<f4")
            file.write(data.data)
            digest.update(data.data)
            n_written += len(data)
        file.flush()
        os.fsync(file.fileno())
    if n_written != n_keys:
        raise ValueError(f"an index of {n_keys} keys got {n_written} vectors")
    return digest.hexdigest(), dimension


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file and force it to the disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _check_place(folder: Path) -> None:
    """Refuse a place where something else than an index would be lost."""
    if folder.is_dir():
        others = sorted(path.name for path in folder.iterdir() if path.name not in _FILES)
    else:
        others = [folder.name] if folder.exists() else []
    if others:
        raise RetrievalError(
            f"{folder}: holds {others[0]}, which is no part of an index, and is left as it is; "
            "choose a folder of its own for the index"
        )


def _publish(draft: Path, folder: Path) -> None:
    """Move a finished index to its place; what stands there is moved away first."""
    for _ in range(_TRIES):
        with suppress(OSError):
            draft.rename(folder)
            return
        _check_place(folder)
        old = Path(tempfile.mkdtemp(prefix=".old-", dir=folder.parent))
        with suppress(FileNotFoundError):
            folder.rename(old / folder.name)
        shutil.rmtree(old, ignore_errors=True)
    draft.rename(folder)


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
