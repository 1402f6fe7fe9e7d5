"""A sample of a tool (parts, scores and fields), and functions that extract its parts."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from surface_consistency.errors import RecordError, SurfaceConsistencyError
from surface_consistency.reading import shown
from surface_consistency.rows.cells import is_list, plain
from surface_consistency.schemas.generations import server_end

if TYPE_CHECKING:
    import pandas as pd

Cells: TypeAlias = Mapping[str, Any]
"""A row by column name."""

ROLES: Final = (
    *("id", "task", "model", "form", "repeat", "question", "prompt", "prediction", "target"),
    *("error", "content", "response", "doubt"),
)
"""Names of the parts of a sample. `content` identifies the question: a hash from the tool, or text.
`response` is the output before a filter extracted the prediction. `doubt` is a sentence, without
its subject, on samples whose answer is uncertain."""


class Failure(str):
    """In place of a score, the reason why a sample has no score."""

    __slots__ = ()


class Flat(NamedTuple):
    """One sample, as a layout converts it."""

    parts: Cells
    """Its parts by the names in `ROLES`."""

    scores: Cells
    """Its scores by metric, as in the file."""

    fields: Cells
    """Its further fields, such as metadata."""

    whole: Cells | None = None
    """The complete row, if it is not composed of parts, scores and fields."""

    log: Cells | None = None
    """Metadata of the run, from a log of inspect_ai."""

    def row(self) -> Cells:
        """Return one row; for equal names, parts replace scores, and scores replace fields."""
        if self.whole is not None:
            return self.whole
        return {**self.fields, **self.scores, **self.parts}


Flats: TypeAlias = Iterable[Flat]
"""Samples of a file."""

_LABELS: Final = 100
_FAULTS: Final = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError),
    ValueError,
)


@contextmanager
def readable(place: object, tool: str, columns: str = "") -> Iterator[None]:
    """Convert errors of reading external values to an error that names file, row and layout.

    All functions of layouts run inside this context. For generators it encloses the loop over their
    values.

    Args:
        place: The file and row.
        tool: The layout, for the message.
        columns: The columns by which the layout was determined.

    Raises:
        RecordError: In place of any error that values of a file can cause. Errors of this package
            and of the file system are not replaced.
    """
    try:
        yield
    except _FAULTS as error:
        if isinstance(error, SurfaceConsistencyError):
            raise
        reason = f"{type(error).__name__}: {str(error)[:100]}"
        if isinstance(error, KeyError):
            reason = f"no field {shown(error.args[0] if error.args else '')}"
        has = f", whose columns {columns} it has" if columns else ""
        raise RecordError(
            f"{place}: not in the layout of {tool} ({reason}){has}; restore the file, or write its "
            "rows as a plain table with the columns item, model and score"
        ) from error


def nested_row(column: "pd.Series[Any]") -> int | None:
    """Return the position of the first cell that is a list or an object; None if there is none."""
    cells = column.tolist() if column.dtype == object else ()
    kinds = {*map(type, cells)}
    if tuple not in kinds and None not in (getattr(kind, "__hash__", None) for kind in kinds):
        return None
    return next((row for row, cell in enumerate(cells) if not _is_name(cell)), None)


def _is_name(cell: object) -> bool:
    """Check that a cell has a hash; a tuple has none if it contains a list."""
    try:
        hash(cell)
    except TypeError:
        return False
    return True


def without_empty(row: Cells) -> Cells:
    """Return a row of delimited text with None for empty cells, as pandas reads them."""
    return {name: None if cell == "" else cell for name, cell in row.items()}


def is_labels(value: object) -> bool:
    """Return whether a cell is a label of its row, or a list of at most 100 labels."""
    if is_list(value):
        has_others = any(is_list(one) or isinstance(one, Mapping) for one in value)
        return len(value) <= _LABELS and not has_others
    return not isinstance(value, Mapping)


def at(value: Any, path: str) -> Any:  # noqa: ANN401
    """Return the value at a path in lists and objects.

    Args:
        value: The outer value.
        path: Names of fields and numbers of items with a dot between them; of several paths with
            "|" between them, the first that exists is used.

    Returns:
        The value; None if the path does not exist.

    Examples:
        >>> at({"output": {"raw": ["Lima"]}}, "answer|output.raw.0")
        'Lima'
    """
    for one in path.split("|"):
        found = value
        for step in one.split("."):
            if isinstance(found, dict):
                found = found.get(step)
            elif isinstance(found, list) and step.isdigit() and int(step) < len(found):
                found = found[int(step)]
            else:
                found = None
                break
        if found is not None:
            return found
    return None


def text_of(content: object) -> str | None:
    """Read the content of a message.

    Args:
        content: A text, or a list of parts of which some are text.

    Returns:
        The text; None if it is neither.
    """
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else None


def answer_of(value: object) -> str | None:
    """Return the answer of a model: a text, unchanged, or the only text that a value contains.

    Args:
        value: The text; a list of one text; a list of messages of a chat, the last of them by the
            assistant; such a message; or a reply of OpenAI's chats and completions. A number is
            returned as its digits.

    Returns:
        The text; None if there is none.

    Raises:
        ValueError: If there are several texts, or the value is another object.

    Examples:
        >>> answer_of(["Lima"]), answer_of({"choices": [{"message": {"content": "Lima"}}]})
        ('Lima', 'Lima')
    """
    value = value if isinstance(value, str) else plain(value)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float | Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict) and value.get("role") == "assistant":
        content = plain(value.get("content"))
        if content is None or isinstance(content, str | list):
            return text_of(content)
    elif isinstance(value, dict) and "choices" in value:
        replies = plain(value["choices"])
        if isinstance(replies, list) and len(replies) == 1 and isinstance(replies[0], dict):
            (reply,) = replies
            is_whole = server_end(reply.get("finish_reason")) in ("stop", "length")
            if is_whole and not reply.get("error"):
                return answer_of(
                    {
                        "content": reply.get("text"),
                        **(reply.get("message") or {}),
                        "role": "assistant",
                    }
                )
    elif isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        if all(isinstance(one, dict) and "role" in one for one in value):
            return answer_of(value[-1])
    elif isinstance(value, list | tuple) and len(value) < 2:
        return answer_of(value[0]) if value else None
    raise ValueError("expected one text, or messages that end with one of the assistant")


def question_of(prompt: str) -> str | None:
    r"""Return the question at the end of a prompt in the format of the papers.

    Args:
        prompt: The prompt, which may end with "Q: ... A:", with the mark on the same or the next
            line.

    Returns:
        The question; None if the prompt ends differently.

    Examples:
        >>> question_of("Q: Who? A: Cohen\n\nQ: What? A:")
        'What?'
    """
    _, start, question = f"\n{prompt}".rpartition("\nQ: ")
    return question[:-3] if start and question.endswith((" A:", "\nA:")) else None
