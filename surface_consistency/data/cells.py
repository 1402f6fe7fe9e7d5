"""One cell of a table to one value: the shapes that JSON, CSV and Arrow give to the same thing."""

import ast
import json
import math

__all__ = ["answers_of", "count_of", "identifier_of", "strings_of", "text_of"]


def text_of(value: object) -> str | None:
    """Read a cell that holds a name or a question.

    Args:
        value: The cell; an integer is taken for its digits ("1984" written without quotes).

    Returns:
        The text as it stands, or None when the cell is null, NaN or blank.

    Raises:
        ValueError: If the cell holds something else, such as a list.
    """
    if isinstance(value, str):
        return value if value.strip() else None
    value = _plain(value)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError("expected text")


def identifier_of(value: object) -> str | None:
    """Read a cell that holds an identifier.

    Args:
        value: The cell; 17, 17.0, "17" and " 17 " are the same identifier.

    Returns:
        The identifier without surrounding white space, or None when the cell is empty.

    Raises:
        ValueError: If the cell holds something else, such as a fraction or a list.
    """
    value = _plain(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = text_of(value)
    return None if text is None else text.strip()


def count_of(value: object) -> int | None:
    """Read a cell that counts something, such as page views.

    Args:
        value: The cell; 17, 17.0 and "17" are the same number.

    Returns:
        The number, or None when the cell is empty.

    Raises:
        ValueError: If the cell holds something else, such as a negative number.
    """
    text = identifier_of(value)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise ValueError("expected a whole number of at least 0")
    return int(text)


def strings_of(value: object) -> tuple[str, ...]:
    """Read a cell that holds a list of names.

    Args:
        value: The cell: a list, the same list as a JSON string (PopQA) or as Python wrote it into a
            CSV file, or one name without any list around it.

    Returns:
        The names in order, blanks left out; empty when the cell is empty.

    Raises:
        ValueError: If the cell or an item of it is neither.

    Examples:
        >>> strings_of('["UK", "U.K."]'), strings_of(["UK"]), strings_of("UK"), strings_of(None)
        (('UK', 'U.K.'), ('UK',), ('UK',), ())
    """
    value = _plain(value)
    if isinstance(value, str):
        value = _parsed_list(value)
    items = value if isinstance(value, list | tuple) else (value,)
    return tuple(text for item in items if (text := text_of(item)) is not None)


def answers_of(value: object) -> tuple[str, ...]:
    """Read a cell that holds accepted answers.

    Args:
        value: The cell, as for `strings_of`.

    Returns:
        The answers in order, without the white space around them: the first line of a prediction
        has none either, so that an answer with it would never be found there.

    Raises:
        ValueError: If the cell or an item of it is neither.

    Examples:
        >>> answers_of('["UK ", " ", "U.K."]')
        ('UK', 'U.K.')
    """
    return tuple(text.strip() for text in strings_of(value))


def _plain(value: object) -> object:
    """Undo NumPy's wrapping and read NaN, which pandas writes for nothing, as None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return None if isinstance(value, float) and math.isnan(value) else value


def _parsed_list(text: str) -> object:
    """Parse a list that stands in a string; a string that is no such list is itself."""
    if not text.lstrip().startswith("["):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        pass
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, ValueError):
        return text
