"""Logs of other harnesses as rows of predictions: inspect_ai's, and those of old lm-eval."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from surface_consistency.errors import DataError, MissingDependencyError, RecordError
from surface_consistency.reading import parse_json, read_document, read_start

__all__ = [
    "array_rows",
    "inspect_rows",
    "is_array",
    "is_inspect_log",
    "is_written_out",
    "refuse_summary",
    "task_of",
    "written_out_row",
]

_HEAD: Final = 4096
_INSPECT: Final = re.compile(
    rb'\A\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:.*"eval"\s*:', re.DOTALL
)
_ARRAY: Final = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*\[\s*[{\]]")
_SUMMARY: Final = re.compile(rb'\A\s*\{\s*"results"\s*:\s*\{')
_WRITTEN_OUT: Final = "_write_out_info"
# What stops an answer is joined to the prompt there, so that more may follow the mark.
_ASKED: Final = re.compile(
    r"(?:\A|\n)(?:Q|Question):[ ]?(?P<question>(?:(?!\n(?:Q|Question):).)*?)\s(?P<mark>A|Answer):"
    r"(?P<stops>[^:]{0,40})\Z",
    re.DOTALL,
)
_SAMPLES: Final = re.compile(r"samples_(?P<task>.+?)_\d{4}-\d\d-\d\dT[\d.:-]+")


def is_inspect_log(file: Path) -> bool:
    """Tell logs of inspect_ai, in either of its two formats.

    Args:
        file: Any file.

    Returns:
        Whether it is one, by its suffix `.eval` or by how its JSON begins.
    """
    if file.suffix.lower() == ".eval":
        return True
    return file.suffix.lower() == ".json" and _INSPECT.match(_head(file)) is not None


def inspect_rows(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Read a log of inspect_ai by the tool's own reader, since its format is not settled.

    Args:
        file: The log.

    Yields:
        Number from 1; and id, question (where the sample's metadata tell it), prompt, prediction
        (None of a sample that failed) and task of each sample.

    Raises:
        MissingDependencyError: If inspect_ai is not installed.
        DataError: If the log cannot be read, or was not finished.
    """
    try:
        from inspect_ai.log import read_eval_log, read_eval_log_samples
    except ImportError as error:
        raise MissingDependencyError(
            "Reading a log of inspect_ai", "inspect-ai", "inspect"
        ) from error
    try:
        task = read_eval_log(file, header_only=True).eval.task
        samples = list(read_eval_log_samples(file, all_samples_required=False))
    except (OSError, RuntimeError, ValueError, KeyError, IndexError) as error:
        raise DataError(
            f"{file}: not a log that inspect_ai can read ({type(error).__name__}: {error}); give a "
            "finished log, of a version of inspect_ai that is not newer than the one installed"
        ) from error
    for number, sample in enumerate(samples, start=1):
        prompt = sample.input if isinstance(sample.input, str) else sample.input[-1].text
        yield (
            number,
            {
                "id": str(sample.id),
                "question": (sample.metadata or {}).get("question"),
                "prompt": prompt,
                "prediction": None if sample.error is not None else sample.output.completion,
                "task": task,
            },
        )


def is_array(file: Path) -> bool:
    """Tell a file that holds one JSON array, as samples of lm-eval 0.4.0 to 0.4.2 do.

    Args:
        file: A JSONL file by its name.

    Returns:
        Whether it begins with an object in brackets, or holds empty ones.
    """
    return _ARRAY.match(read_start(file)) is not None


def refuse_summary(file: Path) -> None:
    """Refuse the results of lm-eval, which hold no answers, in favour of its samples.

    Args:
        file: Any file.

    Raises:
        DataError: If it is such a file; says where samples are.
    """
    if file.suffix.lower() == ".json" and file.is_file() and _SUMMARY.match(_head(file)):
        raise DataError(
            f"{file} holds the results of lm-evaluation-harness and no answers; give the samples, "
            "such as samples_<task>_*.jsonl beside it, which the harness writes with --log_samples"
        )


def array_rows(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Read the objects of one JSON array.

    Args:
        file: The file.

    Yields:
        Number of the object from 1, and the object.

    Raises:
        RecordError: If the file is no JSON, or an item no object.
    """
    for number, row in enumerate(parse_json(read_document(file), str(file)), start=1):
        if not isinstance(row, dict):
            raise RecordError(
                f"{file}:{number}: an item holds one JSON object with a row's columns, got "
                f"{json.dumps(row)[:60]}"
            )
        yield number, row


def is_written_out(row: Mapping[str, Any]) -> bool:
    """Tell a document as lm-eval 0.3 wrote it with `--write_out`.

    Args:
        row: Any row of a file.

    Returns:
        Whether it holds what such a document does.
    """
    return "prompt_0" in row and "logit_0" in row


def written_out_row(row: Mapping[str, Any], file: Path, number: int) -> dict[str, Any]:
    r"""Lay out flat what lm-eval 0.3 wrote with `--write_out` (`<task>_write_out_info.json`).

    The number of a document (`doc_id`) is left out: documents were shuffled before they were
    numbered. Its prompt goes on with what ends an answer, which is cut off behind "A:" or
    "Answer:".

    Args:
        row: The document: prompt_0, logit_0 (the text, in tasks that generate), truth.
        file: The file.
        number: Which document.

    Returns:
        prompt; question, where the prompt ends with one; prediction, target and task.

    Raises:
        RecordError: If the document holds log-likelihoods, or no prompt.

    Examples:
        >>> row = {"doc_id": 0, "prompt_0": "Q: Who? A: I\n\nQ: What? A:\n", "logit_0": " It"}
        >>> written_out_row(row, Path("x_write_out_info.json"), 1)["question"]
        'What?'
    """
    prompt, text = row["prompt_0"], row["logit_0"]
    if not isinstance(prompt, str):
        raise RecordError(f"{file}:{number}: prompt_0 holds no text but {str(prompt)[:60]}")
    if not isinstance(text, str):
        raise RecordError(
            f"{file}:{number}: logit_0 holds no generated text but {str(text)[:60]}; only logs of "
            "generation tasks (greedy_until) hold one, and this layout does not tell where an "
            "option begins; run the task in lm-eval 0.4 with --log_samples instead"
        )
    flat = {"prompt": prompt, "prediction": text, "target": row.get("truth")}
    asked = _ASKED.search(prompt)
    if asked is not None:
        end = asked.end("mark") + 1
        flat |= {"prompt": prompt[:end], "question": asked["question"].strip()}
    if file.stem.endswith(_WRITTEN_OUT):
        flat["task"] = file.stem.removesuffix(_WRITTEN_OUT)
    return flat


def task_of(file: Path, fields: Mapping[str, Any]) -> str | None:
    """Name the task of which a file is the log.

    Args:
        file: The file; lm-eval names its samples after their task.
        fields: Its first row.

    Returns:
        The task; None where nothing tells it.

    Examples:
        >>> task_of(Path("samples_triviaqa_2026-11-22T07-51-52.795344.jsonl"), {"doc": {}})
        'triviaqa'
    """
    told = fields.get("task")
    if isinstance(told, str) and told:
        return told
    found = _SAMPLES.fullmatch(file.stem) if "doc" in fields else None
    return None if found is None else found["task"]


def _head(file: Path) -> bytes:
    """Read the beginning of a file."""
    with file.open("rb") as content:
        return content.read(_HEAD)
