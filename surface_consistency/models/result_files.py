"""Result files of other tools as rows: tables, data sets, and the logs that tools write.

Each layout that is no plain table has an entry in `LAYOUTS`: the tool, the columns by which it is
told, and what lays it flat. A file that is one object is a row of a layout like any other.
"""

import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from surface_consistency.errors import DataError, MissingDependencyError, RecordError
from surface_consistency.reading import LONGEST_LINE, first_names, parse_json, read_start
from surface_consistency.runs.readers import Place, Row, read_rows

_Cells = Mapping[str, Any]

Rows = Iterable[_Cells]
"""Rows by column name."""

SAMPLE_FIELDS: Final = frozenset(
    {
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    }
)
"""Fields of a sample of lm-evaluation-harness besides its scores."""

_ZIP: Final = b"PK\x03\x04"
_ZSTANDARD: Final = 93
_GRADES: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_FAILED: Final = 2
_WRITTEN_OUT: Final = "_write_out_info"
_REPLACED: Final = frozenset({"doc", "target", "doc_hash", "prompt_hash", "target_hash"})
# What stops an answer is joined to the prompt there, so that more may follow the mark.
_ASKED: Final = re.compile(
    r"(?:\A|\n)(?:Q|Question):[ ]?(?P<question>(?:(?!\n(?:Q|Question):).)*?)\s(?P<mark>A|Answer):"
    r"(?P<stops>[^:]{0,40})\Z",
    re.DOTALL,
)
_SAMPLES: Final = re.compile(r"samples_(?P<task>.+?)_\d{4}-\d\d-\d\dT[\d.:-]+")
_SCORE: Final = re.compile(r"<p>Score: ([\w.]+)</p>")


class Layout(NamedTuple):
    """Rows of a tool that are no plain table, or a file of it that is one object."""

    tool: str
    """Who writes them, for messages."""

    columns: str
    """Columns that every row has, by which the layout is told."""

    fields: str = ""
    """What becomes what, as `name=path`, or `name` for a field of that name; a path has a dot
    between its steps, and the first of several that leads somewhere is taken (`a.b|c`). The first
    field must be there."""

    spread: str = ""
    """Paths of objects whose fields become columns; "*" is the item itself."""

    items: str = ""
    """Path of the list in which the items stand; none where the row is the item."""

    more: Callable[[_Cells, _Cells], _Cells] | None = None
    """Gives further columns of an item; its second argument is the row in which it stands."""

    rows: Callable[[_Cells, Place], Rows] | None = None
    """Lays a row flat in place of all that, where a mapping does not."""

    def flat(self, row: _Cells, place: Place) -> Rows:
        """Lay a row flat.

        Args:
            row: The row.
            place: Where it stands, for messages.

        Returns:
            Its items, of which those that failed (`error`) have no prediction.
        """
        if self.rows is not None:
            return self.rows(row, place)
        items = _at(row, self.items) if self.items else [row]
        return [self._columns(item, row) for item in items]

    def _columns(self, item: _Cells, row: _Cells) -> dict[str, Any]:
        """Lay an item flat."""
        flat: dict[str, Any] = {}
        for path in self.spread.split():
            flat.update(item if path == "*" else _at(item, path) or {})
        for number, field in enumerate(self.fields.split()):
            name, _, paths = field.partition("=")
            values = (_at(item, path) for path in (paths or name).split("|"))
            flat[name] = next((value for value in values if value is not None), None)
            if number == 0 and flat[name] is None:
                raise KeyError(paths or name)
        if item.get("error"):
            flat["prediction"] = None
        if self.more is not None:
            flat.update(self.more(item, row))
        return flat


def _at(value: Any, path: str) -> Any:  # noqa: ANN401
    """Follow a path into lists and objects; None where it leads nowhere."""
    for step in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


class Option(NamedTuple):
    """A text whose log-probability a sample of lm-evaluation-harness tells."""

    context: str
    """What stands before it."""

    text: str
    """The text."""

    log_probability: float
    """The sum over its tokens, in nats."""

    is_greedy: bool
    """Whether each of its tokens is the most probable one."""


