"""Plain tables with hostile cells as inputs of `accuracy`, `consistency` and `compare`.

The printed numbers must equal those that a loop over the rows computes.
"""

import csv
import gzip
import io
import json
import math
from itertools import combinations, permutations

from tests.faults.inputs import TEXTS, VALUES, Family, command, damaged, mutated, violation
from tests.faults.layouts import number, text

NAMES = {
    "item": ("item", "id", "question_id", "fact_id", "Item"),
    "form": ("form", "paraphrase", "variant", "Form"),
    "model": ("model", "system", "model_name"),
    "score": ("correct", "score", "is_correct", "em"),
}
SCORES = (0, 1, 0, 1, None, True, False, 1.0)
CELLS = ("0", "1", "0.0", "1.0", "", " 1", "true", "False", "nan")


class Tables(Family):
    """Long tables of two models with items in several forms; some rows are missing."""

    def attempt(self, rng):
        for old in self.home.iterdir():
            old.unlink()
        names = {role: rng.choice(known) for role, known in NAMES.items()}
        rows = self.rows(rng, names)
        suffix = rng.choice(("csv", "tsv", "jsonl", "json", "parquet"))
        is_legal = rng.random() < 0.65
        if not is_legal and suffix != "parquet":
            rows = mutated(rows, rng) if suffix.startswith("json") else self.other_cells(rows, rng)
        path = self.home / f"t.{suffix}"
        data = packed(rows, suffix)
        if not is_legal and rng.random() < 0.3:
            data = damaged(data, rng)
        elif suffix != "parquet" and rng.random() < 0.2:
            path, data = path.with_name(f"{path.name}.gz"), gzip.compress(data)
        path.write_bytes(data)
        kind = rng.choice(list(EXPECTED))
        try:
            table = scores_of(unpacked(path, suffix), names)
            expected, why = EXPECTED[kind](table), ""
        except Exception as error:
            expected, is_legal, why = None, False, repr(error)[:200]
        code, out, err = command([kind, path, "--json", "--wide"])
        if fault := violation(code, out, err):
            return fault
        if code == 2:
            return f"{kind} rejected a legal table: {err[:400]}" if is_legal else None
        found = {row.get("model"): row for row in json.loads(out)["rows"]}
        if expected is None:
            return None if "Note: " in out else f"{kind} accepted without a note: {why}"
        if is_legal or "Note: " not in out:
            return differences(found, expected)
        return None

    def rows(self, rng, names):
        """Return rows of two models; the first item has all rows and no missing scores."""
        models = [f"{rng.choice(TEXTS)}{n}" for n in "mn"]
        forms = [f"{rng.choice(TEXTS)}{n}" for n in range(rng.randint(2, 3))]
        items = [f"{rng.choice(TEXTS)}{n}" if rng.random() < 0.7 else n for n in range(9)]
        items = [str(item) for item in items] if rng.random() < 0.9 else list(range(9))
        extra = f"{rng.choice(TEXTS)}_x"
        rows = []
        for place, item in enumerate(items[: rng.randint(1, 9)]):
            for form in forms:
                for model in models:
                    if place == 0 or rng.random() < 0.9:
                        score = rng.choice(SCORES if place else (0, 1))
                        cells = {"item": item, "form": form, "model": model, "score": score}
                        row = {names[role]: cell for role, cell in cells.items()}
                        rows.append(row | {extra: rng.choice(TEXTS)})
        return rng.sample(rows, len(rows)) + [row for row in rows if rng.random() < 0.05]

    def other_cells(self, rows, rng):
        """Replace a cell by another text."""
        row, name = rng.choice(rows), rng.choice(list(rows[0]))
        row[name] = rng.choice((*CELLS, *TEXTS, *(str(value)[:300] for value in VALUES)))
        return rows


