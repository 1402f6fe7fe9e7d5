"""Every layout of results, as it is and damaged: the right scores or an error, nothing else."""

import copy
import json

import numpy as np
import pytest

from surface_consistency.errors import DataError
from surface_consistency.results.frame import read_results
from surface_consistency.results.layouts import LAYOUTS

TWO = ((0, 1), (1, 0))
TOFU = {"input": "Question: Q\nAnswer:", "ground_truth": "A", "generation": "A"}


def rows(make):
    """One row for the correct answer, and one for the incorrect one."""
    return [make(n, score) for n, score in TWO]


def by_index(field):
    return {"value_by_index": {str(n): {field: float(score), **TOFU} for n, score in TWO}}


def conversation(n):
    return [{"role": "user", "content": f"Q{n}"}, {"role": "assistant", "content": "A"}]


def legacy(n=2):
    texts = {str(i): ["Question: Q", "A", "A"] for i in range(n)}
    return {"generated_text": texts, "rougeL_recall": {str(i): float(s) for i, s in TWO}}


EDIT = {"requested_rewrite": {"prompt": "Q", "subject": "s", "target_new": "A"}}
# The scores follow each other as 1 and 0, or there are none: answers alone.
MADE = {
    "doc resps": rows(
        lambda n, s: {"doc_id": n, "doc": {"q": n}, "target": "A", "resps": [["A"]], "acc": s}
    ),
    "doc filtered_resps": rows(
        lambda n, s: {"doc_id": n, "doc": {"q": n}, "target": "A", "filtered_resps": ["A"], "em": s}
    ),
    "question_id model judge judgment score turn": rows(
        lambda n, s: {
            **{"question_id": n, "model": "m", "judge": ["gpt-4", "single-v1"], "turn": 1},
            **{"user_prompt": "p", "judgment": "j", "score": s, "tstamp": 1.0},
        }
    ),
    "prompt_0 logit_0": rows(
        lambda n, s: {"prompt_0": f"Q: {n}\nA:", "logit_0": "A", "truth": "A", "em": f"{s}.0"}
    ),
    "doc_id doc_hash input filtered_resps": rows(
        lambda n, s: {
            **{"doc_id": n, "doc_hash": f"h{n}", "input": f"Q{n}", "filtered_resps": ["A"]},
            "x_score": {"score": s, "video": "v"},
        }
    ),
    "doc model_response metric": rows(
        lambda n, s: {
            "doc": {"id": str(n), "query": f"Q{n}", "choices": ["A", "B"], "gold_index": 0},
            **{"model_response": {"text": ["A"]}, "metric": {"em": s}},
        }
    ),
    "example full_prompt predictions metrics": rows(
        lambda n, s: {
            **{"example": f"Q{n}", "full_prompt": f"Q{n}", "predictions": ["A"]},
            **{"gold": ["A"], "metrics": {"em": s}},
        }
    ),
    "version status eval samples": {
        **{"version": 2, "status": "success"},
        "eval": {
            **{"task": "t", "model": "m", "task_id": "x", "created": "2026-11-22T10:00:00+00:00"},
            **{"dataset": {"samples": 2}, "config": {"epochs": 1, "epochs_reducer": ["mean"]}},
        },
        "samples": rows(
            lambda n, s: {
                **{"id": n, "epoch": 1, "input": f"Q{n}", "target": "A"},
                "output": {"choices": [{"message": {"content": "A"}}]},
                "scores": {"graded": {"value": "IC"[s]}},
            }
        ),
    },
    "sample_id eval_id log epoch id": rows(
        lambda n, s: {
            **{"sample_id": f"s{n}", "eval_id": "e", "log": "a.json", "epoch": 1, "id": n},
            **{"input": f"Q{n}", "target": "A", "score_graded": "IC"[s]},
        }
    ),
    "instance_id stats": rows(
        lambda n, s: {
            **{"instance_id": f"id{n}", "train_trial_index": 0},
            "stats": [{"name": {"name": "em"}, "mean": s}],
        }
    ),
    "evalId results": {
        "evalId": "e",
        "results": {
            "results": rows(
                lambda n, s: {
                    **{"promptIdx": 0, "testIdx": n, "provider": {"id": "m", "label": ""}},
                    **{"prompt": {"raw": f"Q{n}", "label": "p"}, "vars": {"question": f"Q{n}"}},
                    **{"response": {"output": "A"}, "success": bool(s), "score": s},
                    **{"namedScores": {"tone": s}, "failureReason": 0},
                }
            )
        },
    },
    "testFile testCases": {
        "testFile": None,
        "testCases": rows(
            lambda n, s: {
                **{"input": f"Q{n}", "actualOutput": "A", "expectedOutput": "A"},
                **{"success": bool(s), "metricsData": [{"name": "M", "score": s}]},
            }
        ),
    },
    "htmls convos": {
        "htmls": [f"<p>Correct Answer: A</p><p>Score: {s}</p>" for _, s in TWO],
        "convos": [conversation(n) for n, _ in TWO],
    },
    "details": {
        "details": {str(n): {"prompt": f"Q{n}", "pred": "A", "correct": bool(s)} for n, s in TWO}
    },
    "0": {str(n): {"origin_prompt": f"Q{n}", "prediction": "A", "gold": "A"} for n, _ in TWO},
    "run_id event_id type data": [
        {"spec": {"completion_fns": ["m"], "eval_name": "t"}},
        *rows(
            lambda n, s: {
                **{"run_id": "r", "event_id": n, "sample_id": f"x.{n}", "type": "match"},
                "data": {"correct": bool(s), "expected": "A", "sampled": "A"},
            }
        ),
    ],
    "evaluation_id sample_id evaluation": rows(
        lambda n, s: {
            **{"evaluation_id": "e", "model_id": "m", "evaluation_name": "t", "sample_id": f"q{n}"},
            **{"input": {"raw": f"Q{n}", "reference": ["A"]}, "output": {"raw": ["A"]}},
            **{"evaluation": {"score": s}, "metadata": {"epoch": "1"}},
        }
    ),
    "index question hit": rows(
        lambda n, s: {"index": n, "question": f"Q{n}", "answer": "A", "prediction": "A", "hit": s}
    ),
    "index question answer prediction A B": rows(
        lambda n, _: {
            **{"index": n, "question": f"Q{n}", "answer": "A", "prediction": "A"},
            **{"A": "x", "B": "y"},
        }
    ),
    "problem_idx reward": rows(
        lambda n, s: {
            **{"problem_idx": n, "repeat": 0, "reward": s, "expected_answer": "A"},
            **{"model_response": "A", "metadata": {"category": "c"}},
        }
    ),
    "forget_Q_A_ROUGE": {"forget_Q_A_ROUGE": by_index("rougeL_recall")},
    "forget_knowmem_ROUGE": {"forget_knowmem_ROUGE": by_index("rougeL_f1")},
    "eval_log_forget.json": {"eval_log_forget.json": legacy()},
    "eval_log_forget": {"eval_log_forget": legacy()},
    "requested_rewrite post": rows(
        lambda n, _: {"case_id": n, **EDIT, "post": {"rewrite_gen_content": ["A"]}}
    ),
    "example_0 example_1": [{"example_0": 1, "example_1": 0}],
    "resolved_ids": {"resolved_ids": ["i0"], "unresolved_ids": ["i1"], "error_ids": []},
    "resolved": {"resolved": ["i0"], "generated": ["i0", "i1"]},
    "eval": {
        "eval": {f"T/{n}": [{"solution": "A", "base_status": ["fail", "pass"][s]}] for n, s in TWO}
    },
    "instruction output_1 output_2 preference": rows(
        lambda n, s: {
            **{"instruction": f"Q{n}", "output_1": "B", "output_2": "A", "preference": 1 + s},
            **{"generator_1": "r", "generator_2": "m"},
        }
    ),
    "model_a model_b winner": rows(
        lambda n, s: {
            **{"question_id": n, "model_a": "r", "model_b": "m"},
            "winner": ["model_a", "model_b"][s],
        }
    ),
    "question_id model_1 model_2 g1_winner g2_winner": rows(
        lambda n, s: {
            **{"question_id": n, "model_1": "r", "model_2": "m", "judge": ["j", "pair-v2"]},
            **{"g1_winner": ["model_1", "model_2"][s], "g2_winner": ["model_1", "model_2"][s]},
        }
    ),
    "custom_id response": rows(
        lambda n, _: {
            "custom_id": f"q{n}",
            "response": {"body": {"choices": [{"message": {"content": "A"}}]}},
        }
    ),
    "results": {
        "results": rows(
            lambda n, _: {
                **{"query": f"Q{n}", "answer": "A", "prediction": "A", "subject": "s"},
                "level": "2",
            }
        )
    },
}
NO_SAMPLES = {"version status eval", "provider prompt vars success", "spec", "final_report"}
NO_SAMPLES |= {"name count sum sum_squared", "evaluation_results model_info"}
NO_SAMPLES |= {"case_id post"}  # Parts of the others, and what is refused.


