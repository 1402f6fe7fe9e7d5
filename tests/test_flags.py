"""Messages of the library contain arguments and fields; only the command line uses flags."""

import ast
import re
from pathlib import Path

import pytest

import surface_consistency

ROOT = Path(surface_consistency.__file__).parent
MODULES = [path for path in sorted(ROOT.rglob("*.py")) if path.parent.name != "cli"]
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")
OTHERS = re.compile(
    r"`(?:hf|lm_eval|count|surface-consistency|run|score) [^`]*`?|count ngrams --data|--setting\b"
    r"|--(?:include_path|metadata|log_samples|write_out|revision|help|permutations)\b|^--cluster-column$"
)
"""Commands that a message quotes, and options of other programs."""


def texts(module):
    """Return the strings of a module, without docstrings of modules, classes and functions."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_messages_of_the_library_do_not_contain_flags(module):
    found = [
        f"{module.name}:{line}: {text}"
        for line, text in texts(module)
        if FLAG.search(OTHERS.sub("", " ".join(text.split())))
    ]

    assert found == []
