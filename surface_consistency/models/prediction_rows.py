"""One row of a file of predictions: which columns mean what, in the layouts that people have."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from surface_consistency.errors import ColumnNotFoundError, DataError, RecordError
from surface_consistency.models.harness_logs import (
    array_rows,
    inspect_rows,
    is_array,
    is_inspect_log,
    is_written_out,
    refuse_summary,
    written_out_row,
)
from surface_consistency.reading import (
    delimited_rows,
    find_column,
    first_names,
    json_objects,
    json_or_text,
)
from surface_consistency.schemas.generations import replace_surrogates
from surface_consistency.schemas.settings import Settings

__all__ = [
    "ID_COLUMNS",
    "OUTPUT_COLUMNS",
    "PREDICTION_COLUMNS",
    "PredictionColumns",
    "PredictionRow",
    "PredictionSettings",
    "Reading",
    "accepted_answers",
    "fact_of",
    "file_rows",
    "find_columns",
    "question_of",
    "read_row",
    "shown",
]

ID_COLUMNS: Final = (
    *("id", "question_id", "prompt_id", "instance_id", "example_id", "qid", "idx"),
    *("question", "prompt"),
)
"""Columns that may name the question; the first whose value names one counts."""

PREDICTION_COLUMNS: Final = ("prediction", "pred")
"""Columns that hold the answer alone; they go before all others."""

OUTPUT_COLUMNS: Final = (
    *("text", "output", "response", "generation", "generated_text", "model_output", "completion"),
    "answer",
)
"""Columns that hold an output where there is only one of them, since each may be something else."""

_FACT_COLUMNS: Final = ("triplet_id", "fact_id")
_ANSWER_COLUMNS: Final = ("possible_answers", "object_aliases", "answers", "target")
_DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}
_SUFFIXES: Final = (".jsonl", ".ndjson", ".json", *_DELIMITERS)
_BATCH: Final = 1024


class PredictionSettings(Settings):
    """How predictions are read."""

    id_column: str | None = None
    """Column of question ids or question texts; the usual names by default."""

    text_column: str | None = None
    """Column of the generated text; the usual names by default."""

    strip_prompt: bool = False
    """Whether a prompt with which an output begins is cut off it."""

    blank: Literal["missing", "wrong"] = "missing"
    """Whether a blank prediction is a missing one or a wrong answer."""

    in_order: str | None = None
    """Digest of the questions' texts, where rows that name no question stand in their order."""

    harness_filter: str | None = None
    """Filter of samples of lm-evaluation-harness whose text is taken, such as strict-match; the
    unfiltered text by default."""


class PredictionRow(NamedTuple):
    """One row of a file."""

    place: str
    """File and line."""

    fields: Mapping[str, Any]
    """Cells by column."""


class PredictionColumns(NamedTuple):
    """What the columns of a file mean."""

    names: tuple[str, ...]
    """Columns that may name the question, best first; of a sample, the field of `doc` if given."""

    text: str
    """Column of the text."""

    prompt: str | None
    """Column of the prompt; None where there is none."""

    is_sample: bool
    """Whether the rows are samples of lm-evaluation-harness."""


class Reading(NamedTuple):
    """What one row tells."""

    text: str | None
    """The output; None where it is null."""

    prompt: str | None
    """The row's own prompt."""

    names: tuple[str, ...]
    """What the row calls its question, best first."""

    n_texts: int = 1
    """Texts that differ, of which this is the first."""