def result_rows(file: Path) -> Iterator[Row]:
    """Read the rows of a file by what it holds, or those of a folder of `datasets`, laid flat.

    Args:
        file: What `read_rows` reads, the files of the tools in `LAYOUTS` among it; a log of
            inspect_ai; or what `Dataset.save_to_disk` wrote. The columns of a tool are `id`,
            `question`, `prompt`, `prediction` (None of a sample that failed), `target`, `model` and
            `task`, as far as it tells them, and its scores and metadata by their own names; samples
            of lm-evaluation-harness keep their fields, see `sample_row`.

    Yields:
        Place and cells of each row.

    Raises:
        DataError: If the kind of file is unknown, it holds the results of a tool without its
            samples, or the folder holds several splits.
        RecordError: If a row is broken; names file and line.
    """
    for place, row in _packed_rows(file):
        for number, flat in enumerate(flat_rows(row, place), start=place.number):
            yield Place(place.source, number), flat


def flat_rows(row: _Cells, place: Place) -> Rows:
    """Lay a row flat by its layout.

    Args:
        row: The row.
        place: Where it stands.

    Returns:
        What it holds; a row of a plain table as it is.

    Raises:
        DataError: If it is a summary of a tool, without samples.
        RecordError: If it is not in the layout that its columns name.
    """
    layout = next((one for one, columns in _TOLD_BY if columns <= row.keys()), None)
    if layout is None:
        return (row,)
    try:
        return list(layout.flat(row, place))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise RecordError(
            f"{place}: not in the layout of {layout.tool} ({type(error).__name__}: {error}), whose "
            f"columns {layout.columns} it has; restore the file, or write its "
            "rows as a plain table"
        ) from error


def _packed_rows(file: Path) -> Iterator[Row]:
    """Read the rows of a file or folder as they stand there."""
    if file.is_dir():
        for number, row in enumerate(_dataset_rows(file), start=1):
            yield Place(str(file), number), row
    elif file.suffix.lower() == ".eval" or (file.is_file() and read_start(file)[:4] == _ZIP):
        yield from _archive_rows(file)
    else:
        yield from read_rows(file)


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


def _archive_rows(file: Path) -> Iterator[Row]:
    """Read the samples of a log of inspect_ai that is an archive, one in memory at a time."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.namelist()
            names = [name for name in members if name.startswith("samples/")]
            if "header.json" not in members:
                raise DataError(
                    f"{file}: not a finished log of inspect_ai, which has a member header.json; "
                    "finish the evaluation (`inspect eval-retry`), and give its log"
                    if any(name.startswith("_journal/") for name in members)
                    else f"{file} is a zip archive and no log of inspect_ai; unpack it, or export "
                    "the sheet of a workbook as CSV"
                )
            header = _member(archive, "header.json", file)
            for number, name in enumerate(names, start=1):
                sample = _member(archive, name, file)
                yield Place(str(file), number), {**header, "samples": [sample]}
    except zipfile.BadZipFile as error:
        raise DataError(f"{file}: not a log that can be read ({error}): copy it again") from error
    if not names:
        raise DataError(f"{file} is the log of inspect_ai without samples; log them and run again")


def _member(archive: zipfile.ZipFile, name: str, file: Path) -> dict[str, Any]:
    """Read a member of an archive that is one JSON object."""
    place = f"{file} ({name})"
    info = archive.getinfo(name)
    if info.compress_type == _ZSTANDARD and not hasattr(zipfile, "ZIP_ZSTANDARD"):
        try:
            import zipfile_zstd  # type: ignore[import-untyped]  # noqa: F401
        except ImportError as error:
            raise MissingDependencyError(
                "Reading a log of inspect_ai", "inspect-ai", "inspect"
            ) from error
    if info.file_size > LONGEST_LINE:
        raise RecordError(
            f"{place}: {info.file_size:,} bytes, unpacked, are more than the {LONGEST_LINE:,} "
            "that one sample may have; write the log without events and attachments"
        )
    try:
        content = archive.read(name)
    # zstd has an error of its own, which is no other's child.
    except Exception as error:
        raise RecordError(f"{place}: cannot be unpacked ({error}): copy the log again") from error
    value = parse_json(content, place, remedy="copy the log again")
    if not isinstance(value, dict):
        raise RecordError(f"{place}: no JSON object but {shown(value)}; copy the log again")
    return value


def _inspect(sample: _Cells, log: _Cells) -> _Cells:
    """Read scores, a grade C, P, I or N as a number, and texts of a sample of inspect_ai."""
    asked, scores = sample["input"], {}
    for scorer, score in (sample.get("scores") or {}).items():
        parts = score["value"]
        for name, value in (parts if isinstance(parts, dict) else {scorer: parts}).items():
            scores[name] = _GRADES.get(value, value) if isinstance(value, str) else value
    if not isinstance(asked, str):
        asked = _text_of(asked[-1]["content"]) if asked else None
    wrote = _text_of(_at(sample["output"], "choices.0.message.content")) or ""
    return {
        **scores,
        "id": str(sample["id"]),
        "prompt": asked,
        "prediction": None if sample.get("error") else wrote,
        "task": log["eval"]["task"],
        "model": log["eval"].get("model"),
    }


def _text_of(content: object) -> str | None:
    """Read the content of a message: a text, or a list of parts of which some are text."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else None


