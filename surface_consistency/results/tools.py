"""Functions for those result files of tools that a mapping of names cannot describe."""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import first_names, parse_json, shown
from surface_consistency.results.columns import USUAL
from surface_consistency.results.failures import INVALID, SCORER, failure_of
from surface_consistency.results.rows import Cells, Failure, Flat, Flats, at, readable, text_of
from surface_consistency.results.samples import task_in_name
from surface_consistency.rows.cells import count_of, identifier_of
from surface_consistency.rows.readers import Place, read_rows
from surface_consistency.schemas.generations import server_end

_GRADES: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "no": 0.0}
_SCORED_ERROR: Final = "ended with an error and were scored nevertheless; their scores count"
_FAILED: Final = 2
_SCORE: Final = re.compile(r"<p>Score: (?!None|nan)([^<\s]+)\s*</p>")
_COSTS: Final = re.compile(
    r"num_\w+|\w+_cost|(?=\w*runtime)\w+|batch_size|finish_reason_\w+|prompt_truncated|max_prob|logprob"
)
_SAMPLES: Final = re.compile(r"(.*?)samples_(.+?)(_\d{4}-\d\d-\d\dT[\d.:-]+|)\.jsonl(?:\.gz)?")
_EXAMPLE: Final = re.compile(r"example_\d+")
_ROTATION: Final = 10**6


def inspect_parts(sample: Cells, log: Cells) -> Cells:
    """Read texts, repeat and failure of a sample of inspect_ai."""
    _check_run(log["eval"])
    prompt = sample["input"]
    if not isinstance(prompt, str):
        prompt = text_of(prompt[-1]["content"]) if prompt else None
    failed, is_scored = sample.get("error"), bool(inspect_scores(sample, log))
    error = (at(failed, "message") or "failed") if failed and not is_scored else None
    if invalid := sample.get("invalidation"):
        error = f"{INVALID}: {at(invalid, 'reason') or 'no reason is given'}"
    return {
        "id": sample["id"],
        "repeat": _repeat(sample.get("epoch", 1)),
        "prompt": prompt,
        "prediction": text_of(at(sample["output"], "choices.0.message.content")) or "",
        "task": log["eval"]["task"],
        "model": log["eval"].get("model"),
        "error": error,
        "doubt": _SCORED_ERROR if failed and is_scored else None,
        "log": {name: log.get(name) for name in ("eval", "status", "results")},
    }


def _repeat(epoch: object) -> int:
    """Number the repeat of an epoch, which is a number from 1."""
    number = count_of(epoch)
    if not number:
        raise ValueError(f"epoch is {shown(epoch)}, which is not a number from 1")
    return number - 1


def _check_run(run: Cells) -> None:
    """Check the types of the fields of a run in a log of inspect_ai."""
    datetime.fromisoformat(run.get("created") or "2000-01-01")
    config = run.get("config") or {}
    n_items, epochs = at(run, "dataset.samples") or 0, config.get("epochs") or 1
    "".join(config.get("epochs_reducer") or ())
    if not (isinstance(n_items, int) and isinstance(epochs, int)):
        raise TypeError("the numbers of samples and epochs are not integers")


def inspect_scores(sample: Cells, log: Cells) -> Cells:
    """Read the scores of a sample of inspect_ai; an object contains several metrics."""
    scores: dict[str, Any] = {}
    for scorer, score in ({} if sample.get("invalidation") else sample.get("scores") or {}).items():
        value = score["value"]
        parts = value if isinstance(value, dict) else {None: value}
        for name, part in parts.items():
            number = _GRADES.get(part, part) if isinstance(part, str) else part
            scores[scorer if name is None else f"{scorer}.{name}"] = number
    return scores


