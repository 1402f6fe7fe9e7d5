"""The examples of the documentation return the values in their comments."""

import ast
import builtins
import doctest
import io
import re
import tokenize
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs" / "ideas"
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\s*(-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?)\s*(?:,|$|[^\w%/,])")
LIBRARIES = {"numpy", "surface_consistency"}


def outside_names(tree):
    """Return the names that a block uses but does not define: data of the reader, libraries."""
    loaded, bound, libraries = set(), set(dir(builtins)), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (loaded if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            modules = names if isinstance(node, ast.Import) else [node.module]
            libraries |= {module.split(".")[0] for module in modules}
            bound |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    return (loaded - bound) | (libraries - LIBRARIES)


def blocks():
    """Yield page, line and text of each self-contained block of Python."""
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for found in FENCE.finditer(text):
            line = text.count("\n", 0, found.start()) + 2
            if not outside_names(ast.parse(found.group(1))):
                yield f"{page.name}:{line}", found.group(1)


def printed_numbers(comment):
    """Return the printed numbers at the beginning of a comment."""
    numbers, rest = [], comment
    while found := NUMBER.match(rest):
        numbers.append(found.group(1).replace(",", ""))
        if not found.group(0).rstrip().endswith(","):
            break
        rest = rest[found.end() :]
    return numbers


def values_of(result):
    """Return a number, or the numbers of a tuple or list; an empty list for other results."""
    values = result if isinstance(result, tuple | list) else [result]
    return values if all(isinstance(value, int | float) for value in values) else []


def checked_lines(source, place="<docs>"):
    """Run a block, and return the number of lines with the numbers of their comments."""
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    names, n_checked = {}, 0
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Expr):
            exec(compile(ast.Module([node], []), "<docs>", "exec"), names)
            continue
        values = values_of(eval(compile(ast.Expression(node.value), "<docs>", "eval"), names))
        printed = printed_numbers(comments.get(node.end_lineno, ""))
        if not values or len(printed) < len(values):
            continue
        for value, text in zip(values, printed, strict=False):
            decimals = len(text.partition(".")[2]) if "e" not in text else 12
            # Half a unit of the last printed decimal, with a tolerance for rounding.
            assert value == pytest.approx(float(text), abs=0.5001 * 10.0**-decimals), (
                f"{place}, line {node.lineno}: {ast.unparse(node)} is {value}, printed as {text}"
            )
        n_checked += 1
    return n_checked


def test_examples_of_the_docs_return_the_numbers_in_their_comments():
    """Self-contained blocks run, and numbers in trailing comments are their values."""
    n_checked = [checked_lines(source, place) for place, source in blocks()]

    assert len(n_checked) >= 8
    assert sum(n_checked) >= 20


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_blocks_of_the_first_page_run_and_print_the_documented_output(page):
    text = (DOCS.parents[1] / page).read_text("utf-8")
    names, printed = {"my_model": lambda question: "singer"}, []
    for node in ast.parse("".join(FENCE.findall(text))).body:
        if isinstance(node, ast.Expr):
            value = eval(compile(ast.Expression(node.value), f"<{page}>", "eval"), names)
            printed += repr(value).splitlines()
        else:
            exec(compile(ast.Module([node], []), f"<{page}>", "exec"), names)

    documented = re.findall(
        r"^(?:# )?(The .+ clusters\)\.|Standard .+|\[consistency: .+\])$", text, re.M
    )
    assert len(documented) == 4
    assert printed[:4] == documented


def test_incorrect_numbers_in_comments_are_detected():
    assert checked_lines("1 + 1  # 2\n(0.25, 3)  # 0.2, 3: rounded to even\n") == 2
    assert checked_lines("1 + 1  # two\nlen('abc')  # 3 letters\n") == 1
    with pytest.raises(AssertionError, match=r"<docs>, line 2: x \* 2 is 6, printed as 5"):
        checked_lines("x = 3\nx * 2  # 5\n")
    with pytest.raises(AssertionError, match=r"is -0.24, printed as -0.212"):
        checked_lines("-0.24  # -0.212 = -127 / 599\n")


def test_tutorial_prints_its_documented_output():
    page = DOCS.parent / "guides" / "tutorial.md"

    result = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )

    assert result.failed == 0
    assert result.attempted > 15


def test_figures_exist_and_are_small():
    docs = DOCS.parent
    figures = [
        (page.parent / found)
        for page in [*docs.rglob("*.md"), docs.parent / "README.md"]
        for found in re.findall(r"!\[[^\]]*\]\(([^)]+\.png)\)", page.read_text(encoding="utf-8"))
    ]

    assert len(figures) > 7
    for figure in figures:
        assert figure.stat().st_size < 150_000, figure
    for page in (docs / "gallery").glob("*.html"):
        assert page.stat().st_size < 1_000_000
        assert "/tmp/" not in page.read_text(encoding="utf-8")
