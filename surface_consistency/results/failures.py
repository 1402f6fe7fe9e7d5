"""The values by which the files of each tool record a failed request or a failed scorer.

A missing answer and an unscored answer have no score. Fields that contain only the message of an
error are read by the layouts.
"""

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from surface_consistency.results.names import direction
from surface_consistency.results.rows import Cells, at

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

REQUEST: Final = "request failed"
SCORER: Final = "scorer failed"
INVALID: Final = "sample invalidated"
NO_ANSWER: Final = "no answer"
KINDS: Final = {
    REQUEST: "failed requests",
    SCORER: "failed scorers",
    INVALID: "invalidated samples",
    NO_ANSWER: "missing answers",
}
"""Kinds of failures and their plural. The error of a sample begins with its kind; otherwise it is
the message of a tool."""


class Mark(NamedTuple):
    """A value that records a failure."""

    tool: str
    """The tool, as in `LAYOUTS`."""

    path: str
    """Path of the field in a sample, with "." between steps and "*" for each item of a list."""

    value: str
    """Pattern of the whole value, as text."""

    kind: str = SCORER
    """Kind of the failure."""


_API: Final = "Failed to obtain answer via API"
_RANDOM: Final = "Failed to predict, thus randomly generate one"
_UNREAD: Final = (
    r"(Could not extract JSON from [\w -]+ response|[\w -]+ produced malformed response)"
)
_GRADING: Final = "gradingResult"
_STATED: Final = r"(?!(False|None|0|)\Z).+"

ANSWERS: Final = {
    _API: "VLMEvalKit",
    "No response (bad request).": "simple-evals",
    "$ERROR$": "FastChat",
}
"""Beginnings of texts that tools write instead of an answer."""

COMMON: Final = "common_answer"
"""Column of results with an answer that is frequent for its model, but never correct.
"""
FEW: Final = 10
"""Minimum number of answers for which equal scores or equal answers are reported."""
MANY: Final = 0.05
"""Proportion of missing or equal answers above which the finding reports them."""

_SAMPLE: Final = 2_000
"""Number of answers per model that are searched for frequent texts."""

_NAN: Final = ("nan", "NaN", "<NA>", "NaT")
"""Texts that pandas writes for a missing cell."""

SCORER_ERRORS: Final = ("judge_error", "grader_error", "scorer_error", "parse_error")
"""Columns of tables that record why an answer has no score."""
ERRORS: Final = ("error", "error_message", "error_msg", "exception", *SCORER_ERRORS)
"""Columns of tables that record a failed request or a failed scorer."""

NO_SCORES: Final = {"bypass": "lm-evaluation-harness with predict_only"}
"""Names of metrics that mark answers without a score."""

MARKS: Final = (
    Mark("FastChat", "score", r"-1(\.0)?"),
    Mark("OpenAI evals", "choice", "__invalid__"),
    Mark("OpenAI evals", "picked", "__invalid__"),
    Mark("OpenAI evals", "invalid_choice", "True"),
    Mark("NeMo Evaluator", "scoring_details.parse_error", _STATED),
    Mark("NeMo Evaluator", "scoring_details.error", _STATED),
    Mark("NeMo Evaluator", "scoring_details.judge_error", _STATED),
    Mark("NeMo Evaluator", "scoring_details.judge.parse_error", _STATED),
    Mark("NeMo Evaluator", "scoring_details.judge.error", _STATED),
    Mark("NeMo Evaluator", "scoring_details.error_category", "infra_error|system", REQUEST),
    Mark("promptfoo", f"{_GRADING}.metadata.graderError", "True"),
    Mark("promptfoo", f"{_GRADING}.componentResults.*.metadata.graderError", "True"),
    Mark("promptfoo", f"{_GRADING}.reason", f"{_UNREAD}.*"),
    Mark("promptfoo", f"{_GRADING}.componentResults.*.reason", f"{_UNREAD}.*"),
    Mark("VLMEvalKit", "log", f".*({_API}|{_RANDOM}).*"),
    Mark("OpenCompass", "grade_letter", "unknown"),
)
"""Fields of samples that record a failure."""


def failure_of(tool: str, sample: Cells) -> tuple[str, str] | None:
    """Return the failure that a sample records.

    Args:
        tool: The tool that wrote it.
        sample: Its fields.

    Returns:
        The kind of the failure, and a sentence that begins with it; None if there is no failure.

    Examples:
        >>> failure_of("FastChat", {"question_id": 81, "score": -1})
        ('scorer failed', 'scorer failed: score is -1')
    """
    for mark in MARKS:
        if mark.tool == tool:
            path, _, inner = mark.path.partition(".*.")
            found = at(sample, path)
            items = found if isinstance(found, list) else ()
            for value in [at(item, inner) for item in items] if inner else [found]:
                if value is not None and re.fullmatch(mark.value, str(value), re.DOTALL):
                    name = mark.path.rpartition(".")[2]
                    return mark.kind, f"{mark.kind}: {name} is {str(value)[:80]}"
    return None


