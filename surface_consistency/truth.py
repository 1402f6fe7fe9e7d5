"""Results that have no truth value."""

from typing import ClassVar


class NoTruthValue:
    """A result with an ambiguous truth value, for which `bool()` raises an error."""

    __slots__ = ()

    truth: ClassVar[str]
    """The attribute to test instead, for the message."""

    def __bool__(self) -> bool:
        """Raise an error.

        Raises:
            TypeError: Always; the message names the attribute to test instead.
        """
        raise TypeError(f"{type(self).__name__} has no truth value; test {self.truth}")
