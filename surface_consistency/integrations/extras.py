"""Checks that a tool that an integration needs is installed in a supported version."""

from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from surface_consistency.errors import MissingDependencyError

_PACKAGE: Final = "surface-consistency"


def check_tool(feature: str, tool: str, extra: str) -> None:
    """Check that a tool is installed in a version that this package's extra allows.

    Args:
        feature: Name of the feature that needs the tool, for the message.
        tool: Name of the distribution, such as "lm-eval".
        extra: The extra that installs it; its version bounds are checked.

    Raises:
        MissingDependencyError: If it is not installed.
        MissingDependencyError: If its version is outside the bounds; the message contains both.
    """
    try:
        installed = version(tool)
    except PackageNotFoundError:
        raise MissingDependencyError(feature, tool, extra) from None
    try:
        bounds = requires(_PACKAGE) or ()
    except PackageNotFoundError:
        # A source tree that is not installed has no metadata.
        bounds = ()
    for line in bounds:
        needed = Requirement(line)
        is_tool = canonicalize_name(needed.name) == tool
        if not is_tool or needed.marker is None or not needed.marker.evaluate({"extra": extra}):
            continue
        if not needed.specifier.contains(installed, prereleases=True):
            raise MissingDependencyError(
                feature, needed.name, installed=installed, allowed=str(needed.specifier)
            )
