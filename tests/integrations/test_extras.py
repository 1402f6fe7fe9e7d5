"""Tools of another version, or not installed, are refused."""

import importlib.metadata

import pytest

from surface_consistency.errors import MissingDependencyError
from surface_consistency.integrations import extras


@pytest.mark.parametrize(
    ("tool", "installed", "error", "message"),
    [
        ("transformers", "4.56.0", MissingDependencyError, r"<6,>=4\.57, and 4\.56\.0 is install"),
        ("torch", "2.5.0", MissingDependencyError, r"torch >=2\.6, and 2\.5\.0 is installed"),
        ("torch", None, MissingDependencyError, r"Task needs torch.*surface-consistency\[infer"),
    ],
)
def test_tools_of_another_version_are_refused(monkeypatch, tool, installed, error, message):
    def version(name):
        if installed is None:
            raise extras.PackageNotFoundError(name)
        return installed

    monkeypatch.setattr(extras, "version", version)

    with pytest.raises(error, match=message):
        extras.check_tool("Task", tool, "inference")


def test_source_tree_that_is_not_installed_has_no_bounds(monkeypatch):
    def requires(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(extras, "requires", requires)
    monkeypatch.setattr(extras, "version", lambda name: "0.1")

    extras.check_tool("Task", "torch", "inference")
