"""Where a model lies: a local folder, or one revision of a hub repository."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from surface_consistency.errors import RunnerError, SourceNotFoundError

__all__ = ["ModelSource", "find_model"]

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "tekken.json",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """A model that was found."""

    location: str
    """Folder or hub id, as `from_pretrained` takes it."""

    label: str
    """Name for errors and fingerprints: the folder's name or the hub id."""

    revision: str | None
    """Commit of the hub repository; None for a folder."""

    digest: str | None
    """Digest of the folder's files; None for the hub."""


def find_model(model: str | os.PathLike[str], revision: str | None) -> ModelSource:
    """Find a model before anything is loaded.

    Args:
        model: Folder or hub id.
        revision: Branch, tag or commit of the hub repository; None for its main branch.

    Returns:
        Where it is, pinned to a commit or a digest.

    Raises:
        SourceNotFoundError: If there is no such folder or repository, or it cannot be reached.
        RunnerError: If access must be asked for, or the folder is not a model.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return _local(folder, revision)
    text = os.fspath(model)
    is_path = folder.is_absolute() or text.startswith((".", "~")) or text.count("/") > 1
    if is_path or folder.exists():
        raise SourceNotFoundError(
            f"no model folder {folder}; name a folder with config.json, or a hub id such as "
            "'EleutherAI/pythia-70m'"
        )
    return _remote(text, revision)


def _local(folder: Path, revision: str | None) -> ModelSource:
    """Check a folder for what a model needs."""
    if revision is not None:
        raise RunnerError(
            f"{folder} is a folder, which has no revisions; leave out `revision`, or name a hub id"
        )
    if not (folder / "config.json").is_file():
        raise SourceNotFoundError(
            f"{folder} holds no config.json, so it is not a model folder; save the model there "
            "with save_pretrained()"
        )
    if not any((folder / name).is_file() for name in _TOKENIZER_FILES):
        raise SourceNotFoundError(
            f"{folder} holds a model but no tokenizer (looked for {', '.join(_TOKENIZER_FILES)}); "
            "save the tokenizer there with tokenizer.save_pretrained()"
        )
    return ModelSource(
        location=str(folder), label=folder.resolve().name, revision=None, digest=_digest(folder)
    )


def _remote(repository: str, revision: str | None) -> ModelSource:
    """Fetch the configuration from the hub, or say in one line what to do."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    at = f" at revision {revision!r}" if revision else ""
    try:
        config = hf_hub_download(repository, "config.json", revision=revision)
    except HFValidationError as error:
        raise SourceNotFoundError(
            f"{repository!r} is neither a folder nor a hub id (owner/name); check the spelling"
        ) from error
    except GatedRepoError as error:
        raise RunnerError(
            f"{repository} is gated: accept its terms at https://huggingface.co/{repository}, then "
            "log in with `hf auth login` or set HF_TOKEN"
        ) from error
    except RevisionNotFoundError as error:
        raise SourceNotFoundError(
            f"{repository} has no revision {revision!r}; see "
            f"https://huggingface.co/{repository}/branches"
        ) from error
    except RepositoryNotFoundError as error:
        raise SourceNotFoundError(
            f"no model {repository} on the hub, or it is private: check the spelling, or log in "
            "with `hf auth login` or set HF_TOKEN"
        ) from error
    except LocalEntryNotFoundError as error:
        raise SourceNotFoundError(
            f"{repository}{at} is not in the local cache and the hub cannot be reached; connect "
            "(and unset HF_HUB_OFFLINE), or name a local folder"
        ) from error
    except EntryNotFoundError as error:
        raise SourceNotFoundError(
            f"{repository}{at} holds no config.json, so transformers cannot load it; name the "
            "repository of the original weights"
        ) from error
    except HfHubHTTPError as error:
        raise RunnerError(f"{repository}{at}: the hub refused the request: {error}") from error
    commit = Path(config).parent.name
    return ModelSource(location=repository, label=repository, revision=commit, digest=None)


def _digest(folder: Path) -> str:
    """Digest the names and the whole content of the files: one other byte, another digest."""
    digest = hashlib.sha256()
    for file in sorted(item for item in folder.rglob("*") if item.is_file()):
        with file.open("rb") as content:
            of_file = hashlib.file_digest(content, "sha256").hexdigest()
        digest.update(f"{file.relative_to(folder).as_posix()}\0{of_file}\0".encode())
    return digest.hexdigest()[:16]