def samples_df_parts(sample: Cells, row: Cells) -> Cells:
    """Read repeat, failure and model of a row of inspect_ai's `samples_df`.

    A frame without a column of models, which is the default, has one model per log.
    """
    failed, is_scored = sample.get("error"), bool(samples_df_scores(sample, row))
    return {
        "id": sample["id"],
        "repeat": _repeat(sample["epoch"]),
        "prompt": sample.get("input"),
        "task": sample.get("task_name"),
        "model": sample.get("model") or Path(str(sample["log"])).stem,
        "error": None if is_scored else failed or None,
        "doubt": _SCORED_ERROR if failed and is_scored else None,
    }


def samples_df_scores(sample: Cells, row: Cells) -> Cells:
    """Read the columns `score_<scorer>` of inspect_ai's `samples_df`; an object is JSON text."""
    scores = {}
    for name, value in sample.items():
        if name.startswith("score_") and value is not None:
            is_object = isinstance(value, str) and value.startswith("{")
            read = parse_json(value, name) if is_object else value
            scores[name.removeprefix("score_")] = {"value": read}
    return inspect_scores({"scores": scores}, row)


def samples_df_fields(sample: Cells) -> Cells:
    """Read the metadata of a row of inspect_ai's `samples_df`."""
    return {
        name.removeprefix("metadata_"): value
        for name, value in sample.items()
        if name.startswith("metadata_")
    }


def no_samples(row: Cells, place: Place) -> Flats:
    """Reject a log of inspect_ai that contains only its header."""
    raise DataError(
        f"{place.source} is a log of inspect_ai without samples; enable their logging and run again"
    )


def means(row: Cells, place: Place) -> Flats:
    """Reject the means of a run of HELM or of Every Eval Ever."""
    raise DataError(
        f"{place.source} contains scores of a run, not of its items; use the file of samples, such "
        "as per_instance_stats.json of HELM or the .jsonl file of Every Eval Ever"
    )


def summary(row: Cells, place: Place) -> Flats | None:
    """Reject means without samples; accept a plain table with a column "results", or rows in it."""
    results = row["results"]
    if not isinstance(results, Mapping) or any(isinstance(cell, list) for cell in results.values()):
        return None
    raise DataError(
        f"{place.source} contains results of lm-evaluation-harness or a similar tool without "
        "answers; use the samples, such as samples_<task>_*.jsonl in the same folder, which the "
        "harness writes with --log_samples, or details_<task>_*.parquet of lighteval"
    )


def promptfoo_parts(result: Cells, row: Cells) -> Cells:
    """Read the model and the error; a result with an error is neither correct nor incorrect."""
    provider = result["provider"]
    model = provider.get("label") or provider["id"] if isinstance(provider, Mapping) else provider
    has_output = at(result, "response.output") is not None
    error = result.get("error") or at(result, "response.error")
    is_request = bool(error) and not has_output
    if result.get("failureReason") != _FAILED and not is_request:
        return {"model": model, "error": None}
    return {"model": model, "prediction": None, "error": error or "failed"}


def promptfoo_scores(result: Cells, row: Cells) -> Cells:
    """Read success, score and the named scores of promptfoo."""
    return {
        "success": result["success"],
        "score": result["score"],
        **(result.get("namedScores") or {}),
    }


def deepeval_scores(case: Cells, row: Cells) -> Cells:
    """Read the metrics of deepeval; a failed metric has no score, and no `success` of its case."""
    metrics = case.get("metricsData") or ()
    names = numbered([metric["name"] for metric in metrics])
    failed = [
        one.get("error") or "no score"
        for one in metrics
        if (one.get("error") or one.get("score") is None) and not one.get("flaky")
    ]
    success = Failure(f"{SCORER}: {failed[0]}") if failed else case.get("success")
    return {"success": success} | {
        name: Failure(f"{SCORER}: {one['error']}") if one.get("error") else one.get("score")
        for name, one in zip(names, metrics, strict=True)
    }


def deepeval_fields(case: Cells) -> Cells:
    """Read threshold and success of the metrics of a case, by metric."""
    metrics = case.get("metricsData") or ()
    names = numbered([metric["name"] for metric in metrics])
    limits = [(metric.get("threshold"), metric.get("success")) for metric in metrics]
    return {"limits": dict(zip(names, limits, strict=True))}


