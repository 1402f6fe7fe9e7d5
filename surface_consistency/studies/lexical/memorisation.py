"""Has a model memorised a benchmark, and does that foretell its verdicts?

Section 6 of the study of lexical popularity: extraction (TDE), membership (MIA) by the loss and by
neighbours; Min-K % and Min-K++, which it does not have, besides.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.engine.design import Report
from surface_consistency.engine.paired_tables import model_dots
from surface_consistency.engine.study import Analysis
from surface_consistency.errors import DataError, RecordError
from surface_consistency.metrics import (
    correctness_regression,
    extraction_log_likelihood,
    majority_macro_f1,
    membership_loss,
    min_k_plus_plus,
    min_k_probability,
    neighbourhood_score,
    predict_correctness,
    relative_difference,
    split_accuracy,
)
from surface_consistency.metrics.uncertainty.intervals import wilson_interval
from surface_consistency.reading import existing_file, json_objects
from surface_consistency.report.page import Dot, Dots
from surface_consistency.report.table import Column, Table, interval_column
from surface_consistency.runs.folder import RunFolder
from surface_consistency.schemas import Prompt, ScoredText, read_jsonl
from surface_consistency.schemas.settings import Settings
from surface_consistency.studies.lexical.records import BenchmarkInstance

__all__ = [
    "MEMORISATION",
    "MemorisationAnalysis",
    "MemorisationSettings",
    "memorisation_prompts",
    "memorisation_scores",
    "read_neighbours",
]

MEMORISATION: Final = "memorisation"
"""Name of the group of prompts, and of the analysis."""

_SCORES: Final = {
    "extracted": "TDE accuracy",
    "extraction": "TDE likelihood",
    "neighbours": "MIA neighbours",
    "loss": "MIA loss",
    "min_k": "Min-K % (not in the paper)",
    "min_k_plus_plus": "Min-K++ (not in the paper)",
}
_FOLDS: Final = 5


def memorisation_prompts(
    name: str, instance: BenchmarkInstance, neighbours: Mapping[str, Sequence[str]]
) -> Iterator[Prompt]:
    """Ask for the log-probabilities of an instance's texts, whole, from half on, and of neighbours.

    Args:
        name: Name of the instance, unique in the run.
        instance: The instance.
        neighbours: By text versions of it with some words replaced; none for texts left out.

    Yields:
        For each option the prompts `NAME/OPTION/text`, `NAME/OPTION/half`, where the text has two
        words, and `NAME/OPTION/neighbours`, where it has any. Half are the first words, rounded
        down: the paper does not say what it halves.
    """
    for number, text in enumerate(instance.texts):
        prefix = f"{MEMORISATION}/{name}/{number}"
        yield Prompt(id=f"{prefix}/text", text="", options=(text,), vocabulary_moments=True)
        words = text.split(" ")
        if len(words) > 1:
            half = len(words) // 2
            yield Prompt(
                id=f"{prefix}/half",
                text=" ".join(words[:half]),
                options=(" " + " ".join(words[half:]),),
            )
        others = tuple(dict.fromkeys(other for other in neighbours.get(text, ()) if other != text))
        if others:
            yield Prompt(id=f"{prefix}/neighbours", text="", options=others)


def read_neighbours(path: Path) -> dict[str, tuple[str, ...]]:
    """Read neighbours that were made elsewhere, such as by a masked language model.

    Args:
        path: JSONL with `text` and `neighbours`, a list of texts.

    Returns:
        Neighbours by text.

    Raises:
        SourceNotFoundError: If there is no such file.
        RecordError: If a line lacks a field or has one of another kind.
    """
    found: dict[str, tuple[str, ...]] = {}
    for number, row in json_objects(existing_file(path, "neighbours of texts", "*.jsonl")):
        text, others = row.get("text"), row.get("neighbours")
        if (
            not isinstance(text, str)
            or not isinstance(others, list)
            or not all(isinstance(other, str) and other for other in others)
        ):
            raise RecordError(
                f"{path}:{number}: a line has text and neighbours, a list of texts, got the "
                f"fields {', '.join(map(str, row)) or 'none'}"
            )
        found[text] = tuple(others)
    return found


def memorisation_scores(folder: RunFolder, *, k: float = 0.2) -> pd.DataFrame:
    """Compute the memorisation scores of a run.

    Args:
        folder: A run that was asked with `memorisation`.
        k: Share of the tokens that Min-K takes.

    Returns:
        One row a text (instance and option): fact_id, option (its place), is_right, n_tokens,
        extracted (whether greedy decoding of the first half writes the second: its every token is
        the likeliest after those before it), extraction (log-likelihood of the second half given
        the first), loss (mean a token), neighbours (loss less that of neighbours), min_k and
        min_k_plus_plus. What was not asked or cannot be told is NaN.

    Raises:
        DataError: If the run was asked without it.
    """
    told = _told(folder)
    targets, pairs = folder.read_plan()
    first = targets[targets["target_id"].isin(set(pairs["first_target"]))]
    rows: list[dict[str, Any]] = []
    for fact, correct, texts in zip(
        first["fact_id"], first["correct"], first["texts"], strict=True
    ):
        for number in range(len(texts)):
            prefix = f"{MEMORISATION}/{fact}/{number}"
            whole = told.get(f"{prefix}/text", ())
            if not whole:
                continue
            half = told.get(f"{prefix}/half", ())
            rows.append(
                {
                    "fact_id": fact,
                    "option": number,
                    "is_right": number == int(correct),
                    **_of_text(whole[0], half, told.get(f"{prefix}/neighbours", ()), k),
                }
            )
    if not rows:
        raise DataError(
            f"{folder.path} holds no scores of whole texts; run the study with --memorisation"
        )
    return pd.DataFrame(rows)


def _told(folder: RunFolder) -> dict[str, Sequence[ScoredText]]:
    """Read the scores of the group by prompt id; prompts of equal content share them."""
    answers = folder.read_answers((MEMORISATION,))
    by_key = dict(zip(answers["prompt_key"], answers["scores"], strict=True))
    if not by_key:
        return {}
    return {
        prompt.id: by_key.get(prompt.key) or ()
        for prompt in read_jsonl(folder.prompts, Prompt)
        if prompt.id.startswith(f"{MEMORISATION}/")
    }


def _of_text(
    whole: ScoredText, half: Sequence[ScoredText], neighbours: Sequence[ScoredText], k: float
) -> dict[str, Any]:
    """Compute the scores of one text."""
    values = whole.log_probabilities
    known = [value for value in values if value is not None]
    row: dict[str, Any] = dict.fromkeys(_SCORES, math.nan) | {"n_tokens": len(known)}
    if whole.token_ids is None or not known:
        return row
    row["loss"] = float(membership_loss([values])[0])
    row["min_k"] = float(min_k_probability([values], k=k)[0])
    if whole.vocabulary_means is not None and whole.vocabulary_deviations is not None:
        row["min_k_plus_plus"] = float(
            min_k_plus_plus([values], [whole.vocabulary_means], [whole.vocabulary_deviations], k=k)[
                0
            ]
        )
    if half:
        row["extraction"] = float(
            extraction_log_likelihood([half[0].log_probabilities], prefix_lengths=[0])[0]
        )
        if half[0].is_greedy is not None:
            row["extracted"] = float(half[0].is_greedy)
    others = [item for item in neighbours if item.token_ids is not None]
    if others:
        losses = membership_loss([item.log_probabilities for item in others])
        row["neighbours"] = float(neighbourhood_score([row["loss"]], [losses])[0])
    return row


class MemorisationSettings(Settings):
    """How memorisation is told."""

    k: float = 0.2
    """Share of the tokens, the least likely ones, that Min-K % and Min-K++ take."""

    svm: bool = True
    """Whether a support-vector machine of degree 3 predicts besides the logistic regression."""

    fold_seed: int = 0
    """Seed of the folds of the prediction."""


class MemorisationAnalysis(Analysis):
    """Memorisation of a benchmark's instances, and whether it foretells the verdicts."""

    name = MEMORISATION
    title = "Memorisation"
    settings = MemorisationSettings
    studies = ("lexical",)
    reading = (
        "Membership is a guess from probabilities: a likely text has a low loss whether it was "
        "seen or not. Neighbours are the same text with some words replaced, which takes its "
        "difficulty out in part. Verdicts and scores are those of the same model."
    )

    def tables(self, report: Report, settings: MemorisationSettings) -> Mapping[str, Table]:
        """Compute scores, accuracy by score, and predictions; see `Analysis.tables`.

        Returns:
            "memorisation", means by task and option; "memorisation_split" (tables 4 and K of the
            paper); "memorisation_prediction" (tables E to J, figure 5), which needs the extra
            `analysis`; "memorisation_coefficients" (tables E to H).

        Raises:
            DataError: If a run was asked without memorisation.
            MissingDependencyError: If scikit-learn or statsmodels is not installed.
        """
        means, splits, predictions, coefficients = [], [], [], []
        for run in report.runs:
            scores = memorisation_scores(run.folder, k=settings.k)
            pairs = run.outcomes.drop_duplicates("fact_id")
            frame = scores.merge(pairs[["fact_id", "task", "first_correct"]], on="fact_id")
            for task, of_task in frame.groupby("task", sort=False):
                head = {"model": run.label, "task": task}
                means += [{**head, **row} for row in _means(of_task)]
                for name in _SCORES:
                    features = _features(of_task, name)
                    if features.empty:
                        continue
                    splits.append({**head, "score": name, **_split(features, name)})
                    told = _prediction(features, settings)
                    predictions.append({**head, "score": name, **told})
                    coefficients += [
                        {**head, "score": name, **row} for row in _coefficients(features)
                    ]
        head_columns = [
            Column(key="model", title="Model"),
            Column(key="task", title="Task"),
            Column(key="score", title="Score", labels=_SCORES),
        ]
        return {
            MEMORISATION: _means_table(pd.DataFrame(means), head_columns[:2]),
            "memorisation_split": _split_table(pd.DataFrame(splits), head_columns),
            "memorisation_prediction": _prediction_table(
                pd.DataFrame(predictions), head_columns, svm=settings.svm
            ),
            "memorisation_coefficients": _coefficient_table(
                pd.DataFrame(coefficients), head_columns
            ),
        }

    def figures(self, report: Report, tables: Mapping[str, Table]) -> list[Dots]:
        """Draw macro-F1 beside that of the majority: the paper's figure 5."""
        rows: list[tuple[str, int, list[Dot]]] = []
        for task, of_task in tables["memorisation_prediction"].frame.groupby("task", sort=False):
            level = [("always the majority", "baseline", of_task.drop_duplicates("model"))]
            level += [
                (_SCORES[str(name)], "macro_f1", part)
                for name, part in of_task.groupby("score", sort=False)
            ]
            rows.append((str(task).replace("_", " "), 0, []))
            rows += [
                (label, 1, model_dots(part, key, report.index, n="n")) for label, key, part in level
            ]
        return [
            Dots(
                name="memorisation-prediction",
                title="Macro-F1 of verdicts foretold from memorisation scores",
                axis="macro-F1, %",
                rows=rows,
                clusters="instances",
            )
        ]


