"""Functions that convert single cells, as read from JSON, CSV or Arrow, to values.

Each function takes a parsed cell, and raises ValueError if its content is of another kind. An empty
cell (null, NaN or blank) is None, and is omitted from lists.
"""

import ast
import math
import re
import warnings
from collections.abc import Callable, Collection, ItemsView, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any, Final, TypeGuard, TypeVar

from surface_consistency.errors import RecordError
from surface_consistency.reading import json_or_text, shown
from surface_consistency.rows.readers import Place

T = TypeVar("T")

_HALF: Final = re.compile("[\ud800-\udfff]")
_MOST_DIGITS: Final = 30
_TYPE: Final = (
    r"(?:(?:np|numpy|datetime)\.\w+|array|set|frozenset|bytearray|deque|defaultdict|mappingproxy|"
    r"masked_array|tensor|o?dict_(?:keys|values|items)|OrderedDict|Decimal|Index)"
)
"""Types that `repr` writes as calls of their names."""
_CALL: Final = rf"\s*{_TYPE}\(\s*(?:[\[({{'\"<\d)-]|b['\"]|\w+=)"
"""Start of a value that `repr` may have written as a call."""
_WRITTEN: Final = re.compile(r"\s*(?:[\[({\"']|[bu]['\"])")
"""Start of a list, an object or a text in quotes that was written as text."""
_CUT: Final = re.compile(
    rf"(?:(?={_CALL})[\w.]+\(\s*)?(?:\[[\[({{\s]*[bu]?['\"]|[({{]\s*[bu]?(['\"])[^'\"]*\1\s*[,:])"
)
"""Start of a list or an object of texts, which may be truncated."""
_OPAQUE: Final = re.compile(r" at 0x[\da-f]{6,}>|\n(?:.*, )?dtype: \S+\s*\Z")
"""Text of an object without its content, or of a `Series`."""
_NO_COMMA: Final = re.compile(
    r"""('(?:[^'\\]|\\.)*+(?:'|\\?\Z)|"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\])}\d.]|"""
    r"""(?:True|False|None|nan)\b)"""
    r"""(\s+(?=['"\[{]|-?\.?\d|b['"]|(?:True|False|None|nan)\b|[\w.]+\()|(?=['"]))?""",
    re.DOTALL,
)
"""An item of a list, and white space before the next one, as NumPy writes lists."""
_ACCEPTED: Final = ("text", "value", "answer", "shortanswers", "aliases")
"""Fields of an object that contain accepted answers, in lower case without other characters."""
_EXTRA: Final = re.compile(
    "(?:answer|end|human|long|matched|normalized|start|yesno).*|entity|id|meta|provenance|tokens|type"
)
"""Their other fields in SQuAD, NarrativeQA, MKQA, TriviaQA, Natural Questions and KILT."""
_SEPARATORS: Final = {
    "|": r"\S\s*\|\s*\S",
    ";": r"\S\s*;\s*\S",
    "/": r"\S\s+/\s+\S",
    "\n": r"\S\s*\n\s*\S",
}
"""Possible separators of references in one text, and the pattern of their use."""
_LOST_NAME: Final = (
    "is empty; if the name is one that CSV readers parse as missing ('NA', 'null', 'None'), load "
    "from the file or hub id itself, or read it with keep_default_na=False"
)


class ListedNumber(str):
    """A number from a list in a text; the text may also be one answer, such as an interval."""

    __slots__ = ()


class ParsedCells(dict[object, Any]):
    """Values of the cells of one field; each distinct cell of text or integers is read once."""

    def __init__(self, parse: Callable[[object], object]) -> None:
        """Store the function that reads a cell."""
        super().__init__()
        self.parse = parse

    def __missing__(self, cell: object) -> object:
        """Read a cell that was not seen before."""
        value = self[cell] = self.parse(list(cell) if isinstance(cell, tuple) else cell)
        return value

    def of(self, cells: Sequence[object]) -> list[Any]:
        """Return the values of cells.

        Args:
            cells: Cells of one column.

        Returns:
            The value of each, as `parse` returns it.

        Raises:
            ValueError: If `parse` rejects a cell.
        """
        kinds = {*map(type, cells)}
        if kinds == {list} and {*map(type, chain.from_iterable(cells))} <= {str}:  # type: ignore[arg-type]
            return [*map(self.__getitem__, map(tuple, cells))]  # type: ignore[arg-type]
        # Numbers of several types may be equal and are not the same cell: 1, 1.0 and True.
        if kinds <= {str, type(None)} or kinds == {int}:
            return [*map(self.__getitem__, cells)]
        return [*map(self.parse, cells)]


