"""Result files of other tools as rows: tables, data sets, and the logs that tools write.

Each layout of rows that is no plain table has an entry in `LAYOUTS`: the columns by which it is
told, and what lays its rows flat.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from surface_consistency.errors import DataError, MissingDependencyError, RecordError
from surface_consistency.reading import first_names
from surface_consistency.runs.readers import Place, Row, read_rows

__all__ = [
    "LAYOUTS",
    "SAMPLE_FIELDS",
    "Layout",
    "flat_row",
    "is_sample",
    "result_rows",
    "sample_row",
    "shown",
    "task_of",
    "written_out_row",
]

_Cells = Mapping[str, Any]

SAMPLE_FIELDS: Final = frozenset(
    {
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    }
)
"""Fields of a sample of lm-evaluation-harness besides its scores."""

_HEAD: Final = 4096
_INSPECT: Final = re.compile(
    rb'\A\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:.*"eval"\s*:', re.DOTALL
)
_SUMMARY: Final = re.compile(rb'\A\s*\{\s*"results"\s*:\s*\{')
_WRITTEN_OUT: Final = "_write_out_info"
_REPLACED: Final = frozenset({"doc", "target", "doc_hash", "prompt_hash", "target_hash"})
# What stops an answer is joined to the prompt there, so that more may follow the mark.
_ASKED: Final = re.compile(
    r"(?:\A|\n)(?:Q|Question):[ ]?(?P<question>(?:(?!\n(?:Q|Question):).)*?)\s(?P<mark>A|Answer):"
    r"(?P<stops>[^:]{0,40})\Z",
    re.DOTALL,
)
_SAMPLES: Final = re.compile(r"samples_(?P<task>.+?)_\d{4}-\d\d-\d\dT[\d.:-]+")


class Layout(NamedTuple):
    """Rows of a tool that are no plain table."""

    columns: frozenset[str]
    """Columns that every row has, by which the layout is told."""

    flatten: Callable[[_Cells, Place], dict[str, Any]]
    """Lays a row flat; its place is for messages."""


def result_rows(file: Path) -> Iterator[Row]:
    """Read the rows of a file by its suffix, or those of a folder of `datasets`, laid flat.

    Args:
        file: What `read_rows` reads; a log of inspect_ai; or what `Dataset.save_to_disk` wrote.
            Results of OpenAI's batches come as `id`, what the request was called, and
            `prediction`, the text of the reply, null where the request failed; documents of lm-eval
            0.3 as `written_out_row` has them; samples of later ones with the fields of their
            document beside their own, see `sample_row`.

    Yields:
        Place and cells of each row.

    Raises:
        DataError: If the kind of file is unknown, it holds the results of lm-eval without its
            samples, or the folder holds several splits.
        RecordError: If a row is broken; names file and line.
    """
    _refuse_summary(file)
    rows = read_rows(file) if file.is_file() and not _is_inspect_log(file) else _tool_rows(file)
    for place, row in rows:
        yield place, flat_row(row, place)


def flat_row(row: _Cells, place: Place) -> _Cells:
    """Lay a row flat by its layout; a row of a plain table comes back as it is.

    Args:
        row: The row.
        place: Where it stands.

    Returns:
        Its cells.
    """
    for layout in LAYOUTS:
        if layout.columns <= row.keys():
            return layout.flatten(row, place)
    return row


def _tool_rows(file: Path) -> Iterator[Row]:
    """Read what its tool alone can read."""
    rows = _dataset_rows(file) if file.is_dir() else _inspect_rows(file)
    for number, row in enumerate(rows, start=1):
        yield Place(str(file), number), row


def _dataset_rows(folder: Path) -> Iterator[_Cells]:
    """Read what `save_to_disk` wrote."""
    splits = sorted(path.parent.name for path in folder.glob("*/state.json"))
    if splits:
        raise DataError(
            f"{folder} holds several splits; give the folder of one: "
            f"{', '.join(str(folder / name) for name in splits)}"
        )
    import datasets

    try:
        rows = datasets.load_from_disk(str(folder))
    except (OSError, ValueError) as error:
        raise DataError(f"{folder} cannot be read by datasets.load_from_disk: {error}") from error
    yield from map(dict, rows)


def _is_inspect_log(file: Path) -> bool:
    """Tell logs of inspect_ai, in either of its two formats."""
    suffix = file.suffix.lower()
    return suffix == ".eval" or (suffix == ".json" and _INSPECT.match(_head(file)) is not None)


def _inspect_rows(file: Path) -> Iterator[_Cells]:
    """Read a log of inspect_ai by the tool's own reader, since its format is not settled.

    Yields:
        id, question (where the sample's metadata tell it), prompt, prediction (None of a sample
        that failed) and task of each sample.

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
    for sample in samples:
        prompt = sample.input if isinstance(sample.input, str) else sample.input[-1].text
        yield {
            "id": str(sample.id),
            "question": (sample.metadata or {}).get("question"),
            "prompt": prompt,
            "prediction": None if sample.error is not None else sample.output.completion,
            "task": task,
        }


