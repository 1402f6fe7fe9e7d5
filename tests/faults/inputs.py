"""Texts, damage and checks of results that all families of hostile inputs share."""

import contextlib
import copy
import gzip
import io
import re
import time
import traceback
from unittest import mock

REJECTED = object()
"""The command must reject the input."""

ANY = object()
"""The command may accept or reject the input; only the form of its output is checked."""

TEXTS = (
    "=1+1",
    "+SUM(A1)",
    "-2+3",
    "@cmd",
    "\tx",
    "\x1b[31mred\x1b]0;t\x07",
    "\x9b31m",
    "\u202egnp.exe",
    "\u2066x\u2069",
    "<script>alert(1)</script>",
    "{{ 7*7 }}",
    "a,b",
    'say "hi"',
    "it's",
    "line\nbreak",
    "line\rreturn",
    "NA",
    "null",
    "NaN",
    "None",
    "-0.0",
    "1e999",
    "0x10",
    "ß",
    "ﬁ",
    "e\u0301",
    "東京都",
    "नमस्ते",
    "👩‍👩‍👧",
    "\ufeff",
    "\u2028",
    "\x00",
    "\x7f",
    " ",
    "\xa0x",
    "a" * 5_000,
    "_",
    "__class__",
    "../../etc/passwd",
    "%s%n",
    "${HOME}",
    "index",
    "model",
    "pair",
)
_RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


CODES = []
"""The exit codes of the commands so far."""

LONGEST = 1_000
"""Maximum number of characters of a message.

A message contains at most 300 characters of the input, its paths, the rule and the remedy.
"""

SECONDS = 20
"""Maximum processor time of a command."""


@contextlib.contextmanager
def without_pages():
    """Score runs without writing pages, because pages take most of the time."""
    from surface_consistency.engine import report

    def scored_only(folders, out, **_):
        return report.Reported(page=out, tables={}, runs=[], finding="", notes=[])

    with mock.patch.object(report, "report_runs", scored_only):
        yield


def command(words):
    """Run a command in this process, without the page of a run; return exit code and outputs."""
    from surface_consistency.cli.main import main

    out, err, start = io.StringIO(), io.StringIO(), time.process_time()
    pages = without_pages() if words[0] in ("run", "score") else contextlib.nullcontext()
    with pages, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(word) for word in words])
        except BaseException:
            code = None
            traceback.print_exc()
    CODES.append(code)
    if (seconds := time.process_time() - start) > SECONDS:
        err.write(f"took {seconds:.0f} s of processor time\n")
    return code, out.getvalue(), err.getvalue()


_KINDS = ("error: ", "warning: ", "contacts: ", "`limit` ")
"""Beginnings of lines; the last one reports that `limit` keeps fewer items, or all of them."""


def violation(code, out, err):
    """Return the first rule of all outputs that a command breaks, whatever its input, or None."""
    if code not in (0, 2, 3):
        return f"rc {code}: {err[-700:]}"
    if raw := _RAW.search(out + err):
        return f"raw {raw[0]!r} on the terminal"
    lines = [line for line in err.split("\n") if line]
    strange = [line for line in lines if not line.startswith(_KINDS)]
    if strange:
        return f"a line that is not a message: {strange[0][:300]}"
    if (code == 2) != any(line.startswith("error: ") for line in lines):
        return f"rc {code}, but the message {err[-300:]!r}"
    if long := [line for line in lines if len(line) > LONGEST or "a" * 301 in line]:
        return f"a message of {len(long[0])} characters: {long[0][:300]}"
    return None


def verify(code, out, err, expected, found):
    """Compare the end of a command with the expected one; return the difference or None.

    `found` is a function that reads the result of a command that succeeded.
    """
    fault = violation(code, out, err)
    if fault is not None or expected is ANY:
        return fault
    if expected is REJECTED:
        return None if code == 2 else f"rc {code} for an illegal input: {out[:300]}"
    if code == 2:
        return f"rejected a legal input: {err[:400]}"
    result = found()
    return None if result == expected else f"{result} rather than {expected}: {err[:200]}"


class Family:
    """Inputs of one kind."""

    def __init__(self, home):
        self.home = home

    def attempt(self, rng):
        """Write one input, run a command on it, and return the failure or None."""
        raise NotImplementedError


VALUES = (
    *(None, True, 0, 1, -1, 0.5, 1e308, 10**400, float("nan"), float("inf"), "", "1", "x", "NA"),
    *([], {}, [None], [[]], {"a": 1}, ["x", "y"], {"score": {}}, [{"x": 1}], "\ud800", "a" * 5_000),
)
"""Values of all types, which replace others."""


def places(value):
    """List all cells in a value as pairs: the container, and the key or index in it."""
    names = list(value) if isinstance(value, dict) else range(len(value))
    found = [(value, name) for name in names]
    inner = (value[name] for name in names)
    return found + [one for cell in inner if isinstance(cell, dict | list) for one in places(cell)]


def mutated(content, rng):
    """Damage one to three cells of the content of a JSON file."""
    content = copy.deepcopy(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not (found := places(content)):
            break
        inside, name = rng.choice(found)
        kind = rng.randrange(6)
        if kind == 0:
            del inside[name]
        elif kind == 1 and isinstance(inside, list):
            inside.insert(rng.randrange(len(inside) + 1), copy.deepcopy(inside[name]))
        elif kind == 2:
            other, place = rng.choice(found)
            inside[name] = copy.deepcopy(other[place]) if place in _names(other) else None
        elif kind == 3 and isinstance(inside, dict):
            inside[rng.choice(TEXTS)] = inside.pop(name)
        else:
            inside[name] = copy.deepcopy(rng.choice(VALUES))
    return content


def _names(value):
    """Return the keys or indices of a container."""
    return value if isinstance(value, dict) else range(len(value))


def renamed(value, names):
    """Replace texts; a text is replaced only if it is a complete value."""
    if isinstance(value, dict):
        return {key: renamed(cell, names) for key, cell in value.items()}
    if isinstance(value, list):
        return [renamed(cell, names) for cell in value]
    return names.get(value, value) if isinstance(value, str) else value


def damaged(data, rng):
    """Damage some bytes."""
    place = rng.randrange(len(data) + 1)
    nest = rng.choice((b"[", b'{"a":')) * rng.choice((50, 2_000, 100_000))
    return rng.choice(
        (
            lambda: data[:place],
            lambda: data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :],
            lambda: data[:place] + rng.randbytes(rng.randint(1, 40)) + data[place:],
            lambda: data[:place] + rng.choice(TEXTS).encode() + data[place:],
            lambda: data[:place] + nest + data[place:],
            lambda: data[:place] + b"9" * rng.choice((30, 400, 5_000)) + data[place:],
            lambda: b"\xef\xbb\xbf" + data,
            lambda: data.decode("utf-8", "replace").encode("utf-16"),
            lambda: gzip.compress(data),
            lambda: data[place:] + data[:place],
            lambda: data.replace(b"\n", b"\r"),
            lambda: data + b"\x00" * rng.choice((1, 4_096)),
            lambda: b"",
        )
    )()
