"""Tests of the errors of a function, as one table of calls and messages."""

from collections.abc import Callable
from typing import Any

import pytest


def refusals(
    call: Callable[..., object],
    *rows: tuple[Any, ...],
    error: type[Exception] = ValueError,
    fixture: str = "",
) -> Callable[..., None]:
    """Make a test that a call raises an error for each row, with the message at its end.

    A class before the message replaces `error`; a `fixture` is the first argument.
    """

    @pytest.mark.parametrize("row", rows)
    def test(row: tuple[Any, ...], request: pytest.FixtureRequest) -> None:
        *arguments, message = row
        has_class = isinstance(arguments[-1], type) and issubclass(arguments[-1], Exception)
        expected = arguments.pop() if has_class else error
        given = [request.getfixturevalue(fixture)] if fixture else []
        with pytest.raises(expected, match=message):
            call(*given, *arguments)

    return test
