"""Logs in the layout of open-unlearning with real numbers and labels, and placeholder texts.

The generated texts have licences of their models and are not included. A placeholder contains the
short answer if the original text contains it; otherwise, it is "I do not know."

    python -m tests.made_logs FOLDER
"""

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

MODELS = (
    "Llama-2-7b-chat-hf",
    "Llama-3.2-1B-Instruct",
    "Llama-3.2-3B-Instruct",
    "Llama-3.1-8B-Instruct",
)
SIDES = ("full", "retain90")


def official_numbers(data_files):
    """Return the scores of 400 questions, by model and training set ("side")."""
    frame = pd.read_csv(data_files / "unlearning" / "tofu_forget10_numbers.tsv.gz", sep="\t")
    return dict(iter(frame.groupby(["model", "side"])))


def official_verdicts(data_files):
    """Return whether the output of each model contains the short answer, for 367 questions."""
    path = data_files / "unlearning" / "tofu_forget10_matched.tsv"
    return pd.read_csv(path, sep="\t").set_index("index")


def published(data_files):
    """Return the published aggregates and forget qualities."""
    return json.loads((data_files / "unlearning" / "golden.json").read_text("utf-8"))


def tofu_log(data_files, model, side):
    """Return the forget10 part of one official log."""
    numbers = official_numbers(data_files)[model, side].set_index("index")
    verdicts = official_verdicts(data_files)
    answers = verdicts["short_answer"]
    is_correct = verdicts[f"{model}.{side}"] == 1
    perturbed = [f"perturbed_loss_{k}" for k in range(5)]

    def text(index):
        answer = answers.get(index, "told in a sentence")
        return {
            "input": f"user\n\nQuestion {index} about an author?assistant\n\n",
            "ground_truth": f"The answer to question {index} is {answer}, as told in the book.",
            "generation": f"It is {answer}." if is_correct.get(index, False) else "I do not know.",
            "rougeL_recall": numbers.at[index, "rougeL_recall"],
        }

    def by_index(cells):
        return {str(index): cells(index) for index in reversed(numbers.index)}

    def loss(column):
        return by_index(
            lambda i: {
                "prob": float(np.exp(-numbers.at[i, column])),
                "avg_loss": float(numbers.at[i, column]),
            }
        )

    def score(column):
        return by_index(lambda i: {"score": float(numbers.at[i, column])})

    summary = published(data_files)["summary"]
    name = f"{model}/full/forget10" if side == "full" else f"{model}/retain90"
    metrics = {
        "forget_Q_A_ROUGE": by_index(text),
        "forget_Q_A_Prob": loss("answer_loss"),
        "forget_Q_A_PARA_Prob": loss("paraphrased_loss"),
        "forget_Q_A_PERT_Prob": by_index(
            lambda i: {
                "prob": [float(np.exp(-numbers.at[i, one])) for one in perturbed],
                "avg_loss": [float(numbers.at[i, one]) for one in perturbed],
            }
        ),
        "forget_truth_ratio": score("truth_ratio"),
        "extraction_strength": score("extraction_strength"),
        "exact_memorization": score("exact_memorization"),
        "forget_quality": {},
    }
    return {
        key: {"agg_value": summary[name].get(key), "value_by_index": cells}
        for key, cells in metrics.items()
    }


def write_log(folder, log, name="TOFU_EVAL.json"):
    """Write a log to the folder of the model in the same way as open-unlearning."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(log), "utf-8")
    return folder / name


def main(folder):
    """Write the eight logs, each to the folder of its model."""
    data_files = Path(__file__).resolve().parent / "data" / "files"
    for model, side in itertools.product(MODELS, SIDES):
        write_log(Path(folder) / f"{model}-{side}", tofu_log(data_files, model, side))


if __name__ == "__main__":
    main(*sys.argv[1:])