def _no_samples(row: _Cells, place: Place) -> Rows:
    """Refuse a log of inspect_ai that holds its header alone."""
    raise DataError(
        f"{place.source} is the log of inspect_ai without samples; log them and run again"
    )


def _summary(row: _Cells, place: Place) -> Rows:
    """Refuse means without samples; a column that happens to be called so stays."""
    if not isinstance(row["results"], Mapping):
        return (row,)
    raise DataError(
        f"{place.source} holds the results of lm-evaluation-harness or a tool like it and no "
        "answers; give the samples, such as samples_<task>_*.jsonl beside it, which the harness "
        "writes with --log_samples, or details_<task>_*.parquet of lighteval"
    )


def _promptfoo(result: _Cells, row: _Cells) -> _Cells:
    """Name the model, and tell errors apart, which are neither right nor wrong."""
    model = {"model": result["provider"].get("label") or result["provider"]["id"]}
    failed = result.get("failureReason") == _FAILED
    return model | (dict.fromkeys(("prediction", "correct", "score")) if failed else {})


def _deepeval(case: _Cells, row: _Cells) -> _Cells:
    """Name the metrics of deepeval; one that failed has no score."""
    return {metric["name"]: metric.get("score") for metric in case.get("metricsData") or ()}


def _simple_evals(row: _Cells, place: Place) -> Rows:
    """Lay conversations of simple-evals out; the score of each stands in its page alone."""
    for number, (turns, page) in enumerate(zip(row["convos"], row["htmls"], strict=True)):
        score = _SCORE.search(page)
        asked = [turn["content"] for turn in turns if turn["role"] == "user"]
        yield {
            "id": number,
            "question": _text_of(asked[-1]),
            "prediction": _text_of(turns[-1]["content"]) if turns[-1]["role"] != "user" else None,
            "correct": None if score is None else score[1],
        }


def _opencompass(row: _Cells, place: Place) -> Rows:
    """Lay out predictions or details of OpenCompass, which go by their number, and replicas."""
    details = row.get("details", row)
    if isinstance(details, Mapping):
        cells = {name: cell for name, cell in details.items() if isinstance(cell, Mapping)}
        details = [{"id": name, **cell} for name, cell in cells.items()]
    if not isinstance(details, list) or not details:
        return (row,)
    rows: list[_Cells] = []
    for item in details:
        turns = item.get("origin_prompt") or item.get("prompt")
        flat = {
            **item,
            "id": item.get("id", item.get("example_abbr")),
            "prompt": turns[-1]["prompt"] if isinstance(turns, list) else turns,
            "prediction": item.get("prediction", item.get("origin_prediction", item.get("pred"))),
            "target": item.get("gold", item.get("references")),
        }
        flat.pop("pred", None)
        n_replicas = len(item["correct"]) if isinstance(item.get("correct"), list) else 0
        rows += (
            [flat]
            if not n_replicas
            else [
                {name: cell[n] if isinstance(cell, list) else cell for name, cell in flat.items()}
                | {"repeat": n}
                for n in range(n_replicas)
            ]
        )
    return rows


