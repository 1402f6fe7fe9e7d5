"""Parse sentences back into the records of their claims, and recompute records from tables."""

import itertools
import json
import math
import re
from pathlib import Path

import pandas as pd

from surface_consistency.tables.numbers import Claim, claim_records, sentence_text

_NUMBER = r"([−+]?[\d.,]+)"
_UNIT = r"(?: %| points)?"
_INTERVAL = rf"\d+(?:\.\d+)? % CI {_NUMBER} to {_NUMBER}"
_CLAIMS = re.compile(
    r"\b(higher|lower|more|less|fewer|better|worse|equivalent|differ|significant|best)\b|\d"
)
_SIDES = ("first", "second", "reference", "model")
_END = re.compile(r"(?<=[.:])(?<!inferred:)\s+(?=[A-Z0-9])")


def _number(text):
    return float(text.replace("−", "-").replace(",", "").rstrip("."))


def read_sentence(text):
    """Parse a sentence of `surface_consistency.tables.sentences`.

    Returns:
        Printed values: kind, quantity, estimate, low, high (in percent or points), p (a number, or
        0.001 if it is below), direction and n; values that are not printed are missing.
    """
    if "cannot be inferred" in text:
        return {"kind": "none", "quantity": text.partition(" cannot be inferred")[0]}
    read = {}
    if match := re.search(_INTERVAL, text):
        read |= {"low": _number(match[1]), "high": _number(match[2])}
    p_values = re.findall(r"p (?:= ([\d.]+)|< 0\.001)", text)
    if p_values:
        read["p"] = float(p_values[-1]) if p_values[-1] else 0.001
    if match := re.search(r"; ([\d,]+) \w+", text):
        read["n"] = int(match[1].replace(",", ""))
    if match := re.match(rf"The (.+?) is {_NUMBER}{_UNIT} (higher|lower) .+ than ", text):
        sign = 1 if match[3] == "higher" else -1
        ends = sorted(sign * read[end] for end in ("low", "high"))
        return read | {
            "kind": "difference",
            "quantity": match[1],
            "estimate": sign * _number(match[2]),
            "low": ends[0],
            "high": ends[1],
            "direction": sign,
        }
    estimate = re.search(rf"\(difference {_NUMBER}{_UNIT},", text)
    if match := re.match(r"The (.+?) does not differ significantly between ", text):
        kind = {"kind": "difference", "quantity": match[1], "direction": 0}
        return read | kind | {"estimate": _number(estimate[1])}
    if match := re.match(rf"The (.+?) is equivalent for .+ within ±{_NUMBER}", text):
        kind = {"kind": "equivalence", "quantity": match[1], "margin": _number(match[2])}
        return read | kind | {"estimate": _number(estimate[1])}
    if match := re.match(rf"The (.+) is {_NUMBER}{_UNIT} \(", text):
        kind = {"kind": "rate", "quantity": match[1], "estimate": _number(match[2])}
        if match := re.search(r"(not )?significantly different from ([\d.]+)", text):
            null = float(match[2])
            sign = 0 if match[1] else 1 if kind["estimate"] > null else -1
            kind |= {"direction": sign, "null": null}
        return read | kind
    return read | {"kind": "other"}


def agrees(read, record, unit):
    """Return whether a record has the printed numbers of its sentence."""
    same = read["kind"] == record["kind"] and read["quantity"].startswith(record["quantity"])
    for name in ("estimate", "low", "high", "margin"):
        if name in read:
            same &= abs(read[name] - unit * record[name]) <= 0.0501 * (
                unit / 100 if unit > 1 else 0.1
            )
    for name in ("direction", "n", "null"):
        if name in read:
            same &= read[name] == record[name]
    if "p" in read:
        same &= math.isclose(read["p"], record["p"], abs_tol=0.0051) or record["p"] < 0.001
    return bool(same)


def recompute(record, tables):
    """Return the reason why a record differs from the tables; empty if it does not.

    Args:
        record: A record of the JSON of a page.
        tables: Frames by name.
    """
    if record["kind"] == "count" or not record["column"]:
        return ""
    if record["kind"] == "equivalence" and not _is_equivalent(record):
        return "not equivalent"
    column = record["column"]
    names = [column, f"{column}_low", f"{column}_high"]
    wanted = [record["estimate"], record["low"], record["high"]]
    for frame in tables.values():
        if column not in frame:
            continue
        rows = frame
        for name, value in zip(names, wanted, strict=True):
            if value is not None and name in rows:
                near = rows[name].astype(float).sub(value).abs() <= 1e-9 * max(1.0, abs(value))
                rows = rows[near]
        for label, value in record["scope"].items():
            if label in rows:
                rows = rows[rows[label].astype(str) == value]
        if record["p"] is not None:
            p_values = rows[[one for one in rows if re.search(r"(^|_)p_|_p$|p_value", one)]]
            rows = rows[(p_values - record["p"]).abs().le(1e-9).any(axis=1)]
        if record["n"] is not None:
            # A conditional rate has its own denominator.
            counts = rows[[one for one in rows if re.fullmatch("n|n_.*", one)]].join(_sums(rows))
            if f"{column}_n" in rows and rows[f"{column}_n"].notna().any():
                counts = rows[[f"{column}_n"]]
            if counts.shape[1]:
                rows = rows[counts.eq(record["n"]).any(axis=1)]
        if len(rows):
            return "" if _direction(record) == record["direction"] else "another direction"
    return "no table has this row"


def _sums(rows):
    """Sum pairs of cells of a paired table, the denominators of conditional rates."""
    names = {*rows} & {"both", "neither", *(f"{one}_only" for one in _SIDES)}
    sums = {f"{a}+{b}": rows[a] + rows[b] for a, b in itertools.combinations(sorted(names), 2)}
    return pd.DataFrame(sums, index=rows.index)


def _is_equivalent(record):
    """Recompute equivalence from the p-value of two one-sided tests, interval and margin."""
    widest = max(abs(record["low"]), abs(record["high"]))
    level = (1.0 - record["confidence"]) / 2.0
    return record["p"] < level and widest <= record["margin"] + 1e-9


def _direction(record):
    """Recompute the direction from interval and p-value."""
    if record["null"] is None:
        return None
    if record["p"] is not None and not record["p"] < 1.0 - record["confidence"]:
        return 0
    if record["low"] is None:
        return (record["estimate"] > record["null"]) - (record["estimate"] < record["null"])
    return (record["low"] > record["null"]) - (record["high"] < record["null"])


def page_records(folder):
    """Read the records of a page, and its tables."""
    html = Path(folder, "report.html").read_text("utf-8")
    text = re.search(r'<script type="application/json" id="claims">(.*?)</script>', html, re.S)[1]
    tables = {path.stem: pd.read_csv(path) for path in Path(folder, "tables").glob("*.csv")}
    return json.loads(text), tables


def check_page(folder):
    """Fail for a page with a record that differs from its tables; return the records."""
    records, tables = page_records(folder)
    differing = [(recompute(record, tables), record) for record in records]
    assert [one for one in differing if one[0]] == []
    return records


def unsupported(parts):
    """List the sentences of a paragraph with a number or a comparison but without a record."""
    records = claim_records(parts)
    before = itertools.takewhile(lambda part: not isinstance(part, Claim), parts)
    texts = _END.split(sentence_text([*before]))
    texts += [one for record in records for one in _END.split(record["text"])[1:]]
    return [text for text in texts if _CLAIMS.search(text)]