def _refuse_summary(file: Path) -> None:
    """Refuse the results of lm-eval, which hold no answers, in favour of its samples."""
    if file.suffix.lower() == ".json" and file.is_file() and _SUMMARY.match(_head(file)):
        raise DataError(
            f"{file} holds the results of lm-evaluation-harness and no answers; give the samples, "
            "such as samples_<task>_*.jsonl beside it, which the harness writes with --log_samples"
        )


def written_out_row(row: _Cells, place: Place) -> dict[str, Any]:
    r"""Lay out flat what lm-eval 0.3 wrote with `--write_out` (`<task>_write_out_info.json`).

    The number of a document (`doc_id`) is left out: documents were shuffled before they were
    numbered. Its prompt goes on with what ends an answer, which is cut off behind "A:" or
    "Answer:".

    Args:
        row: The document: prompt_0, logit_0 (the text, in tasks that generate), truth.
        place: Where it stands.

    Returns:
        prompt; question, where the prompt ends with one; prediction, target and task.

    Raises:
        RecordError: If the document holds log-likelihoods, or no prompt.

    Examples:
        >>> row = {"doc_id": 0, "prompt_0": "Q: Who? A: I\n\nQ: What? A:\n", "logit_0": " It"}
        >>> written_out_row(row, Place("x_write_out_info.json", 1))["question"]
        'What?'
    """
    prompt, text = row["prompt_0"], row["logit_0"]
    if not isinstance(prompt, str):
        raise RecordError(f"{place}: prompt_0 holds no text but {str(prompt)[:60]}")
    if not isinstance(text, str):
        raise RecordError(
            f"{place}: logit_0 holds no generated text but {str(text)[:60]}; only logs of "
            "generation tasks (greedy_until) hold one, and this layout does not tell where an "
            "option begins; run the task in lm-eval 0.4 with --log_samples instead"
        )
    flat = {"prompt": prompt, "prediction": text, "target": row.get("truth")}
    question = _ASKED.search(prompt)
    if question is not None:
        end = question.end("mark") + 1
        flat |= {"prompt": prompt[:end], "question": question["question"].strip()}
    task = Path(place.source).stem
    return {**flat, "task": task.removesuffix(_WRITTEN_OUT)} if _WRITTEN_OUT in task else flat


def _batch_result(row: _Cells, place: Place) -> dict[str, Any]:
    """Lay a result flat: what the request was called, and the text of the reply."""
    response = row["response"]
    body = response.get("body") if isinstance(response, dict) else None
    text = None
    if isinstance(body, dict) and row.get("error") is None and not body.get("error"):
        text = _reply_text(body, place)
    return {"id": row["custom_id"], "prediction": text}


def _reply_text(body: _Cells, place: Place) -> str | None:
    """Take the text out of a reply: of a chat, of a completion, or of the responses' form."""
    text: Any
    try:
        if "choices" in body:
            choice = body["choices"][0]
            text = choice["message"]["content"] if "message" in choice else choice["text"]
        else:
            messages = [item for item in body["output"] if item.get("type") == "message"]
            parts = [part for item in messages for part in item["content"]]
            texts = [part["text"] for part in parts if part.get("type") == "output_text"]
            text = "".join(texts) if texts else None
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise RecordError(
            f"{place}: the body of the response holds no reply of a chat, a completion or the "
            f"responses' form; saw {first_names(list(body))}"
        ) from error
    if isinstance(text, list):
        return "".join(part.get("text", "") for part in text if isinstance(part, dict))
    if text is not None and not isinstance(text, str):
        raise RecordError(f"{place}: the text of the reply is {shown(text)}, and no text")
    return text


def sample_row(row: _Cells, place: Place) -> dict[str, Any]:
    """Lay the document of a sample of lm-evaluation-harness beside the sample's own fields.

    Args:
        row: The sample.
        place: Where it stands.

    Returns:
        The sample, and the fields of its document: by their own names, or as "doc.<name>" where
        the sample has a number, scores or responses of that name.

    Raises:
        RecordError: If its document is no object.
    """
    doc = row["doc"]
    if not isinstance(doc, Mapping):
        raise RecordError(
            f"{place}: a sample of lm-evaluation-harness has an object in `doc`, got {shown(doc)}"
        )
    own = row.keys() - _REPLACED
    return {**row, **{f"doc.{name}" if name in own else name: doc[name] for name in doc}}


def is_sample(row: _Cells) -> bool:
    """Tell samples of lm-evaluation-harness by their fields."""
    return "doc" in row and ("resps" in row or "filtered_resps" in row)


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
    task = fields.get("task")
    if isinstance(task, str) and task:
        return task
    name = _SAMPLES.fullmatch(file.stem) if "doc" in fields else None
    return None if name is None else name["task"]


def _head(file: Path) -> bytes:
    """Read the beginning of a file."""
    with file.open("rb") as content:
        return content.read(_HEAD)


def shown(value: object) -> str:
    """Show a value of a row in a message, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


LAYOUTS: Final = (
    Layout(frozenset({"custom_id", "response"}), _batch_result),
    Layout(frozenset({"prompt_0", "logit_0"}), written_out_row),
    Layout(frozenset({"doc", "resps"}), sample_row),
    Layout(frozenset({"doc", "filtered_resps"}), sample_row),
)
"""Rows of OpenAI's batches; of lm-eval 0.3 (`--write_out`); of lm-evaluation-harness since."""