def _openai_event(row: _Cells, place: Place) -> Rows:
    """Keep the events of OpenAI evals that judge a sample."""
    data = row["data"]
    if row["type"] in ("match", "metrics"):
        yield {**data, "id": row["sample_id"], "prediction": data.get("sampled")}


def _helm(row: _Cells, whole: _Cells) -> _Cells:
    """Name the statistics of an instance of HELM."""
    stats = row["stats"]
    if isinstance(stats, list):
        stats = {stat["name"]["name"]: stat.get("mean") for stat in stats}
    texts = {"prediction": row["predicted_text"]} if "predicted_text" in row else {}
    return {**stats, **texts, "perturbation": (row.get("perturbation") or {}).get("name", "none")}


def _lmms_eval(row: _Cells, whole: _Cells) -> _Cells:
    """Read the scores of lmms-eval, which may stand in an object beside their groups."""
    flat: dict[str, Any] = {}
    for name, cell in row.items():
        if isinstance(cell, Mapping) and "score" in cell:
            flat |= {**cell, name: cell["score"]}
    return flat


def written_out_row(row: _Cells, place: Place) -> tuple[_Cells]:
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
        >>> written_out_row(row, Place("x_write_out_info.json", 1))[0]["question"]
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
    named = {"task": task.removesuffix(_WRITTEN_OUT)} if _WRITTEN_OUT in task else {}
    rest = {name: value for name, value in row.items() if name != "doc_id"}
    return ({**named, **rest, **flat},)


def _batch_result(row: _Cells, place: Place) -> Rows:
    """Lay a result flat: what the request was called, and the text of the reply."""
    response = row["response"]
    body = response.get("body") if isinstance(response, dict) else None
    text = None
    if isinstance(body, dict) and row.get("error") is None and not body.get("error"):
        text = _reply_text(body, place)
    yield {"id": row["custom_id"], "prediction": text}


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


def sample_options(row: _Cells, place: Place) -> list[Option] | None:
    """Read the options of a sample of lm-evaluation-harness that compares log-probabilities.

    Args:
        row: The sample.
        place: Where it stands.

    Returns:
        Context, text and log-probability of each request; None for a sample of another kind, whose
        requests are no pairs of texts.

    Raises:
        RecordError: If it has not one log-probability a request.
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
        raise RecordError(f"{place}: a sample has as many `resps` as `arguments`")
    options = []
    for (context, text, *_), response in zip(pairs, responses, strict=True):
        # Unfiltered responses stand in a list of one each.
        told = response[0] if isinstance(response, list) and len(response) == 1 else response
        if not isinstance(told, list) or len(told) != 2:
            raise RecordError(
                f"{place}: the response to {shown(text)} is {shown(response)}, and no pair of a "
                "log-likelihood and whether it is greedy"
            )
        is_greedy = str(told[1]).casefold() == "true"
        options.append(Option(context, text, log_probability(told[0], place), is_greedy))
    return options


def log_probability(value: object, place: Place) -> float:
    """Read a log-probability, which CSV and lm-evaluation-harness write as text.

    Args:
        value: The cell.
        place: Where it stands.

    Returns:
        The number.

    Raises:
        RecordError: If it is none.
    """
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise RecordError(f"{place}: {value!r} is no log-probability, which is a number") from None


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
    return _task_in_name(file) if "doc" in fields else None


def refuse_mixed_tasks(files: Iterable[Path]) -> None:
    """Refuse samples of several tasks of lm-evaluation-harness, which one pattern may name.

    Args:
        files: The files; those under other names pass.

    Raises:
        DataError: If their names are those of several tasks; names one file of each.
    """
    first: dict[str, Path] = {}
    for file in files:
        if task := _task_in_name(file):
            first.setdefault(task, file)
    if len(first) > 1:
        raise DataError(
            f"the files are samples of {len(first)} tasks of lm-evaluation-harness: "
            + ", ".join(f"{task} ({file})" for task, file in first.items())
            + "; give those of one task, as in samples_TASK_20*.jsonl"
        )


def _task_in_name(file: Path) -> str | None:
    """Name the task of samples by their file."""
    name = _SAMPLES.fullmatch(Path(file.name.removesuffix(".gz")).stem)
    return None if name is None else name["task"]


def shown(value: object) -> str:
    """Show a value of a row in a message, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _sample(row: _Cells, place: Place) -> Rows:
    """Lay a sample of lm-evaluation-harness flat."""
    return (sample_row(row, place),)