def packed(rows, suffix):
    """Return the bytes of a file with these rows, in the format of the suffix."""
    if suffix == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = list(rows[0])
        complete = [name for name in names if not any(row[name] is None for row in rows)]
        texts = {name: pa.array([plain(row[name]) for row in rows]) for name in names}
        assert complete
        sink = io.BytesIO()
        pq.write_table(pa.table(texts), sink)
        return sink.getvalue()
    if suffix == "json":
        return json.dumps(rows).encode()
    if suffix == "jsonl":
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        return "".join(lines).encode("utf-8", "surrogatepass")
    sheet = io.StringIO()
    delimiter = "," if suffix == "csv" else "\t"
    writer = csv.writer(sheet, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerow(list(rows[0]))
    writer.writerows(["" if cell is None else cell for cell in row.values()] for row in rows)
    return sheet.getvalue().encode("utf-8", "surrogatepass")


def plain(cell):
    """Convert a Boolean to a float, because a Parquet column has one type."""
    return float(cell) if isinstance(cell, bool) else cell


def unpacked(path, suffix):
    """Read rows with the standard library or pyarrow."""
    data = path.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    if suffix == "parquet":
        import pyarrow.parquet as pq

        return pq.read_table(io.BytesIO(data)).to_pylist()
    content = data.decode("utf-8-sig")
    if suffix == "json":
        return json.loads(content)
    if suffix == "jsonl":
        return [json.loads(line) for line in content.split("\n") if line.strip()]
    sheet = io.StringIO(content, newline="")
    read = csv.reader(sheet, delimiter="," if suffix == "csv" else "\t", strict=True)
    rows = [row for row in read if row]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def scores_of(rows, names):
    """Return the scores by model, item and form; contradictory duplicates are an error."""
    table = {}
    for row in rows:
        content = {names["model"]: "", names["form"]: "", names["score"]: None, **row}
        form = "" if content[names["form"]] is None else content[names["form"]]
        key = (text(content[names["model"]]), text(content[names["item"]]), text(form))
        score = number(content[names["score"]])
        if table.setdefault(key, score) != score or not key[1]:
            raise ValueError(f"two scores of {key}")
    return table


def check_labels(table):
    """Check that the scores of a table are correctness labels."""
    if not {*table.values()} <= {0, 1, None}:
        raise ValueError("a score is not 0 or 1")


def accuracies(table):
    """Compute the proportion of correct answers per model."""
    models = dict.fromkeys(model for model, *_ in table)
    content = {
        model: [score for key, score in table.items() if key[0] == model] for model in models
    }
    scored = {
        model: [one for one in scores if one is not None] for model, scores in content.items()
    }
    rows = {
        model: {
            "accuracy": mean(scores),
            "n": len(scores),
            "n_missing": len(content[model]) - len(scores),
        }
        for model, scores in scored.items()
    }
    return rows if len(rows) > 1 else dict.fromkeys([None], *rows.values())


def consistencies(table):
    """Compute the proportion of agreeing pairs of forms per model, and related rates."""
    check_labels(table)
    models = {}
    for (model, item, _), score in table.items():
        items = models.setdefault(model, {})
        items.setdefault(item, [])
        if score is not None:
            items[item].append(score)
    rows = {}
    for model, items in models.items():
        several = [scores for scores in items.values() if len(scores) > 1]
        agreements = [mean([a == b for a, b in combinations(one, 2)]) for one in several]
        rows[model] = {
            "n": len(several),
            "n_single": len(items) - len(several),
            "consistency": mean(agreements),
            "accuracy": mean([mean(scores) for scores in several]),
            "all_correct": mean([all(scores) for scores in several]),
            "all_incorrect": mean([not any(scores) for scores in several]),
        }
    return rows if len(rows) > 1 else dict.fromkeys([None], *rows.values())


def mean(values):
    return sum(values) / len(values) if values else None


def comparisons(table):
    """Count the answers of two models to the same forms of the same items."""
    check_labels(table)
    counts = {"both": (1, 1), "reference_only": (1, 0), "model_only": (0, 1), "neither": (0, 0)}
    rows, models = {}, {model for model, *_ in table}
    for reference, model in permutations(models, 2):
        keys = [key[1:] for key in table if key[0] == model and (reference, *key[1:]) in table]
        pairs = [(table[reference, *key], table[model, *key]) for key in keys]
        content = {name: pairs.count(pair) for name, pair in counts.items()}
        rows[model] = content | {"reference": reference}
    assert len(models) == 2
    return rows


EXPECTED = {"accuracy": accuracies, "consistency": consistencies, "compare": comparisons}
"""Functions that compute the numbers of each command from a table with loops."""


def differences(found, expected):
    """Return the first number that differs, or None."""
    for model, row in found.items():
        for name, value in expected.get(model, {"a row": 0}).items():
            if isinstance(value, float | int) and isinstance(row.get(name), float | int):
                is_same = math.isclose(row[name], value, abs_tol=1e-9)
            else:
                is_same = row.get(name) == value
            if not is_same:
                return f"{model!r:.60} {name}: {row.get(name)} rather than {value}"
    return None