@dataclass(frozen=True, slots=True)
class RowCells:
    """One row, read by field."""

    columns: Mapping[str, str]
    """Field to column, for the fields that the source has."""

    place: Place
    """File and number of the row."""

    row: Mapping[str, object]
    """Column to cell."""

    def read(self, name: str, parse: Callable[[object], T]) -> T:
        """Return the value of a field; a missing column is read as an empty cell.

        Raises:
            RecordError: If `parse` rejects the cell; the message names place, column and value.
        """
        column = self.columns.get(name)
        value = None if column is None else self.row.get(column)
        try:
            return parse(value)
        except ValueError as error:
            raise RecordError(
                f"{self.place}: column {shown(column)}: {error}, got {shown(value)}"
            ) from error

    def needed(self, name: str, parse: Callable[[object], str | None]) -> str:
        """Return the value of a required field, whose column the source must have.

        Raises:
            RecordError: If the cell is empty or `parse` rejects it.
        """
        value = self.read(name, parse)
        if value is None:
            raise RecordError(f"{self.place}: column {shown(self.columns[name])} {_LOST_NAME}")
        return value


def text_of(value: object) -> str | None:
    """Return a name or a question, unchanged; an integer (1984 without quotes) as its digits.

    Raises:
        ValueError: If the cell is not text, or contains half a surrogate pair, which JSON can
            escape but no file can store.
    """
    if isinstance(value, str):
        if not value.isascii() and _HALF.search(value):
            raise ValueError("expected Unicode text without half a surrogate pair")
        return value if value.strip() else None
    value = plain(value)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError("expected text")


