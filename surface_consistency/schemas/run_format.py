"""Version of the run folder, which the program writes and the reader of results checks."""

from typing import Final

RUN_FORMAT: Final = 4
"""Version of the run folders that are written and read."""


def check_run_format(version: object) -> None:
    """Refuse a run folder of another version.

    Args:
        version: `schema_version` of its manifest; None is taken for the present version.

    Raises:
        ValueError: If the version is another one; names both versions and the remedy.

    Examples:
        >>> check_run_format(RUN_FORMAT)
    """
    if version in (None, RUN_FORMAT):
        return
    is_newer = isinstance(version, int) and version > RUN_FORMAT
    raise ValueError(
        f"the run was written by {'a newer' if is_newer else 'an earlier'} version of this "
        f"package (manifest version {version}, this package reads {RUN_FORMAT}); "
        + ("update surface-consistency" if is_newer else "run again into another `out`")
    )
