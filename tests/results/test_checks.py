"""Rows of one item that differ: a named item has precedence, and only equal rows are duplicates."""

import json

import pytest

from surface_consistency.errors import DataError
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.frame import read_results

ROW = {"question_id": "q1", "model": "alpha", "score": 7}


def turns(**column):
    """Two rows of an item with equal scores, and values of one column."""
    ((name, values),) = column.items()
    return [ROW | {name: value} for value in values]


@pytest.mark.parametrize("name", ["turn", "run", "judge", "judgment"])
@pytest.mark.parametrize("values", [(1, 2), ("a", "b"), (1, None)])
def test_rows_that_differ_in_an_unknown_column_are_not_duplicates(name, values):
    message = (
        rf"with equal scores and other values of {name} \(1 such items\); .*`repeat` or `form`"
    )

    with pytest.raises(DataError, match=message):
        read_results(turns(**{name: values}))


@pytest.mark.parametrize("role", ["form", "repeat"])
def test_naming_the_distinguishing_column_as_form_or_repeat_works(role):
    frame = read_results(turns(turn=(1, 2)), ResultColumns(**{role: "turn"})).frame

    assert [str(cell) for cell in frame[role]] == ["1", "2"]


def test_duplicate_row_counts_once():
    read = read_results(turns(turn=(1, 1)))

    assert len(read.frame) == 1
    assert read.notes == ("1 row of rows is a duplicate and is counted once",)


def test_message_does_not_propose_an_option_that_is_already_set():
    rows = turns(turn=(1, 1)) + turns(turn=(2, 2))
    for row, judge in zip(rows, "abab", strict=True):
        row["judge"] = judge
    given = ResultColumns(form="turn")

    with pytest.raises(DataError, match="by `repeat` or `item`, or remove one"):
        read_results(rows, given)


def sample(number, target, prompt="p", **doc):
    """A sample of lm-evaluation-harness."""
    doc = {"Record ID": f"r{number}", "Question": f"Q{number}", "choices": target} | doc
    return {
        **{"doc_id": number, "doc": doc, "target": target, "resps": [["A"]]},
        **{"filtered_resps": ["A"], "arguments": {"gen_args_0": {"arg_0": prompt}}},
        **{"metrics": ["acc"], "acc": 1.0},
    }


def written(folder, **models):
    paths = [folder / f"{name}.jsonl" for name in models]
    for path, rows in zip(paths, models.values(), strict=True):
        path.write_text("\n".join(map(json.dumps, rows)))
    return paths


@pytest.mark.parametrize(
    "other",
    [sample(0, "(B)"), sample(0, "(A)", extra="x"), sample(0, "(A)") | {"doc_hash": "h"}],
    ids=["order of options", "an extra field", "the hash of the tool"],
)
def test_named_item_column_has_precedence_over_other_fields(tmp_path, other):
    paths = written(tmp_path, alpha=[sample(0, "(A)")], beta=[other])

    with pytest.raises(DataError, match="or name by `item` a column with the same ids in both"):
        read_results(paths)
    read = read_results(paths, ResultColumns(item=["Record ID"]))

    assert set(read.frame["item"]) == {"r0"}
    assert not read.is_same_questions
    assert "paired as `item` names them, although Record ID 'r0' is " in read.notes[0]


def test_different_prompts_of_one_document_are_reported(tmp_path):
    shots = [sample(n, "A", prompt=f"Q: a\nA: b\n\nQ: {n}\nA:") for n in range(3)]
    plain = [sample(n, "A", prompt=f"Q: {n}\nA:") for n in range(2)]
    (note,) = read_results(written(tmp_path, alpha=shots, beta=[*plain, shots[2]])).notes

    assert note.startswith("the prompts of 2 of 3 items differ between files, in their examples")


def test_equal_prompts_with_hashes_of_two_versions_are_not_reported(tmp_path):
    """lm-eval writes the SHA-256 of the prompt as `prompt_hash`, which old samples lack."""
    new = sample(0, "A", prompt="") | {
        "prompt_hash": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    }

    assert (
        read_results(written(tmp_path, alpha=[sample(0, "A", prompt="")], beta=[new])).notes == ()
    )
