"""Tables of items in many forms, in addition to those of pairs with the reference."""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.engine.study import Scored
from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import (
    PAIRED_RATES,
    cluster_bootstrap,
    form_answers_by,
    form_contrasts,
    form_spread_by,
    forms_by,
    paired_by,
    rank_agreement,
    variance_shares_by,
)
from surface_consistency.metrics.forms.form_spread import correct_counts_by
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals
from surface_consistency.models.options import option_scores
from surface_consistency.report.texts import Texts
from surface_consistency.schemas import Prompt, read_jsonl
from surface_consistency.tables.table import Table
from surface_consistency.text import padded_words

MOST_FORMS: Final = 30
"""Maximum number of forms of which all pairs are compared."""

_FACT: Final = ["item", "sample"]
_PARTS: Final = {
    "item": "item",
    "form": "form",
    "item_by_form": "item by form",
    "sampling": "sampling noise",
}
_UNSEPARATED: Final = {"item_by_form": "item by form, or sampling noise"}
_NESTED: Final = {"item_by_form": "wording of the item"}

TEXTS: Final = Texts("surface_consistency.studies.forms")
"""Captions, notes, checks and leads of the study of forms."""

Frames = Mapping[str, pd.DataFrame]
"""Rows of `long_frame` of each model by its label."""


