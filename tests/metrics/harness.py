"""Frames and naive implementations of the metrics, for tests of properties that all share."""

import csv
import functools
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from surface_consistency.metrics import (
    PAIRED_RATES,
    Intervals,
    alignment_by,
    compare_models,
    contrasts_by,
    correlation_by,
    forgetting_by,
    form_answers_by,
    form_contrasts,
    form_spread_by,
    forms_by,
    group_difference_by,
    linking_by,
    paired_by,
    unlearning_by,
    variance_shares_by,
)
from surface_consistency.metrics.linking.linking import LINKING_KINDS


def long(values: np.ndarray, name: str = "correct", **columns: Any) -> pd.DataFrame:
    """Convert an array to a frame with one row per fact and form (and sample)."""
    facts, forms, *_ = (index.ravel() for index in np.indices(values.shape))
    frame = pd.DataFrame({"item": facts, "form": forms, name: values.ravel()})
    return frame.assign(**columns)


def golden_rows(data_files: Path, name: str, folder: str = "golden") -> list[dict[str, str]]:
    """Return the rows of a file of published numbers."""
    with (data_files / folder / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def correlation_row(
    x: Any,
    y: Any,
    controls: Any = None,
    *,
    cluster: Any = None,
    confidence: float = 0.95,
    **options: Any,
) -> pd.Series:
    """Return the row of `correlation_by` for these vectors."""
    others = np.empty((len(x), 0)) if controls is None else np.asarray(controls).reshape(len(x), -1)
    names = [f"c{k}" for k in range(others.shape[1])]
    columns = {"x": pd.Series(x), "y": pd.Series(y), "cluster": cluster}
    frame = pd.DataFrame({name: column for name, column in columns.items() if column is not None})
    frame[names] = others
    options |= {"cluster": None if cluster is None else "cluster"}
    options |= {"intervals": Intervals(confidence=confidence), "controls": names}
    return correlation_by(frame, x="x", y="y", **options).iloc[0]


def instances(seed: int, n_facts: int = 400) -> pd.DataFrame:
    """Return canonical and redirect instances; their accuracy increases with both frequencies."""
    rng = np.random.default_rng(seed)
    fact = np.repeat(np.arange(n_facts), 2)
    entity = np.ceil(np.exp(rng.normal(5, 2, n_facts)))[fact]
    is_canonical = np.tile([True, False], n_facts)
    surface = np.floor(entity * rng.beta(np.where(is_canonical, 2, 0.4), 1))
    known = rng.normal(size=n_facts)[fact] + 0.3 * np.log(entity) + 0.1 * np.log1p(surface) - 2
    frame = pd.DataFrame({"item": fact, "instance": np.arange(2 * n_facts)})
    frame = frame.assign(is_canonical=is_canonical, entity_frequency=entity)
    frame["surface_frequency"] = surface
    for model, shift in (("small", 0.0), ("large", 1.0)):
        frame[model] = rng.binomial(2, 1 / (1 + np.exp(-known - shift))) / 2
    return frame


class Metric(NamedTuple):
    """A metric of a frame, with a generator of input frames and a naive implementation."""

    call: Callable[..., pd.DataFrame]
    frame: Callable[[int], pd.DataFrame]
    naive: Callable[[pd.DataFrame], dict[str, Any]]
    cluster: str
    value: str
    p_values: Mapping[str, str] = MappingProxyType({})
    """Column of each p-value, by the name of the value that it tests."""
    by: str | None = "by"
    """Name of the option for groups; None if the metric has none."""
    names: str = ""
    """Column with changed values in copies of rows, so that these are other facts of a cluster."""
    drops: bool = True
    """Whether rows without a value are dropped and counted in `n_missing`."""


def pairs(seed: int) -> pd.DataFrame:
    """Return pairs of facts with the labels of two models, groups and values."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 80))
    facts = rng.integers(0, 12, n)
    rows = {
        "pair": np.arange(n),
        "item": [f"Q{fact}" for fact in facts],
        "group": rng.choice(["a", "b"], n),
        "value": rng.normal(0.1 * facts, 1.0),
        "member": rng.random(n) < 0.4,
        "score": rng.normal(0.1 * facts, 1.0),
        "kind": rng.choice(LINKING_KINDS, n),
    }
    known = rng.random(12)[facts]
    rows |= {"full": rng.random(n) < 0.7, "gold_retrieved": rng.random(n) < 0.3}
    models = [
        pd.DataFrame(rows).assign(
            model=model, first_correct=rng.random(n) < known, second_correct=rng.random(n) < share
        )
        for model, share in (("x", 0.3), ("y", 0.6))
    ]
    return pd.concat(models, ignore_index=True)


def forms(seed: int) -> pd.DataFrame:
    """Return the labels and answers of two models to facts of topics in four forms."""
    rng = np.random.default_rng(seed)
    facts, forms, models = (x.ravel() for x in np.indices((36, 4, 2)))
    chance = 0.2 + 0.6 * rng.random(36)[facts]
    return pd.DataFrame(
        {
            "item": facts,
            "topic": [f"t{topic}" for topic in rng.integers(0, 9, 36)[facts]],
            "form": forms,
            "model": np.array(["x", "y"])[models],
            "group": np.array(["a", "b"])[facts % 2],
            "correct": rng.random(facts.size) < chance,
            "answer": rng.choice(list("pqr"), facts.size),
        }
    )


def one_model(frame: Callable[[int], pd.DataFrame], seed: int) -> pd.DataFrame:
    """Return the rows of one model."""
    rows = frame(seed)
    return rows[rows["model"] == "x"].reset_index(drop=True)


def _rate(values: list[bool]) -> float:
    return sum(values) / len(values) if values else float("nan")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _paired(rows: pd.DataFrame) -> dict[str, Any]:
    verdicts = list(zip(rows["first_correct"], rows["second_correct"], strict=True))
    return {
        "n": len(verdicts),
        "n_clusters": len(set(rows["item"])),
        "both": sum(a and b for a, b in verdicts),
        "first_only": sum(a and not b for a, b in verdicts),
        "consistency": _rate([a == b for a, b in verdicts]),
        "flip_rate": _rate([a != b for a, b in verdicts]),
        "first_accuracy": _rate([a for a, _ in verdicts]),
        "accuracy_difference": _rate([b for _, b in verdicts]) - _rate([a for a, _ in verdicts]),
        "consistency_given_first_correct": _rate([b for a, b in verdicts if a]),
        "consistency_given_first_incorrect": _rate([not b for a, b in verdicts if not a]),
    }


def _forgotten(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the rates over all facts and over facts correct under FULL, by their definitions."""
    found = {"full_correct": sum(rows["full"]), "full_accuracy": _rate(rows["full"].tolist())}
    for part, end in ((rows, ""), (rows[rows["full"]], "_given_full")):
        names = ("first_correct", "second_correct", "gold_retrieved")
        states = list(zip(*(part[name] for name in names), strict=True))
        found |= {
            f"leakage{end}": _rate([off for _, off, _ in states]),
            f"retrieval_mediated{end}": _rate([on and not off for on, off, _ in states]),
            f"interference{end}": _rate([off and not on for on, off, _ in states]),
            f"artifact_rate{end}": _rate([on and not gold for on, _, gold in states]),
            f"{'survival' if end else 'del_on_accuracy'}{end}": _rate([on for on, *_ in states]),
        }
    return found | {"artifacts": round(found["artifact_rate"] * len(rows))}


def _unlearned(rows: pd.DataFrame) -> dict[str, Any]:
    table = _paired(rows)
    excess, leak = -table["accuracy_difference"], table["first_only"] / table["n"]
    survival, damage = table["first_accuracy"], table["flip_rate"] - leak
    values = {"survival": survival, "leak": leak, "damage": damage, "excess": excess}
    return values | {"floor": survival - leak + damage}


def _aligned(rows: pd.DataFrame) -> dict[str, Any]:
    """Return means over topics; topics have equal weights, whatever their number of pairs."""
    topics = [_paired(part) for _, part in rows.groupby("item")]
    mean = {name: _mean([topic[name] for topic in topics]) for name in topics[0]}
    return {
        "n": len(rows),
        "n_topics": len(topics),
        "short_accuracy": mean["first_accuracy"],
        "alignment": mean["consistency"],
        "signed_alignment": 2 * mean["first_accuracy"] + mean["accuracy_difference"] - 1,
        "accuracy_difference": mean["accuracy_difference"],
    }


def _linked(rows: pd.DataFrame) -> dict[str, Any]:
    answers = list(zip(rows["kind"] == "positive", rows["second_correct"], strict=True))
    sides = [[correct for kind, correct in answers if kind == side] for side in (True, False)]
    cells = {
        f"{name}_{end}": side.count(end == "right")
        for name, side in zip(("positive", "negative"), sides, strict=True)
        for end in ("right", "wrong")
    }
    return cells | {
        "n": len(answers),
        "yes_rate": _rate([kind == correct for kind, correct in answers]),
        "raw_accuracy": _rate([correct for _, correct in answers]),
        "positive_accuracy": _rate(sides[0]),
        "negative_accuracy": _rate(sides[1]),
        "balanced_accuracy": sum(map(_rate, sides)) / 2,
    }


def _correlated(rows: pd.DataFrame) -> dict[str, Any]:
    return {"n": len(rows), "coefficient": np.corrcoef(rows["value"], rows["score"])[0, 1]}


def _contrasted(rows: pd.DataFrame) -> dict[str, Any]:
    parts = {model: _paired(part) for model, part in rows.groupby("model")}
    one, other = (parts[model]["flip_rate"] for model in ("x", "y"))
    return {"a": "x", "b": "y", "value_a": one, "value_b": other, "difference": one - other}


def _grouped(rows: pd.DataFrame) -> dict[str, Any]:
    sides = (rows["value"][rows["member"] == side].tolist() for side in (True, False))
    group, other = (sum(side) / len(side) for side in sides)
    return {"group_mean": group, "difference": group - other}


def _of_facts(rows: pd.DataFrame, column: str = "correct") -> list[list[Any]]:
    return [part[column].tolist() for _, part in rows.groupby("item")]


def _agreement(facts: list[list[Any]]) -> float:
    return float(
        np.mean([np.mean([a == b for a, b in itertools.combinations(f, 2)]) for f in facts])
    )


def _formed(rows: pd.DataFrame) -> dict[str, Any]:
    facts = _of_facts(rows)
    return {
        "n_items": len(facts),
        "n_forms": rows["form"].nunique(),
        "n_clusters": rows["topic"].nunique(),
        "accuracy": np.mean([np.mean(fact) for fact in facts]),
        "all_correct": _rate([all(fact) for fact in facts]),
        "all_incorrect": _rate([not any(fact) for fact in facts]),
        "consistency": _agreement(facts),
    }


def _answered(rows: pd.DataFrame) -> dict[str, Any]:
    answers, facts = rows["answer"].tolist(), _of_facts(rows, "answer")
    chance = np.mean([[a == b for a in answers] for b in answers])
    return {"same_answer": _agreement(facts), "chance": chance}


def _spread(rows: pd.DataFrame) -> dict[str, Any]:
    accuracies = {form: np.mean(part["correct"]) for form, part in rows.groupby("form")}
    return {"worst_accuracy": min(accuracies.values()), "best_accuracy": max(accuracies.values())}


def _variance(rows: pd.DataFrame) -> dict[str, Any]:
    return {"n": len(rows), "n_items": rows["item"].nunique(), "n_forms": 4, "n_samples": 1}


def _form_contrast(rows: pd.DataFrame) -> dict[str, Any]:
    one, other = (_formed(rows[rows["model"] == model]) for model in ("x", "y"))
    return {"value_a": one["consistency"], "value_b": other["consistency"]}


def _compared(frame: pd.DataFrame, **options: Any) -> pd.DataFrame:
    """Return the differences of the models from the reference model "x"."""
    items = {"item": ["item", "form"], "score": "correct", "baseline": "x"}
    return compare_models(frame, **items, **options).differences


def _alignment(frame: pd.DataFrame, *, cluster: str, **options: Any) -> pd.DataFrame:
    """Call `alignment_by` with the clusters as topics."""
    return alignment_by(frame, topic=cluster, **options)


def _difference(rows: pd.DataFrame) -> dict[str, Any]:
    means = rows.groupby("model")["correct"].mean()
    return {"model_mean": means["y"], "difference": means["y"] - means["x"]}


_ONE_PAIR = functools.partial(one_model, pairs)
_ONE_FORM = functools.partial(one_model, forms)
_DIFFERENCE = {"difference": "p_value"}
_ACCURACY = {"accuracy_difference": "p_value"}
_ALIGNED = {"accuracy_difference": "accuracy_difference_p_value"}
_SECOND = ("item", "second_correct")
_FACTS = {"names": "item"}
_MODELS = functools.partial(contrasts_by, between="model")
_STATES = functools.partial(forgetting_by, full="full", gold_retrieved="gold_retrieved")
_BETWEEN = {"by": "within", "drops": False}
_RATES = sorted(PAIRED_RATES, key="flip_rate".__ne__)
_SAME_PAIRS = functools.partial(_MODELS, pair="pair", rate=_RATES)
_GROUPS = functools.partial(group_difference_by, value="value", group="member")
_LINKS = functools.partial(linking_by, score="second_correct")
_VALUES = functools.partial(correlation_by, x="value", y="score")
_CORRELATED = {"coefficient": "p_value"}

METRICS = {
    "paired_by": Metric(paired_by, _ONE_PAIR, _paired, *_SECOND, _ACCURACY),
    "contrasts_by": Metric(_MODELS, pairs, _contrasted, *_SECOND, _DIFFERENCE, **_BETWEEN),
    "contrasts_by of pairs": Metric(
        _SAME_PAIRS, pairs, _contrasted, *_SECOND, _DIFFERENCE, names="pair", **_BETWEEN
    ),
    "forgetting_by": Metric(_STATES, _ONE_PAIR, _forgotten, *_SECOND, _ACCURACY),
    "unlearning_by": Metric(unlearning_by, _ONE_PAIR, _unlearned, *_SECOND, {"excess": "p_value"}),
    "alignment_by": Metric(_alignment, _ONE_PAIR, _aligned, *_SECOND, _ALIGNED),
    "linking_by": Metric(_LINKS, _ONE_PAIR, _linked, *_SECOND),
    "correlation_by": Metric(_VALUES, _ONE_PAIR, _correlated, "item", "score", _CORRELATED),
    "group_difference_by": Metric(_GROUPS, _ONE_PAIR, _grouped, "item", "", _DIFFERENCE),
    "forms_by": Metric(forms_by, _ONE_FORM, _formed, "topic", "correct", **_FACTS),
    "form_answers_by": Metric(form_answers_by, _ONE_FORM, _answered, "topic", "answer", **_FACTS),
    "form_spread_by": Metric(form_spread_by, _ONE_FORM, _spread, "topic", "", **_FACTS),
    "variance_shares_by": Metric(variance_shares_by, _ONE_FORM, _variance, "topic", "correct"),
    "form_contrasts": Metric(
        form_contrasts, forms, _form_contrast, "topic", "", _DIFFERENCE, None, **_FACTS
    ),
    "compare_models": Metric(
        _compared, forms, _difference, "topic", "", _DIFFERENCE, None, **_FACTS
    ),
}
"""Metrics by name; the arguments of each are a frame and the column of the clusters."""
