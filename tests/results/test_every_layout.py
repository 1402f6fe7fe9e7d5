"""Every layout of results, intact and damaged, gives the correct scores or an error."""

import copy
import json

import numpy as np
import pytest

from surface_consistency.errors import DataError
from surface_consistency.results.frame import read_results
from surface_consistency.results.layouts import LAYOUTS
from tests.faults.layouts import READERS
from tests.made_layouts import made

MADE = made(((0, 1), (1, 0)))
# The scores alternate between 1 and 0, or are missing (only answers).
NO_SAMPLES = {"version status eval", "provider prompt vars success", "spec", "final_report"}
NO_SAMPLES |= {"name count sum sum_squared", "evaluation_results model_info"}
NO_SAMPLES |= {"case_id post"}  # Parts of the other layouts, and rejected layouts.


def read(folder, content, name="m.json"):
    """Scores by their keys."""
    (folder / name).write_text(json.dumps(content))
    frame = read_results(folder / name).frame
    keys = ["model", "item", "form", "repeat", "metric"]
    return {tuple(row): score for *row, score in frame[[*keys, "score"]].to_numpy().tolist()}


def test_every_layout_has_an_example():
    assert {one.columns for one in LAYOUTS} == {*MADE} | NO_SAMPLES
    assert {*READERS} == {*MADE}, "files of each layout are damaged at random"


@pytest.mark.parametrize("layout", MADE)
def test_file_of_each_layout_gives_its_scores(tmp_path, layout):
    scores = read(tmp_path, MADE[layout])

    by_item = {}
    for (model, item, *_), score in scores.items():
        if model != "r":
            by_item.setdefault(item, set()).add(score)
    first, second = by_item.values()
    assert (first, second) == ({1.0}, {0.0}) or all(map(np.isnan, (*first, *second)))


def places(value, place=()):
    """Paths to all fields and their values; of a list, only those of its first item."""
    items = value.items() if isinstance(value, dict) else list(enumerate(value))[:1]
    for name, cell in items:
        if isinstance(value, dict) or isinstance(cell, dict | list):
            yield (*place, name), cell
        if isinstance(cell, dict | list):
            yield from places(cell, (*place, name))


def damaged(content, place, value):
    content = copy.deepcopy(content)
    inside = content
    for step in place[:-1]:
        inside = inside[step]
    if value is None:
        del inside[place[-1]]
    else:
        inside[place[-1]] = value
    return content


@pytest.mark.parametrize("value", [None, [1], "\ud800"], ids=["missing", "a list", "surrogate"])
@pytest.mark.parametrize("layout", MADE)
def test_damaged_file_raises_an_error_or_gives_the_correct_scores(tmp_path, layout, value):
    intact = read(tmp_path, MADE[layout])
    outcomes = []
    for place, cell in places(MADE[layout]):
        if isinstance(value, str) and not isinstance(cell, str | list):
            continue
        try:
            scores = read(tmp_path, damaged(MADE[layout], place, value))
        except DataError as error:
            outcomes.append(str(error))
            continue
        for key in intact.keys() & scores.keys():
            is_same = np.isnan(scores[key]) or scores[key] == intact[key]
            assert is_same or isinstance(value, list), (place, key, scores[key])
        outcomes.append(len(scores))
    assert outcomes or isinstance(value, str)


@pytest.mark.parametrize("layout", [name for name in MADE if isinstance(MADE[name], list)])
def test_duplicate_row_does_not_change_scores(tmp_path, layout):
    rows, intact = MADE[layout], read(tmp_path, MADE[layout])
    twice = read(tmp_path, [*rows, rows[-1]])

    assert all(np.array_equal(twice[key], intact[key], equal_nan=True) for key in intact)


def test_file_with_rows_of_two_tools_is_rejected(tmp_path):
    both = [MADE["problem_idx reward"][0], MADE["instance_id stats"][0]]

    with pytest.raises(DataError, match="is of HELM, but earlier rows are of NeMo Evaluator"):
        read(tmp_path, both)


@pytest.mark.parametrize("field", ["item", "question", "answers", "prediction", "error", "model"])
def test_lone_surrogate_in_a_field_is_read(tmp_path, field):
    row = {"item": "q", "model": "m", "correct": 1, field: "x\ud800"}

    assert read_results([row]).frame["score"].tolist()
    (score,) = read(tmp_path, [row]).values()
    assert score == 1.0 or field == "error"