def has_failed_answers(texts: "pa.Array | pa.ChunkedArray") -> bool:
    """Return whether any text may be one that a tool writes instead of an answer.

    Args:
        texts: The texts; a column of text is searched without conversion to Python objects.

    Returns:
        True if a text begins with one of `ANSWERS`, or marks a missing cell.
    """
    import pyarrow.compute as pc

    marks = [pc.starts_with(texts, mark) for mark in ANSWERS]
    marks += [pc.equal(texts, nothing) for nothing in _NAN]
    return any(pc.any(one).as_py() for one in marks)


def without_failed_answers(samples: "pd.DataFrame") -> "pd.DataFrame":
    """Replace the texts that tools write instead of an answer by missing answers.

    Args:
        samples: Samples with a column `prediction`, or without one.

    Returns:
        The samples. A text of `ANSWERS` is None, and `error` contains it; the same applies to texts
        such as "nan", which pandas writes for a missing cell, unless they are accepted answers. If
        all texts are such texts, the column consisted of missing cells, and `error` is not changed.
    """
    import pandas as pd

    if "prediction" not in samples:
        return samples
    texts = samples["prediction"].tolist()
    rows = [
        row
        for row, text in enumerate(texts)
        if text is not None and (text in _NAN or text.startswith(tuple(ANSWERS)))
    ]
    if "references" in samples:
        accepted = samples["references"]
        rows = [row for row in rows if texts[row] not in map(str.casefold, accepted.iloc[row])]
    if not rows:
        return samples
    errors = samples["error"].tolist() if "error" in samples else [None] * len(texts)
    has_answers = any(text is not None and text not in _NAN for text in texts)
    for row in rows:
        kind = NO_ANSWER if texts[row] in _NAN else REQUEST
        if has_answers:
            errors[row] = errors[row] or f"{kind}: {texts[row][:80]}"
        texts[row] = None
    columns = {"prediction": texts, "error": errors}
    return samples.assign(
        **{name: pd.Series(cells, samples.index, object) for name, cells in columns.items()}
    )


def without_scored_answers(errors: "pd.Series", scores: "pd.Series") -> "pd.Series":
    """Treat texts such as "nan" as answers if one of them has a score above 0.

    Args:
        errors: Errors as of `without_failed_answers`.
        scores: The scores of the same rows.

    Returns:
        The errors; if a text has a score above 0, without those of the kind `NO_ANSWER`.
    """
    is_none = errors.str.startswith(NO_ANSWER, na=False)
    return errors.mask(is_none, None) if (scores[is_none] > 0).any() else errors


def with_common_answers(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Mark the answers of a model that are a frequent text and never correct.

    Args:
        frame: One row per score: model, metric, score and prediction.

    Returns:
        The frame, with these texts in a column `COMMON` if there are any. Their scores are
        unchanged.
    """
    import pandas as pd

    frame = frame.drop(columns=COMMON, errors="ignore")
    if "prediction" not in frame or not frame["score"].notna().any():
        return frame
    common, n_metrics = list[pd.Series](), frame["metric"].nunique()
    lower = [name for name in frame["metric"].unique() if direction(str(name)) != "higher"]
    if lower or (frame["score"] < 0).any():
        return frame
    for model, n in frame["model"].value_counts().items():
        rows = frame.loc[frame["model"] == model, ["prediction", "score"]]
        # A text that is frequent among the answers is also frequent in a sample of them.
        some = rows.sample(min(n, _SAMPLE), random_state=0)
        counts = some["prediction"].value_counts()
        texts = counts.index[counts > MANY / 2 * len(some)]
        for text in {*texts}.difference(some.loc[some["score"] > 0, "prediction"]):
            own = rows[rows["prediction"] == text]
            is_common = len(own) >= FEW * n_metrics and len(own) > MANY * n and text.strip()
            if is_common and not (own["score"] > 0).any():
                common.append(own["prediction"])
    return frame.assign(**{COMMON: pd.concat(common)}) if common else frame


def kind_of(error: str) -> str:
    """Return the kind of an error in the plural; "errors" for the message of a tool."""
    return KINDS.get(error.partition(":")[0], "errors")
