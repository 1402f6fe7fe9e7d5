"""Keys in what a server sends: which forms are found, and in what time."""

import base64
import json
import re
from urllib.parse import quote

import pytest

from surface_consistency.redaction import Redactor

KEYS = (
    *(
        "sk-very-secret",
        "a+b,c+d,e+f,g+h",
        "++++++++++++",
        "%25%25%2525",
        '\\\\u005c\\"/',
        "Ab+/=9~",
    ),
    *("(a+)+$[b*]{9}|.", "&#45;&#45;&#45;", "''''``,,[]"),
)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_redacted_in_the_forms_that_are_documented(key):
    redactor, data = Redactor(key), key.encode()
    percent = "".join(f"%{code:02X}" for code in data)
    mixed = "".join(f"%{code:02x}" if n % 2 else chr(code) for n, code in enumerate(data))
    escaped = "".join(f"\\u{code:04x}" for code in data)
    quoted = (json.dumps(key)[1:-1], json.dumps(key)[1:-1].replace("/", "\\/"), escaped)
    for form in (key, percent, mixed, quote(key), quote(key, safe=""), *quoted):
        assert redactor.text(f"the key {form} is wrong") == "the key <key> is wrong"
        assert redactor.json({form: [form, 1, None]}) == {"<key>": ["<key>", 1, None]}
    for before in (b"", b"a", b"ab", b"Bearer ", b"user:"):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            form = encode(before + data + b" and more").decode()
            assert re.fullmatch(r"[\w+/=-]*<key>[\w+/=-]*", redactor.text(form)), form


def test_a_short_key_is_redacted_in_messages_alone():
    redactor = Redactor("EMPTY")

    assert redactor.text("bad key EMPTY, not EMPTYING") == "bad key <key>, not EMPTYING"
    assert redactor.json(["EMPTY"]) == ["EMPTY"]
    assert Redactor(None).text("EMPTY") == Redactor("").json("EMPTY") == "EMPTY"


def operations(parsed, atomic=False):
    """Yield the operations of a parsed pattern, and whether backtracking into them is excluded."""
    for operation, argument in parsed:
        yield str(operation), atomic
        for part in argument if isinstance(argument, tuple | list) else (argument,):
            for inner in part if isinstance(part, list) else (part,):
                if isinstance(inner, re._parser.SubPattern):
                    yield from operations(inner, atomic or str(operation) == "ATOMIC_GROUP")


@pytest.mark.parametrize("key", [*KEYS, "EMPTY"])
def test_the_number_of_steps_is_linear_in_the_text_for_every_key(key):
    """At each character the pattern tries a fixed number of fixed sequences, each once."""
    pattern = Redactor(key)._pattern
    found = list(operations(re._parser.parse(pattern.pattern, pattern.flags)))

    allowed = {"LITERAL", "IN", "CATEGORY", "ATOMIC_GROUP", "BRANCH", "ASSERT_NOT", "SUBPATTERN"}
    assert {operation for operation, _ in found} <= allowed
    assert sum(operation == "BRANCH" for operation, atomic in found if not atomic) <= 1
    assert len(found) < 40 * len(key) + 200
