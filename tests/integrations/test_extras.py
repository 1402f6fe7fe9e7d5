"""Version checks of the supported tools."""

import pytest

from surface_consistency.errors import MissingDependencyError
from surface_consistency.integrations import extras
from surface_consistency.integrations.harness import lm_eval_path


@pytest.mark.parametrize(
    ("tool", "installed", "message"),
    [
        ("transformers", "4.56.0", r"<6,>=4\.57, and 4\.56\.0 is installed"),
        ("torch", "2.5.0", r"torch >=2\.6, and 2\.5\.0 is installed"),
        ("torch", None, r"Task needs torch.*surface-consistency\[inference"),
        ("lm-eval", "0.4.9", r"lm-eval <0\.5,>=0\.4\.12, and 0\.4\.9 is installed"),
        ("lm-eval", "0.5.1", r"lm-eval <0\.5,>=0\.4\.12, and 0\.5\.1 is installed"),
        ("lm-eval", None, r"surface-consistency\[lm-eval\]"),
    ],
)
def test_missing_tools_and_unsupported_versions_are_rejected(monkeypatch, tool, installed, message):
    def absent(name):
        raise extras.PackageNotFoundError(name)

    monkeypatch.setattr(extras, "version", lambda name: installed or absent(name))

    with pytest.raises(MissingDependencyError, match=message):
        lm_eval_path() if tool == "lm-eval" else extras.check_tool("Task", tool, "inference")

    # A source tree that is not installed has no version bounds.
    monkeypatch.setattr(extras, "requires", absent)
    monkeypatch.setattr(extras, "version", lambda name: "0.1")
    assert extras.check_tool("Task", "torch", "inference") is None