def deepeval_run(flats: Iterable[Flat], file: Path, notes: list[str]) -> Flats:
    """Mark the metrics for which low scores succeed, by their thresholds in all cases."""
    rows = list(flats)
    ends: dict[str, list[tuple[bool, bool]]] = {}
    for flat in rows:
        for name, (limit, success) in flat.fields["limits"].items():
            score = flat.scores[name]
            if isinstance(score, int | float) and isinstance(limit, int | float):
                fits = ((score <= limit) == success, (score >= limit) == success)
                ends.setdefault(name, []).append(fits)
    # Pairs of (low scores succeed, high scores succeed); a score at the threshold fits both.
    lower = {
        name for name, fits in ends.items() if all(low for low, _ in fits) and (True, False) in fits
    }
    for flat in rows:
        low = {name: score for name, score in flat.scores.items() if name in lower}
        yield flat._replace(scores={n: one for n, one in flat.scores.items() if n not in low})
        if low:
            yield flat._replace(scores=low, fields={**flat.fields, "lower_is_better": True})


def numbered(names: Sequence[str]) -> list[str]:
    """Number the names that occur more than once: "a (1)" and "a (2)"."""
    counts, seen = Counter(names), Counter[str]()
    unique = []
    for name in names:
        seen[name] += 1
        unique.append(f"{name} ({seen[name]})" if counts[name] > 1 else name)
    return unique


def simple_evals(row: Cells, place: Place) -> Flats:
    """Read conversations of simple-evals; the score of each is only in its HTML page."""
    seen: Counter[str | None] = Counter()
    for turns, page in zip(row["convos"], row["htmls"], strict=True):
        score = _SCORE.search(page)
        correct, closed, _ = page.partition("<p>Correct Answer: ")[2].partition("</p>")
        question = text_of([turn["content"] for turn in turns if turn["role"] == "user"][-1])
        answer = text_of(turns[-1]["content"]) if turns[-1]["role"] != "user" else None
        parts = {
            "id": question,
            "repeat": seen[question],
            "question": question,
            "prediction": answer,
            "target": correct.strip() if closed else None,
        }
        seen[question] += 1
        yield Flat(parts, {"score": None if score is None else score[1]}, {})


def opencompass(row: Cells, place: Place) -> Flats | None:
    """Read predictions or details of OpenCompass, which are keyed by number, and replicas."""
    details = row.get("details", row)
    if isinstance(details, Mapping):
        cells = {name: cell for name, cell in details.items() if isinstance(cell, Mapping)}
        details = [{"id": name, **cell} for name, cell in cells.items()]
    if not isinstance(details, list) or not details or not {*USUAL["item"]}.isdisjoint(row):
        return None
    named_fields = ("prediction", "origin_prompt") if "details" not in row else _DETAILS
    if not any(name in details[0] for name in named_fields):
        return None
    return [flat for item in details for flat in _opencompass_item(item)]


def _opencompass_item(item: Cells) -> Flats:
    """Read one question of OpenCompass: one sample, or one per replica."""
    turns = item.get("origin_prompt") or item.get("prompt")
    verdict = next((name for name in _VERDICTS if name in item), None)
    whole = {
        "id": item.get("id", item.get("example_abbr")),
        "prompt": turns[-1]["prompt"] if isinstance(turns, list) else turns,
        "prediction": item.get("prediction", item.get("origin_prediction", item.get("pred"))),
        "target": item.get("gold", item.get("references", item.get("answer"))),
        "correct": None if verdict is None else item[verdict],
    }
    is_list = isinstance(whole["correct"], list)
    for number in range(len(whole["correct"]) if is_list else 1):
        parts = {name: _replica(cell, number) if is_list else cell for name, cell in whole.items()}
        score = parts.pop("correct")
        blank = isinstance(parts["prediction"], str) and not parts["prediction"].strip()
        parts |= {"repeat": number, "error": "the prediction is blank" if blank else None}
        if failure := failure_of("OpenCompass", item):
            score = Failure(failure[1])
        yield Flat(parts, {} if verdict is None else {"correct": score}, {})


