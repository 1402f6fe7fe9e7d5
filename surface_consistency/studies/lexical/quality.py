"""Similarity of the wordings of an instance: word overlap, sentence vectors and an LLM judge."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from rapidfuzz.distance import LCSseq

from surface_consistency.engine.judging.judges import LLMJudge
from surface_consistency.engine.run import sample_prompts
from surface_consistency.engine.settings import SideModel
from surface_consistency.engine.study import Scored
from surface_consistency.matching.judge_reply import FactState, JudgeReplyError
from surface_consistency.metrics import CountRatio
from surface_consistency.metrics.uncertainty.bootstrap import group_values
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals
from surface_consistency.reading import shown
from surface_consistency.report.page import Block, Lines, Point, Prose, Section, Series
from surface_consistency.report.texts import Texts
from surface_consistency.schemas import Prompt
from surface_consistency.studies.lexical.prompts import meaning_prompt, parse_meaning
from surface_consistency.studies.lexical.settings import LexicalScoring
from surface_consistency.tables.numbers import Value
from surface_consistency.tables.table import Table
from surface_consistency.tables.tabulation import tabulate

_NO_WORD: Final = re.compile(r"[^a-z0-9]+")
_GRID: Final = np.round(np.linspace(0.0, 1.0, 41), 3)
_MEASURES: Final = {"rouge_l": "ROUGE-L", "cosine": "cosine"}
_FOLDER: Final = "judges"
_TEXTS: Final = Texts("surface_consistency.studies.lexical")


def rouge_l(first: str, second: str) -> float:
    """Return ROUGE-L's F1 of two texts.

    Args:
        first: A text.
        second: Another one.

    Returns:
        Twice the length of the longest common subsequence of their words, case-insensitive, divided
        by the number of words of both, in [0, 1]; 0 if a text has no words.

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
    """LLM judge of whether two wordings have the same meaning, by the prompt of the paper.

    An interrupted log is resumed. After a reply that is neither "same" nor "different" the request
    is repeated once, then the pair is excluded.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, appendix A.3 and table B.
    """

    def request(self, targets: pd.DataFrame, answer: str, name: str) -> Prompt:
        """Write the request on one pair in both wordings; see `LLMJudge.request`."""
        return meaning_prompt(name, targets["question"].iloc[0], answer)

    def read(self, targets: pd.DataFrame, reply: str) -> Sequence[FactState]:
        """Return ["right"] for the same meaning, ["wrong"] for another; see `LLMJudge.read`."""
        is_same = parse_meaning(reply)
        if is_same is None:
            raise JudgeReplyError(f"neither same nor different: {shown(reply[:60])}")
        return ["right" if is_same else "wrong"]


def quality_checks(scored: Scored) -> dict[str, pd.DataFrame]:
    """Measure the similarity of the wordings of each pair.

    Args:
        scored: A scored run of the lexical study.

    Returns:
        "similarity", one row per task and measure; "similarity_curve", the proportions of pairs up
        to a value; with an LLM judge "meaning", one row per task, and "meaning_pairs", its pairs.
    """
    scoring: LexicalScoring = scored.scoring
    texts = _texts(scored)
    changed = texts[texts["is_changed"]]
    if changed.empty:
        return {}
    measures = {"rouge_l": changed["rouge_l"].to_numpy(float)}
    if scoring.encoder is not None:
        measures["cosine"] = _cosines(changed["first"], changed["second"], scoring.encoder)
    values = pd.concat(
        [changed[["task"]].assign(measure=name, value=of_all) for name, of_all in measures.items()]
    )
    checks = {
        "similarity": tabulate(values, ["task", "measure"], _similarity),
        "similarity_curve": tabulate(values, ["task", "measure"], _curve),
    }
    if scoring.meaning_model is not None or scoring.meaning_runner != "openai":
        checks |= _judged(changed, scored)
    return checks


def _similarity(part: pd.DataFrame) -> dict[str, float]:
    """Compute number, mean and quantiles of a measure."""
    low, middle, high = np.quantile(part["value"], (0.1, 0.5, 0.9))
    mean = float(part["value"].mean())
    return {"n": len(part), "mean": mean, "q10": low, "median": middle, "q90": high}