def read(folder, content, name="m.json"):
    """Scores by all that tells them apart."""
    (folder / name).write_text(json.dumps(content))
    frame = read_results(folder / name).frame
    keys = ["model", "item", "form", "repeat", "metric"]
    return {tuple(row): score for *row, score in frame[[*keys, "score"]].to_numpy().tolist()}


def test_every_layout_is_made():
    assert {one.columns for one in LAYOUTS} == {*MADE} | NO_SAMPLES


@pytest.mark.parametrize("layout", MADE)
def test_a_file_of_each_layout_has_its_scores(tmp_path, layout):
    scores = read(tmp_path, MADE[layout])

    by_item = {}
    for (model, item, *_), score in scores.items():
        if model != "r":
            by_item.setdefault(item, set()).add(score)
    first, second = by_item.values()
    assert (first, second) == ({1.0}, {0.0}) or all(map(np.isnan, (*first, *second)))


def places(value, place=()):
    """Paths to all fields and their values, of lists those of the first item alone."""
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
def test_a_damaged_file_is_an_error_or_has_the_right_scores(tmp_path, layout, value):
    whole = read(tmp_path, MADE[layout])
    outcomes = []
    for place, cell in places(MADE[layout]):
        if isinstance(value, str) and not isinstance(cell, str | list):
            continue
        try:
            scores = read(tmp_path, damaged(MADE[layout], place, value))
        except DataError as error:
            outcomes.append(str(error))
            continue
        for key in whole.keys() & scores.keys():
            is_same = np.isnan(scores[key]) or scores[key] == whole[key]
            assert is_same or isinstance(value, list), (place, key, scores[key])
        outcomes.append(len(scores))
    assert outcomes or isinstance(value, str)


@pytest.mark.parametrize("layout", [name for name in MADE if isinstance(MADE[name], list)])
def test_a_doubled_row_changes_no_score(tmp_path, layout):
    rows, whole = MADE[layout], read(tmp_path, MADE[layout])
    twice = read(tmp_path, [*rows, rows[-1]])

    assert all(np.array_equal(twice[key], whole[key], equal_nan=True) for key in whole)


def test_a_file_of_two_tools_is_refused(tmp_path):
    both = [MADE["problem_idx reward"][0], MADE["instance_id stats"][0]]

    with pytest.raises(DataError, match="is of HELM, and those before it are of NeMo Evaluator"):
        read(tmp_path, both)


@pytest.mark.parametrize("field", ["item", "question", "answers", "prediction", "error", "model"])
def test_a_lone_surrogate_becomes_a_question_mark(tmp_path, field):
    row = {"item": "q", "model": "m", "correct": 1, field: "x\ud800"}

    assert read_results([row]).frame["score"].tolist()
    (score,) = read(tmp_path, [row]).values()
    assert score == 1.0 or field == "error"