_VERDICTS: Final = ("correct", "is_correct", "cascade_correct")
_DETAILS: Final = ("prediction", "pred", "origin_prediction", "example_abbr", "prompt", *_VERDICTS)


def _replica(cell: object, number: int) -> object:
    """Return the value of one replica; a value that is not a list is common to all."""
    return cell[number] if isinstance(cell, list) and number < len(cell) else cell


def openai_event(row: Cells, place: Place) -> Flats:
    """Read an event of OpenAI evals that samples or scores an answer."""
    data, kind = row["data"], row["type"]
    if kind == "sampling":
        chat = data.get("prompt")
        question = text_of(chat[-1].get("content")) if isinstance(chat, list) and chat else chat
        yield Flat({"id": row["sample_id"], "question": question}, {}, {})
    elif kind in ("match", "metrics"):
        numbers = ("correct",) if kind == "match" else data
        parts = {"id": row["sample_id"], "prediction": data.get("sampled")}
        if data.get("expected") is not None:
            parts["target"] = data["expected"]
        failure = failure_of("OpenAI evals", data)
        scores = {name: data.get(name) for name in numbers}
        if failure is not None:
            scores = dict.fromkeys(scores, Failure(failure[1]))
        yield Flat(parts, scores, {"event": (row["run_id"], row["event_id"])})
    elif kind == "error" and row.get("sample_id") is not None:
        error = at(data, "message|type") or "failed"
        yield Flat({"id": row["sample_id"], "error": str(error)}, {}, {})


def openai_spec(row: Cells, place: Place) -> Flats | None:
    """Read model and data set of a log of OpenAI evals."""
    spec = row["spec"]
    if not isinstance(spec, Mapping):
        return None
    named = {"model": "/".join(spec.get("completion_fns") or ()), "task": spec.get("eval_name")}
    return (Flat({name: value for name, value in named.items() if value}, {}, {}),)


def nothing(row: Cells, place: Place) -> Flats | None:
    """Skip a row without a sample, unless it is a row of a plain table with such a column."""
    return () if isinstance(next(iter(row.values())), Mapping) else None


def openai_samples(flats: Iterable[Flat], file: Path, notes: list[str]) -> Flats:
    """Join questions with scores of OpenAI evals; several scores of one sample are its repeats."""
    log: dict[str, Any] = {}
    questions: dict[str, Any] = {}
    results: list[Flat] = []
    failed: dict[Any, Flat] = {}
    for flat in flats:
        if "id" not in flat.parts:
            log |= flat.parts
        elif flat.scores:
            results.append(flat)
        elif "error" in flat.parts:
            failed.setdefault(flat.parts["id"], flat)
        else:
            questions.setdefault(flat.parts["id"], flat.parts.get("question"))
    scored = {flat.parts["id"] for flat in results}
    results += [flat for name, flat in failed.items() if name not in scored]
    seen: Counter[str] = Counter()
    for flat in without_copies(results, "event", file, notes):
        name = flat.parts["id"]
        own = {"question": questions.get(name), "repeat": seen[name]}
        seen[name] += 1
        yield flat._replace(parts={**log, **own, **flat.parts}, fields={})


def without_copies(
    rows: Sequence[Flat], number: str, file: Path, notes: list[str]
) -> Sequence[Flat]:
    """Drop samples that are exact copies of another one, including its number.

    Args:
        rows: Samples of which several may be repeats.
        number: Name of the field that has a different value for each result of a run.
        file: The file, for the note.
        notes: List to which a sentence with the number of copies is added.

    Returns:
        The samples; equal samples without a number are kept as repeats.
    """
    known = {
        repr(flat) if flat.fields.get(number) is not None else str(place): flat
        for place, flat in enumerate(rows)
    }
    if n := len(rows) - len(known):
        notes.append(f"{file}: results that are exact copies of another are dropped: {n:,}")
    return list(known.values())