def _curve(part: pd.DataFrame) -> Iterator[dict[str, float]]:
    """Compute the proportion of pairs up to each value of a measure."""
    for value in _GRID.tolist():
        yield {"value": value, "share": float((part["value"] <= value + 1e-9).mean())}


def _texts(scored: Scored) -> pd.DataFrame:
    """Return the texts with the correct option of each pair, one row per pair."""
    text_of = {
        target: texts[int(correct)]
        for target, texts, correct in zip(
            scored.items["target_id"], scored.items["texts"], scored.items["correct"], strict=True
        )
    }
    _, pairs = scored.folder.read_plan()
    return pd.DataFrame(
        {
            "pair": pairs["pair"],
            # Runs that did not record contexts are clustered by instance.
            "cluster": pairs["context" if "context" in pairs else "item"],
            "task": pairs["task"],
            "first": pairs["first_target"].map(text_of),
            "second": pairs["second_target"].map(text_of),
            "is_changed": pairs["n_edits"] > 0,
            "rouge_l": pairs["rouge_l"],
        }
    )


def _cosines(first: pd.Series, second: pd.Series, encoder: str) -> npt.NDArray[np.float64]:
    """Compute the cosines of sentence vectors; each text is encoded once."""
    from surface_consistency.models.encoders import SentenceEncoder

    texts = list(dict.fromkeys([*first, *second]))
    vectors = np.asarray(SentenceEncoder(encoder).encode(texts), dtype=np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    place = {text: number for number, text in enumerate(texts)}
    left, right = (vectors[[place[text] for text in side]] for side in (first, second))
    cosines: npt.NDArray[np.float64] = np.einsum("ij,ij->i", left, right)
    return cosines


def _judged(changed: pd.DataFrame, scored: Scored) -> dict[str, pd.DataFrame]:
    """Judge a sample of each task by a model."""
    scoring: LexicalScoring = scored.scoring
    side = SideModel.of(scoring, "meaning")
    runner = side.load()
    label = side.name(runner)
    sample = pd.concat(
        [_sampled(part, scoring.meaning_pairs) for _, part in changed.groupby("task", sort=False)]
    ).reset_index(drop=True)
    targets = pd.DataFrame(
        {
            "target_id": sample["pair"],
            "prompt_id": sample["pair"],
            "question": sample["first"],
            "text": sample["second"],
        }
    )
    name = f"meaning-{re.sub(r'[^A-Za-z0-9.-]+', '-', label)}"
    judge = MeaningJudge(
        runner, Path(scored.folder.path) / _FOLDER / name, model=label, max_new_tokens=8
    )
    verdicts = judge.judge(targets)
    pairs = sample[["pair", "cluster", "task", "first", "second"]].assign(
        is_same=verdicts["correct"], reply=verdicts["raw"], reason=verdicts["reason"]
    )
    rows = tabulate(pairs, ["task"], lambda part: {"judge": label, **_same(part)})
    return {"meaning": rows, "meaning_pairs": pairs.drop(columns="cluster")}


def _same(part: pd.DataFrame) -> dict[str, object]:
    """Compute the proportion of a task's pairs with the same meaning."""
    n_unclear = int(part["is_same"].isna().sum())
    return {
        "n": len(part) - n_unclear,
        "n_unclear": n_unclear,
        **proportion_columns("same", part["is_same"], part["cluster"]),
    }


def _sampled(part: pd.DataFrame, n: int) -> pd.DataFrame:
    """Draw pairs of a task by the hash of their wordings."""
    prompts = {
        pair: Prompt(id=pair, text=f"{first}\n{second}")
        for pair, first, second in zip(part["pair"], part["first"], part["second"], strict=True)
    }
    drawn = {prompt.id for prompt in sample_prompts(list(prompts.values()), n)}
    return part[part["pair"].isin(drawn)]


def quality_section(tables: Mapping[str, Table], models: Sequence[str]) -> Section | None:
    """Draw the paper's figures 2 and 3 and show the tables of quality.

    Args:
        tables: The tables of a page.
        models: Labels of the runs.

    Returns:
        The section; None if these tables are missing.
    """
    blocks: list[Block] = []
    if "replaced_words" in tables:
        blocks += _frequency_curves(tables["replaced_words"].frame)
    if "similarity_curve" in tables:
        blocks += _similarity_curves(tables["similarity_curve"].frame)
    blocks += [
        _TEXTS.table(name, tables[name].frame, labels={"measure": _MEASURES})
        for name in ("similarity", "meaning")
        if name in tables
    ]
    if not blocks:
        return None
    lead = Prose(parts=["For the first run: wordings depend on its settings, not on the model."])
    if len(models) > 1:
        blocks.insert(0, lead)
    return Section(anchor="wordings", title="The wordings", blocks=blocks)


def proportion_columns(
    name: str, is_true: pd.Series, clusters: pd.Series, intervals: Intervals = DEFAULT_INTERVALS
) -> dict[str, object]:
    """Compute a proportion with a clustered interval, as columns of a table.

    Args:
        name: Column of the proportion.
        is_true: Boolean of each trial; missing values are excluded.
        clusters: The cluster of each trial, such as the context of an instance.
        intervals: Method and options of the confidence intervals.

    Returns:
        The proportion and its bounds, in [0, 1], as `name`, `name_low` and `name_high`; NaN without
        trials; the bounds are NaN if the clusters are too few for an interval.
    """
    known = is_true.dropna().astype(float)
    trials = pd.DataFrame({"true": known, "all": 1.0}).groupby(clusters.loc[known.index]).sum()
    ratio = CountRatio(numerator=(1, 0), denominator=(0, 1))
    value = group_values(trials.to_numpy(), {name: ratio}, intervals)[name]
    return {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}


def proportion_curves(
    name: str,
    title: str,
    x_title: str,
    curves: Mapping[str, tuple[Iterable[float], Iterable[float]]],
    *,
    model: int = 0,
) -> Lines:
    """Draw curves of proportions, without intervals.

    Args:
        name: Name of the figure.
        title: Its title.
        x_title: Title of the x axis.
        curves: x values and proportions, in [0, 1], by label; the first curve is grey.
        model: Index of the model, which determines the colour of the other curves.

    Returns:
        The figure.
    """
    return Lines(
        name=name,
        title=title,
        x_title=x_title,
        series=[
            Series(
                label=label,
                model=model if place else None,
                points=[
                    Point(x=round(float(at), 3), value=Value(value=float(proportion)))
                    for at, proportion in zip(*curve, strict=True)
                ],
            )
            for place, (label, curve) in enumerate(curves.items())
        ],
    )


def _of_first(frame: pd.DataFrame) -> pd.DataFrame:
    """Select the rows of the first run."""
    first: pd.DataFrame = frame.loc[frame["model"] == frame["model"].iloc[0]]
    return first


def _frequency_curves(frame: pd.DataFrame) -> list[Block]:
    """Draw the frequencies of words and their synonyms: the paper's figure 2."""
    rows = _of_first(frame)
    rows = rows[rows["frequency"].notna() & rows["synonym_frequency"].notna()]
    if rows.empty:
        return []
    weights = rows["n"].to_numpy(float)
    columns = {"words": "frequency", "synonyms": "synonym_frequency"}
    logs = {label: np.log10(1.0 + rows[name].to_numpy(float)) for label, name in columns.items()}
    grid = np.linspace(0.0, max(float(values.max()) for values in logs.values()) or 1.0, 25)
    curves = {
        label: (grid, [weights[values <= at + 1e-9].sum() / weights.sum() for at in grid])
        for label, values in logs.items()
    }
    title = "Replaced words and their synonyms up to a frequency, %"
    return [proportion_curves("word-frequencies", title, "log10 of 1 + count", curves)]


def _similarity_curves(frame: pd.DataFrame) -> list[Block]:
    """Draw the similarity of the wordings: the paper's figure 3, one chart per task."""
    rows = _of_first(frame)
    return [
        proportion_curves(
            f"similarity-{task}",
            f"Similarity of the wordings of {str(task).replace('_', ' ')}, pairs up to a value, %",
            "ROUGE-L, cosine",
            {
                _MEASURES[str(measure)]: (part["value"], part["share"])
                for measure, part in of_task.groupby("measure", sort=False)
            },
        )
        for task, of_task in rows.groupby("task", sort=False)
    ]
