"""Pure functions on strings: surfaces from page titles, the answer in a generation."""

import re

__all__ = ["first_line", "surface_from_title"]

_TRAILING_PARENTHESIS = re.compile(r"\s+\([^()]*\)$")


def surface_from_title(title: str) -> str:
    """Return the name that a question uses for a Wikipedia title.

    Underscores become spaces and one trailing parenthesis goes, as in RedirectQA v1.0.0
    ("Jesus_Antunez_(musician)" is asked as "Jesus Antunez").

    Args:
        title: A page title, with underscores or spaces.

    Returns:
        The surface form; a title that is nothing but a parenthesis stays whole.

    Examples:
        >>> surface_from_title("Jesus_Antunez_(musician)")
        'Jesus Antunez'
    """
    return _TRAILING_PARENTHESIS.sub("", title.replace("_", " ")).strip()


def first_line(text: str) -> str:
    r"""Return the answer in a generation: its first line.

    One leading blank line is dropped before the cut, as the PopQA evaluation does
    (Mallen et al., 2023, `run_model.py`), so an answer that follows an empty line counts.

    Args:
        text: What the model wrote after the prompt.

    Returns:
        The first line without surrounding white space; "" when that line is empty.

    Examples:
        >>> first_line(" London\nQ: Who is")
        'London'
        >>> first_line("\n\nLondon")
        'London'
        >>> first_line("\nLondon")
        ''
    """
    return text.removeprefix("\n\n").split("\n", 1)[0].strip()
