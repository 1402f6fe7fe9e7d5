"""Revisions of a local model, in the layout of the hub's cache or in folders of checkpoints.

References:
    huggingface_hub, "Understand caching": `refs/<revision>` contains a commit,
    `snapshots/<commit>/` links to `blobs/<hash>`.
"""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from surface_consistency.errors import RunnerError, SourceNotFoundError
from surface_consistency.reading import first_names

_KINDS: Final = (".safetensors", ".bin", ".pt", ".gguf", ".msgpack", ".h5")
"""Suffixes of weights, in the order in which transformers prefers them."""
_OTHERS: Final = re.compile(r"(training_args|optimizer|scheduler|rng_state).*")
_HEAD_LENGTH: Final = 8
_LONGEST_HEAD: Final = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One local revision of a model."""

    path: Path
    """The folder of its files."""

    label: str
    """Name for errors and fingerprints."""

    commit: str | None
    """Commit of the hub repository; None for a folder of checkpoints."""


def is_hub_cache(folder: Path) -> bool:
    """Return whether a folder is a repository in the layout of the hub's cache.

    Args:
        folder: The folder.

    Returns:
        True if it contains snapshots and is not itself a model.
    """
    return (folder / "snapshots").is_dir() and not (folder / "config.json").is_file()


def find_snapshot(folder: Path, revision: str | None) -> Snapshot:
    """Find a revision of a local folder.

    Args:
        folder: A repository in the hub's cache layout, whose revisions are branches, tags and
            commits; or a folder of checkpoints, whose revisions are its subfolders.
        revision: The revision; None for the main branch of a repository.

    Returns:
        The location of its files.

    Raises:
        SourceNotFoundError: If the revision does not exist; the message names the available ones.
        RunnerError: If the folder is a model itself, which has no revisions.
    """
    if not is_hub_cache(folder):
        checkpoint = folder / (revision or "")
        if revision and checkpoint.is_dir() and (checkpoint / "config.json").is_file():
            return Snapshot(
                path=checkpoint, label=f"{folder.resolve().name}/{revision}", commit=None
            )
        known = sorted(path.parent.name for path in folder.glob("*/config.json"))
        if not known:
            raise RunnerError(
                f"{folder} is a model folder, which has no revisions; omit `revision`, or name a "
                "hub id"
            )
        raise SourceNotFoundError(
            f"{folder} contains no checkpoint {revision!r}; available: {first_names(known)}"
        )
    name = revision or "main"
    ref = folder / "refs" / name
    commits = sorted(path.name for path in (folder / "snapshots").iterdir() if path.is_dir())
    if ref.is_file():
        commit = ref.read_text(encoding="utf-8").strip()
    else:
        is_short = re.fullmatch("[0-9a-f]{7,}", name) is not None
        alike = [one for one in commits if is_short and one.startswith(name)]
        commit = alike[0] if len(alike) == 1 else name
    label = folder.name.removeprefix("models--").replace("--", "/")
    if commit not in commits:
        refs = folder / "refs"
        known = sorted(
            path.relative_to(refs).as_posix() for path in refs.rglob("*") if path.is_file()
        )
        raise SourceNotFoundError(
            f"{label} has no revision {name!r} in {folder}; available: "
            f"{first_names([*known, *commits]) or 'none'}; download it with "
            f"`hf download {label} --revision {name}`"
        )
    return Snapshot(path=folder / "snapshots" / commit, label=label, commit=commit)


def weight_files(folder: Path) -> dict[str, Path]:
    """List the weight files that would be loaded.

    Args:
        folder: Folder of a model.

    Returns:
        Files by their path in the folder, of the type that transformers prefers; broken links are
        included.
    """
    by_kind: dict[str, dict[str, Path]] = {kind: {} for kind in _KINDS}
    for root, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(root) / name
            if path.suffix in by_kind and not _OTHERS.match(name):
                by_kind[path.suffix][path.relative_to(folder).as_posix()] = path
    return next((files for files in by_kind.values() if files), {})


def check_complete(folder: Path, label: str) -> None:
    """Raise an error for a model whose download is incomplete.

    Args:
        folder: Folder of a model.
        label: Its name, for the message.

    Raises:
        SourceNotFoundError: If weight files are truncated, or some or all are missing; the message
            contains the remedy.
    """
    files = weight_files(folder)
    wanted = set(files)
    kinds = tuple({path.suffix for path in files.values()} or _KINDS)
    for path in folder.glob("*.index.json"):
        if path.name.removesuffix(".index.json").endswith(kinds):
            try:
                shards = json.loads(path.read_bytes())["weight_map"].values()
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise SourceNotFoundError(
                    f"{label}: {path} cannot be read as the index of its weights; download it again"
                ) from error
            wanted |= set(shards)
    missing = sorted(name for name in wanted if not (folder / name).exists())
    cut = [name for name, path in files.items() if name not in missing and _is_truncated(path)]
    if not (missing or cut) and wanted:
        return
    extent = f"{len(missing) or len(cut)} of {len(wanted)} files" if wanted else "the files"
    example = f", such as {(missing or cut)[0]}" if missing or cut else ""
    state = "truncated" if cut and not missing else "missing"
    in_cache = folder.parent.name == "snapshots"
    remedy = (
        f"resume with `hf download {label}` and the same --revision"
        if in_cache
        else "save, copy or download them again"
    )
    raise SourceNotFoundError(
        f"{label} is incomplete: {extent} of its weights are {state} in {folder}{example}; {remedy}"
    )


def _is_truncated(path: Path) -> bool:
    """Return whether a safetensors file ends before the last weights that its header lists."""
    if path.suffix != ".safetensors":
        return False
    size = path.stat().st_size
    with path.open("rb") as content:
        start = content.read(_HEAD_LENGTH)
        length = int.from_bytes(start, "little")
        if len(start) < _HEAD_LENGTH or length > _LONGEST_HEAD:
            return False
        try:
            head = json.loads(content.read(length))
            ends = [tensor["data_offsets"][1] for name, tensor in head.items() if name[:2] != "__"]
            return bool(size < _HEAD_LENGTH + length + max(ends, default=0))
        except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError):
            # Invalid headers raise a specific error on loading.
            return size < _HEAD_LENGTH + length