def helm_parts(row: Cells, whole: Cells) -> Cells:
    """Read the form of an instance of HELM, and its text if the file contains it."""
    texts = {"prediction": row["predicted_text"]} if "predicted_text" in row else {}
    return {**texts, "form": at(row, "perturbation.name") or ""}


def helm_scores(row: Cells, whole: Cells) -> Cells:
    """Read the statistics of an instance of HELM without its counts and costs."""
    stats = row["stats"]
    if isinstance(stats, list):
        names = numbered([stat["name"]["name"] for stat in stats])
        stats = {name: stat.get("mean") for name, stat in zip(names, stats, strict=True)}
    return {name: value for name, value in stats.items() if not _COSTS.fullmatch(name)}


def helm_run(flats: Iterable[Flat], file: Path, notes: list[str]) -> Flats:
    """Join the scores of a run of HELM with its texts, which are in other files of the folder."""
    questions = _rows_next_to(file, "instances.json", _helm_instance)
    answers = _rows_next_to(file, "display_predictions.json", _helm_prediction)
    scenario, _, rest = file.parent.name.partition(":")
    settings = dict(one.partition("=")[::2] for one in rest.split(",") if one)
    model = settings.pop("model", None)
    task = ":".join(filter(None, (scenario, ",".join(map("=".join, settings.items())))))
    named = {} if model is None else {"task": task, "model": model}
    for flat in flats:
        parts = flat.parts
        key = (parts["id"], parts["form"], flat.fields.get("train_trial_index"))
        there = {**questions.get(parts["id"], {}), **answers.get(key, {})}
        yield flat._replace(parts={**named, **there, **parts})


def _helm_instance(row: Cells) -> tuple[Hashable, Cells]:
    """Read the question of an instance of HELM, and its correct references."""
    golds = [one for one in row.get("references", ()) if "correct" in list(one.get("tags", ()))]
    targets = [at(one, "output.text") for one in golds] or None
    texts = {"question": at(row, "input.text"), "target": targets}
    return row["id"], {name: value for name, value in texts.items() if value is not None}


def _helm_prediction(row: Cells) -> tuple[Hashable, Cells]:
    """Read the answer to an instance of HELM."""
    key = (row["instance_id"], at(row, "perturbation.name") or "", row.get("train_trial_index"))
    text = row.get("predicted_text")
    return key, {} if text is None else {"prediction": text}


def _rows_next_to(
    file: Path, name: str, read: Callable[[Cells], tuple[Hashable, Cells]]
) -> dict[Hashable, Cells]:
    """Read the rows of a file of the same folder by key; empty if the file is missing."""
    path, found = file.with_name(name), dict[Hashable, Cells]()
    for place, row in read_rows(path) if path.is_file() else ():
        with readable(place, f"{name} next to {file.name}"):
            found.update([read(row)])
    return found


def lmms_eval_scores(row: Cells, whole: Cells) -> Cells:
    """Read the scores of lmms-eval, which may be in an object with their clusters."""
    return {
        name: cell["score"] if isinstance(cell, Mapping) else cell
        for name, cell in row.items()
        if (isinstance(cell, Mapping) and "score" in cell)
        or (name not in _LMMS_FIELDS and isinstance(cell, int | float))
    }


_LMMS_FIELDS: Final = ("doc_id", "target", "token_counts", "doc_hash", "input", "filtered_resps")


def lmms_eval_fields(row: Cells) -> Cells:
    """Read the clusters that lmms-eval writes next to a score."""
    cells = [cell for cell in row.values() if isinstance(cell, Mapping) and "score" in cell]
    return {name: value for cell in cells for name, value in cell.items() if name != "score"}


def eee_parts(row: Cells, whole: Cells) -> Cells:
    """Number the repeat of a sample of Every Eval Ever by its epoch, if it has one."""
    return {"repeat": _repeat(at(row, "metadata.epoch") or 1)}


