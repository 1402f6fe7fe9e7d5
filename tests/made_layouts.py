"""Files of each layout of results with given samples."""

TOFU = {"input": "Question: Q\nAnswer:", "ground_truth": "A", "generation": "A"}
EDIT = {"requested_rewrite": {"prompt": "Q", "subject": "s", "target_new": "A"}}


def conversation(n):
    return [{"role": "user", "content": f"Q{n}"}, {"role": "assistant", "content": "A"}]


def made(samples):
    """Return the content of a file of each layout, by the column names of the layout.

    A sample is a pair of an id and a score; layouts that store only answers omit the score. All
    answers and references are "A", the model is "m", and the reference model of comparisons is "r".
    """

    def rows(make):
        return [make(n, score) for n, score in samples]

    def ids(*scores):
        return [f"i{n}" for n, s in samples if s in scores]

    def by_index(field):
        return {"value_by_index": {str(n): {field: s, **TOFU} for n, s in samples}}

    def legacy():
        texts = {str(n): ["Question: Q", "A", "A"] for n, _ in samples}
        return {"generated_text": texts, "rougeL_recall": {str(n): s for n, s in samples}}

    return {
        "doc resps": rows(
            lambda n, s: {"doc_id": n, "doc": {"q": n}, "target": "A", "resps": [["A"]], "acc": s}
        ),
        "doc filtered_resps": rows(
            lambda n, s: {
                "doc_id": n,
                "doc": {"q": n},
                "target": "A",
                "filtered_resps": ["A"],
                "em": s,
            }
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
                **{
                    "task": "t",
                    "model": "m",
                    "task_id": "x",
                    "created": "2026-11-22T10:00:00+00:00",
                },
                **{
                    "dataset": {"samples": len(samples)},
                    "config": {"epochs": 1, "epochs_reducer": ["mean"]},
                },
            },
            "samples": rows(
                lambda n, s: {
                    **{"id": n, "epoch": 1, "input": f"Q{n}", "target": "A"},
                    "output": {"choices": [{"message": {"content": "A"}}]},
                    "scores": {"graded": {"value": "IC"[bool(s)]}},
                }
            ),
        },
        "sample_id eval_id log epoch id": rows(
            lambda n, s: {
                **{"sample_id": f"s{n}", "eval_id": "e", "log": "a.json", "epoch": 1, "id": n},
                **{"input": f"Q{n}", "target": "A", "score_graded": "IC"[bool(s)]},
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
            "htmls": [f"<p>Correct Answer: A</p><p>Score: {s}</p>" for _, s in samples],
            "convos": [conversation(n) for n, _ in samples],
        },
        "details": {
            "details": {
                str(n): {"prompt": f"Q{n}", "pred": "A", "correct": bool(s)} for n, s in samples
            }
        },
        "0": {
            str(n): {"origin_prompt": f"Q{n}", "prediction": "A", "gold": "A"} for n, _ in samples
        },
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
                **{
                    "evaluation_id": "e",
                    "model_id": "m",
                    "evaluation_name": "t",
                    "sample_id": f"q{n}",
                },
                **{"input": {"raw": f"Q{n}", "reference": ["A"]}, "output": {"raw": ["A"]}},
                **{"evaluation": {"score": s}, "metadata": {"epoch": "1"}},
            }
        ),
        "index question hit": rows(
            lambda n, s: {
                "index": n,
                "question": f"Q{n}",
                "answer": "A",
                "prediction": "A",
                "hit": s,
            }
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
        "example_0 example_1": [{f"example_{n}": s for n, s in samples}],
        "resolved_ids": {"resolved_ids": ids(1), "unresolved_ids": ids(0), "error_ids": []},
        "resolved": {"resolved": ids(1), "generated": ids(0, 1)},
        "eval": {
            "eval": {
                f"T/{n}": [{"solution": "A", "base_status": ["fail", "pass"][bool(s)]}]
                for n, s in samples
            }
        },
        "instruction output_1 output_2 preference": rows(
            lambda n, s: {
                **{
                    "instruction": f"Q{n}",
                    "output_1": "B",
                    "output_2": "A",
                    "preference": 1 + bool(s),
                },
                **{"generator_1": "r", "generator_2": "m"},
            }
        ),
        "model_a model_b winner": rows(
            lambda n, s: {
                **{"question_id": n, "model_a": "r", "model_b": "m"},
                "winner": ["model_a", "model_b"][bool(s)],
            }
        ),
        "question_id model_1 model_2 g1_winner g2_winner": rows(
            lambda n, s: {
                **{"question_id": n, "model_1": "r", "model_2": "m", "judge": ["j", "pair-v2"]},
                **dict.fromkeys(("g1_winner", "g2_winner"), ["model_1", "model_2"][bool(s)]),
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
