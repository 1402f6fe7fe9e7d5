"""One row of a file of predictions: which columns mean what, and what it tells."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from surface_consistency.errors import RecordError
from surface_consistency.reading import find_column, first_names, json_or_text
from surface_consistency.results.rows import shown
from surface_consistency.results.samples import Option, is_sample, sample_options
from surface_consistency.rows.columns import POPQA_COLUMNS, REDIRECTQA_COLUMNS, resolve_columns
from surface_consistency.rows.readers import Place
from surface_consistency.schemas.generations import ANSWER_FIELDS, replace_surrogates
from surface_consistency.schemas.scoring import best_option
from surface_consistency.schemas.settings import Settings

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

UNSURE_COLUMNS: Final = ("text", "answer")
"""Those of them that hold the reference in other files: no other free text may stand beside."""

_FACT_COLUMNS: Final = ("triplet_id", "fact_id")
_ANSWER_COLUMNS: Final = ("possible_answers", "object_aliases", "answers", "target")
_NO_OUTPUTS: Final = frozenset(
    name.casefold()
    for name in (
        *(*ID_COLUMNS, *_FACT_COLUMNS, *_ANSWER_COLUMNS, *ANSWER_FIELDS, *POPQA_COLUMNS),
        *(name for names in REDIRECTQA_COLUMNS.values() for name in names),
        *("model", "task", "relation", "category", "topic", "condition", "group", "prompt_key"),
    )
)
_WORD: Final = re.compile(r"(?:\A|\s)[^\W\d_]{2,}(?:[\s.,!?]|\Z)")
_SAMPLE_NAMES: Final = ("id", "question_id", "question", "arguments")


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

    def takes(self, fields: Mapping[str, Any]) -> bool:
        """Tell whether a row is one of the filter that is asked for, if one is."""
        return self.harness_filter in (None, fields.get("filter"))


class PredictionColumns(NamedTuple):
    """What the columns of a file mean."""

    names: tuple[str, ...]
    """Columns that may name the question, best first."""

    text: str
    """Column of the text."""

    prompt: str | None
    """Column of the prompt; None where there is none."""

    is_sample: bool
    """Whether the rows are samples of lm-evaluation-harness."""

    is_named: bool
    """Whether the user or the layout says which column holds the text."""

    is_unsure: bool
    """Whether it is one of `UNSURE_COLUMNS`."""


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

    is_tied: bool = False
    """Whether options are equally probable, so that none is the text."""


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
    of_sample = is_sample(fields)
    named, prompt = settings.id_column, "prompt"
    ids: tuple[str, ...] = ID_COLUMNS
    if of_sample:
        is_raw = "resps" in fields and settings.harness_filter is None
        texts: tuple[str, ...] = ("resps" if is_raw else "filtered_resps",)
        # A sample's number names no question; where the text is shared it tells the place.
        named, ids, prompt = None if named == "doc_id" else named, _SAMPLE_NAMES, "arguments"
    elif settings.text_column is not None:
        texts = ()
    else:
        kinds = (PREDICTION_COLUMNS, OUTPUT_COLUMNS)
        texts = next(
            (kind for kind in kinds if any(find_column(name, fields) for name in kind)),
            (*PREDICTION_COLUMNS, *OUTPUT_COLUMNS),
        )
    given = {"id": named, "text": settings.text_column}
    columns = resolve_columns(
        fields,
        {"id": (), "text": texts, "prompt": (prompt,)},
        overrides={field: column for field, column in given.items() if column is not None},
        required=["text"],
        source=str(file),
        spelled="{}_column={!r}".format,
    )
    names = [columns["id"]] if "id" in columns else [find_column(name, fields) for name in ids]
    text = columns["text"]
    return PredictionColumns(
        tuple(name for name in names if name not in (None, text)),
        text,
        columns.get("prompt"),
        is_sample=of_sample,
        is_named=of_sample or settings.text_column is not None,
        is_unsure=settings.text_column is None and find_column(text, UNSURE_COLUMNS) is not None,
    )


def other_texts(fields: Mapping[str, Any], columns: PredictionColumns) -> dict[str, str]:
    """Find what may be the output in place of the column that was taken.

    Args:
        fields: A row.
        columns: What its columns mean.

    Returns:
        The cells that hold words, without columns that are known to hold something else.
    """
    return {
        name: value
        for name, value in fields.items()
        if isinstance(value, str)
        and name not in (columns.text, *columns.names)
        and name.strip().casefold() not in _NO_OUTPUTS
        and _WORD.search(value)
    }


def read_row(place: Place, fields: Mapping[str, Any], columns: PredictionColumns) -> Reading:
    """Read one row.

    Args:
        place: Where it stands.
        fields: Its cells.
        columns: What its columns mean.

    Returns:
        Its text, its prompt and what it calls its question.

    Raises:
        RecordError: If it is of another layout or a cell is not what its column is for.
    """
    given = {name: fields[name] for name in columns.names if name in fields}
    if (columns.names and not given) or columns.text not in fields:
        name = columns.text if given else columns.names[0]
        raise RecordError(f"{place}: no field {name!r}; saw {first_names(fields)}")
    prompt = None if columns.prompt is None else fields.get(columns.prompt)
    text = fields[columns.text]
    n_texts, is_tied = 1, False
    options = sample_options(fields, place) if columns.is_sample else None
    if options is not None:
        prompt, text = options[0].context, _chosen(options, place)
        is_tied = text is None
    elif columns.is_sample:
        prompt = _first(prompt)
        n_texts = len({item for item in _responses(text) if isinstance(item, str)})
        if not isinstance(_first(text), str):
            raise RecordError(
                f"{place}: field {columns.text!r} holds no generated text but {shown(text)}; only "
                "samples of generation tasks (output_type generate_until) and of choices "
                "(multiple_choice) tell an answer; log-likelihoods of texts are read by `run` with "
                "--read multiple-choice --runner stored-scores"
            )
        text = _first(text)
    if text is not None and not isinstance(text, str):
        raise RecordError(f"{place}: a prediction is a string, got {shown(text)}")
    prompt = prompt if isinstance(prompt, str) else None
    return Reading(
        None if text is None else replace_surrogates(text),
        prompt,
        _names(place, given, prompt, columns.prompt),
        n_texts,
        is_tied,
    )


def _chosen(options: list[Option], place: Place) -> str | None:
    """Take the most probable option; None where several are."""
    if len({option.text for option in options}) < max(len(options), 2):
        raise RecordError(
            f"{place}: the log-likelihoods are of {shown(options[0].text)} "
            f"{'alone' if len(options) == 1 else 'and other texts, one of them twice'}, so they "
            "choose among no options; only samples of choices (output_type multiple_choice) tell "
            "an answer in this way"
        )
    best = best_option([option.log_probability for option in options])
    return None if best is None else options[best].text


def _first(value: object) -> object:
    """Take the first value out of lists and objects."""
    while isinstance(value, dict | list) and value:
        value = next(iter(value.values() if isinstance(value, dict) else value))
    return value


def _responses(value: object) -> list[object]:
    """List the responses to the first request of a sample, several with `repeats`."""
    first = value[0] if isinstance(value, list) and value else None
    return first if isinstance(first, list) else [first]


def _names(
    place: Place, given: Mapping[str, object], prompt: str | None, prompt_column: str | None
) -> tuple[str, ...]:
    """Read what a row calls its question: strings, whole numbers as their digits, prompts last.

    A prompt beside other names goes by its question alone, since it takes more room than they do.
    """
    names: dict[str, None] = {}
    for column, value in given.items():
        if column == prompt_column:
            continue
        if isinstance(value, int) and not isinstance(value, bool):
            names[str(value)] = None
        elif isinstance(value, str) and value.strip():
            names[value.strip()] = None
    if not names and prompt_column in given and prompt and prompt.strip():
        names[prompt.strip()] = None
    if prompt and (question := question_of(prompt)):
        names[question] = None
    if given and not names:
        cells = ", ".join(f"{column!r} {shown(value)}" for column, value in given.items())
        raise RecordError(
            f"{place}: an identifier is a string or a whole number, and none names the question: "
            f"{cells}"
        )
    return tuple(names)


def question_of(prompt: str) -> str | None:
    r"""Take the question off the end of a prompt in the papers' form.

    Args:
        prompt: The prompt, which may end with "Q: ... A:", the mark on a line of its own or not.

    Returns:
        The question; None where the prompt ends otherwise.

    Examples:
        >>> question_of("Q: Who? A: Cohen\n\nQ: What? A:")
        'What?'
    """
    _, start, question = f"\n{prompt}".rpartition("\nQ: ")
    return question[:-3] if start and question.endswith((" A:", "\nA:")) else None


def fact_of(fields: Mapping[str, Any]) -> str | None:
    """Read the id of the fact that a row is about.

    Args:
        fields: The row.

    Returns:
        The id as text; None where the row tells none.
    """
    for name in _FACT_COLUMNS:
        column = find_column(name, fields)
        if column is not None and fields[column] is not None:
            return str(fields[column]).strip()
    return None


def accepted_answers(fields: Mapping[str, Any]) -> set[str]:
    """Read the accepted answers of a row.

    Args:
        fields: The row.

    Returns:
        The answers without white space around them; empty where the row tells none.
    """
    for name in _ANSWER_COLUMNS:
        column = find_column(name, fields)
        if column is None:
            continue
        value = fields[column]
        if isinstance(value, str) and value.lstrip().startswith("["):
            value = json_or_text(value, column)
        items = value if isinstance(value, list) else [value]
        if answers := {item.strip() for item in items if isinstance(item, str) and item.strip()}:
            return answers
    return set()