def eee_scores(row: Cells, whole: Cells) -> Cells:
    """Read the score of Every Eval Ever; converters derive `is_correct` from it."""
    name = identifier_of(row.get("evaluation_result_id")) or "score"
    return {name.removeprefix(f"{row.get('evaluation_name')}."): at(row, "evaluation.score")}


def eee_epochs(flats: Iterable[Flat], file: Path, notes: list[str]) -> Flats:
    """Read epochs of Every Eval Ever as repeats if any two of an item differ in score.

    The converter of inspect_ai gives each epoch the mean of all, which is one score; such rows are
    kept once.
    """
    rows = list(flats)
    first: dict[Any, int] = {}
    scores: dict[Any, set[str]] = {}
    for flat in rows:
        first.setdefault(_eee_key(flat), flat.parts["repeat"])
        scores.setdefault(_eee_key(flat), set()).add(str(flat.scores))
    has_repeats = any(len(values) > 1 for values in scores.values())
    kept = [flat for flat in rows if has_repeats or first[_eee_key(flat)] == flat.parts["repeat"]]
    if len(kept) < len(rows):
        notes.append(
            f"{file}: all epochs of an item have one score, which is their mean, so they are not "
            f"repeats: {len(rows) - len(kept):,} of {len(rows):,} rows were dropped"
        )
    return kept


def _eee_key(flat: Flat) -> tuple[Any, ...]:
    """Return the key that all epochs of a sample have in common."""
    return (flat.parts.get("model"), flat.parts.get("task"), flat.parts["id"], *flat.scores)


def _number(cell: object) -> int:
    """Read a required number."""
    number = count_of(cell)
    if number is None:
        raise ValueError("expected an integer, got an empty cell")
    return number


def vlm_parts(row: Cells, whole: Cells) -> Cells:
    """Read question and rotation of a row of VLMEvalKit: number = question + 10**6 * rotation."""
    number = _number(row["index"])
    rotation = number // _ROTATION
    return {"id": str(number % _ROTATION), "form": f"rotation {rotation}" if rotation else ""}


def batch_result(row: Cells, place: Place) -> Flats:
    """Read a result of OpenAI's batches: its id and the text of the reply."""
    response = row["response"]
    body = response.get("body") if isinstance(response, dict) else None
    failed = row.get("error") or (body.get("error") if isinstance(body, dict) else "no reply")
    text = None
    if not failed and isinstance(body, dict):
        text, failed = _reply_text(body, place), _broken_off(body)
    error = str(at(failed, "message") or failed) if failed else None
    parts = {"prediction": None if failed else text, "error": error}
    yield Flat({"id": row["custom_id"], **parts}, {}, {})


def _broken_off(body: Cells) -> str | None:
    """Describe how an incomplete reply ended; None for a complete one."""
    ended = at(body, "choices.0.finish_reason|incomplete_details.reason|status")
    stated = at(body, "choices.0.error.message|choices.0.error|choices.0.message.refusal")
    is_answer = server_end(ended) in ("stop", "length") and not stated
    reason = f": {shown(stated)}" if stated else ""
    return None if is_answer else f"the reply ended with {shown(ended)}{reason}"


def _reply_text(body: Cells, place: Place) -> str | None:
    """Return the text of a reply of the chat, completions or responses API."""
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
            f"{place}: the body of the response contains no reply of a chat, a completion or the "
            f"responses API; its fields are {first_names(list(body))}"
        ) from error
    if isinstance(text, list):
        return text_of(text)
    if text is not None and not isinstance(text, str):
        raise RecordError(f"{place}: the text of the reply is {shown(text)}, which is not a text")
    return text


def named_by_folder(file: Path) -> dict[str, str]:
    """Read model and data set from the path of OpenCompass: <model>/<data set>.json.

    A large set is split into <data set>_0.json, <data set>_1.json, each numbered from 0.
    """
    model, (stem, _, number) = file.parent.name, file.stem.rpartition("_")
    other = file.with_stem(f"{stem}_{1 if number == '0' else 0}")
    if not number.isdigit() or not other.is_file():
        return {"model": model, "task": file.stem}
    return {"model": model, "task": stem, "part": number}