def identifier_of(value: object) -> str | None:
    """Return an identifier: 17, 17.0, "17" and " 17 " are equal; a fraction is an error."""
    value = plain(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = text_of(value)
    return None if text is None else text.strip()


def count_of(value: object) -> int | None:
    """Return a count from 0 to 2**63 - 1, such as page views: 17, 17.0 and "17" are equal."""
    text = identifier_of(value)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise ValueError("expected an integer of at least 0")
    if len(text) > _MOST_DIGITS or int(text) >= 2**63:
        raise ValueError("expected an integer below 2**63")
    return int(text)


def strings_of(value: object) -> tuple[str, ...]:
    """Return a list of names, in order.

    The cell is the list, the text of the list as JSON (PopQA), Python or NumPy write it, or one
    name that is not in a list.

    Raises:
        ValueError: If the cell is something else, or its text looks like a list and cannot be read.

    Examples:
        >>> strings_of('["UK", "U.K."]'), strings_of(["UK"]), strings_of("UK"), strings_of(None)
        (('UK', 'U.K.'), ('UK',), ('UK',), ())
    """
    value = plain(value)
    if isinstance(value, str):
        value = _written(value)
    items = _items(value)
    return tuple(text for item in items if (text := text_of(item)) is not None)


def answers_of(value: object, separator: str | None = None) -> tuple[str, ...]:
    """Return accepted answers, stripped of white space; all references are read by this function.

    The cell is a text, a number, a list of these, which may be nested, or an object that contains
    them: that of SQuAD (`text`), TriviaQA (`value` and `aliases`), MKQA (a list of `text` and
    `aliases`), Natural Questions (`short_answers`) or KILT (`answer`). It can also be the text of
    any of these as JSON, Python or NumPy write it.

    Args:
        value: The cell.
        separator: Separator of the answers of a cell that is one text; by default the text is one
            answer.

    Returns:
        The answers in their order; those of a set are sorted.

    Raises:
        ValueError: If the cell is another object, or its text looks like a list and cannot be read.

    Examples:
        >>> answers_of('["UK ", " ", "U.K."]'), answers_of("['UK' 'U.K.']")
        (('UK', 'U.K.'), ('UK', 'U.K.'))
        >>> answers_of({"text": ["UK"], "answer_start": [3]}), answers_of("UK|U.K.", "|")
        (('UK',), ('UK', 'U.K.'))
    """
    value = plain(value)
    if isinstance(value, str):
        text, value = value, _written(value)
        if isinstance(value, list) and text.lstrip()[0] == "[" and _are_numbers(value):
            return tuple(map(ListedNumber, _texts(value)))
        if separator and isinstance(value, str):
            value = value.split(separator)
        value = [value] if isinstance(value, str) else value
    if (
        isinstance(value, list)
        and {*map(type, value)} <= {str}
        and not _HALF.search("".join(value))
    ):
        return tuple(filter(None, map(str.strip, value)))
    return tuple(stripped for text in _texts(value) if (stripped := text.strip()))


def is_written_list(text: str) -> bool:
    """Return whether a text is a list of one text as JSON, Python or NumPy write it.

    Examples:
        >>> is_written_list("['Lima']"), is_written_list("[5]"), is_written_list("Lima")
        (True, False, False)
    """
    value: object = text
    if text.lstrip()[:1] in ("[", "("):
        with suppress(ValueError):
            value = _written(text)
    return isinstance(value, list | tuple) and len(value) == 1 and isinstance(value[0], str)


def unsplit_references(references: Sequence[Sequence[str]]) -> Iterator[str]:
    """Report cells that may contain several references, and cells that were read as several.

    Args:
        references: Accepted answers of each row.

    Yields:
        A sentence per separator, with the option that splits by it, and one on texts that were read
        as lists of numbers; each without its full stop.

    Examples:
        >>> for sentence in unsplit_references([("UK|U.K.",), ("AC/DC",), ("a; b", "c")]):
        ...     print(sentence)
        1 of 3 rows have one reference that contains '|', such as 'UK|U.K.'; ...
    """
    alone = [own[0] for own in references if len(own) == 1]
    for mark, pattern in _SEPARATORS.items():
        if texts := [text for text in alone if mark in text and re.search(pattern, text)]:
            yield (
                f"{len(texts):,} of {len(references):,} rows have one reference that contains "
                f"{mark!r}, such as {shown(texts[0])}; if it separates several references, split "
                f"them by `reference_separator` {mark!r}"
                + (" (in a shell, $'\\n')" if mark == "\n" else "")
            )
    if listed := [own for own in references if own and isinstance(own[0], ListedNumber)]:
        first = f"[{', '.join(listed[0])}]"
        yield (
            f"{len(listed):,} of {len(references):,} rows have a text that was read as a list of "
            f"numbers, such as {first}; if it is one reference, such as an interval, write it as "
            f'a list of one text in JSON, ["{first}"]'
        )


def _texts(value: object) -> Iterator[str]:
    """Yield the texts of a text, a number, a list or an object of accepted answers."""
    value = value if isinstance(value, str) else plain(value)
    if isinstance(value, str):
        yield from filter(None, (text_of(value),))
    elif isinstance(value, Mapping):
        fields = {re.sub("[^a-z]", "", str(name).lower()): cell for name, cell in value.items()}
        others = [name for name in fields.keys() - {*_ACCEPTED} if not _EXTRA.fullmatch(name)]
        if others or not fields.keys() & {*_ACCEPTED}:
            raise ValueError(
                "expected text, a list of texts, or the object of SQuAD (text), TriviaQA (value, "
                "aliases) or MKQA (text, aliases)"
            )
        for name in _ACCEPTED:
            yield from _texts(fields.get(name))
    elif is_list(value):
        for item in _items(value):
            yield from _texts(item)
    elif isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        yield str(int(value)) if type(value) is float and value.is_integer() else str(value)
    elif isinstance(value, bytes | bytearray):
        yield value.decode()
    elif isinstance(value, Decimal) and value.is_finite():
        yield str(int(value) if value == int(value) else value)
    elif (text := text_of(value)) is not None:
        yield text


def is_list(value: object) -> TypeGuard[Collection[Any]]:
    """Return whether a value is a list, a set or a similar container, also one of NumPy."""
    is_other = isinstance(value, str | bytes | bytearray | Mapping | ItemsView)
    return isinstance(value, Collection) and not is_other


def _are_numbers(values: Collection[object]) -> bool:
    """Check whether there are values, and all are numbers or lists of numbers."""
    return bool(values) and all(
        isinstance(one, int | float) or (isinstance(one, list | tuple) and _are_numbers(one))
        for one in values
    )


def _items(value: Any) -> Sequence[object]:  # noqa: ANN401
    """Return the items of a list in their order, sorted ones of a set, or the value alone."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return tuple(value) if is_list(value) else (value,)


def plain(value: object) -> object:
    """Convert a value of NumPy to Python, and NaN and NA, the missing values of pandas, to None.

    Args:
        value: The cell.

    Returns:
        Its value in built-in types of Python; None if it is missing.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    is_missing = type(value).__name__ == "NAType" or (isinstance(value, float) and value != value)
    return None if is_missing else value


def _written(text: str) -> object:
    """Read a value that JSON, Python or NumPy wrote as text; other texts are returned unchanged."""
    is_list = _WRITTEN.match(text) is not None
    is_call = not is_list and "(" in text and re.match(_CALL, text) is not None
    if not (is_list or is_call or " at 0x" in text or "dtype: " in text):
        return text
    if is_list and (value := json_or_text(text, "the list")) is not text:
        return _written(value) if isinstance(value, str) else value
    bare = text.strip()
    value = _evaluated(bare) if is_list or is_call else None
    # Numbers in parentheses are a name, such as a year; so is "[1] [2]".
    if (
        isinstance(value, list | dict | str | bytes)
        or (isinstance(value, tuple | set) and bare[0] != "[" and not _are_numbers(value))
        or (is_call and value is not None)
    ):
        return value
    is_like_list = bare[0] == "[" and bare[-1] == "]" and re.search(r",|\A.['\"]|\s\.\.\.\s", bare)
    is_like_object = (bare[0] == "{" and bare[-1] == "}") or (is_call and bare[-1] == ")")
    if is_like_list or is_like_object or _CUT.match(bare) or _OPAQUE.search(bare):
        raise ValueError(
            "expected a list or an object that can be parsed; write a list as JSON, such as "
            '["UK", "U.K."], also one of a single text in brackets'
        )
    return text


def _evaluated(text: str) -> object:
    """Return the value of a literal of Python or NumPy; None for another text."""
    try:
        with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
            tree = ast.parse(_NO_COMMA.sub(_with_comma, text), mode="eval")
        tree = _Unwrapped().visit(tree) if re.search(r"\(|nan|np\.", text) else tree
        value: object = ast.literal_eval(tree)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return value


def _with_comma(item: re.Match[str]) -> str:
    """Add a comma between items; without white space between them, make the text invalid."""
    return item[1] if item[2] is None else item[1] + ("," if item[2] else ";")


class _Unwrapped(ast.NodeTransformer):
    """Removes the function calls that `repr` writes around values."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the only argument of a type; the pairs of a dictionary as a dictionary."""
        name, value = ast.unparse(node.func), node.args[0] if len(node.args) == 1 else None
        if value is None or not re.fullmatch(_TYPE, name):
            return node
        if isinstance(value, ast.List) and re.search("Dict|items", name):
            keys, values = zip(*(getattr(one, "elts", ()) for one in value.elts), strict=True)
            value = ast.Dict(list(keys), list(values))
        content: ast.AST = self.visit(value)
        return content

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Return None for NaN."""
        return ast.Constant(None) if node.id == "nan" else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Return the truth values of NumPy."""
        is_truth = node.attr in ("True_", "False_")
        return ast.Constant(node.attr == "True_") if is_truth else node
