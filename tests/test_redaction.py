"""Redaction of keys in replies of a server: detected forms, and number of steps."""

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
def test_key_is_redacted_in_documented_forms(key):
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


def test_placeholder_of_a_key_is_not_redacted():
    assert Redactor("EMPTY").text("EMPTY, not EMPTYING") == "<key>, not EMPTYING"
    assert Redactor("EMPTY").json(["The set is EMPTY."]) == ["The set is EMPTY."]


@pytest.mark.parametrize("key", KEYS)
def test_number_of_steps_is_linear_in_the_text_for_every_key(key):
    """No repetition and only atomic groups: each sequence is tried once per character."""
    pattern = Redactor(key)._pattern.pattern
    unescaped = re.sub(r"\\.", "", pattern)
    groups, characters = unescaped.count("(?>"), set(unescaped.replace("(?>", ""))

    assert not characters & set("*+?{}[]^$.(")
    assert groups == len(key)
    assert unescaped.count("|") <= 8 + 6 * groups
