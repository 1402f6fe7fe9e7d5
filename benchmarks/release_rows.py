"""Synthetic questions of RedirectQA in the shape of release v1.0.0, and predictions of a model.

14,672 facts, 15,888 redirects, 2 templates, a median of 5 and at most 60 accepted answers.
"""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from surface_consistency.taxonomy import CATEGORIES, RELATIONS, TEMPLATES

N_FACTS = 14_672
N_REDIRECTS = 15_888
N_QUESTIONS = (N_FACTS + N_REDIRECTS) * len(TEMPLATES)
SYLLABLES = np.array(["ka", "lo", "mi", "ren", "tas", "vor", "ju", "pel", "sto", "nia", "é", "ö"])


def release_rows(rng: np.random.Generator, n_facts: int) -> list[dict[str, object]]:
    """Return rows with the columns of the release."""
    relations, labels = list(RELATIONS), list(CATEGORIES)
    n_redirects = np.ones(n_facts, dtype=int)
    twice = rng.choice(n_facts, size=n_facts * (N_REDIRECTS - N_FACTS) // N_FACTS, replace=False)
    n_redirects[twice] = 2
    n_answers = np.minimum(60, np.maximum(1, rng.lognormal(np.log(5), 0.7, n_facts).astype(int)))
    words = words_of(rng, 20_000)
    picks = iter(rng.integers(len(words), size=2 * int((n_answers + 3).sum())).tolist())

    def name(number: int) -> str:
        return f"{words[next(picks)]} {words[next(picks)]} {number}"

    rows = []
    for fact in range(n_facts):
        relation = RELATIONS[relations[fact % len(relations)]]
        subject = name(fact)
        answers = [name(number) for number in range(n_answers[fact])]
        forms: list[tuple[str, list[str], str | None]] = [(subject, ["__MAIN__"], None)]
        for redirect in range(n_redirects[fact]):
            surface = f"{name(redirect)} {fact}"
            kinds = rng.choice(len(labels), size=1 + (rng.random() < 0.06), replace=False)
            forms.append((surface, [labels[kind] for kind in kinds], surface.replace(" ", "_")))
        rows.extend(
            {
                "triplet_id": fact,
                "subject_id": f"Q{fact // 2}" if fact % 3 == 0 else f"Q{fact + n_facts}",
                "subject_surface": surface,
                "subject_surface_category": categories,
                "subject_wiki_title": subject,
                "subject_redirect_wiki_title": title,
                "subject_pageviews": int(fact),
                "subject_aliases": [subject],
                "relation": relation.name,
                "object_surface": answers[0],
                "possible_answers": answers,
                "template": template,
                "question": relation.question(surface, template=template),
            }
            for surface, categories, title in forms
            for template in TEMPLATES
        )
    return rows


def words_of(rng: np.random.Generator, n: int) -> list[str]:
    """Return invented words of three syllables."""
    return ["".join(parts).capitalize() for parts in SYLLABLES[rng.integers(12, size=(n, 3))]]


def predictions_of(rows: list[dict[str, object]], rng: np.random.Generator) -> list[str]:
    """Return answers: 40 % are correct, the others are of other facts; 20 % have more lines."""
    right, rambles = rng.random(len(rows)) < 0.4, rng.random(len(rows)) < 0.2
    others = rng.integers(len(rows), size=len(rows))
    return [
        f" {(row if right[i] else rows[others[i]])['object_surface']}"
        + ("\nQ: and what else? A: something" if rambles[i] else "")
        for i, row in enumerate(rows)
    ]


def write_release(folder: Path, n_facts: int, *, n_models: int = 1, seed: int = 0) -> list[Path]:
    """Write `questions.parquet` and one file of predictions per model; return the latter."""
    rng = np.random.default_rng(seed)
    rows = release_rows(rng, n_facts)
    pq.write_table(pa.Table.from_pylist(rows), folder / "questions.parquet")
    files = []
    for number in range(n_models):
        files.append(folder / f"model-{number}.jsonl")
        with files[-1].open("w", encoding="utf-8") as lines:
            for row, text in zip(rows, predictions_of(rows, rng), strict=True):
                line = {"question": row["question"], "prediction": text}
                lines.write(json.dumps(line, ensure_ascii=False) + "\n")
    return files
