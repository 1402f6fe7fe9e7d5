"""Data repositories of the Hugging Face hub, as folders on this machine."""

import re
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from surface_consistency.data.readers import FORMATS
from surface_consistency.errors import SourceNotFoundError

__all__ = ["Snapshot", "fetch_repository", "is_hub_id"]

_HUB_ID: Final = re.compile(r"[\w][\w.-]*(/[\w][\w.-]*)?")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_OFFLINE_REMEDY: Final = (
    "check the connection and HF_HUB_OFFLINE, or download the repository elsewhere "
    "(`hf download {id} --repo-type dataset --local-dir FOLDER`) and pass that folder"
)
_LOGIN_REMEDY: Final = "log in with `hf auth login` or set HF_TOKEN"


class Snapshot(NamedTuple):
    """A repository at one commit, in the hub's cache."""

    folder: Path
    """Its files."""

    revision: str | None
    """Commit; None when the cache does not tell."""


def is_hub_id(text: str) -> bool:
    """Tell whether a source that is no local path could be a hub repository.

    Args:
        text: What the user passed, such as "naist-nlp/RedirectQA".

    Returns:
        Whether it has the form `owner/name` or `name` and no suffix of a data file.

    Examples:
        >>> is_hub_id("naist-nlp/RedirectQA"), is_hub_id("./rows"), is_hub_id("data/rows.jsonl")
        (True, False, False)
    """
    return bool(_HUB_ID.fullmatch(text)) and not text.lower().endswith(tuple(FORMATS))


def fetch_repository(repository: str, *, revision: str | None = None) -> Snapshot:
    """Download the data files of a repository, or find them in the hub's cache.

    Args:
        repository: Its id.
        revision: Branch, tag or commit; the main branch when None.

    Returns:
        The folder that holds the README, the metadata and the data files, and its commit.

    Raises:
        SourceNotFoundError: If the repository is missing, gated, without that revision, or out of
            reach; the message says what to do.
    """
    from huggingface_hub import snapshot_download

    failures = _hub_errors()
    try:
        folder = snapshot_download(
            repository,
            repo_type="dataset",
            revision=revision,
            allow_patterns=["README.md", *(f"*{suffix}" for suffix in FORMATS)],
        )
    except failures as error:
        _explain(repository, revision, error)
    path = Path(folder)
    return Snapshot(path, path.name if _COMMIT.fullmatch(path.name) else None)


def _hub_errors() -> tuple[type[Exception], ...]:
    """Name what a download can raise; the HTTP library's module differs between hub versions."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    http = [base for base in HfHubHTTPError.__mro__ if base.__name__ == "HTTPError"]
    return (HFValidationError, OSError, *http)


def _explain(repository: str, revision: str | None, error: Exception) -> NoReturn:
    """Turn a failure of the hub into one message with a remedy."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    url = f"https://huggingface.co/datasets/{repository}"
    at = f" at revision {revision!r}" if revision else ""
    local = f"There is no local file or folder {repository!r} either."
    if isinstance(error, GatedRepoError):
        message = f"{url} is gated: accept its conditions on that page, then {_LOGIN_REMEDY}."
    elif isinstance(error, RepositoryNotFoundError):
        message = (
            f"the hub has no data repository {repository!r}, or it is private: check the name; if "
            f"it is private, {_LOGIN_REMEDY}. {local}"
        )
    elif isinstance(error, RevisionNotFoundError):
        message = f"{url} has no revision {revision!r}: its branches and tags stand at {url}/tree."
    elif isinstance(error, HFValidationError):
        message = f"{repository!r} is no repository id of the hub ({error}). {local}"
    elif isinstance(error, LocalEntryNotFoundError):
        message = (
            f"the hub cannot be reached and {repository!r}{at} is not in its cache: "
            f"{_OFFLINE_REMEDY.format(id=repository)}. {local}"
        )
    else:
        message = (
            f"{repository!r}{at} could not be downloaded ({type(error).__name__}: {error}): "
            f"{_OFFLINE_REMEDY.format(id=repository)}."
        )
    raise SourceNotFoundError(message) from error
