"""Preferences between the answers of two models, as scores of one against the other.

A win is 1, a tie 0.5 and a loss 0. The model that all others are compared with has 0.5 on every
item, so that a difference is the win rate (ties counted half) less a half.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any, Final

from surface_consistency.errors import DataError, RecordError
from surface_consistency.results.rows import Cells, Failure, Flat, Flats, at, shown
from surface_consistency.rows.readers import Place

METRIC: Final = "preference"
"""Name of the metric."""

_TIES: Final = {"tie", "tie (bothbad)", "both_bad", "bothbad", "equal", "same", "draw"}
_FIRST: Final = {"model_a", "model_1", "a"}
_SECOND: Final = {"model_b", "model_2", "b"}
_ITEMS: Final = "question_id|id|instruction|prompt|question|conversation_a.0.content"


def alpaca_eval(row: Cells, place: Place) -> Flats:
    """Read an annotation of alpaca_eval: 1 prefers the first output, 2 the second, 0 and 1.5 none.

    Weighted annotators give numbers between 1 and 2. No preference (null, or -1) is no score.
    """
    told = row["preference"]
    try:
        number = -1.0 if told in (None, "") else float(told)
    except (TypeError, ValueError):
        number = 3.0
    if not (number in (-1, 0) or 1 <= number <= 2):
        raise RecordError(
            f"{place}: `preference` holds {shown(told)}, which is not a preference of alpaca_eval: "
            "1 to 2, 0 for a tie, or null"
        )
    score = None if number == -1 else 0.5 if number == 0 else number - 1
    models = (row.get("generator_1") or "reference", row.get("generator_2"))
    return _both(row, models, score, row["instruction"], ("output_1", "output_2"))


def arena(row: Cells, place: Place) -> Flats:
    """Read a battle of an arena: two models, and which of them won."""
    return _both(row, (row["model_a"], row["model_b"]), _won(row["winner"], row, place))


def arena_columns(row: Cells, place: Place) -> Flats:
    """Read a battle whose outcome has three columns of 0 and 1."""
    names = ("winner_model_a", "winner_tie", "winner_model_b")
    told = [float(row[name]) for name in names]
    if sorted(told) != [0, 0, 1]:
        raise RecordError(f"{place}: {', '.join(names)} hold {told}; one of them is 1")
    return _both(row, (row["model_a"], row["model_b"]), told.index(1) / 2)


def mt_bench(row: Cells, place: Place) -> Flats:
    """Read a pairwise judgment of MT-bench: two games, with the answers in both orders.

    As in FastChat, a model wins if it wins both games, and other outcomes are ties.
    """
    games = [_won(row[f"g{game}_winner"], row, place) for game in (1, 2)]
    score = None if None in games else games[0] if games[0] == games[1] else 0.5
    return _both(row, (row["model_1"], row["model_2"]), score)


def _won(told: object, row: Cells, place: Place) -> float | None:
    """Read the score of the second model; None if the judge failed."""
    word = str(told or "error").strip()
    models = [{str(row.get(f"model_{a}")), str(row.get(f"model_{n}"))} for a, n in ("a1", "b2")]
    for score, words in ((0.0, _FIRST | models[0]), (1.0, _SECOND | models[1]), (0.5, _TIES)):
        if word.casefold() in words or word in words:
            return score
    if word.casefold() in ("error", "none", "nan"):
        return None
    raise RecordError(
        f"{place}: the winner is {shown(told)}; known are model_a, model_b, the names of the "
        "models, and tie"
    )


def _both(
    row: Cells,
    models: tuple[Any, Any],
    score: float | None,
    item: object = None,
    outputs: tuple[str, str] = ("", ""),
) -> Flats:
    """Lay out the answers of both models; `run` decides which of them is the reference."""
    item = at(dict(row), _ITEMS) if item is None else item
    kept = ("turn", "judge", "annotator", "language", "dataset", "category")
    rest = {name: row[name] for name in kept if name in row}
    for model, rival, output, own in zip(
        models, models[::-1], outputs, (None if score is None else 1 - score, score), strict=True
    ):
        parts = {"id": item, "model": model, "prediction": row.get(output)}
        if "turn" in row:
            parts["form"] = f"turn {row['turn']}"
        value = Failure("the judge has no preference") if own is None else own
        yield Flat(parts, {METRIC: value}, {**rest, "rival": rival})


def run(flats: Iterable[Flat], file: Path, notes: list[str]) -> Flats:
    """Score all models against the one that is in every comparison.

    Raises:
        DataError: If no model is in every comparison.
    """
    rows = list(flats)
    pairs = [{flat.parts["model"], flat.fields["rival"]} for flat in rows]
    common = set.intersection(*pairs)
    models = list(dict.fromkeys(flat.parts["model"] for flat in rows))
    reference = next((one for one in models if one in common), None)
    if len(pairs[0]) < 2 or not common:
        raise DataError(
            f"{file} has battles of {len(models)} models of which none is in every battle; give "
            "the battles of two models, or those of one model with others"
        )
    notes.append(
        f"{file}: preference is 1 for a win against {reference}, 0.5 for a tie and 0 for a loss; "
        f"{reference} has 0.5"
    )
    seen: Counter[Hashable] = Counter()
    for number, flat in enumerate(rows):
        parts, model = dict(flat.parts), flat.parts["model"]
        parts["id"] = number // 2 if parts["id"] is None else parts["id"]
        key = (model, parts["id"], parts.get("form"))
        told = {name: value for name, value in flat.fields.items() if name != "rival"}
        if model != reference or seen[key] == 0 or len(models) == 2:
            score = 0.5 if model == reference else flat.scores[METRIC]
            yield Flat({**parts, "repeat": seen[key]}, {METRIC: score}, told)
        seen[key] += 1
