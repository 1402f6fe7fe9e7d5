"""A pandas script that replaces `score` and writes the same files.

    python lean_score.py QUESTIONS.parquet PREDICTIONS.jsonl OUT [--no-agreement]

It does not check rows, print messages or resume, and reads only the columns of the release.
"""

import csv
import hashlib
import json
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path

import pandas as pd
from rapidfuzz import fuzz, process

from surface_consistency.taxonomy import CATEGORIES
from surface_consistency.text import first_line, padded_words

KIND = {label: category.type for label, category in CATEGORIES.items()}
ARTICLES = {"a", "an", "the"}


def popqa(text, _, answers, __):
    return next(
        (a for a in answers if a in text or a.lower() in text or a.capitalize() in text), None
    )


def token_f1(_, key, __, keys):
    words = [w for w in key.split() if w not in ARTICLES] or key.split()
    scores = []
    for other in keys:
        wanted = [w for w in other.split() if w not in ARTICLES] or other.split()
        common = sum((Counter(words) & Counter(wanted)).values()) if set(words) & set(wanted) else 0
        scores.append(2 * common / (len(words) + len(wanted)))
    return max(scores) >= 0.8


def fuzzy(_, key, __, keys):
    inside = [k if len(k) <= len(key) else None for k in keys]
    whole = [k if len(k) > len(key) else None for k in keys]
    return bool(
        process.extractOne(key, inside, scorer=fuzz.partial_ratio, score_cutoff=90)
        or process.extractOne(key, whole, scorer=fuzz.ratio, score_cutoff=90)
    )


RULES = {
    "popqa": lambda *row: popqa(*row) is not None,
    "exact": lambda text, _, answers, __: text.strip() in answers,
    "boundary": lambda _, key, __, keys: any(k in key for k in keys),
    "token_f1": token_f1,
    "fuzzy": fuzzy,
}


HEADER = (
    *("compared", "first_rule", "first_region", "second_rule", "second_region"),
    *("n", "both", "first_only", "second_only", "neither", "n_differ"),
)


def main(source, predictions, out, compare):
    out.mkdir(parents=True, exist_ok=True)
    (out / "checks").mkdir(exist_ok=True)
    rows = pd.read_parquet(source)
    with open(predictions, encoding="utf-8") as lines:
        answered = {line["question"]: line["prediction"] for line in map(json.loads, lines)}
    rows["is_main"] = [list(kinds) == ["__MAIN__"] for kinds in rows["subject_surface_category"]]
    titles = rows["subject_redirect_wiki_title"].where(~rows["is_main"], "__MAIN__")
    names = (rows["subject_surface"] + "\n" + titles).map(
        lambda text: hashlib.sha256(text.encode()).hexdigest()[:12]
    )
    fact, template = rows["triplet_id"].astype(str), rows["template"]
    rows["id"], rows["item"] = fact + ":" + template + ":" + names, fact
    text = rows["question"].map(answered)
    line = text.map(first_line)
    answers = [list(a) for a in rows["possible_answers"]]
    found = [popqa(t, None, a, None) for t, a in zip(line, answers, strict=True)]
    pd.DataFrame({"prompt_id": rows["id"], "text": text}).to_json(
        out / "generations.jsonl", orient="records", lines=True, force_ascii=False
    )
    ordered = rows.assign(accepted=answers).sort_values("id")
    digest = hashlib.sha256()
    for row in zip(ordered["id"], ordered["question"], ordered["accepted"], strict=True):
        digest.update((json.dumps(row) + "\n").encode())
    (out / "manifest.json").write_text(
        json.dumps({"n_questions": len(rows), "digest": digest.hexdigest()})
    )
    pd.DataFrame(
        {
            **dict.fromkeys(("target_id", "prompt_id", "prompt_key"), rows["id"]),
            **{"answers": answers, "group": ""},
            **{name: rows[name] for name in ("item", "subject_id", "question", "template")},
        }
    ).to_parquet(out / "targets.parquet")
    verdicts = pd.DataFrame(
        {
            **{"target_id": rows["id"], "judged_by": "popqa on first_line", "prediction": line},
            **{"correct": [a is not None for a in found], "matched_answer": found},
            "score": [float(a is not None) for a in found],
        }
    )
    verdicts.to_parquet(out / "verdicts.parquet")
    pairs = rows[~rows["is_main"]].merge(
        rows[rows["is_main"]], on=["item", "template"], suffixes=("", "_first"), how="inner"
    )
    pairs = pd.DataFrame(
        {
            **{"pair": pairs["id"], "item": pairs["item"], "first_condition": "canonical"},
            **{"second_condition": "redirect", "first_target": pairs["id_first"]},
            **{"second_target": pairs["id"], "subject_id": pairs["subject_id"]},
            **{"relation": pairs["relation"], "template": pairs["template"]},
            "categories": pairs["subject_surface_category"],
            "types": [sorted({KIND[k] for k in c}) for c in pairs["subject_surface_category"]],
            "first_surface": pairs["subject_surface_first"],
            "second_surface": pairs["subject_surface"],
        }
    )
    pairs.to_parquet(out / "pairs.parquet")
    outcomes = pairs.drop(columns=["first_target", "second_target"]).assign(model="model")
    for side in ("first", "second"):
        judged = verdicts.set_index("target_id").loc[pairs[f"{side}_target"]].reset_index(drop=True)
        for name in ("correct", "prediction", "matched_answer"):
            outcomes[f"{side}_{name}"] = judged[name]
    outcomes.to_parquet(out / "outcomes.parquet")
    if compare:
        agreement(text, line, answers, out / "checks")


def agreement(text, line, answers, folder):
    accepted_keys = [padded_words(a) for a in answers]
    made = {}
    for region, part in (("first_line", line), ("whole", text)):
        rows = list(zip(part, padded_words(list(part)), answers, accepted_keys, strict=True))
        for name, rule in RULES.items():
            if region == "whole":  # For one line, both regions are the same.
                judged = zip(made[name, "first_line"], rows, line, strict=True)
                made[name, region] = [
                    old if row[0] == one else rule(*row) for old, row, one in judged
                ]
            else:
                made[name, region] = [rule(*row) for row in rows]
    sides = {
        "rules": [((a, "first_line"), (b, "first_line")) for a, b in combinations(RULES, 2)],
        "regions": [((name, "first_line"), (name, "whole")) for name in RULES],
    }
    for compared, couples in sides.items():
        with open(folder / f"{compared}.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(HEADER)
            for one, other in couples:
                n = Counter(zip(made[one], made[other], strict=True))
                cells = [n[True, True], n[True, False], n[False, True], n[False, False]]
                table.writerow([compared, *one, *other, len(line), *cells, cells[1] + cells[2]])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]), "agreement=false" not in sys.argv)