def named_by_prefix(file: Path) -> dict[str, str]:
    """Read model and data set from the path of VLMEvalKit: <model>/<model>_<data set>.tsv."""
    model, stem = file.parent.name, file.stem
    if not stem.startswith(f"{model}_"):
        return {}
    return {"model": model, "task": stem.removeprefix(f"{model}_").removesuffix("_result")}


def named_by_date(file: Path) -> dict[str, str]:
    """Read the task from the file name of lmms-eval: <date>_samples_<task>.jsonl."""
    name = re.fullmatch(r"\d{8}_\d{6}_samples_(.+)", file.stem)
    return {"task": name[1]} if name else {}


def named_by_eval(file: Path) -> dict[str, str]:
    """Read eval and model from the file of simple-evals: <eval>_<model>_<date>_allresults.

    The name of the eval is assumed not to contain "_".
    """
    name = re.fullmatch(r"([^_]+)_(.+?)(?:_\d{8}_\d{6})?_allresults", file.stem)
    return {"task": name[1], "model": name[2]} if name else {}


def named_samples(file: Path) -> dict[str, str]:
    """Read model and task from the path of lm-eval >= 0.4.3: <model>/samples_<task>_<date>."""
    task = task_in_name(file)
    return {} if task is None else {"model": file.parent.name, "task": task}


def directions_next_to(file: Path) -> dict[str, bool]:
    """Read for which metrics higher scores are better, from the results next to the samples.

    lm-eval writes results_<date>.json next to samples_<task>_<date>.jsonl, and lmms-eval
    <date>_results.json next to <date>_samples_<task>.jsonl.
    """
    name = _SAMPLES.fullmatch(file.name)
    if name is None:
        return {}
    rows = _rows_next_to(file, f"{name[1]}results{name[3]}.json", lambda row: ("", row))
    directions = at(rows.get(""), f"higher_is_better.{name[2]}")
    cells = directions.items() if isinstance(directions, dict) else ()
    return {one: value for one, value in cells if isinstance(value, bool)}


def lighteval_gold(row: Cells, whole: Cells) -> Cells:
    """Read the correct options of a question of lighteval, which are given as numbers."""
    options, gold = at(row, "doc.choices") or [], at(row, "doc.gold_index")
    numbers = gold if isinstance(gold, list) else [gold]
    correct_options = [options[n] for n in numbers if isinstance(n, int) and 0 <= n < len(options)]
    return {"target": correct_options or None}


def named_by_details(file: Path) -> dict[str, str]:
    """Read the task from the file name of lighteval: details_<task>_<date>.parquet."""
    name = re.fullmatch(r"details_(.+)_\d{4}-\d\d-\d\dT[\d.:-]+", file.stem)
    return {"task": name[1]} if name else {}


def helm_fields(row: Cells) -> Cells:
    """Read the number of the set of demonstrations in the prompt of an instance of HELM."""
    draw = row.get("train_trial_index")
    return {"train_trial_index": draw if isinstance(draw, int) else None}


def deepeval_parts(case: Cells, row: Cells) -> Cells:
    """Read the model of a test run of deepeval, if its hyperparameters contain it."""
    model = at(row, "hyperparameters.model")
    return {} if model is None else {"model": model}


def prompteval(row: Cells, place: Place) -> Flats | None:
    """Read the labels of one template for all examples; each row is a template, numbered from 0."""
    if not all(_EXAMPLE.fullmatch(name) for name in row):
        return None
    form = f"template {place.number - 1}"
    return [
        Flat({"id": name, "form": form}, {"correct": verdict}, {}) for name, verdict in row.items()
    ]


def named_by_split(file: Path) -> dict[str, str]:
    """Read subject and model from a path: <subject>/<model>-00000-of-00001.parquet."""
    name = re.fullmatch(r"(.+)-\d{5}-of-\d{5}", file.stem)
    return {"task": file.parent.name, "model": name[1]} if name else {}
