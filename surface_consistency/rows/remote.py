"""Local copies of result files at a URL that fsspec opens."""

import os
import re
import tempfile
from pathlib import Path, PurePosixPath
from typing import Final

from surface_consistency.errors import DataError, SourceNotFoundError

_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/+(?P<rest>[^/].*)", re.DOTALL)
_COPIES: Final[list[tempfile.TemporaryDirectory[str]]] = []
_DOWNLOADS: Final = {
    "hf": "`hf download OWNER/NAME FILE --repo-type dataset`",
    "s3": "`aws s3 cp`",
    "gs": "`gcloud storage cp`",
}


def url_of(source: str | os.PathLike[str]) -> str | None:
    """Return the URL if a source is one, not a path.

    Args:
        source: A path or URL from the user; a `Path` of a URL has lost one of its slashes.

    Returns:
        The URL; None for a path.

    Examples:
        >>> url_of(Path("hf://datasets/a/b/c.csv")), url_of("results/a.csv"), url_of("C:/a.csv")
        ('hf://datasets/a/b/c.csv', None, None)
    """
    url = _URL.fullmatch(os.fspath(source))
    return None if url is None else f"{url['scheme']}://{url['rest']}"


def local_copy(url: str) -> Path:
    """Copy a remote file or folder.

    Args:
        url: A URL such as `hf://datasets/OWNER/NAME/FILE`, `s3://BUCKET/KEY` or
            `https://HOST/FILE`.

    Returns:
        The copy, which is deleted when the process ends.

    Raises:
        SourceNotFoundError: If the URL does not exist, access is denied, or it cannot be reached.
        DataError: If fsspec does not know the protocol, or lacks the package for it.
    """
    import fsspec  # type: ignore[import-untyped]

    scheme = url.partition(":")[0]
    download = f"download it ({_DOWNLOADS.get(scheme, 'such as with curl')}) and pass the file"
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise DataError(
            f"cannot open {url}: {str(error).rstrip('.')}; install that package with pip, or "
            f"{download}"
        ) from error
    except ValueError as error:
        raise DataError(f"cannot open {url}: {str(error).rstrip('.')}; {download}") from error
    folder = tempfile.TemporaryDirectory(prefix="surface-consistency-")
    _COPIES.append(folder)
    copy = Path(folder.name) / (PurePosixPath(path).name or scheme)
    try:
        system.get(path, str(copy), recursive=bool(system.isdir(path)))
    except Exception as error:
        # Each file system raises its own errors.
        is_missing = isinstance(error, FileNotFoundError)
        login = (
            "; log in with `hf auth login`, and accept the terms of a gated repository on its page"
        )
        raise SourceNotFoundError(
            f"{url} {'does not exist' if is_missing else 'cannot be read'} "
            f"({type(error).__name__}: {' '.join(str(error).split())[:200]}); check the name and "
            f"your access{login if scheme == 'hf' else ''}, or {download}"
        ) from error
    return copy
