"""Results that have no truth value."""

from typing import ClassVar


class NoTruthValue:
    """A result whose truth value could be read in two ways, so that `bool()` refuses it."""

    __slots__ = ()

    truth: ClassVar[str]
    """What to test instead, for the message."""

    def __bool__(self) -> bool:
        """Refuse a truth value.

        Raises:
            TypeError: Always; the message names what to test instead.
        """
        raise TypeError(f"{type(self).__name__} has no truth value; test {self.truth}")
