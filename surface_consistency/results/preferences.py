"""Preferences between the answers of two models, as scores of one model relative to the other.

A win is 1, a tie 0.5 and a loss 0. The other model, the reference, has 0.5 on every item, so that
the difference of the two is the win rate, with ties counted half, minus a half.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any, Final

from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import shown
from surface_consistency.results.failures import SCORER
from surface_consistency.results.rows import Cells, Failure, Flat, Flats, at
from surface_consistency.rows.readers import Place

ALPACA: Final = "instruction output_1 output_2 preference"
"""Columns of annotations of alpaca_eval."""

_SCORES: Final = {"model_a": 0.0, "model_b": 1.0, "a": 0.0, "b": 1.0} | dict.fromkeys(
    ("tie", "tie (bothbad)", "both_bad", "equal", "draw"), 0.5
)
_ITEM: Final = "question_id|id|instruction|prompt|question|conversation_a.0.content"


def alpaca_eval(row: Cells, place: Place) -> Flats:
    """Read an annotation of alpaca_eval, from 1 (first output preferred) to 2 (second output).

    A tie is 1.5, or 0 in old files; no preference (null, or -1) is not a score.
    """
    cell = row["preference"]
    number = None if str(cell) in ("None", "", "nan") else float(cell)
    if number is not None and number not in (-1, 0) and not 1 <= number <= 2:
        raise RecordError(f"{place}: {shown(cell)} is not a preference, which is 1 to 2, 0 or null")
    score = None if number in (None, -1) else (number or 1.5) - 1
    names = (row.get("generator_1") or "reference", row.get("generator_2"))
    yield _battle(row, names, score, (row["output_1"], row["output_2"]))


def arena(row: Cells, place: Place) -> Flats:
    """Read a battle of an arena: two models, and the winner."""
    names, winner = (row["model_a"], row["model_b"]), str(row["winner"] or "")
    score = {str(names[0]): 0.0, str(names[1]): 1.0}.get(winner, _SCORES.get(winner.casefold()))
    if score is None and winner.casefold() not in ("", "error", "none", "nan"):
        raise RecordError(f"{place}: the winner {shown(winner)} is not model_a, model_b or tie")
    yield _battle(row, names, score, (None, None))


def mt_bench(row: Cells, place: Place) -> Flats:
    """Read a match of MT-bench: two games, with the answers in both orders.

    As in FastChat's `show_result`, a model wins if it wins both games; a match has no score if the
    winner of a game cannot be read.
    """
    known = {"model_1": "model_a", "model_2": "model_b", "tie": "tie", "error": "error"}
    first, second = known[row["g1_winner"]], known[row["g2_winner"]]
    winner = "error" if "error" in (first, second) else first if first == second else "tie"
    battle = {"model_a": row["model_1"], "model_b": row["model_2"], "winner": winner}
    return arena({**row, **battle}, place)


def _battle(row: Cells, models: Any, score: float | None, texts: Any) -> Flat:  # noqa: ANN401
    """Return a battle of two models with the score of the second one."""
    parts = {"id": at(dict(row), _ITEM), "form": f"turn {row['turn']}" if "turn" in row else ""}
    fields = {name: row[name] for name in ("judge", "annotator", "language") if name in row}
    names = tuple(None if one is None else str(one) for one in models)
    return Flat(parts, {"preference": score}, {**fields, "models": names, "texts": texts})


def run(flats: Iterable[Flat], file: Path, notes: list[str]) -> Flats:
    """Yield a sample per model and battle; the first model of the first battle is the reference.

    Raises:
        DataError: If there are more than two models.
    """
    rows, seen = list(flats), Counter[Hashable]()
    if n := sum(len({*flat.fields["models"]}) == 1 for flat in rows):
        rows = [flat for flat in rows if len({*flat.fields["models"]}) > 1]
        notes.append(f"{file}: battles of a model with itself are excluded ({n:,})")
    names = list(dict.fromkeys(model for flat in rows for model in flat.fields["models"]))
    if len(names) != 2:
        raise DataError(
            f"{file} has battles of {len(names)} models; use a file with the battles of two models"
        )
    notes.append(
        f"{file}: preference is 1 for a win, 0.5 for a tie and 0 for a loss against the "
        f"reference {names[0]}, which has 0.5"
    )
    for number, flat in enumerate(rows):
        fields, score = dict(flat.fields), flat.scores["preference"]
        text_of = dict(zip(fields.pop("models"), fields.pop("texts"), strict=True))
        item = number if flat.parts["id"] is None else flat.parts["id"]
        if score is not None and next(iter(text_of)) == names[1]:
            score = 1 - score
        value = Failure(f"{SCORER}: the annotator has no preference") if score is None else score
        parts = {**flat.parts, "id": item, "repeat": seen[item, flat.parts["form"]]}
        seen[item, flat.parts["form"]] += 1
        for model, own in ((names[0], 0.5), (names[1], value)):
            answer = {"model": model, "prediction": text_of[model]}
            yield Flat({**parts, **answer}, {"preference": own}, fields)
