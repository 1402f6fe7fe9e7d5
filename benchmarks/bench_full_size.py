"""A full-size study from predictions to report: 61,120 questions x 13 models, time and peak memory.

The rows have the shape of RedirectQA v1.0.0: 14,672 facts, 15,888 redirects, 2 templates, a median
of 5 and at most 60 accepted answers. Each model's predictions are scored by the package alone, as
`surface-consistency score --predictions` does, then all runs go into one set of tables.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from surface_consistency.studies.scoring import import_predictions, score_run

from surface_consistency.data.redirectqa import RedirectQA, load_redirectqa
from surface_consistency.report import load_runs, study_tables, write_report
from surface_consistency.taxonomy import CATEGORIES, RELATIONS, TEMPLATES

N_FACTS = 14_672
N_REDIRECTS = 15_888
SYLLABLES = ("ka", "lo", "mi", "ren", "tas", "vor", "ju", "pel", "sto", "nia", "é", "ö")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=13)
    parser.add_argument("--facts", type=int, default=N_FACTS)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    times: dict[str, list[float]] = {"load": [], "score": [], "tables": [], "report": []}
    start = time.perf_counter()
    data = load_redirectqa(synthetic_rows(rng, arguments.facts))
    times["load"].append(time.perf_counter() - start)
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for number in range(arguments.models):
            out = Path(folder) / f"model-{number}"
            start = time.perf_counter()
            score_run(
                import_predictions(
                    data, predictions(data, rng), out, model=f"model-{number}", origin="synthetic"
                )
            )
            times["score"].append(time.perf_counter() - start)
            runs.append(out)
        n_questions = len(data.questions)
        del data
        start = time.perf_counter()
        loaded = load_runs(runs)
        tables = study_tables(loaded)
        times["tables"].append(time.perf_counter() - start)
        start = time.perf_counter()
        write_report(loaded, Path(folder) / "report.html", tables=tables)
        times["report"].append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{n_questions:,} questions, {arguments.models} models, peak memory {peak:,.0f} MB\n")
    print("| stage | times | median s |\n|---|---|---|")
    for stage, seconds in times.items():
        print(f"| {stage} | {len(seconds)} | {np.median(seconds):.1f} |")


def synthetic_rows(rng: np.random.Generator, n_facts: int) -> list[dict[str, object]]:
    """Rows in the column layout of the release."""
    relations, labels = list(RELATIONS), list(CATEGORIES)
    n_redirects = 1 + (rng.random(n_facts) < (N_REDIRECTS - N_FACTS) / N_FACTS).astype(int)
    n_answers = np.minimum(60, np.maximum(1, rng.lognormal(np.log(5), 0.7, n_facts).astype(int)))
    rows = []
    for fact in range(n_facts):
        relation = RELATIONS[relations[fact % len(relations)]]
        subject = name_of(rng, fact)
        answers = [name_of(rng, number) for number in range(n_answers[fact])]
        forms: list[tuple[str, list[str], str | None]] = [(subject, ["__MAIN__"], None)]
        for redirect in range(n_redirects[fact]):
            surface = f"{name_of(rng, redirect)} {fact}"
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


def name_of(rng: np.random.Generator, number: int) -> str:
    """A name of two invented words and a number that makes it distinct."""
    words = ["".join(rng.choice(SYLLABLES, size=3)).capitalize() for _ in range(2)]
    return f"{words[0]} {words[1]} {number}"


def predictions(data: RedirectQA, rng: np.random.Generator) -> list[str]:
    """Four answers in ten right, the others another fact's; one in five goes on after the line."""
    right = rng.random(len(data.questions)) < 0.4
    rambles = rng.random(len(data.questions)) < 0.2
    others = rng.integers(len(data.questions), size=len(data.questions))
    return [
        (
            f" {q.triple.answers[0]}"
            if right[i]
            else f" {data.questions[others[i]].triple.answers[0]}"
        )
        + ("\nQ: and what else? A: something" if rambles[i] else "")
        for i, q in enumerate(data.questions)
    ]


if __name__ == "__main__":
    main()