def _nothing(row: _Cells, place: Place) -> Rows:
    """Pass over what says nothing of a sample; a column that happens to be called so stays."""
    return () if isinstance(next(iter(row.values())), Mapping) else (row,)


LAYOUTS: Final = (
    Layout("OpenAI's batches", "custom_id response", rows=_batch_result),
    Layout("lm-eval 0.3 --write_out", "prompt_0 logit_0", rows=written_out_row),
    Layout("lm-evaluation-harness", "doc resps", rows=_sample),
    Layout("lm-evaluation-harness", "doc filtered_resps", rows=_sample),
    Layout(
        "lmms-eval",
        "doc_id doc_hash input filtered_resps",
        "doc_id prompt=input prediction=filtered_resps.0|filtered_resps",
        spread="*",
        more=_lmms_eval,
    ),
    Layout(
        "lighteval",
        "doc model_response metric",
        "id=doc.id prompt=doc.query prediction=model_response.text.0 task=doc.task_name",
        spread="doc.specific metric",
    ),
    Layout(
        "lighteval before 0.10",
        "example full_prompt predictions metrics",
        "question=example example prompt=full_prompt prediction=predictions.0 target=gold",
        spread="specifics metrics",
    ),
    Layout(
        "inspect_ai",
        "version status eval samples",
        "id epoch question=metadata.question target",
        spread="metadata",
        items="samples",
        more=_inspect,
    ),
    Layout("inspect_ai", "version status eval", rows=_no_samples),
    Layout(
        "HELM",
        "instance_id stats",
        "id=instance_id instance_id trial=train_trial_index",
        more=_helm,
    ),
    Layout(
        "promptfoo",
        "evalId results",
        "id=testIdx prompt=prompt.raw prediction=response.output correct=success score",
        spread="testCase.metadata namedScores vars",
        items="results.results",
        more=_promptfoo,
    ),
    Layout(
        "deepeval",
        "testFile testCases",
        "id=name question=input prediction=actualOutput target=expectedOutput correct=success",
        spread="metadata",
        items="testCases",
        more=_deepeval,
    ),
    Layout("simple-evals", "htmls convos", rows=_simple_evals),
    Layout("OpenCompass", "details", rows=_opencompass),
    Layout("OpenCompass", "0", rows=_opencompass),
    Layout("OpenAI evals", "run_id event_id type data", rows=_openai_event),
    Layout("OpenAI evals", "spec", rows=_nothing),
    Layout("OpenAI evals", "final_report", rows=_nothing),
    Layout(
        "Every Eval Ever",
        "evaluation_id sample_id evaluation",
        "id=sample_id sample_id question=input.raw prompt=input.formatted prediction=output.raw.0 "
        "target=input.reference score=evaluation.score correct=evaluation.is_correct "
        "model=model_id task=evaluation_name",
        spread="metadata",
    ),
    Layout(
        "NeMo Evaluator",
        "problem_idx reward",
        "id=problem_idx prediction=model_response target=expected_answer",
        spread="* metadata",
    ),
    Layout("a summary", "results", rows=_summary),
)
"""The layouts, the first that fits a row being taken."""

_TOLD_BY: Final = tuple((layout, frozenset(layout.columns.split())) for layout in LAYOUTS)
