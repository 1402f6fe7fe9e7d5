"""Preferences between two models: a win is 1, a tie 0.5 and a loss 0, compared with 0.5."""

import pandas as pd
import pytest

from surface_consistency.analysis.compare import compare_results
from surface_consistency.errors import DataError, RecordError
from surface_consistency.results.frame import read_results


def annotation(number, preference, **other):
    texts = {"instruction": f"I{number}", "output_1": "r", "output_2": "m"}
    names = {"generator_1": "gpt4", "generator_2": "beta"}
    return texts | names | {"preference": preference} | other


# As alpaca_eval.metrics: preferences.replace({0.0: 1.5}) - 1; null and negative values dropped.
PREFERENCES = [1, 2, 2, 0, 1.5, None, -1, 1.2, float("nan")]
SCORES = [0, 1, 1, 0.5, 0.5, None, None, 0.2, None]


@pytest.mark.parametrize("kind", [list, pd.DataFrame])
def test_preferences_of_alpaca_eval_are_compared_with_a_half(kind):
    rows = [annotation(*pair) for pair in enumerate(PREFERENCES)]
    frame = read_results(kind(rows)).frame

    beta = frame[frame["model"] == "beta"]
    assert (
        beta["score"].round(9).astype(object).where(beta["score"].notna(), None).tolist() == SCORES
    )
    assert beta["error"].notna().sum() == 3
    assert (frame.loc[frame["model"] == "gpt4", "score"] == 0.5).all()


def test_the_difference_is_the_win_rate_minus_a_half():
    rows = [annotation(n, 2 if n < 18 else 0 if n < 24 else 1) for n in range(30)]
    result = compare_results(rows)

    (row,) = result.metrics["preference"].differences.to_dict("records")
    assert row["difference"] == pytest.approx((18 + 6 / 2) / 30 - 0.5)
    assert row["model"] == "beta"
    assert any("against the reference gpt4, which has 0.5" in note for note in result.notes)


def battle(number, first, second, winner):
    return {"question_id": number, "model_a": first, "model_b": second, "winner": winner}


def test_scores_of_arena_battles_do_not_depend_on_the_position():
    rows = [
        *(battle(0, "x", "y", "model_b"), battle(1, "y", "x", "model_a")),
        *(battle(2, "x", "y", "model_a"), battle(3, "y", "x", "x")),
        *(battle(4, "x", "y", "Tie"), battle(5, "y", "x", "tie (bothbad)")),
    ]
    others = [battle(6, "x", "x", "model_a"), battle(7, "x", "y", "error")]
    read = read_results([*rows, *others])
    frame = read.frame

    assert any("battles of a model with itself are excluded (1)" in note for note in read.notes)
    failed = frame[(frame["model"] == "y") & (frame["item"] == "7")]
    assert failed["error"].tolist() == ["scorer failed: the annotator has no preference"]
    assert failed["score"].isna().all()
    frame = frame[frame["item"] != "7"]
    assert frame.loc[frame["model"] == "y", "score"].tolist() == [1, 1, 0, 0, 0.5, 0.5]
    assert (frame.loc[frame["model"] == "x", "score"] == 0.5).all()


def test_judgments_of_a_battle_are_repeats_and_turns_are_forms():
    rows = [battle(0, "x", "y", "tie") | {"turn": turn} for turn in (1, 1, 2)]
    frame = read_results(rows).frame

    own = frame.loc[frame["model"] == "y", ["form", "repeat"]]
    assert own.to_numpy().tolist() == [["turn 1", 0], ["turn 1", 1], ["turn 2", 0]]


def match(number, first, second, **other):
    models = {"model_1": "x", "model_2": "y", "turn": 1, "judge": ["gpt-4", "pair-v2"]}
    return {"question_id": number, "g1_winner": first, "g2_winner": second} | models | other


def test_match_of_mt_bench_is_won_if_both_games_are_won():
    """As in display_result_pairwise of FastChat, which drops games with an error."""
    games = [
        *(("model_2", "model_2"), ("model_1", "model_1"), ("model_1", "model_2")),
        *(("tie", "tie"), ("tie", "model_2"), ("error", "model_2"), ("model_2", "error")),
    ]
    frame = read_results([match(n, *pair) for n, pair in enumerate(games)]).frame

    own = frame[frame["model"] == "y"].set_index("item")
    assert own["score"].dropna().tolist() == [1, 0, 0.5, 0.5, 0.5]
    assert own.index[own["error"].notna()].tolist() == ["5", "6"]
    assert set(own["form"]) == {"turn 1"}


@pytest.mark.parametrize(
    ("error", "rows", "message"),
    [
        (RecordError, [annotation(0, 3)], "3 is not a preference, which is 1 to 2, 0 or null"),
        (RecordError, [battle(0, "x", "y", "left")], "the winner 'left' is not model_a, "),
        (RecordError, [match(0, "tie", "A")], "not in the layout of FastChat .no field 'A'"),
        (
            DataError,
            [battle(0, "x", "y", "tie"), battle(1, "y", "z", "tie")],
            "battles of 3 models; use a file with the battles of two",
        ),
    ],
)
def test_values_that_are_not_preferences_of_two_models_raise_an_error(error, rows, message):
    with pytest.raises(error, match=message):
        read_results(rows)
