"""The layouts of result files, one entry per layout, which are detected from the content of files.

`LAYOUTS` defines how the files of each tool are read, both for scoring answers and for comparing
scores.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import first_names, shown
from surface_consistency.results import objects, preferences, promptfoo, tools, unlearning
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.failures import REQUEST, failure_of
from surface_consistency.results.rows import Cells, Failure, Flat, Flats, at, readable
from surface_consistency.results.samples import harness_sample, written_out
from surface_consistency.rows.cells import count_of
from surface_consistency.rows.readers import Place, Row


class Layout(NamedTuple):
    """Rules for the conversion of the rows of a tool, or the only object of a file, to samples."""

    tool: str
    """The tool that writes them, for messages."""

    columns: str
    """Columns that every row has, by which the layout is detected."""

    parts: str = ""
    """Paths of the parts, as `name=path` with a name in `rows.ROLES`, or `name` for a field of that
    name. Steps of a path are separated by dots. Of several paths (`a.b|c`), the first that exists
    is used. The first part must exist."""

    scores: str = ""
    """Paths of scores, as `name=path`, or `path.*` for all fields of an object."""

    fields: str = ""
    """Paths of objects whose fields are added, such as metadata; "*" is the sample itself."""

    items: str = ""
    """Path of the list of samples; empty if a row is one sample."""

    more_parts: Callable[[Cells, Cells], Cells] | None = None
    """Function of a sample and of the row that contains it, which returns further parts of the
    sample."""

    more_scores: Callable[[Cells, Cells], Cells] | None = None
    """Function of the same arguments that returns further scores of a sample."""

    more_fields: Callable[[Cells], Cells] | None = None
    """Function that returns further fields of a sample."""

    rows: Callable[[Cells, Place], Flats | None] | None = None
    """Function that converts a row to samples, in place of all fields above. It returns None for a
    row of a plain table."""

    whole: Callable[[Iterable[Flat], Path, list[str]], Flats] | None = None
    """Function that processes all samples of a file, for content in several rows or files. It adds
    sentences on excluded content to the list."""

    named: Callable[[Path], Cells] | None = None
    """Function that reads `task` and `model` from the path of the file, for samples without
    them."""

    item: str = "id"
    """The part that identifies a sample."""

    versions: str = ""
    """Versions of the tool with whose files the layout was tested."""

    def flat(self, row: Cells, place: Place) -> list[Flat] | None:
        """Convert a row to samples.

        Args:
            row: The row.
            place: Place of the row, for messages.

        Returns:
            The samples; None if it is a row of a plain table.

        Raises:
            KeyError: If a required field is missing; functions of the layout may raise it too.
        """
        if self.rows is not None:
            flats = self.rows(row, place)
            return None if flats is None else list(flats)
        samples = at(row, self.items) if self.items else [row]
        return [self._sample(sample, row) for sample in samples]

    def _sample(self, sample: Cells, row: Cells) -> Flat:
        """Convert one sample."""
        parts = {name: at(sample, path) for name, path in map(_named, self.parts.split())}
        first = next(iter(parts), None)
        if first is not None and parts[first] is None:
            raise KeyError(_named(self.parts.split()[0])[1])
        scores: dict[str, Any] = {}
        for path in self.scores.split():
            if path.endswith(".*"):
                scores.update(at(sample, path[:-2]) or {})
            else:
                name, path = _named(path)
                scores[name] = at(sample, path)
        fields: dict[str, Any] = {}
        for path in self.fields.split():
            fields.update(sample if path == "*" else at(sample, path) or {})
        if self.more_parts is not None:
            parts.update(self.more_parts(sample, row))
        if self.more_scores is not None:
            scores.update(self.more_scores(sample, row))
        if self.more_fields is not None:
            fields.update(self.more_fields(sample))
        if failure := failure_of(self.tool, sample):
            kind, message = failure
            if kind == REQUEST:
                parts["error"] = message
            scores = dict.fromkeys(scores, Failure(message))
        if parts.get("error"):
            parts["prediction"] = None
        return Flat(parts, scores, fields, log=parts.pop("log", None))


def _named(field: str) -> tuple[str, str]:
    """Split `name=path`."""
    name, _, path = field.partition("=")
    return name, path or name


_PROMPTFOO: Final[dict[str, Any]] = {
    "parts": "model=provider question=vars.question|prompt.raw "
    "prompt=prompt.raw prediction=response.output",
    "fields": "testCase.metadata",
    "more_parts": promptfoo.parts,
    "more_scores": tools.promptfoo_scores,
    "more_fields": promptfoo.fields,
    "whole": promptfoo.run,
    "versions": "0.17 to 0.121",
}

_PREFERENCES: Final[dict[str, Any]] = {"whole": preferences.run, "versions": "of 2024"}

LAYOUTS: Final = (
    Layout(
        "lm-evaluation-harness",
        "doc resps",
        rows=harness_sample,
        named=tools.named_samples,
        item="doc_id",
        versions="0.4.0 to 0.4.13",
    ),
    Layout(
        "lm-evaluation-harness",
        "doc filtered_resps",
        rows=harness_sample,
        named=tools.named_samples,
        item="doc_id",
        versions="0.4.0 to 0.4.13",
    ),
    Layout(
        "lm-eval 0.3 --write_out", "prompt_0 logit_0", rows=written_out, versions="0.3 and before"
    ),
    Layout(
        "lmms-eval",
        "doc_id doc_hash input filtered_resps",
        "id=doc_id prompt=input prediction=filtered_resps.0|filtered_resps target content=doc_hash",
        more_scores=tools.lmms_eval_scores,
        more_fields=tools.lmms_eval_fields,
        named=tools.named_by_date,
        versions="0.7.3",
    ),
    Layout(
        "lighteval",
        "doc model_response metric",
        "id=doc.id prompt=doc.query prediction=model_response.text.0 target=doc.choices "
        "task=doc.task_name",
        scores="metric.*",
        fields="doc.specific",
        more_parts=tools.lighteval_gold,
        versions="0.10 to 0.13",
    ),
    Layout(
        "lighteval before 0.10",
        "example full_prompt predictions metrics",
        "id=example question=example prompt=full_prompt prediction=predictions.0 target=gold",
        scores="metrics.*",
        fields="specifics",
        named=tools.named_by_details,
        versions="0.6",
    ),
    Layout(
        "inspect_ai",
        "version status eval samples",
        "id question=metadata.question target",
        fields="metadata",
        items="samples",
        more_parts=tools.inspect_parts,
        more_scores=tools.inspect_scores,
        versions="0.3.75 to 0.3.285",
    ),
    Layout("inspect_ai", "version status eval", rows=tools.no_samples),
    Layout(
        "inspect_ai samples_df",
        "sample_id eval_id log epoch id",
        "id question=metadata_question target",
        more_parts=tools.samples_df_parts,
        more_scores=tools.samples_df_scores,
        more_fields=tools.samples_df_fields,
        versions="0.3.285",
    ),
    Layout(
        "HELM",
        "instance_id stats",
        "id=instance_id",
        more_parts=tools.helm_parts,
        more_scores=tools.helm_scores,
        more_fields=tools.helm_fields,
        whole=tools.helm_run,
        versions="0.5.16",
    ),
    Layout("HELM", "name count sum sum_squared", rows=tools.means),
    Layout("promptfoo", "evalId results", items="results.results", **_PROMPTFOO),
    Layout("promptfoo", "provider prompt vars success", **_PROMPTFOO),
    Layout(
        "deepeval",
        "testFile testCases",
        "question=input prediction=actualOutput target=expectedOutput",
        fields="metadata",
        items="testCases",
        more_parts=tools.deepeval_parts,
        more_scores=tools.deepeval_scores,
        more_fields=tools.deepeval_fields,
        whole=tools.deepeval_run,
        item="question",
        versions="4.3",
    ),
    Layout(
        "simple-evals",
        "htmls convos",
        rows=tools.simple_evals,
        named=tools.named_by_eval,
        versions="of 2025",
    ),
    Layout(
        "OpenCompass",
        "details",
        rows=tools.opencompass,
        named=tools.named_by_folder,
        versions="0.5.4",
    ),
    Layout(
        "OpenCompass", "0", rows=tools.opencompass, named=tools.named_by_folder, versions="0.5.4"
    ),
    Layout(
        "OpenAI evals",
        "run_id event_id type data",
        rows=tools.openai_event,
        whole=tools.openai_samples,
        versions="3.0.1",
    ),
    Layout("OpenAI evals", "spec", rows=tools.openai_spec, whole=tools.openai_samples),
    Layout("OpenAI evals", "final_report", rows=tools.nothing),
    Layout(
        "Every Eval Ever",
        "evaluation_id sample_id evaluation",
        "id=sample_id question=input.raw prompt=input.formatted prediction=output.raw.0 "
        "target=input.reference model=model_id task=evaluation_name error",
        fields="metadata",
        more_parts=tools.eee_parts,
        more_scores=tools.eee_scores,
        whole=tools.eee_epochs,
        versions="schema 0.3.0",
    ),
    Layout("Every Eval Ever", "evaluation_results model_info", rows=tools.means),
    Layout(
        "VLMEvalKit",
        "index question hit",
        "id=index question prediction target=answer",
        scores="hit",
        fields="*",
        named=tools.named_by_prefix,
        versions="e8e78f0",
    ),
    Layout(
        "VLMEvalKit",
        "index question answer prediction A B",
        "id=index question prediction target=answer",
        fields="*",
        more_parts=tools.vlm_parts,
        named=tools.named_by_prefix,
        versions="e8e78f0",
    ),
    Layout(
        "FastChat",
        "question_id model judge judgment score turn",
        "id=question_id model form=turn",
        scores="score",
        fields="*",
        versions="0e6d3e4b",
    ),
    Layout(
        "FastChat",
        "question_id model_1 model_2 g1_winner g2_winner",
        rows=preferences.mt_bench,
        whole=preferences.run,
        versions="0e6d3e4b",
    ),
    Layout(
        "NeMo Evaluator",
        "problem_idx reward",
        "id=problem_idx repeat prediction=model_response target=expected_answer",
        scores="reward",
        fields="metadata",
        versions="ac66aff",
    ),
    Layout(
        "open-unlearning, TOFU_EVAL", "forget_Q_A_ROUGE", rows=unlearning.tofu, versions="of 2025"
    ),
    Layout(
        "open-unlearning, MUSE_EVAL",
        "forget_knowmem_ROUGE",
        rows=unlearning.muse,
        versions="of 2025",
    ),
    Layout("TOFU", "eval_log_forget.json", rows=unlearning.tofu, versions="bdc209e"),
    Layout("TOFU", "eval_log_forget", rows=unlearning.tofu, versions="bdc209e"),
    Layout("EasyEdit", "requested_rewrite post", rows=unlearning.edits, versions="with texts"),
    Layout("EasyEdit", "case_id post", rows=unlearning.edits),
    Layout(
        "PromptEval",
        "example_0 example_1",
        rows=tools.prompteval,
        named=tools.named_by_split,
        versions="PromptEval_MMLU_correctness",
    ),
    Layout("SWE-bench", "resolved_ids", rows=objects.swe_bench, versions="schema 2"),
    Layout("SWE-bench", "resolved", rows=objects.swe_bench, versions="of 2024"),
    Layout("evalplus", "eval", rows=objects.evalplus, versions="0.3"),
    Layout("alpaca_eval", preferences.ALPACA, rows=preferences.alpaca_eval, **_PREFERENCES),
    Layout("Chatbot Arena", "model_a model_b winner", rows=preferences.arena, **_PREFERENCES),
    Layout("OpenAI's batches", "custom_id response", rows=tools.batch_result),
    Layout("RWKU", "results", rows=unlearning.rwku, versions="of 2024"),
)
"""The layouts; the first one that matches a row is used."""


def layout_of(columns: Iterable[str]) -> Layout | None:
    """Detect a layout by the columns of a row.

    Args:
        columns: The columns.

    Returns:
        The first layout whose columns all exist; None for a plain table.
    """
    return _layout_of(frozenset(columns))


@lru_cache(maxsize=1024)
def _layout_of(columns: frozenset[str]) -> Layout | None:
    """Detect a layout by the columns of a row; cached for rows with the same columns."""
    return next((one for one in LAYOUTS if columns.issuperset(one.columns.split())), None)


def flat_samples(layout: Layout, row: Cells, place: Place) -> list[Flat] | None:
    """Convert a row to samples by a layout.

    Args:
        layout: The layout.
        row: The row.
        place: Its place.

    Returns:
        The samples; None if it is a row of a plain table.

    Raises:
        DataError: If it is a summary of a tool, without samples.
        RecordError: If the row cannot be read in the layout; see `readable`.
    """
    with readable(place, layout.tool, layout.columns):
        flats = layout.flat(row, place)
        for flat in flats or ():
            _check_types(flat)
        return flats


def _check_types(flat: Flat) -> None:
    """Check that names are not lists or objects, and that names of scores are texts."""
    for name in ("id", "doc_id", "task", "model", "form", "filter", "doubt"):
        if not isinstance(flat.parts.get(name), str | float | int | None):
            raise TypeError(f"{name} is {shown(flat.parts[name])}")
    count_of(flat.parts.get("repeat"))
    if not all(isinstance(name, str) for name in flat.scores):
        raise TypeError(f"names of scores are {shown(list(flat.scores))}")


def flat_rows(
    rows: Iterator[Row], file: Path, notes: list[str], given: ResultColumns | None = None
) -> tuple[Layout | None, Iterable[Flat]]:
    """Convert the rows of a file to samples by its content.

    Args:
        rows: The rows.
        file: The file, for layouts of several rows or files.
        notes: List to which sentences on excluded content are added.
        given: The columns that the user names; they determine whether one object is a row or
            contains rows.

    Returns:
        The layout and the samples; for a plain table None and the unchanged rows.

    Raises:
        DataError: If the file has no rows, or is a summary of a tool without samples.
        RecordError: If a row cannot be read; the message names file and line.
    """
    first = next(rows, None)
    if first is None:
        raise DataError(f"{file} contains no rows, so no results; check how it was written")
    layout, second = whole_layout(*first), next(rows, None)
    rows = chain([first], () if second is None else [second], rows)
    if layout is None and (second is None or objects.holds_rows(first[1])):
        rows = _rows_within(rows, given or ResultColumns())
        first = next(rows)
        layout, rows = whole_layout(*first), chain([first], rows)
    if layout is None:
        return None, (Flat({}, {}, {}, dict(row)) for _, row in rows)
    flats = samples_of(rows, layout.tool)
    whole = layout.whole
    return layout, flats if whole is None else _within(layout.tool, file, whole, flats, notes)


def _rows_within(rows: Iterable[Row], given: ResultColumns) -> Iterator[Row]:
    """Yield the rows inside objects."""
    for place, row in rows:
        with readable(place, "an object with rows"):
            yield from ((place, one) for one in objects.rows_within(row, place, given))


def _within(
    tool: str,
    file: Path,
    whole: Callable[[Iterable[Flat], Path, list[str]], Flats],
    flats: Flats,
    notes: list[str],
) -> Flats:
    """Process all samples of a file with the function of the layout."""
    with readable(file, tool):
        yield from whole(flats, file, notes)


def whole_layout(place: Place, row: Cells) -> Layout | None:
    """Detect the layout of a file by its first row; None for a plain table."""
    layout = layout_of(row)
    return None if layout is None or flat_samples(layout, row, place) is None else layout


def samples_of(rows: Iterable[Row], tool: str) -> Flats:
    """Convert the rows of a file to samples, if all rows have layouts of one tool.

    Args:
        rows: The rows.
        tool: The tool.

    Yields:
        The samples.

    Raises:
        DataError: As for `flat_samples`.
        RecordError: As for `flat_samples`, or if a row has no layout or that of another tool.
    """
    for place, row in rows:
        yield from flat_samples(_need(row, place, tool), row, place) or ()


def _need(row: Cells, place: Place, tool: str) -> Layout:
    """Return the layout of a row of a tool; raise an error if it differs."""
    layout = layout_of(row)
    if layout is not None and layout.tool != tool:
        raise RecordError(
            f"{place}: the row is of {layout.tool}, but earlier rows are of {tool}; write the rows "
            "of each tool to a separate file"
        )
    if layout is None:
        raise RecordError(
            f"{place}: the row does not have the layout of earlier rows; its columns are "
            f"{first_names(list(row))}: restore the file, or remove the row"
        )
    return layout
