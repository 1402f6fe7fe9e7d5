"""Does an instance in other words still mean the same? Overlap, sentence vectors and a judge."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from rapidfuzz.distance import LCSseq

from surface_consistency.engine.judging.judges import LLMJudge
from surface_consistency.engine.run import sample_prompts
from surface_consistency.engine.study import Scored
from surface_consistency.matching.judge_reply import FactState, JudgeReplyError
from surface_consistency.metrics.uncertainty.intervals import wilson_interval
from surface_consistency.models.registry import load_runner
from surface_consistency.report.page import Block, Lines, Point, Prose, Section, Series, Value
from surface_consistency.report.table import Column, Table, interval_column
from surface_consistency.schemas import Prompt
from surface_consistency.schemas.settings import values_of_items
from surface_consistency.studies.lexical.prompts import meaning_prompt, parse_meaning

if TYPE_CHECKING:
    from surface_consistency.studies.lexical.study import LexicalScoring

__all__ = [
    "MeaningJudge",
    "points_of",
    "quality_checks",
    "quality_section",
    "quality_tables",
    "rouge_l",
]

_NO_WORD: Final = re.compile(r"[^a-z0-9]+")
_GRID: Final = np.round(np.linspace(0.0, 1.0, 41), 3)
_MEASURES: Final = {"rouge_l": "ROUGE-L", "cosine": "cosine"}
_FOLDER: Final = "judges"


def rouge_l(first: str, second: str) -> float:
    """Return ROUGE-L's F1 of two texts.

    Args:
        first: A text.
        second: Another one.

    Returns:
        Twice the longest common subsequence of their words, letter case aside, over the words of
        both, in [0, 1]; 0 where either has none.

    References:
        Lin 2004; words are those of Google's rouge-score without stemming.

    Examples:
        >>> rouge_l("The woman was arrested.", "The woman was collared.")
        0.75
    """
    words, others = (_NO_WORD.sub(" ", text.lower()).split() for text in (first, second))
    if not words or not others:
        return 0.0
    return 2.0 * LCSseq.similarity(words, others) / (len(words) + len(others))


class MeaningJudge(LLMJudge):
    """Asks a model whether two wordings mean the same, in the words of the study's authors.

    Its log goes on where it was stopped. A reply that is neither "same" nor "different" is asked
    for once more, then left out.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, appendix A.3 and table B.
    """

    def request(self, targets: pd.DataFrame, answer: str, name: str) -> Prompt:
        """Write the request on one pair in both wordings; see `LLMJudge.request`."""
        return meaning_prompt(name, targets["question"].iloc[0], answer)

    def read(self, targets: pd.DataFrame, reply: str) -> Sequence[FactState]:
        """Read "right" for the same meaning, "wrong" for another; see `LLMJudge.read`."""
        is_same = parse_meaning(reply)
        if is_same is None:
            raise JudgeReplyError(f"neither same nor different: {reply[:60]!r}")
        return ["right" if is_same else "wrong"]


def quality_checks(scored: Scored) -> dict[str, pd.DataFrame]:
    """Measure how alike the wordings of each pair are.

    Args:
        scored: A scored run of the lexical study.

    Returns:
        "similarity", one row a task and measure; "similarity_curve", the shares of pairs up to a
        value; with a judge "meaning", one row a task, and "meaning_pairs", what it was asked.
    """
    scoring: LexicalScoring = scored.scoring
    texts = _texts(scored)
    changed = texts[texts["is_changed"]]
    if changed.empty:
        return {}
    measured = {"rouge_l": changed["rouge_l"].to_numpy(float)}
    if scoring.encoder is not None:
        measured["cosine"] = _cosines(changed["first"], changed["second"], scoring.encoder)
    rows, curves = [], []
    for name, values in measured.items():
        for task, places in changed.groupby("task", sort=False).indices.items():
            of_task = values[places]
            low, middle, high = np.quantile(of_task, (0.1, 0.5, 0.9))
            rows.append(
                {
                    "task": task,
                    "measure": name,
                    "n": len(of_task),
                    "mean": float(of_task.mean()),
                    "q10": float(low),
                    "median": float(middle),
                    "q90": float(high),
                }
            )
            shares = (of_task[:, None] <= _GRID + 1e-9).mean(axis=0)
            curves += [
                {"task": task, "measure": name, "value": float(at), "share": float(share)}
                for at, share in zip(_GRID, shares, strict=True)
            ]
    checks = {"similarity": pd.DataFrame(rows), "similarity_curve": pd.DataFrame(curves)}
    if scoring.meaning_model is not None or scoring.meaning_runner != "openai":
        checks |= _judged(changed, scored)
    return checks


def _texts(scored: Scored) -> pd.DataFrame:
    """Put the texts with the right option of each pair side by side."""
    right = {
        target: texts[int(correct)]
        for target, texts, correct in zip(
            scored.targets["target_id"],
            scored.targets["texts"],
            scored.targets["correct"],
            strict=True,
        )
    }
    _, pairs = scored.folder.read_plan()
    return pd.DataFrame(
        {
            "pair_id": pairs["pair_id"],
            "task": pairs["task"],
            "first": pairs["first_target"].map(right),
            "second": pairs["second_target"].map(right),
            "is_changed": pairs["n_edits"] > 0,
            "rouge_l": pairs["rouge_l"],
        }
    )


def _cosines(first: pd.Series, second: pd.Series, encoder: str) -> npt.NDArray[np.float64]:
    """Compare sentence vectors, each text encoded once."""
    from surface_consistency.models.encoders import SentenceEncoder

    texts = list(dict.fromkeys([*first, *second]))
    vectors = np.asarray(SentenceEncoder(encoder).encode(texts), dtype=np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    place = {text: number for number, text in enumerate(texts)}
    left, right = (vectors[[place[text] for text in side]] for side in (first, second))
    cosines: npt.NDArray[np.float64] = np.einsum("ij,ij->i", left, right)
    return cosines


def _judged(changed: pd.DataFrame, scored: Scored) -> dict[str, pd.DataFrame]:
    """Ask a model on a sample of each task."""
    scoring: LexicalScoring = scored.scoring
    runner = load_runner(
        scoring.meaning_runner,
        model=scoring.meaning_model,
        options=values_of_items(scoring.meaning_option, "meaning_option"),
    )
    label = scoring.meaning_model or runner.name
    sample = pd.concat(
        [_sampled(part, scoring.meaning_pairs) for _, part in changed.groupby("task", sort=False)]
    ).reset_index(drop=True)
    targets = pd.DataFrame(
        {
            "target_id": sample["pair_id"],
            "prompt_id": sample["pair_id"],
            "question": sample["first"],
            "text": sample["second"],
        }
    )
    name = f"meaning-{re.sub(r'[^A-Za-z0-9.-]+', '-', label)}"
    judge = MeaningJudge(
        runner, Path(scored.folder.path) / _FOLDER / name, model=label, max_new_tokens=8
    )
    found = judge.judge(targets)
    told = sample[["pair_id", "task", "first", "second"]].assign(
        is_same=found["is_correct"], reply=found["raw"], reason=found["reason"]
    )
    rows = []
    for task, part in told.groupby("task", sort=False):
        known = part["is_same"].dropna().astype(bool)
        bounds = wilson_interval(int(known.sum()), len(known)) if len(known) else None
        rows.append(
            {
                "task": task,
                "judge": label,
                "n": len(known),
                "n_unclear": len(part) - len(known),
                "same": float(known.mean()) if len(known) else np.nan,
                "same_low": bounds.low if bounds else np.nan,
                "same_high": bounds.high if bounds else np.nan,
            }
        )
    return {"meaning": pd.DataFrame(rows), "meaning_pairs": told}


def _sampled(part: pd.DataFrame, n: int) -> pd.DataFrame:
    """Draw pairs of a task by the hash of their wordings."""
    prompts = {
        pair: Prompt(id=pair, text=f"{first}\n{second}")
        for pair, first, second in zip(part["pair_id"], part["first"], part["second"], strict=True)
    }
    drawn = {prompt.id for prompt in sample_prompts(list(prompts.values()), n)}
    return part[part["pair_id"].isin(drawn)]


def quality_tables(tables: Mapping[str, Table]) -> dict[str, Table]:
    """Caption the checks of `quality_checks`, put below each other for all runs.

    Args:
        tables: The tables of a page.

    Returns:
        Those that are there.
    """
    made: dict[str, Table] = {}
    head = [Column(key="model", title="Model"), Column(key="task", title="Task")]
    if "similarity" in tables:
        made["similarity"] = Table(
            frame=tables["similarity"].frame,
            caption="How alike the wordings are, of pairs in which a word was replaced",
            note="ROUGE-L: common words in order. Cosine: of sentence vectors, in place of "
            "BERTScore.",
            columns=[
                *head,
                Column(key="measure", title="Measure", labels=_MEASURES),
                Column(key="n", title="Pairs", kind="count"),
                Column(key="mean", title="Mean", kind="number"),
                Column(key="q10", title="10 % up to", kind="number"),
                Column(key="median", title="Median", kind="number"),
                Column(key="q90", title="90 % up to", kind="number"),
            ],
        )
    if "meaning" in tables:
        made["meaning"] = Table(
            frame=tables["meaning"].frame,
            caption="Pairs that a model judges to mean the same",
            columns=[
                *head,
                Column(key="judge", title="Judge"),
                Column(key="n", title="Judged", kind="count"),
                Column(key="n_unclear", title="Unclear", kind="count"),
                interval_column("same", "Same", "rate", "%"),
            ],
        )
    return made


def quality_section(tables: Mapping[str, Table], models: Sequence[str]) -> Section | None:
    """Draw the paper's figures 2 and 3 and show the tables of quality.

    Args:
        tables: The tables of a page.
        models: Labels of the runs.

    Returns:
        The section; None where a run has no such checks.
    """
    blocks: list[Block] = []
    if "replaced_words" in tables:
        blocks += _frequency_curves(tables["replaced_words"].frame)
    if "similarity_curve" in tables:
        blocks += _similarity_curves(tables["similarity_curve"].frame)
    blocks += quality_tables(tables).values()
    if not blocks:
        return None
    lead = Prose(parts=["Wordings do not depend on the model; they are drawn for the first run."])
    if len(models) > 1:
        blocks.insert(0, lead)
    return Section(anchor="wordings", title="The wordings", blocks=blocks)


def points_of(places: Iterable[float], shares: Iterable[float]) -> list[Point]:
    """Make the points of a curve of shares.

    Args:
        places: Where they stand.
        shares: The shares, in [0, 1].

    Returns:
        The points, without intervals.
    """
    return [
        Point(x=round(float(at), 3), value=Value(value=float(share)))
        for at, share in zip(places, shares, strict=True)
    ]


def _of_first(frame: pd.DataFrame) -> pd.DataFrame:
    """Take the rows of the first run."""
    first: pd.DataFrame = frame.loc[frame["model"] == frame["model"].iloc[0]]
    return first


def _frequency_curves(frame: pd.DataFrame) -> list[Block]:
    """Draw how frequent words and their synonyms are: the paper's figure 2."""
    rows = _of_first(frame)
    rows = rows[rows["frequency"].notna() & rows["synonym_frequency"].notna()]
    if rows.empty:
        return []
    weights = rows["n"].to_numpy(float)
    columns = {"words": "frequency", "synonyms": "synonym_frequency"}
    logs = {label: np.log10(1.0 + rows[name].to_numpy(float)) for label, name in columns.items()}
    grid = np.linspace(0.0, max(float(values.max()) for values in logs.values()) or 1.0, 25)
    series = [
        Series(
            label=label,
            model=None if label == "words" else 0,
            points=points_of(
                grid, [weights[values <= at + 1e-9].sum() / weights.sum() for at in grid]
            ),
        )
        for label, values in logs.items()
    ]
    return [
        Lines(
            name="word-frequencies",
            title="Replaced words and their synonyms, share up to a frequency, %",
            x_title="log10 of 1 + count",
            series=series,
        )
    ]


def _similarity_curves(frame: pd.DataFrame) -> list[Block]:
    """Draw how alike the wordings are: the paper's figure 3, a chart a task."""
    rows = _of_first(frame)
    return [
        Lines(
            name=f"similarity-{task}",
            title=f"How alike the wordings of {str(task).replace('_', ' ')} are, share of pairs up "
            "to a value, %",
            x_title="ROUGE-L, cosine",
            series=[
                Series(
                    label=_MEASURES[str(measure)],
                    model=None if measure == "rouge_l" else 0,
                    points=points_of(part["value"], part["share"]),
                )
                for measure, part in of_task.groupby("measure", sort=False)
            ],
        )
        for task, of_task in rows.groupby("task", sort=False)
    ]
