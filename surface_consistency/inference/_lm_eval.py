"""Samples of lm-evaluation-harness: the lines of a `samples_*.jsonl` file."""

from collections.abc import Mapping
from typing import Any

from surface_consistency.errors import ColumnNotFoundError, RecordError
from surface_consistency.inference._rows import Row, identifier, shown, text_of

__all__ = ["is_lm_eval", "lm_eval_pair"]


def is_lm_eval(fields: Mapping[str, Any]) -> bool:
    """Tell samples of lm-evaluation-harness by their fields."""
    return "doc" in fields and ("resps" in fields or "filtered_resps" in fields)


def lm_eval_pair(
    row: Row, id_column: str | None, text_column: str | None
) -> tuple[str, str, str | None]:
    """Read one sample of lm-evaluation-harness."""
    doc = row.fields.get("doc")
    if not isinstance(doc, dict) or not is_lm_eval(row.fields):
        raise RecordError(f"{row.place}: not a sample of lm-evaluation-harness like the first line")
    text = text_of(row, _lm_eval_text(row, text_column))
    return row.place, _lm_eval_identifier(row, doc, id_column), text


def _lm_eval_identifier(row: Row, doc: Mapping[str, Any], id_column: str | None) -> str:
    """Take the document's identifier, else its question, else the prompt."""
    for name in ("id", "question_id") if id_column is None else (id_column,):
        if name in doc:
            return identifier(row, f"doc.{name}", doc[name])
    if id_column is not None:
        raise ColumnNotFoundError(
            f"{row.place}: no field {id_column!r} in `doc`; saw {', '.join(map(str, doc))}"
        )
    question = doc.get("question")
    if isinstance(question, str) and question:
        return question
    arguments = row.fields.get("arguments")
    if isinstance(arguments, dict):
        arguments = list(arguments.values())
    request = arguments[0] if isinstance(arguments, list) and arguments else None
    if isinstance(request, dict):
        request = list(request.values())
    prompt = request[0] if isinstance(request, list) and request else None
    if not isinstance(prompt, str) or not prompt:
        raise RecordError(
            f"{row.place}: `doc` has neither id, question_id nor question and `arguments` holds "
            "no prompt; name the identifier by `id_column`"
        )
    return prompt


def _lm_eval_text(row: Row, text_column: str | None) -> str:
    """Take the first response."""
    name = text_column or ("resps" if "resps" in row.fields else "filtered_resps")
    value: object = row.fields.get(name)
    while isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, str):
        raise RecordError(
            f"{row.place}: field {name!r} holds no generated text but {shown(value)}; only "
            "samples of generation tasks (output_type generate_until) can be scored"
        )
    return value
