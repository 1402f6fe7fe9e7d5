"""When to ask again, and how long to wait before."""

import contextlib
import math
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

__all__ = ["backoff", "is_transient", "retry_after"]

_PASSING = frozenset({408, 409, 425, 429})
_LASTING = frozenset({501, 505})


def is_transient(status: int) -> bool:
    """Tell whether a status may pass: too many requests, time-outs, and a server in trouble."""
    return status in _PASSING or (status >= 500 and status not in _LASTING)


def backoff(attempt: int, *, first: float, longest: float, rng: random.Random) -> float:
    """Return the seconds to wait after a failed attempt, from 0: doubled each time, jittered."""
    return float(min(longest, first * 2**attempt) * (0.5 + rng.random() / 2))


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Return the seconds that the server asks to wait; None when it does not say, or nonsense."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    with contextlib.suppress(ValueError):
        seconds = float(value)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
