"""Read results of promptfoo: repeats, prompts and providers, and its CSV tables."""

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from surface_consistency.errors import RecordError
from surface_consistency.reading import MOST_COLUMNS, csv_rows, first_names, json_or_text
from surface_consistency.results.rows import Cells, Flat, Flats, at
from surface_consistency.results.tools import promptfoo_parts, without_copies
from surface_consistency.rows.cells import count_of, identifier_of
from surface_consistency.rows.readers import Place, Row

# Variables that promptfoo adds at run time, with a different value in each repeat.
_RUNTIME: Final = ("sessionId", "_conversation")
_OUTPUT: Final = re.compile(r"\A(?:\[([^\]]+)\] )?(.*)\Z", re.DOTALL)
_CELL: Final = re.compile(r"\[(PASS|FAIL|ERROR)\] \(([^,)]*)(?:, ([^)]*))?\)(.*)", re.DOTALL)
_REASON: Final = re.compile(r"(?<!\s)\s*(?:Pass|Fail) Reason: ")


def parts(result: Cells, row: Cells) -> Cells:
    """Read model, failure and variables of a result; the variables identify the question."""
    variables = at(result, "testCase.vars") or result.get("vars") or {}
    constant = {name: value for name, value in variables.items() if name not in _RUNTIME}
    content = json.dumps(constant, sort_keys=True) if constant else None
    return {"content": content, **promptfoo_parts(result, row)}


def fields(result: Cells) -> Cells:
    """Read the fields that identify test, prompt and provider of a result."""
    label, test = at(result, "prompt.label|prompt.display"), result.get("testIdx")
    return {
        "provider": promptfoo_parts(result, {})["model"],
        "prompt_label": identifier_of(label) or "no label",
        "promptIdx": str(result.get("promptIdx", label)),
        "testIdx": count_of(test),
        "test": result.get("repeatGroupId") or json.dumps(at(result, "testCase.assert")),
    }


def run(flats: Iterable[Flat], file: Path, notes: list[str]) -> Flats:
    """Number tests and repeats, and name the prompts of a provider with several prompts.

    A repeat has a different test number (`testIdx`), but equal variables and assertions. If there
    is one provider with several prompts, each prompt is a model; with several providers, each
    prompt is a form.
    """
    rows = without_copies(list(flats), "testIdx", file, notes)
    rows = sorted(rows, key=lambda flat: flat.fields["testIdx"] or 0)
    tests, seen = dict[Hashable, int](), Counter[Hashable]()
    prompts: dict[str, dict[Any, str]] = {}
    numbers = []
    for flat in rows:
        own, content, model = flat.fields, flat.parts["content"], flat.parts["model"]
        test = (content, own["test"]) if content else own["testIdx"]
        key = (tests.setdefault(test, len(tests)), model, own["promptIdx"])
        numbers.append((key[0], seen[key]))
        seen[key] += 1
        prompts.setdefault(model, {})[own["promptIdx"]] = own["prompt_label"]
    has_numbers = max(seen.values(), default=0) < 2
    has_prompts = any(len(labels) > 1 for labels in prompts.values())
    role = "model" if len(prompts) == 1 else "form"
    labels = {model: Counter(own.values()) for model, own in prompts.items()}
    if has_prompts:
        notes.append(
            f"{file}: the prompts of {first_names(prompts)} are each a {role}, named by their "
            "labels (column 'prompt_label'; the providers are in column 'provider')"
        )
    for flat, (number, repeat) in zip(rows, numbers, strict=True):
        fields = {name: value for name, value in flat.fields.items() if name != "test"}
        numbered: dict[str, Any] = {"id": number, "repeat": repeat}
        if has_numbers and fields["testIdx"] is not None:
            numbered["id"] = fields["testIdx"]
        if has_prompts:
            label, place = fields["prompt_label"], fields["promptIdx"]
            is_only = labels[flat.parts["model"]][label] == 1
            numbered[role] = label if is_only else f"{label} ({place})"
        yield flat._replace(parts={**flat.parts, **numbered}, fields=fields)


def is_table(file: Path) -> bool:
    """Return whether a file is a CSV of promptfoo, by its header and first output."""
    if not (file.name.lower().removesuffix(".gz").endswith(".csv") and file.is_file()):
        return False
    try:
        return next(table_rows(file), None) is not None
    except RecordError:  # Another reader reports the error.
        return False


def table_rows(file: Path) -> Iterator[Row]:
    """Read the CSV that promptfoo writes as rows of its JSON, one per output.

    Args:
        file: The file. Older ones have status, score and text in one cell.

    Yields:
        Place and result; nothing for another table.

    Raises:
        RecordError: If a row has another number of cells than the header.
    """
    table = (cells for _, cells in csv_rows(file, is_strict=False))
    header = next(table, [])
    if len(header) > MOST_COLUMNS:
        return  # Another reader reports the number.
    # The columns of outputs precede "Status", or in old files are named [provider] prompt.
    is_output = re.compile(r"\[[^\]]+\] ").match
    new = [at for at in range(len(header)) if header[at + 1 : at + 3] == ["Status", "Score"]]
    outputs = new if "Grader Reason" in header else []
    outputs = outputs or [at for at, name in enumerate(header) if is_output(name)]
    for test, cells in enumerate(table if outputs else ()):
        place = Place(str(file), test + 1)
        if len(cells) != len(header):
            raise RecordError(f"{place}: {len(cells)} cells under {len(header)} columns")
        variables = dict(zip(header[: outputs[0]], cells, strict=False))
        variables.pop("Description", None)
        for prompt, start in enumerate(outputs):
            provider, label = re.findall(_OUTPUT, header[start])[0]
            common = {"testIdx": test, "promptIdx": prompt, "vars": variables}
            if result := _result(header[start : start + 5], cells[start : start + 5]):
                yield place, {**common, "provider": provider, "prompt": {"label": label}, **result}


def _result(header: Sequence[str], cells: Sequence[str]) -> dict[str, Any] | None:
    """Read the cells of one output; None if the prompt was not sent."""
    if header[1:2] == ["Status"]:
        (text, status, score), rest = cells[:3], dict(zip(header[3:5], cells[3:5], strict=False))
        named = json_or_text(rest.get("Named Scores") or "{}", "Named Scores")
    elif cell := _CELL.fullmatch(cells[0].strip()):
        status, score, scores, text = cell.groups()
        text = _REASON.split(text, maxsplit=1)[0].lstrip()
        named = dict(re.findall(r"(?<![^,])([^,]+): ([^,]+)", scores or ""))
    else:
        return None
    result = {"response": {"output": text}, "success": status == "PASS", "score": score}
    error = {"failureReason": 2, "error": text} if status == "ERROR" else {}
    return {**result, "namedScores": named, **error} if status else None