def _means(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Average the scores of right and of wrong options."""
    for is_right, part in frame.groupby("is_right", sort=False):
        known = part["extracted"].dropna()
        n = int(known.sum())
        bounds = wilson_interval(n, len(known)) if len(known) else None
        yield {
            "option": "right" if is_right else "wrong",
            "n": len(part),
            "extracted": n / len(known) if len(known) else math.nan,
            "extracted_low": bounds.low if bounds else math.nan,
            "extracted_high": bounds.high if bounds else math.nan,
            **{name: float(part[name].mean()) for name in _SCORES if name != "extracted"},
        }


def _features(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Put the score of the right option and the mean of the others side by side, with verdicts."""
    right = frame[frame["is_right"]].set_index("fact_id")
    made = pd.DataFrame({"right": right[name], "correct": right["first_correct"]})
    wrong = frame[~frame["is_right"]].groupby("fact_id")[name].mean()
    if len(wrong):
        made["wrong"] = wrong
    made = made.dropna().reset_index()
    return made.astype({"correct": bool})


def _scores_of(features: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Take the columns of scores."""
    names = [name for name in ("right", "wrong") if name in features]
    return features[names].to_numpy(dtype=np.float64)


def _split(features: pd.DataFrame, name: str) -> dict[str, Any]:
    """Compare accuracy at low and high scores, relative to the right option's as in the paper."""
    right = features["right"].to_numpy(float)
    scores = right
    if "wrong" in features:
        scores = relative_difference(right, features["wrong"].to_numpy(float))
    row: dict[str, Any] = dict.fromkeys(_SPLIT, math.nan) | {"n_low": 0, "n_high": 0}
    if np.isnan(scores).all():
        return row
    found = split_accuracy(scores, features["correct"], missing="drop")
    for part in ("low_accuracy", "high_accuracy", "difference"):
        bounds = getattr(found, f"{part}_interval")
        row |= {part: getattr(found, part), f"{part}_low": bounds.low, f"{part}_high": bounds.high}
    return row | {"n_low": found.n_low, "n_high": found.n_high}


_SPLIT: Final = tuple(
    f"{part}{end}"
    for part in ("low_accuracy", "high_accuracy", "difference")
    for end in ("", "_low", "_high")
)


def _prediction(features: pd.DataFrame, settings: MemorisationSettings) -> dict[str, Any]:
    """Foretell verdicts from scores, on folds that were not seen."""
    correct = features["correct"].to_numpy(bool)
    fewest = int(min(correct.sum(), (~correct).sum()))
    row: dict[str, Any] = {
        "n": len(correct),
        "accuracy": float(correct.mean()),
        "baseline": majority_macro_f1(float(correct.mean())),
        **dict.fromkeys(("macro_f1", "auc", "svm_macro_f1", "svm_auc"), math.nan),
    }
    if fewest < 2:
        return row
    options: dict[str, Any] = {"n_folds": min(_FOLDS, fewest), "rng": settings.fold_seed}
    scores = _scores_of(features)
    found = predict_correctness(scores, correct, **options)
    row |= {
        "macro_f1": found.macro_f1,
        "auc": found.auc,
        "baseline": found.baseline_macro_f1,
    }
    if settings.svm:
        other = predict_correctness(scores, correct, classifier="svm", **options)
        row |= {"svm_macro_f1": other.macro_f1, "svm_auc": other.auc}
    return row


def _coefficients(features: pd.DataFrame) -> list[dict[str, Any]]:
    """Regress verdicts on the scores as they are."""
    names = [name for name in ("right", "wrong") if name in features]
    found = correctness_regression(_scores_of(features), features["correct"], names=names)
    rows = found[found["term"] != "intercept"].to_dict("records")
    return [{str(key): value for key, value in row.items()} for row in rows]


def _means_table(frame: pd.DataFrame, head: Sequence[Column]) -> Table:
    """Describe the means."""
    return Table(
        frame=frame,
        caption="Memorisation scores of the instances in the original words",
        note="Extracted: the second half of the words follows the first word for word by greedy "
        "decoding. Min-K % and Min-K++ are not in the paper.",
        columns=[
            *head,
            Column(key="option", title="Option"),
            Column(key="n", title="Texts", kind="count"),
            interval_column("extracted", "Extracted", "rate", "%"),
            Column(key="extraction", title="TDE likelihood", kind="number", unit="nats"),
            Column(key="loss", title="MIA loss", kind="number", unit="nats a token"),
            Column(key="neighbours", title="MIA neighbours", kind="number", unit="nats a token"),
            Column(key="min_k", title="Min-K %", kind="number", unit="nats a token"),
            Column(key="min_k_plus_plus", title="Min-K++", kind="number"),
        ],
    )


def _split_table(frame: pd.DataFrame, head: Sequence[Column]) -> Table:
    """Describe accuracy by score."""
    return Table(
        frame=frame,
        caption="Accuracy at low and at high scores, cut at the median",
        note="Score: right option less wrong one, over the right one, as in the paper; of "
        "log-likelihoods, which are negative, high means the wrong option is the likelier. "
        "Tasks of a single option take its score.",
        columns=[
            *head,
            Column(key="n_low", title="Low", kind="count"),
            Column(key="n_high", title="High", kind="count"),
            interval_column("low_accuracy", "Low", "rate", "right, %"),
            interval_column("high_accuracy", "High", "rate", "right, %"),
            interval_column("difference", "Difference", "difference", "points"),
        ],
    )


def _prediction_table(frame: pd.DataFrame, head: Sequence[Column], *, svm: bool) -> Table:
    """Describe predictions."""
    further = [
        Column(key="svm_macro_f1", title="Macro-F1", kind="rate", unit="SVM, %"),
        Column(key="svm_auc", title="AUC", kind="number", unit="SVM"),
    ]
    return Table(
        frame=frame,
        caption="Are verdicts foretold by memorisation scores of both options?",
        note="On folds that were not seen, stratified. Baseline: always the more frequent verdict.",
        columns=[
            *head,
            Column(key="n", title="Instances", kind="count"),
            Column(key="baseline", title="Baseline", kind="rate", unit="macro-F1, %"),
            Column(key="macro_f1", title="Macro-F1", kind="rate", unit="logistic, %"),
            Column(key="auc", title="AUC", kind="number", unit="0.5 is chance"),
            *(further if svm else []),
        ],
    )


def _coefficient_table(frame: pd.DataFrame, head: Sequence[Column]) -> Table:
    """Describe coefficients."""
    return Table(
        frame=frame,
        caption="Logistic regression of a right answer on the scores of both options",
        note="Log odds a unit of the score, errors robust; empty where a score is constant or "
        "separates the verdicts.",
        columns=[
            *head,
            Column(key="term", title="Option"),
            Column(key="n", title="Instances", kind="count"),
            interval_column("estimate", "Coefficient", "number"),
            Column(key="p_value", title="p", kind="p_value"),
        ],
    )
