"""A written folder to the hub, by way of `huggingface_hub` and after a look at what would go."""

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
    """One file that goes to the hub."""

    path: str
    """Its path in the repository."""

    n_bytes: int
    """Its size."""

    sha256: str
    """Its checksum."""

    n_rows: int | None
    """Its rows; None if it is not a file of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishPlan:
    """What is uploaded, or would be."""

    folder: Path
    """The folder that is uploaded."""

    repo_id: str | None
    """The repository, `owner/name`; None if none was named."""

    uploads: tuple[Upload, ...]
    """The files, by path."""

    replaced: tuple[str, ...]
    """Patterns of files in the repository that go unless they are uploaded again: shards of an
    earlier version would otherwise be read with the new ones."""

    is_done: bool
    """Whether they were uploaded; False for a dry run."""

    url: str | None
    """Address of the commit, as the hub gives it; None for a dry run."""

    @property
    def total_bytes(self) -> int:
        """Size of all files."""
        return sum(upload.n_bytes for upload in self.uploads)

    def lines(self) -> Iterator[str]:
        """Lay the plan out for people.

        Yields:
            One line per file: checksum, size, path and rows; then one line with the destination.
        """
        for upload in self.uploads:
            rows = "" if upload.n_rows is None else f"  {upload.n_rows:,} rows"
            yield f"{upload.sha256}  {upload.n_bytes:>14,}  {upload.path}{rows}"
        total = f"{len(self.uploads)} files, {self.total_bytes:,} bytes"
        target = self.url or self.repo_id or "a repository that `push_to` names"
        yield f"{'uploaded' if self.is_done else 'a push would upload'} {total} to {target}"


def publish_folder(
    folder: str | os.PathLike[str],
    repo_id: str | None,
    *,
    dry_run: bool = True,
    api: "HfApi | None" = None,
) -> PublishPlan:
    """Upload a folder that `write_folder` wrote, or show what would be uploaded.

    A dry run reads the folder and touches no network. Only the card, the data files that it names
    and the build's records go; other files of the folder stay behind. Credentials are those of
    `huggingface_hub` (`hf auth login`, or its environment variable); none is taken here.

    Args:
        folder: The folder; its card must name its data files.
        repo_id: The data set repository, `owner/name`, which is created as a private one if it
            does not exist; None lists what any push would upload. `check_push` checks it.
        dry_run: Whether to show only.
        api: What talks to the hub; `huggingface_hub.HfApi()` when None.

    Returns:
        The files with sizes and checksums, and whether they were uploaded.

    Raises:
        SourceNotFoundError: If the folder or its card is not there.
        DataError: If the card names data files that are not there, or leaves Parquet files out.
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
    """Refuse an upload that cannot succeed, before hours go into its data.

    Args:
        repo_id: The repository.
        dry_run: Whether the uploads are listed only, which needs no token.

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
    """List the files to upload, sorted; hidden ones stay."""
    if not place.is_dir():
        raise SourceNotFoundError(f"no folder {place}; write it with write_folder first")
    if not (place / _CARD).is_file():
        raise SourceNotFoundError(f"{place} has no {_CARD}; write it with write_folder first")
    names = (path.relative_to(place) for path in place.rglob("*") if path.is_file())
    return sorted(
        name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)
    )


def _data_patterns(card: Path) -> list[str]:
    """Read which data files a card names."""
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
    """Refuse a card whose files are not there, and data that no configuration would load."""
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise DataError(f"{place}: the card names {pattern}, and no file is called so")
    left = [
        name
        for name in names
        if name.endswith(".parquet")
        and not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]
    if left:
        raise DataError(
            f"{place}: the card names no data files that match {', '.join(left)}; "
            "remove them or write the folder again"
        )


def _is_written(name: str, patterns: Sequence[str], subsets: Collection[str]) -> bool:
    """Tell whether `write_folder` writes a file of this name beside such a card."""
    records = {
        f"metadata/{subset}/{record}" for subset in subsets for record in BUILD_METADATA_FILES
    }
    return name in {_CARD, CATEGORY_TYPES_PATH, *records} or any(
        fnmatch.fnmatchcase(name, pattern) for pattern in patterns
    )
