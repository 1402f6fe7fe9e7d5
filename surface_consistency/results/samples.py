"""Read samples of all versions of lm-evaluation-harness."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import shown
from surface_consistency.results.rows import Cells, Flat, Flats, at
from surface_consistency.rows.readers import Place
from surface_consistency.schemas.scoring import best_option

SAMPLE_FIELDS: Final = frozenset(
    {
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    }
)
"""Fields of a sample that are not scores."""

_WRITTEN_OUT: Final = "_write_out_info"
_REPLACED: Final = frozenset({"doc", "target", "doc_hash", "prompt_hash", "target_hash"})
# These prompts end with the stop sequence of the answer, so text may follow the mark.
_ASKED: Final = re.compile(
    r"(?:\A|\n)(?:Q|Question):[ ]?(?P<question>(?:(?!\n(?:Q|Question):).)*?)\s(?P<mark>A|Answer):"
    r"(?P<stops>[^:]{0,40})\Z",
    re.DOTALL,
)
_NO_SCORE: Final = re.compile(r"doc_id|prompt_\d+|logit_\d+|truth")
_SEVERAL: Final = "contain several responses (repeats), of which the first is used as the answer"
_TIE: Final = "have several options of equal probability (a tie), so the answer is missing"
_SAMPLES: Final = re.compile(r"samples_(?P<task>.+?)_\d{4}-\d\d-\d\dT[\d.:-]+")


class Option(NamedTuple):
    """A text whose log-probability a sample of lm-evaluation-harness contains."""

    context: str
    """The text before it."""

    text: str
    """The text."""

    log_probability: float
    """Log-probability, the sum over its tokens, in nats."""

    is_greedy: bool
    """Whether each of its tokens is the most probable one."""


def written_out(row: Cells, place: Place) -> Flats:
    r"""Read a document that lm-eval 0.3 wrote with `--write_out` (`<task>_write_out_info.json`).

    The number of a document (`doc_id`) is dropped, because documents were shuffled before they were
    numbered. Its prompt ends with the stop sequence of the answer, which is removed after "A:" or
    "Answer:".

    Args:
        row: The document: prompt_0, logit_0 (the text, in tasks that generate), truth, and its
            scores as text.
        place: Its place.

    Returns:
        prompt, which identifies the sample; question, if the prompt ends with one; prediction,
        target and task.

    Raises:
        RecordError: If the document contains log-likelihoods, or no prompt.

    Examples:
        >>> row = {"doc_id": 0, "prompt_0": "Q: Who? A: I\n\nQ: What? A:\n", "logit_0": " It"}
        >>> written_out(row, Place("x_write_out_info.json", 1))[0].parts["question"]
        'What?'
    """
    prompt, text = row["prompt_0"], row["logit_0"]
    if not isinstance(prompt, str):
        raise RecordError(f"{place}: prompt_0 is {shown(prompt)}, which is not a text")
    if not isinstance(text, str):
        raise RecordError(
            f"{place}: logit_0 is {shown(text)}, which is not a generated text; only logs of "
            "generation tasks (greedy_until) contain one, and this layout does not contain the "
            "start of an option; run the task in lm-eval 0.4 with --log_samples instead"
        )
    flat = {"prompt": prompt, "prediction": text, "target": row.get("truth")}
    question = _ASKED.search(prompt)
    if question is not None:
        end = question.end("mark") + 1
        flat |= {"prompt": prompt[:end], "question": question["question"].strip()}
    task = Path(place.source).stem
    named = {"task": task.removesuffix(_WRITTEN_OUT)} if _WRITTEN_OUT in task else {}
    rest = {name: value for name, value in row.items() if name != "doc_id"}
    scores = {name: rest[name] for name in rest if not _NO_SCORE.fullmatch(name)}
    whole = {**named, **rest, **flat}
    return (Flat({**named, **flat, "id": flat["prompt"]}, scores, {}, whole),)


def harness_sample(row: Cells, place: Place) -> Flats:
    """Read a sample of lm-eval 0.4.

    Args:
        row: The sample.
        place: Its place.

    Returns:
        `doc_id`; the document or its hash as the content; the first filtered response, or the most
        probable option, as the prediction; the first response before any filter (`response`); and
        the fields of the document. The row contains all fields of the sample and of the document
        (`sample_row`).

    Raises:
        RecordError: If its document is not an object.
    """
    whole = sample_row(row, place)
    doc = row["doc"]
    listed = row.get("metrics")
    names = listed if isinstance(listed, list) else [n for n in row if n not in SAMPLE_FIELDS]
    question, response = at(doc, "question|query|problem|input"), at(row, "resps.0.0")
    responses = {text for text in at(row, "resps.0") or () if isinstance(text, str)}
    parts = {
        "doc_id": row.get("doc_id"),
        "question": question if isinstance(question, str) else None,
        "prompt": at(row, "arguments.gen_args_0.arg_0|arguments.0.0"),
        "prediction": at(row, "filtered_resps.0|resps.0.0"),
        "response": response if isinstance(response, str) else None,
        "target": row.get("target") or at(doc, "possible_answers|answers"),
        "filter": row.get("filter"),
        "content": row.get("doc_hash") or _document_hash(doc),
        "doubt": _SEVERAL if len(responses) > 1 else None,
    }
    if not isinstance(parts["prediction"], str | None):
        parts |= _best_option(row, place)
    fields = {**doc, "prompt_hash": row.get("prompt_hash") or _hashed(parts["prompt"])}
    return (Flat(parts, {name: row.get(name) for name in names}, fields, whole),)


def _hashed(prompt: object) -> str | None:
    """Hash a prompt as versions of lm-eval that write `prompt_hash` do."""
    return None if prompt is None else hashlib.sha256(str(prompt).encode()).hexdigest()


def _document_hash(doc: Cells) -> str:
    """Hash a document as versions of lm-eval that write `doc_hash` do."""
    text = json.dumps(doc, indent=2, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _best_option(row: Cells, place: Place) -> dict[str, str | None]:
    """Return the chosen and the correct option of a sample that compares log-probabilities.

    If there is only one text, or a text occurs twice, there is no choice.
    """
    options = sample_options(row, place) or []
    is_choice = 1 < len(options) == len({option.text for option in options})
    best = best_option([option.log_probability for option in options]) if is_choice else None
    target = str(row.get("target"))
    is_number = target.isascii() and target.isdigit() and int(target) < len(options)
    return {
        "prediction": None if best is None else options[best].text.strip(),
        "response": None if best is None else options[best].text,
        "target": options[int(target)].text.strip() if is_number else target,
        "doubt": _TIE if is_choice and best is None else None,
    }


def sample_options(row: Cells, place: Place) -> list[Option] | None:
    """Read the options of a sample of lm-evaluation-harness that compares log-probabilities.

    Args:
        row: The sample.
        place: Its place.

    Returns:
        Context, text and log-probability of each request; None for a sample of another kind, whose
        requests are not pairs of texts.

    Raises:
        RecordError: If the number of log-probabilities differs from that of requests.
    """
    requests = row.get("arguments")
    pairs = [
        list(request.values()) if isinstance(request, dict) else request
        for request in (requests.values() if isinstance(requests, dict) else requests or ())
    ]
    if not pairs or not all(
        isinstance(pair, list) and len(pair) > 1 and all(isinstance(part, str) for part in pair[:2])
        for pair in pairs
    ):
        return None
    responses = row.get("filtered_resps") or row.get("resps")
    if not isinstance(responses, list) or len(responses) != len(pairs):
        raise RecordError(f"{place}: a sample must have as many `resps` as `arguments`")
    options = []
    for (context, text, *_), response in zip(pairs, responses, strict=True):
        # Each unfiltered response is in a list of length one.
        pair = response[0] if isinstance(response, list) and len(response) == 1 else response
        if not isinstance(pair, list) or len(pair) != 2:
            raise RecordError(
                f"{place}: the response to {shown(text)} is {shown(response)}, which is not a pair "
                "of a log-likelihood and a truth value (greedy or not)"
            )
        is_greedy = str(pair[1]).casefold() == "true"
        options.append(Option(context, text, log_probability(pair[0], place), is_greedy))
    return options


def log_probability(value: object, place: Place) -> float:
    """Read a log-probability, which is text in CSV and in files of lm-evaluation-harness.

    Args:
        value: The cell.
        place: Its place.

    Returns:
        The number.

    Raises:
        RecordError: If it is not a number.
    """
    try:
        if not isinstance(value, str) or value.isascii():
            return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        pass
    raise RecordError(f"{place}: {shown(value)} is not a log-probability, which is a number")


def sample_row(row: Cells, place: Place) -> dict[str, Any]:
    """Merge the document of a sample of lm-evaluation-harness with the fields of the sample.

    Args:
        row: The sample.
        place: Its place.

    Returns:
        The sample, and the fields of its document: by their own names, or as "doc.<name>" if the
        sample has a number, scores or responses of that name.

    Raises:
        RecordError: If its document is not an object.
    """
    doc = row["doc"]
    if not isinstance(doc, Mapping):
        raise RecordError(
            f"{place}: `doc` of lm-evaluation-harness must be an object, got {shown(doc)}"
        )
    own = row.keys() - _REPLACED
    return {**row, **{f"doc.{name}" if name in own else name: doc[name] for name in doc}}


def is_sample(row: Cells) -> bool:
    """Return whether a row is a sample of lm-evaluation-harness, by its fields."""
    return "doc" in row and ("resps" in row or "filtered_resps" in row)


def reject_mixed_tasks(files: Iterable[Path]) -> None:
    """Raise an error if files of lm-evaluation-harness have several tasks, as matched by a pattern.

    Args:
        files: The files; those with other names are not checked.

    Raises:
        DataError: If their names contain several tasks; the message names one file of each task.
    """
    first: dict[str, Path] = {}
    for file in files:
        if task := task_in_name(file):
            first.setdefault(task, file)
    if len(first) > 1:
        raise DataError(
            f"the files are samples of {len(first)} tasks of lm-evaluation-harness: "
            + ", ".join(f"{task} ({file})" for task, file in first.items())
            + "; use those of one task, as in samples_TASK_20*.jsonl"
        )


def task_in_name(file: Path) -> str | None:
    """Read the task of samples from their file name.

    Args:
        file: The file, which lm-eval 0.4.3 and later name samples_<task>_<date>.

    Returns:
        The task; None if the name has another form.
    """
    name = _SAMPLES.fullmatch(Path(file.name.removesuffix(".gz")).stem)
    return None if name is None else name["task"]
