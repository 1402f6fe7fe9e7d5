import dataclasses
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

from surface_consistency import metrics

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(metrics.__path__, f"{metrics.__name__}.")
    if not module.ispkg
)


PAGES = Path(__file__).parents[2] / "docs" / "reference" / "metrics"
TEXTS = [page.read_text(encoding="utf-8") for page in PAGES.glob("*.md")]
NAMES = {*metrics.__all__, *re.findall(r"(?m)^ +- (\w+)$", "\n".join(TEXTS))}
PUBLIC = [
    value
    for module in map(importlib.import_module, MODULES)
    if "._" not in module.__name__
    for name, value in vars(module).items()
    if name in NAMES and getattr(value, "__module__", None) == module.__name__
    if isinstance(value, type) or inspect.isfunction(value)
]


def test_exports_are_at_most_eighty():
    assert len(metrics.__all__) <= 80


@pytest.mark.parametrize("member", PUBLIC, ids=lambda member: member.__name__)
def test_public_functions_and_classes_are_documented(member):
    """Every public function documents arguments, result, errors and references, with an example."""
    text = member.__doc__
    if member.__name__.endswith("Result"):
        source = inspect.getsource(member)
        assert text
        assert source.count('"""') >= 2 * (1 + len(dataclasses.fields(member)))
        return

    sections = ["Args:", "Raises:", "References:", "Examples:"]
    if not isinstance(member, type):
        sections += ["Returns:", "Notes:"]
    assert [section for section in sections if section not in text] == []
