"""Upload a written folder to the hub with `huggingface_hub`, or list the files of an upload."""

import fnmatch
import glob
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from surface_consistency.data.redirectqa_release import CATEGORY_TYPES_PATH
from surface_consistency.data.sources import is_hub_id
from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency_build.cards.build_records import file_digest
from surface_consistency_build.cards.dataset_folder import BUILD_METADATA_FILES

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_CARD: Final = "README.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """One file of an upload."""

    path: str
    """Its path in the repository."""

    n_bytes: int
    """Its size in bytes."""

    sha256: str
    """Its SHA-256."""

    n_rows: int | None
    """Number of its rows; None if it is not a file of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishPlan:
    """The files of an upload or of a dry run."""

    folder: Path
    """The folder that is uploaded."""

    repo_id: str | None
    """The repository, `owner/name`; None if it is not given."""

    uploads: tuple[Upload, ...]
    """The files, by path."""

    replaced: tuple[str, ...]
    """Patterns of files in the repository that are deleted unless they are uploaded again: shards
    of an earlier version would otherwise be read with the new ones."""

    is_done: bool
    """Whether they were uploaded; False for a dry run."""

    url: str | None
    """URL of the commit; None for a dry run."""

    @property
    def total_bytes(self) -> int:
        """Size of all files."""
        return sum(upload.n_bytes for upload in self.uploads)

    def lines(self) -> Iterator[str]:
        """Yield the plan as lines of text.

        Yields:
            One line per file: checksum, size, path and rows; then one line with the destination.
        """
        for upload in self.uploads:
            rows = "" if upload.n_rows is None else f"  {upload.n_rows:,} rows"
            yield f"{upload.sha256}  {upload.n_bytes:>14,}  {upload.path}{rows}"
        total = f"{len(self.uploads)} files, {self.total_bytes:,} bytes"
        target = self.url or self.repo_id or "the repository of `push_to`"
        yield f"{'uploaded' if self.is_done else 'a push would upload'} {total} to {target}"


def publish_folder(
    folder: str | os.PathLike[str],
    repo_id: str | None,
    *,
    dry_run: bool = True,
    api: "HfApi | None" = None,
) -> PublishPlan:
    """Upload a folder written by `write_folder`, or list the files of the upload.

    A dry run reads the folder and does not access the network. Only the card, the data files that
    it names and the build's records are uploaded. Credentials are those of `huggingface_hub` (`hf
    auth login`, or its environment variable).

    Args:
        folder: The folder; its card must name its data files.
        repo_id: The data set repository, `owner/name`, which is created as a private repository if
            it does not exist; None lists the files of any upload. `check_push` checks it.
        dry_run: Whether to list the files without uploading.
        api: Client of the hub; None for `huggingface_hub.HfApi()`.

    Returns:
        The files with sizes and checksums, and whether they were uploaded.

    Raises:
        SourceNotFoundError: If the folder or its card does not exist.
        DataError: If data files of the card do not exist, or Parquet files are not in the card.
    """
    place = Path(folder)
    import pyarrow.parquet as pq

    names = _list_files(place)
    patterns = _data_patterns(place / _CARD)
    _check_data_files(place, names, patterns)
    folders = {Path(pattern).parent.as_posix() for pattern in patterns}
    names = [name for name in names if _is_written(name, patterns, folders)]
    uploads = tuple(
        Upload(
            path=name,
            n_bytes=(place / name).stat().st_size,
            sha256=file_digest(place / name, "sha256"),
            n_rows=pq.read_metadata(place / name).num_rows if name.endswith(".parquet") else None,
        )
        for name in names
    )
    replaced = tuple(f"{name}/*.parquet" for name in sorted(folders))
    url = None
    if repo_id is not None and not dry_run:
        if api is None:
            import huggingface_hub

            api = huggingface_hub.HfApi()
        api.create_repo(repo_id, repo_type="dataset", private=True, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repo_id,
            folder_path=os.fspath(place),
            repo_type="dataset",
            commit_message="Upload data set",
            allow_patterns=[glob.escape(name) for name in names],
            delete_patterns=list(replaced),
        )
        url = getattr(commit, "commit_url", None)
    return PublishPlan(
        folder=place,
        repo_id=repo_id,
        uploads=uploads,
        replaced=replaced,
        is_done=repo_id is not None and not dry_run,
        url=url if isinstance(url, str) else None,
    )


def check_push(repo_id: str, *, dry_run: bool) -> None:
    """Check that an upload can succeed, before the data set is built.

    Args:
        repo_id: The repository.
        dry_run: Whether uploads are only listed, which does not need a token.

    Raises:
        ValueError: If `repo_id` is not `owner/name`.
        DataError: If a token is missing.
    """
    from huggingface_hub import get_token

    if "/" not in repo_id or not is_hub_id(repo_id):
        raise ValueError(f"repo_id must be owner/name as on the hub, got {repo_id!r}")
    if not dry_run and get_token() is None:
        raise DataError(
            f"cannot upload to {repo_id} without a token of the hub; log in with `hf auth login`, "
            "set HF_TOKEN, or list the uploads with dry_run=True"
        )


def _list_files(place: Path) -> list[str]:
    """List the files to upload, sorted, without hidden files."""
    if not place.is_dir():
        raise SourceNotFoundError(f"folder {place} not found; write it with write_folder first")
    if not (place / _CARD).is_file():
        raise SourceNotFoundError(f"{place} has no {_CARD}; write it with write_folder first")
    names = (path.relative_to(place) for path in place.rglob("*") if path.is_file())
    return sorted(
        name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)
    )


def _data_patterns(card: Path) -> list[str]:
    """Read the patterns of data files from a card."""
    from huggingface_hub import DatasetCard

    configs: Any = DatasetCard.load(card).data.to_dict().get("configs")
    patterns = [
        entry["path"]
        for config in configs or ()
        if isinstance(config, Mapping)
        for entry in config.get("data_files", ())
        if isinstance(entry, Mapping) and isinstance(entry.get("path"), str)
    ]
    if not patterns:
        raise DataError(f"{card} names no data files under configs; write it with write_folder")
    return patterns


def _check_data_files(place: Path, names: Sequence[str], patterns: Sequence[str]) -> None:
    """Check that the files of a card exist, and that all data files belong to a configuration."""
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise DataError(f"{place}: the card names {pattern}, which does not match a file")
    left = [
        name
        for name in names
        if name.endswith(".parquet")
        and not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]
    if left:
        raise DataError(
            f"{place}: the card does not name {', '.join(left)}; "
            "remove them or write the folder again"
        )


def _is_written(name: str, patterns: Sequence[str], subsets: Collection[str]) -> bool:
    """Check whether `write_folder` writes a file of this name with such a card."""
    records = {
        f"metadata/{subset}/{record}" for subset in subsets for record in BUILD_METADATA_FILES
    }
    return name in {_CARD, CATEGORY_TYPES_PATH, *records} or any(
        fnmatch.fnmatchcase(name, pattern) for pattern in patterns
    )