def long_frame(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Convert pairs with the reference form to one row per item, form and sample.

    Args:
        outcomes: Rows of `FormOutcome`.

    Returns:
        Columns model, item, sample, form, is_reference, correct, answer (its normalised words; None
        if the form accepts other answers than the reference, or there is no answer), relation,
        item_cluster and wordings.
    """
    shared = ["model", "item", "sample", "relation", "item_cluster", "wordings"]
    parts = []
    for side in ("first", "second"):
        columns = {
            f"{side}_{name}": name for name in ("condition", "correct", "prediction", "surface")
        }
        part = outcomes[[*shared, "is_same_answer", *columns]].rename(columns=columns)
        part = part.rename(columns={"condition": "form"}).assign(is_reference=side == "first")
        part = part.dropna(subset="surface")
        if side == "first":
            part = part.assign(is_same_answer=True)
            part = part.drop_duplicates(["model", "item", "sample"])
        parts.append(part)
    frame = pd.concat(parts, ignore_index=True)
    answers = frame["prediction"].where(frame["is_same_answer"], None)
    words = padded_words([one if isinstance(one, str) else "" for one in answers])
    frame["answer"] = pd.Series(words, dtype=object).where(
        lambda text: text.str.strip() != "", None
    )
    return frame.drop(columns=["prediction", "surface", "is_same_answer"])


def form_tables(
    outcomes: Mapping[str, pd.DataFrame], intervals: Intervals = DEFAULT_INTERVALS
) -> dict[str, Table]:
    """Compute the tables of all forms together.

    Args:
        outcomes: Outcomes of each model by its label.
        intervals: Settings of the intervals.

    Returns:
        "forms", "variance", "spread", "correct_counts" and "form_answers"; "form_pairs" of at most
        30 forms; "samples" if answers were sampled repeatedly; "models_forms" of several models.
        Tables without rows are omitted.
    """
    frames = {label: long_frame(frame) for label, frame in outcomes.items()}
    n_samples = max(frame["sample"].nunique() for frame in frames.values())
    titles = {"n_items": "Items, each sample"} if n_samples > 1 else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        warnings.simplefilter("ignore", UnscoredWarning)
        made = {
            "variance": _variance(frames, intervals),
            "spread": _spread(frames),
            "correct_counts": _correct_counts(frames),
            "form_answers": _answers(frames, intervals),
            "form_pairs": _pairs(frames, intervals),
            "samples": _samples(frames, intervals),
            "models_forms": _models(frames, intervals),
        }
        tables = {"forms": _forms(frames, titles, intervals)}
    for name, frame in made.items():
        if not frame.empty:
            own = titles if "n_items" in frame and name != "samples" else {}
            tables[name] = TEXTS.table(name, frame, titles=own)
    return tables


def _forms(frames: Frames, titles: Mapping[str, str], intervals: Intervals) -> Table:
    """Compute the rates of `forms_by`, for these forms and for forms like these."""
    scored = [frame.dropna(subset="correct") for frame in frames.values()]
    sizes = [size for frame in scored for size in frame.groupby(_FACT).size()]
    least, most = min(sizes, default=0), max(sizes, default=0)
    of = int(max(least, 2)) if least < most else None
    rows = [
        forms_by(frame, item=_FACT, of=of, **options).assign(about=about)
        for frame in frames.values()
        for about, options in _questions(frame, intervals).items()
    ]
    more = ""
    if of is not None:
        titles = {**titles, "all_correct_of": f"Correct in {of}"}
        more = (
            f"Items have from {least} to {most} scored forms; correct in {of}: of as many forms of "
            "an item, drawn at random."
        )
    if max(row["within_item_share_high"].max() for row in rows) > 1.0:
        more += " Within items above 100 %: two forms of an item agree less often than by chance."
    frame = pd.concat(rows, ignore_index=True)
    return TEXTS.table("forms", frame, titles=titles, likeness=_likeness(frames), more=more)


def _variance(frames: Frames, intervals: Intervals) -> pd.DataFrame:
    """Decompose the variance of correctness."""
    rows = []
    for frame in frames.values():
        wordings = frame["wordings"].iloc[0]
        own = {"own": "item", "templates": "relation"}.get(wordings)
        tables = [
            variance_shares_by(frame, templates=own, **options)
            for options in _questions(frame, intervals).values()
        ]
        names = _PARTS | (_UNSEPARATED if frame["sample"].nunique() == 1 else {})
        names |= _NESTED if own == "item" else {}
        for part, name in names.items():
            these, like = (table.iloc[0] for table in (tables[0], tables[-1]))
            if not math.isnan(these[f"{part}_share"]):
                row = {"model": frame["model"].iloc[0], "part": name, **these[["n", "n_clusters"]]}
                for column, of in (("share", these), ("like", like)):
                    row |= {
                        f"{column}{end}": of[f"{part}_share{end}"] for end in ("", "_low", "_high")
                    }
                rows.append(row)
    return pd.DataFrame(rows)


def _spread(frames: Frames) -> pd.DataFrame:
    """Compare the best form with the worst, and the spread with that expected by chance."""
    return _stacked(
        form_spread_by(
            frame.assign(item=_joint(frame, _FACT)), by="model", item="item", cluster=_narrow(frame)
        )
        for frame in _shared(frames)
    )


def _correct_counts(frames: Frames) -> pd.DataFrame:
    """Count items by the number of forms in which they are correct."""
    return _stacked(
        correct_counts_by(frame.assign(item=_joint(frame, _FACT)), by="model", item="item")
        for frame in _numbered(frames)
    )


def _answers(frames: Frames, intervals: Intervals) -> pd.DataFrame:
    """Compare texts of answers, among forms that accept the same answers."""
    table = _stacked(
        form_answers_by(frame.assign(item=_joint(frame, _FACT)), **_options(frame, intervals))
        for frame in frames.values()
    )
    return table[table["n_items"] > 0].reset_index(drop=True)


def _pairs(frames: Frames, intervals: Intervals) -> pd.DataFrame:
    """Compute the agreement of each pair of forms."""
    rows = []
    for frame in _shared(frames):
        if not 1 < frame["form"].nunique() <= MOST_FORMS:
            continue
        cells = frame.assign(item=_joint(frame, _FACT), cluster=frame[_narrow(frame)])
        wide = cells.pivot(index=["item", "cluster"], columns="form", values="correct")
        wide = wide[list(dict.fromkeys(frame["form"]))].reset_index()
        pairs = [
            wide[["cluster", first, second]]
            .set_axis(["cluster", "a", "b"], axis=1)
            .assign(model=frame["model"].iloc[0], first=first, second=second)
            for first, second in combinations(wide.columns[2:], 2)
        ]
        table = paired_by(
            pd.concat(pairs, ignore_index=True),
            by=["model", "first", "second"],
            first="a",
            second="b",
            cluster="cluster",
            rates={"agreement": PAIRED_RATES["consistency"]},
            intervals=intervals,
        )
        order = pd.MultiIndex.from_tuples(
            [(one["first"].iloc[0], one["second"].iloc[0]) for one in pairs]
        )
        rows.append(
            table.set_index(["first", "second"]).loc[order].reset_index(names=["first", "second"])
        )
    return _stacked(rows)


def _samples(frames: Frames, intervals: Intervals) -> pd.DataFrame:
    """Compute how often two answers to one question in one form have the same label."""
    return _stacked(
        forms_by(
            frame.assign(cell=_joint(frame, ["item", "form"]), sampled=frame["sample"]),
            item="cell",
            form="sampled",
            **_options(frame, intervals),
        )
        for frame in frames.values()
        if frame["sample"].nunique() > 1
    )


def _models(frames: Frames, intervals: Intervals) -> pd.DataFrame:
    """Compare models on the items and forms that are scored for both."""
    if len(frames) < 2:
        return pd.DataFrame()
    frame = pd.concat(list(frames.values()), ignore_index=True)
    first = next(iter(frames)) if len(frames) > 4 else None
    cluster = _narrow(frame)
    return form_contrasts(frame, reference=first, item=_FACT, cluster=cluster, intervals=intervals)


def _shared(frames: Frames) -> Iterator[pd.DataFrame]:
    """Yield the models whose forms are the same for all items, without forms never scored."""
    for frame in frames.values():
        is_scored = frame["correct"].notna().groupby(frame["form"]).transform("any")
        if frame["wordings"].iloc[0] == "shared" and is_scored.any():
            yield frame[is_scored]


def _numbered(frames: Frames) -> Iterator[pd.DataFrame]:
    """Replace the forms by numbers if each item has its own forms."""
    for label, frame in frames.items():
        if (wordings := frame["wordings"].iloc[0]) == "own":
            frame = frame.assign(form=frame.groupby(_FACT).cumcount())
        yield from _shared({label: frame}) if wordings == "shared" else (frame,)


def agreement(frame: pd.DataFrame) -> "pd.Series[Any]":
    """Compute the rates of `forms_by` for one model, without warnings about undefined values.

    Args:
        frame: Result of `long_frame`.

    Returns:
        Its row.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        warnings.simplefilter("ignore", UnscoredWarning)
        return forms_by(frame, item=_FACT).iloc[0]


def _options(frame: pd.DataFrame, intervals: Intervals) -> dict[str, Any]:
    """Return the options of the metrics of one model about these forms."""
    return {"by": "model", "cluster": _narrow(frame), "intervals": intervals}


def _questions(frame: pd.DataFrame, intervals: Intervals) -> dict[str, dict[str, Any]]:
    """Return the options of metrics about these forms, and about forms like these."""
    wordings, options = frame["wordings"].iloc[0], _options(frame, intervals)
    if wordings == "own":
        return {"these forms and forms like these": options}
    other = {"cluster": "relation"} if wordings == "templates" else {"forms": "sample"}
    return {"these forms": options, "forms like these": options | other}


def _narrow(frame: pd.DataFrame) -> str:
    """Return the clustering column for these forms: the clusters of the source, or the items."""
    return "item_cluster" if frame["item_cluster"].notna().all() else "item"


def _likeness(frames: Frames) -> str:
    """Describe how the interval for other forms is computed."""
    wordings = sorted({frame["wordings"].iloc[0] for frame in frames.values()})
    names = {"own": "own_wordings"}
    return " ".join(TEXTS.paragraphs(names.get(one, one))[0] for one in wordings)


def _joint(frame: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Number the combinations of some columns."""
    return frame.groupby(list(columns), sort=False).ngroup()


def _stacked(rows: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate tables."""
    tables = list(rows)
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def rank_table(scored: Scored) -> pd.DataFrame:
    """Compare the ranks of the options in each form with those in the reference form.

    Args:
        scored: A run whose answers may have scores of options.

    Returns:
        One row per form: form, n_items, rank_agreement (RankC), chance, and over_chance with its
        interval (95 %, clustered by item); empty if no options were scored.
    """
    items = scored.items
    if items["scores"].isna().all():
        return pd.DataFrame()
    options = {
        prompt.id: prompt.options or () for prompt in read_jsonl(scored.folder.prompts, Prompt)
    }
    ranked = {}
    for prompt_id, scores in zip(items["prompt_id"], items["scores"], strict=True):
        if scores is not None:
            values = option_scores(options[prompt_id], scores)
            ranked[prompt_id] = tuple(np.argsort(-np.asarray(values), kind="stable").tolist())
    items = items.assign(ranked=items["prompt_id"].map(ranked)).dropna(subset="ranked")
    first = items[items["is_reference"].astype(bool)].set_index("item")["ranked"]
    rows = []
    for form, part in items[~items["is_reference"].astype(bool)].groupby("form", sort=False):
        both = part[part["item"].isin(first.index)]
        pairs = list(zip(first.loc[both["item"]], both["ranked"], strict=True))
        pairs = [pair for pair in pairs if len(pair[0]) == len(pair[1])]
        if not pairs:
            continue
        agreement = rank_agreement(*zip(*pairs, strict=True))
        sums = np.column_stack([agreement, np.ones(len(pairs))])
        row = {"form": form, "n_items": len(pairs)}
        row |= dict(zip(("rank_agreement", "chance"), agreement.mean(axis=0), strict=True))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            over_chance = cluster_bootstrap(sums, _over_chance)
        names = ("over_chance", "over_chance_low", "over_chance_high")
        rows.append(row | dict(zip(names, over_chance, strict=True)))
    return pd.DataFrame(rows)


def _over_chance(sums: np.ndarray) -> np.ndarray:
    """Compute chance-corrected agreement from sums."""
    total, chance, n = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        over: np.ndarray = (total - chance) / (n - chance)
    return over
