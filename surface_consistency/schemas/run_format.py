"""Version of the run folder format, which is written to and checked in each manifest."""

from typing import Final

RUN_FORMAT: Final = 4
"""Version of the run folders that are written and read."""


def check_run_format(version: object) -> None:
    """Raise an error for a run folder of another version.

    Args:
        version: `schema_version` of its manifest; None is treated as the current version.

    Raises:
        ValueError: If the version differs; the message contains both versions and the remedy.

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