def file_rows(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Read the rows of a file by its suffix, or those of a folder of `datasets`.

    Args:
        file: JSON, one object a line or a list of them, CSV, TSV, each of them packed (.gz) too;
            Parquet; or what `Dataset.save_to_disk` wrote. Results of OpenAI's batches are laid
            flat: `id` is what the request was called, `prediction` the text of the reply, null
            where the request failed; documents of lm-eval 0.3, see `written_out_row`, too.

    Yields:
        Line or row from 1, and the cells of each row.

    Raises:
        DataError: If the kind of file is unknown, it holds the results of lm-eval without its
            samples, or the folder holds several splits.
        RecordError: If a row is broken; names file and line.
    """
    for number, row in _rows(file):
        if _is_batch(row):
            yield number, _batch_result(row, f"{file}:{number}")
        else:
            yield number, written_out_row(row, file, number) if is_written_out(row) else row


def _rows(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Read the rows of a file as they are."""
    refuse_summary(file)
    if is_inspect_log(file):
        return inspect_rows(file)
    if file.is_dir():
        return _dataset_rows(file)
    is_packed = file.suffix.lower() == ".gz"
    suffix = Path(file.stem if is_packed else file.name).suffix.lower()
    if suffix == ".parquet" and not is_packed:
        return _parquet_rows(file)
    if suffix not in _SUFFIXES:
        raise DataError(
            f"{file}: unknown kind of file {suffix!r}; save the predictions as one of "
            f"{', '.join(_SUFFIXES)}, perhaps packed (.gz), or .parquet, or give a log of "
            "inspect_ai"
        )
    if suffix in _DELIMITERS:
        return delimited_rows(file, _DELIMITERS[suffix])
    return array_rows(file) if is_array(file) else json_objects(file)


def _parquet_rows(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Read a Parquet file, some rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(batch_size=_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except pa.ArrowException as error:
        raise DataError(f"{file} is no readable Parquet file: {error}") from error


def _dataset_rows(folder: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
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
    for number, row in enumerate(rows, start=1):
        yield number, dict(row)


def _is_batch(row: Mapping[str, Any]) -> bool:
    """Tell a result of OpenAI's batches by its fields."""
    return "custom_id" in row and "response" in row


def _batch_result(row: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Lay a result flat: what the request was called, and the text of the reply."""
    response = row["response"]
    body = response.get("body") if isinstance(response, dict) else None
    text = None
    if isinstance(body, dict) and row.get("error") is None and not body.get("error"):
        text = _reply_text(body, place)
    return {"id": row["custom_id"], "prediction": text}


def _reply_text(body: Mapping[str, Any], place: str) -> str | None:
    """Take the text out of a reply: of a chat, of a completion, or of the responses' form."""
    text: Any
    try:
        if "choices" in body:
            choice = body["choices"][0]
            text = choice["message"]["content"] if "message" in choice else choice["text"]
        else:
            said = [item for item in body["output"] if item.get("type") == "message"]
            parts = [part for item in said for part in item["content"]]
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


def find_columns(
    fields: Mapping[str, Any], file: Path, settings: PredictionSettings
) -> PredictionColumns:
    """Tell what the columns of a file mean.

    Args:
        fields: Its first row.
        file: The file, for messages.
        settings: Columns that the user names.

    Returns:
        The columns.

    Raises:
        ColumnNotFoundError: If a named column is missing, none holds the text or several could.
    """
    if _is_sample(fields):
        is_raw = "resps" in fields and settings.harness_filter is None
        text = settings.text_column or ("resps" if is_raw else "filtered_resps")
        named = () if settings.id_column in (None, "doc_id") else (settings.id_column,)
        return PredictionColumns(tuple(filter(None, named)), text, None, is_sample=True)
    if settings.id_column is not None:
        names: tuple[str, ...] = (_named(settings.id_column, "id_column", fields, file),)
    else:
        names = tuple(c for name in ID_COLUMNS if (c := find_column(name, fields)) is not None)
    if settings.text_column is not None:
        text = _named(settings.text_column, "text_column", fields, file)
    else:
        text = _text_column(fields, file)
    prompt = find_column("prompt", fields)
    return PredictionColumns(
        tuple(name for name in names if name != text), text, prompt, is_sample=False
    )


def _named(column: str, argument: str, fields: Mapping[str, Any], file: Path) -> str:
    """Find a column that the user names."""
    found = find_column(column, fields)
    if found is None:
        raise ColumnNotFoundError(
            f"{file}: no column {column!r}; saw {first_names(list(fields))}; name one of them by "
            f"{argument}"
        )
    return found


def _text_column(fields: Mapping[str, Any], file: Path) -> str:
    """Choose the column of the text by what the names mean; refuse where two could be it."""
    for candidates in (PREDICTION_COLUMNS, OUTPUT_COLUMNS):
        found = [c for name in candidates if (c := find_column(name, fields)) is not None]
        if len(found) > 1:
            raise ColumnNotFoundError(
                f"{file}: columns {', '.join(map(repr, found))} could each be the prediction; say "
                "which is it by text_column"
            )
        if found:
            return found[0]
    looked_for = ", ".join((*PREDICTION_COLUMNS, *OUTPUT_COLUMNS))
    raise ColumnNotFoundError(
        f"{file}: no column with the prediction; looked for {looked_for}; saw "
        f"{first_names(list(fields))}; name it by text_column"
    )


def read_row(row: PredictionRow, columns: PredictionColumns) -> Reading:
    """Read one row.

    Args:
        row: The row.
        columns: What its columns mean.

    Returns:
        Its text, its prompt and what it calls its question.

    Raises:
        RecordError: If it is of another layout or a cell is not what its column is for.
    """
    return _sample(row, columns) if columns.is_sample else _plain(row, columns)


def _plain(row: PredictionRow, columns: PredictionColumns) -> Reading:
    """Read one row of a plain file."""
    given = {name: row.fields[name] for name in columns.names if name in row.fields}
    if (columns.names and not given) or columns.text not in row.fields:
        name = columns.text if given else columns.names[0]
        raise RecordError(f"{row.place}: no field {name!r}; saw {first_names(row.fields)}")
    prompt = None if columns.prompt is None else row.fields.get(columns.prompt)
    prompt = prompt if isinstance(prompt, str) else None
    text = _text_of(row, row.fields[columns.text])
    return Reading(text, prompt, _names(row, given, prompt, columns.prompt))


def _is_sample(fields: Mapping[str, Any]) -> bool:
    """Tell samples of lm-evaluation-harness by their fields."""
    return "doc" in fields and ("resps" in fields or "filtered_resps" in fields)


def _sample(row: PredictionRow, columns: PredictionColumns) -> Reading:
    """Read one sample of lm-evaluation-harness."""
    doc = row.fields.get("doc")
    if not isinstance(doc, dict) or not _is_sample(row.fields):
        raise RecordError(f"{row.place}: not a sample of lm-evaluation-harness like the first line")
    prompt = _prompt(row.fields.get("arguments"))
    if columns.names:
        name = find_column(columns.names[0], doc)
        if name is None:
            raise ColumnNotFoundError(
                f"{row.place}: no field {columns.names[0]!r} in `doc`; saw "
                f"{first_names(doc)}; name one of them by id_column"
            )
        given = {f"doc.{name}": doc[name]}
    else:
        given = {f"doc.{name}": doc[name] for name in ("id", "question_id") if name in doc}
        if isinstance(doc.get("question"), str) and doc["question"]:
            given["doc.question"] = doc["question"]
        elif not given and prompt:
            given["arguments"] = prompt
    if not given:
        raise RecordError(
            f"{row.place}: `doc` has neither id, question_id nor question and `arguments` holds "
            "no prompt; name the field of `doc` that names the question by id_column"
        )
    names = _names(row, given, prompt, "arguments")
    text = _text_of(row, _response(row, columns.text))
    return Reading(text, prompt, names, _n_responses(row.fields.get(columns.text)))


def _prompt(arguments: Any) -> str | None:  # noqa: ANN401
    """Take the prompt out of the arguments of a sample: of the first request, its first part."""
    for _ in range(2):
        if isinstance(arguments, dict):
            arguments = list(arguments.values())
        arguments = arguments[0] if isinstance(arguments, list) and arguments else None
    return arguments if isinstance(arguments, str) and arguments else None


def _response(row: PredictionRow, name: str) -> str:
    """Take the first response of a sample."""
    value: object = row.fields.get(name)
    while isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, str):
        raise RecordError(
            f"{row.place}: field {name!r} holds no generated text but {shown(value)}; only "
            "samples of generation tasks (output_type generate_until) hold one; log-likelihoods "
            "are read by `run` with --read multiple-choice --runner stored-scores"
        )
    return value


def _n_responses(value: object) -> int:
    """Count the different responses to the first request of a sample, as with `repeats`."""
    first = value[0] if isinstance(value, list) and value else None
    texts = {text for text in first if isinstance(text, str)} if isinstance(first, list) else set()
    return max(len(texts), 1)


def _names(
    row: PredictionRow, given: Mapping[str, object], prompt: str | None, prompt_column: str | None
) -> tuple[str, ...]:
    """Read what a row calls its question: strings, whole numbers as their digits, prompts last.

    A prompt beside other names goes by its question alone, since it takes more room than they do.
    """
    names: dict[str, None] = {}
    for name, value in given.items():
        if name == prompt_column and len(given) > 1:
            continue
        if isinstance(value, int) and not isinstance(value, bool):
            names[str(value)] = None
        elif isinstance(value, str) and value.strip():
            names[value.strip()] = None
        elif len(given) == 1:
            raise RecordError(
                f"{row.place}: field {name!r}: an identifier is a string or a whole number, got "
                f"{shown(value)}"
            )
    if prompt and (question := question_of(prompt)):
        names[question] = None
    if given and not names:
        raise RecordError(
            f"{row.place}: none of {', '.join(map(repr, given))} names the question; an identifier "
            "is a string or a whole number"
        )
    return tuple(names)


def _text_of(row: PredictionRow, value: object) -> str | None:
    """Read a predicted text; what UTF-8 cannot hold is replaced."""
    if value is None:
        return None
    if isinstance(value, str):
        return replace_surrogates(value)
    raise RecordError(f"{row.place}: a prediction is a string, got {shown(value)}")


def question_of(prompt: str) -> str | None:
    r"""Take the question off the end of a prompt in the papers' form.

    Args:
        prompt: The prompt, of which the last line may be "Q: ... A:".

    Returns:
        The question; None where the prompt ends otherwise.

    Examples:
        >>> question_of("Q: Who? A: Cohen\n\nQ: What? A:")
        'What?'
    """
    _, start, question = f"\n{prompt}".rpartition("\nQ: ")
    return question.removesuffix(" A:") if start and question.endswith(" A:") else None


def fact_of(fields: Mapping[str, Any]) -> str | None:
    """Read the id of the fact that a row is about, its own or that of its `doc`.

    Args:
        fields: The row.

    Returns:
        The id as text; None where the row tells none.
    """
    cells = _cells(fields)
    for name in _FACT_COLUMNS:
        column = find_column(name, cells)
        if column is not None and cells[column] is not None:
            return str(cells[column]).strip()
    return None


def accepted_answers(fields: Mapping[str, Any]) -> set[str]:
    """Read the accepted answers of a row, its own or those of its `doc`.

    Args:
        fields: The row.

    Returns:
        The answers without white space around them; empty where the row tells none.
    """
    cells = _cells(fields)
    for name in _ANSWER_COLUMNS:
        column = find_column(name, cells)
        if column is None:
            continue
        value = cells[column]
        if isinstance(value, str) and value.lstrip().startswith("["):
            value = json_or_text(value, column)
        items = value if isinstance(value, list) else [value]
        if found := {item.strip() for item in items if isinstance(item, str) and item.strip()}:
            return found
    return set()


def shown(value: object) -> str:
    """Show a value of a row in a message, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _cells(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Lay the fields of a sample's `doc` beside its own."""
    doc = fields.get("doc")
    return {**fields, **doc} if isinstance(doc, dict) else fields
