"""Results of promptfoo: its repeats, prompts and providers, and the table that it writes as CSV."""

import csv
import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from surface_consistency.reading import delimited_cells, json_or_text, read_lines
from surface_consistency.results.rows import Cells, Flat, Flats, at
from surface_consistency.results.tools import promptfoo_parts
from surface_consistency.rows.readers import Place, Row

# Variables that promptfoo adds while it runs, with another value in each repeat.
_RUNTIME: Final = ("sessionId", "_conversation")
_OUTPUT: Final = re.compile(r"\[(?P<provider>[^\]]+)\] (?P<label>.*)", re.DOTALL)
_CELL: Final = re.compile(
    r"\[(?P<status>PASS|FAIL|ERROR)\] \((?P<score>[^,)]*)(?:, (?P<named>[^)]*))?\)\s*"
    r"(?P<text>.*?)(?:\s*(?:Pass|Fail) Reason: (?P<reason>.*))?",
    re.DOTALL,
)


def parts(result: Cells, row: Cells) -> Cells:
    """Read model, failure and variables of a result; the variables say what was asked."""
    told = at(result, "testCase.vars") or result.get("vars") or {}
    asked = {name: value for name, value in told.items() if name not in _RUNTIME}
    content = json.dumps(asked, sort_keys=True) if asked else None
    return {"content": content, **promptfoo_parts(result, row)}


def fields(result: Cells) -> Cells:
    """Read what identifies test, prompt and provider of a result."""
    label = at(result, "prompt.label|prompt.display")
    return {
        "provider": promptfoo_parts(result, {})["model"],
        "prompt_label": label,
        "promptIdx": result.get("promptIdx", label),
        "testIdx": result.get("testIdx"),
        "test": result.get("repeatGroupId") or json.dumps(at(result, "testCase.assert")),
    }


def run(flats: Iterable[Flat], file: Path, notes: list[str]) -> Flats:
    """Number tests and repeats, and name several prompts of a provider.

    A repeat has another number of its test (`testIdx`), but equal variables and assertions. If one
    provider answers several prompts, each prompt is a model; of several providers, each prompt is a
    form.
    """
    rows = list(flats)
    if all(flat.fields["testIdx"] is not None for flat in rows):
        rows.sort(key=lambda flat: int(flat.fields["testIdx"]))
    tests: dict[Hashable, int] = {}
    prompts: dict[str, dict[Any, str]] = {}
    seen: Counter[Hashable] = Counter()
    named: list[tuple[int, int]] = []
    for flat in rows:
        own, content = flat.fields, flat.parts["content"]
        test = (content, own["test"]) if content else own["testIdx"]
        number = tests.setdefault(test, len(tests))
        asked = (number, flat.parts["model"], own["promptIdx"])
        named.append((number, seen[asked]))
        seen[asked] += 1
        labels = prompts.setdefault(flat.parts["model"], {})
        labels[own["promptIdx"]] = str(own["prompt_label"])
    has_repeats = max(seen.values(), default=0) > 1
    has_prompts = any(len(labels) > 1 for labels in prompts.values())
    role = "model" if len(prompts) == 1 else "form"
    if has_prompts:
        notes.append(
            f"{file}: the prompts of {', '.join(map(str, prompts))} are each a {role}, called by "
            "their labels (column 'prompt_label'; the providers are in column 'provider')"
        )
    for flat, (number, repeat) in zip(rows, named, strict=True):
        own = flat.fields
        item = own["testIdx"] if own["testIdx"] is not None and not has_repeats else number
        told: dict[str, Any] = {"id": str(item), "repeat": repeat}
        if has_prompts:
            labels = prompts[flat.parts["model"]]
            is_shared = Counter(labels.values())[labels[own["promptIdx"]]] > 1
            told[role] = labels[own["promptIdx"]] + (f" ({own['promptIdx']})" * is_shared)
        rest = {name: value for name, value in own.items() if name != "test"}
        yield flat._replace(parts={**flat.parts, **told}, fields=rest)


def is_table(file: Path) -> bool:
    """Tell the CSV that promptfoo writes by its header: outputs are called [provider] prompt."""
    if Path(file.name.removesuffix(".gz")).suffix.lower() != ".csv" or not file.is_file():
        return False
    lines = (line.decode("utf-8", "replace") for _, line in read_lines(file))
    header = next(filter(None, csv.reader(lines)), [])
    return bool(_outputs(header))


def _outputs(header: Sequence[str]) -> list[int]:
    """List the columns of outputs: those before "Status", or of old files called [provider]."""
    new = [at for at in range(len(header) - 2) if tuple(header[at + 1 : at + 3]) == _STATUS]
    return new or [at for at, name in enumerate(header) if _OUTPUT.fullmatch(name)]


_STATUS: Final = ("Status", "Score")


def table_rows(file: Path) -> Iterator[Row]:
    """Read the CSV that promptfoo writes as rows of its JSON, one per output.

    Args:
        file: The file. Older ones hold status, score and text in one cell.

    Yields:
        Place and result.

    Raises:
        RecordError: If a row has another number of cells than the header.
    """
    cells_of = delimited_cells(file, ",")
    _, header = next(cells_of)
    outputs = _outputs(header)
    for test, (line, cells) in enumerate(cells_of):
        told = dict(zip(header[: outputs[0]], cells, strict=False))
        told.pop("Description", None)
        for prompt, start in enumerate(outputs):
            name = _OUTPUT.fullmatch(header[start])
            result = _result(header[start:], cells[start:])
            if result is None:
                continue
            provider, label = ("", header[start]) if name is None else name.groups()
            yield (
                Place(str(file), line),
                {
                    **{"testIdx": test, "promptIdx": prompt, "vars": told},
                    **{"provider": {"id": provider}, "prompt": {"label": label}, **result},
                },
            )


def _result(header: Sequence[str], cells: Sequence[str]) -> dict[str, Any] | None:
    """Read the cells of one output; None if the prompt was not sent."""
    if tuple(header[1:3]) == _STATUS:
        text, status, score = cells[:3]
        rest = dict(zip(header[3:7], cells[3:7], strict=False))
        named = json_or_text(rest.get("Named Scores") or "{}", "Named Scores")
        reason = rest.get("Grader Reason")
    else:
        cell = _CELL.fullmatch(cells[0].strip())
        if cell is None:
            return None
        status, score, scores, text, reason = cell.groups()
        named = dict(one.split(": ", 1) for one in (scores or "").split(", ") if ": " in one)
    if not status:
        return None
    error = {"failureReason": 2, "error": reason or text or "failed"} if status == "ERROR" else {}
    return {
        **{"response": {"output": text}, "success": status == "PASS", "score": score},
        **{"namedScores": named, **error},
    }
