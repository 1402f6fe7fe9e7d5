"""Tables of items in many forms, besides those of the reference against each other form."""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
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
    right_counts_by,
    variance_shares_by,
)
from surface_consistency.models.options import option_scores
from surface_consistency.schemas import Prompt, read_jsonl
from surface_consistency.tables.columns import COLUMNS, catalogue
from surface_consistency.tables.table import Column, Table, interval_column
from surface_consistency.tables.tabulation import describe
from surface_consistency.text import padded_words

MOST_FORMS: Final = 30
"""Forms of which every two are compared."""

_FACT: Final = ["fact_id", "sample"]
_REACHED: Final = ("accuracy", "consistency", "all_right", "all_right_of", "form_share")
_PARTS: Final = {
    "item": "which item",
    "form": "form",
    "item_by_form": "item by form",
    "sampling": "the dice",
}
_UNSEPARATED: Final = {"item_by_form": "item by form, or the dice"}
_PLAIN_SHARE: Final = Column(key="share", title="Share", kind="rate", unit="%")
_NESTED: Final = {"item_by_form": "wording of the item"}

COLUMNS_OF_FORMS: Final = COLUMNS | catalogue(
    Column(key="n_facts", title="Items", kind="count"),
    Column(key="n_forms", title="Answers", kind="count", on_phones=False),
    Column(key="n_clusters", title="Clusters", kind="count", on_phones=False),
    Column(key="about", title="Interval for"),
    interval_column("accuracy", "Right", "rate", "%", direction="higher"),
    interval_column("consistency", "Two forms agree", "rate", "verdicts, %", direction="higher"),
    interval_column("all_right", "Right in all", "rate", "%", direction="higher"),
    interval_column("all_right_of", "Right in as many", "rate", "drawn, %", direction="higher"),
    interval_column("form_share", "Within items", "rate", "of the variance, %"),
    interval_column("share", "Share", "rate", "of the variance, %"),
    interval_column("like", "For forms like these", "rate", "%"),
    interval_column("same_answer", "Same answer", "rate", "%"),
    interval_column("chance", "By chance", "rate", "%"),
    interval_column("agreement", "Same verdict", "rate", "%"),
    interval_column("over_chance", "Over chance", "number", "0 to 1"),
    Column(key="form", title="Form"),
    Column(key="part", title="What decides"),
    Column(key="worst", title="Worst form"),
    Column(key="worst_accuracy", title="Right", kind="rate", unit="worst, %"),
    Column(key="best", title="Best form"),
    Column(key="best_accuracy", title="Right", kind="rate", unit="best, %"),
    Column(key="spread", title="Spread", kind="difference", unit="points"),
    Column(key="spread_null", title="By chance", kind="difference", unit="points"),
    Column(key="cochran_q", title="Cochran’s Q", kind="number"),
    Column(key="n_right", title="Right forms", kind="count"),
    Column(key="share_independent", title="If independent", kind="rate", unit="%"),
    Column(key="first", title="Form"),
    Column(key="second", title="Other form"),
    Column(key="a", title="Model"),
    Column(key="b", title="Against"),
    Column(key="rate", title="Rate"),
    Column(key="p_value_holm", title="p", kind="p_value", unit="Holm"),
)


def long_frame(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Take pairs with the reference apart, into one row an item, form and sample.

    Args:
        outcomes: Rows of `FormOutcome`.

    Returns:
        Columns model, fact_id, sample, form, is_reference, correct, answer (its words in normal
        form; None where the form accepts other answers than the reference, or there is none),
        relation, item_cluster and wordings.
    """
    shared = ["model", "fact_id", "sample", "relation", "item_cluster", "wordings"]
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
            part = part.drop_duplicates(["model", "fact_id", "sample"])
        parts.append(part)
    frame = pd.concat(parts, ignore_index=True)
    answers = frame["prediction"].where(frame["is_same_answer"], None)
    words = padded_words([one if isinstance(one, str) else "" for one in answers])
    frame["answer"] = pd.Series(words, dtype=object).where(
        lambda text: text.str.strip() != "", None
    )
    return frame.drop(columns=["prediction", "surface", "is_same_answer"])


class FormTables:
    """Computes what is said of all forms together.

    Args:
        outcomes: Outcomes of each model by its label.
    """

    def __init__(self, outcomes: Mapping[str, pd.DataFrame]) -> None:
        self.frames = {label: long_frame(frame) for label, frame in outcomes.items()}

        n_samples = max(frame["sample"].nunique() for frame in self.frames.values())
        self._titles = {"n_facts": "Items, each sample"} if n_samples > 1 else {}

    def tables(self) -> dict[str, Table]:
        """Compute the tables.

        Returns:
            "forms", "variance", "spread", "right_counts" and "form_answers"; "form_pairs" of at
            most 30 forms; "samples" where answers were drawn; "models_forms" of several models.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            warnings.simplefilter("ignore", UnscoredWarning)
            tables = {
                "forms": self._forms(),
                "variance": self._variance(),
                "spread": self._spread(),
                "right_counts": self._right_counts(),
                "form_answers": self._answers(),
                "form_pairs": self._pairs(),
                "samples": self._samples(),
                "models_forms": self._models(),
            }
        return {name: table for name, table in tables.items() if table is not None}

    def _forms(self) -> Table | None:
        """Compute what `forms_by` does, for these forms and for forms like these."""
        sizes = [frame.groupby(_FACT).size() for frame in self.frames.values()]
        least, most = min(map(min, sizes)), max(map(max, sizes))
        of = int(max(least, 2)) if least < most else None
        rows = []
        for frame in self.frames.values():
            for about, options in _questions(frame).items():
                rows.append(
                    forms_by(
                        frame.assign(item=frame["fact_id"]),
                        by="model",
                        fact=_FACT,
                        of=of,
                        **({"cluster": "item"} | options),
                    ).assign(about=about)
                )
        reached = [name for name in _REACHED if name in rows[0]]
        note, titles = "", self._titles
        if of is not None:
            titles = titles | {"all_right_of": f"Right in {of}"}
            note = (
                f"Items have from {least} to {most} forms; right in {of}: of each, drawn at random."
            )
        if max(row["form_share_high"].max() for row in rows) > 1.0:
            note += " Within items above 100 %: two forms of an item agree less than chance."
        return _described(
            pd.concat(rows, ignore_index=True),
            "All forms together",
            ["model about n_facts n_clusters", " ".join(reached)],
            titles=titles,
            note=f"These forms: other items in the same forms. {_likeness(self.frames)} {note}",
        )

    def _variance(self) -> Table | None:
        """Divide the variance of verdicts."""
        rows = []
        for frame in self.frames.values():
            wordings = frame["wordings"].iloc[0]
            own = {"own": "fact_id", "templates": "relation"}.get(wordings)
            questions = _questions(frame)
            tables = [
                variance_shares_by(
                    frame, by="model", templates=own, **({"cluster": "fact_id"} | options)
                )
                for options in questions.values()
            ]
            names = _PARTS | (_UNSEPARATED if frame["sample"].nunique() == 1 else {})
            names |= _NESTED if own == "fact_id" else {}
            for part, name in names.items():
                these, like = (table.iloc[0] for table in (tables[0], tables[-1]))
                if not math.isnan(these[f"{part}_share"]):
                    ends = {
                        f"share{end}": these[f"{part}_share{end}"] for end in ("", "_low", "_high")
                    }
                    ends |= {
                        f"like{end}": like[f"{part}_share{end}"] for end in ("", "_low", "_high")
                    }
                    counts = {"n": these["n"], "n_clusters": these["n_clusters"]}
                    rows.append({"model": frame["model"].iloc[0], "part": name} | ends | counts)
        return _described(
            pd.DataFrame(
                rows, columns=["model", "part", "n", "n_clusters", *_ends("share", "like")]
            ),
            "What decides a verdict",
            "model part share like",
            note="Shares of the variance of right and wrong, by generalizability theory; a share "
            "below 0 is none. The first interval is for these forms.",
        )

    def _spread(self) -> Table | None:
        """Compare the best form with the worst, beside what chance gives."""
        rows = [
            form_spread_by(
                frame.assign(item=_joint(frame, _FACT)),
                by="model",
                fact="item",
                cluster=_narrow(frame),
            )
            for frame in self._shared()
        ]
        return _described(
            _stacked(rows),
            "The best and the worst form",
            "model n_facts worst worst_accuracy best best_accuracy spread spread_null cochran_q "
            "p_value",
            titles=self._titles,
            note="Of items asked in every form. By chance: the spread to be expected of forms "
            "without any effect. p is that of Cochran’s Q.",
        )

    def _right_counts(self) -> Table | None:
        """Count items by the number of forms in which they are right."""
        rows = [
            right_counts_by(frame.assign(item=_joint(frame, _FACT)), by="model", fact="item")
            for frame in self._numbered()
        ]
        table = _stacked(rows)
        return _described(
            table,
            "How many forms are right",
            ["model n_right n_facts", _PLAIN_SHARE, "share_independent"],
            titles=self._titles,
            note="Of items asked in every form. If independent: each form right at its own "
            "accuracy, whatever the item.",
        )

    def _answers(self) -> Table | None:
        """Compare answers instead of verdicts, among forms that accept the same ones."""
        rows = [
            form_answers_by(
                frame.assign(item=_joint(frame, _FACT)),
                by="model",
                fact="item",
                cluster=_narrow(frame),
            )
            for frame in self.frames.values()
        ]
        table = _stacked(rows)
        return _described(
            table[table["n_facts"] > 0].reset_index(drop=True),
            "Two forms with the same answer",
            "model n_facts n_clusters same_answer chance kappa",
            titles=self._titles,
            note="Answers are compared by their words in normal form, among the forms that accept "
            "the same answers as the reference: not across languages. Kappa is over chance, by "
            "Fleiss.",
        )

    def _pairs(self) -> Table | None:
        """Compute the agreement of every two forms."""
        rows = []
        for frame in self._shared():
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
            )
            order = pd.MultiIndex.from_tuples(
                [(one["first"].iloc[0], one["second"].iloc[0]) for one in pairs]
            )
            rows.append(
                table.set_index(["first", "second"])
                .loc[order]
                .reset_index(names=["first", "second"])
            )
        return _described(_stacked(rows), "Every two forms", "model first second n agreement")

    def _samples(self) -> Table | None:
        """Compute how often two answers to one question in one form have the same verdict."""
        rows = []
        for frame in self.frames.values():
            if frame["sample"].nunique() > 1:
                cells = frame.assign(
                    cell=_joint(frame, ["fact_id", "form"]), sampled=frame["sample"]
                )
                rows.append(
                    forms_by(cells, by="model", fact="cell", form="sampled", cluster=_narrow(frame))
                )
        return _described(
            _stacked(rows),
            "The same form asked again",
            "model n_facts n_clusters accuracy consistency",
            titles={"n_facts": "Questions", "consistency": "Two answers agree"},
            note="How often two answers to the very same question have one verdict: what is left "
            "is the dice, and no wording.",
        )

    def _models(self) -> Table | None:
        """Compare models on the items and forms that both have verdicts in."""
        frame = pd.concat([part for label, part in self.frames.items()], ignore_index=True)
        table = pd.DataFrame()
        if len(self.frames) > 1:
            first = next(iter(self.frames)) if len(self.frames) > 4 else None
            table = form_contrasts(frame, reference=first, fact=_FACT, cluster=_narrow(frame))
        return _described(
            table,
            "Models on the same items in the same forms",
            "a b rate n_facts n_clusters difference p_value_holm",
            titles=self._titles,
            note="Differences are within the same items; p is of the same t as the interval, "
            "corrected by Holm’s method.",
        )

    def _shared(self) -> Iterator[pd.DataFrame]:
        """Give the models whose forms are the same for all items."""
        for frame in self.frames.values():
            if frame["wordings"].iloc[0] == "shared":
                yield frame

    def _numbered(self) -> Iterator[pd.DataFrame]:
        """Give forms numbers where each item has its own, so that a place stands for a form."""
        for frame in self.frames.values():
            if frame["wordings"].iloc[0] == "own":
                frame = frame.assign(form=frame.groupby(_FACT).cumcount())
            yield frame


def agreement(frame: pd.DataFrame) -> "pd.Series[Any]":
    """Compute what `forms_by` does of one model, without a sentence on what is undefined.

    Args:
        frame: As from `long_frame`.

    Returns:
        Its row.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        warnings.simplefilter("ignore", UnscoredWarning)
        return forms_by(frame, fact=_FACT).iloc[0]


def _questions(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Say how intervals about these forms, and about forms like these, take things whole."""
    wordings, narrow = frame["wordings"].iloc[0], _narrow(frame)
    these = {"these forms": {"cluster": narrow}}
    if wordings == "own":
        return {"these forms and forms like these": {"cluster": narrow}}
    if wordings == "templates":
        return these | {"forms like these": {"cluster": "relation"}}
    return these | {"forms like these": {"cluster": narrow, "forms": "sample"}}


def _narrow(frame: pd.DataFrame) -> str:
    """Name what is taken whole where forms are as they are: the source's clusters, or items."""
    return "item_cluster" if frame["item_cluster"].notna().all() else "fact_id"


def _likeness(frames: Mapping[str, pd.DataFrame]) -> str:
    """Say how the interval for other forms is made."""
    wordings = {frame["wordings"].iloc[0] for frame in frames.values()}
    sentences = {
        "shared": "Forms like these: other forms too, as far as these are a sample; their "
        "spread is added with one degree of freedom less than there are forms.",
        "templates": "Forms like these: relations are taken whole, each with its own templates.",
        "own": "Each item has wordings of its own, so that taking items whole covers both.",
    }
    return " ".join(sentences[one] for one in sorted(wordings))


def _ends(*names: str) -> list[str]:
    """Name columns with their bounds."""
    return [f"{name}{end}" for name in names for end in ("", "_low", "_high")]


def _joint(frame: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Number the combinations of some columns."""
    return frame.groupby(list(columns), sort=False).ngroup()


def _described(
    frame: pd.DataFrame,
    caption: str,
    shown: str | list[str | Column],
    *,
    titles: Mapping[str, str] | None = None,
    note: str = "",
) -> Table | None:
    """Describe a table; none without rows."""
    if frame.empty:
        return None
    return describe(frame, caption, shown, COLUMNS_OF_FORMS, titles=titles, note=note)


def _stacked(rows: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Put tables one below the other."""
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def rank_table(scored: Scored) -> pd.DataFrame:
    """Compare how each form ranks the options with how the reference form does.

    Args:
        scored: A run whose answers may have scores of options.

    Returns:
        One row a form: form, n_facts, rank_agreement (RankC), chance, and over_chance with its
        interval (95 %, items whole); empty where no options were scored.
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
    first = items[items["is_reference"].astype(bool)].set_index("fact_id")["ranked"]
    rows = []
    for form, part in items[~items["is_reference"].astype(bool)].groupby("form", sort=False):
        both = part[part["fact_id"].isin(first.index)]
        pairs = list(zip(first.loc[both["fact_id"]], both["ranked"], strict=True))
        pairs = [pair for pair in pairs if len(pair[0]) == len(pair[1])]
        if not pairs:
            continue
        result = rank_agreement(*zip(*pairs, strict=True))
        row = {"form": form, "n_facts": len(pairs), "rank_agreement": result.agreement}
        row |= {"chance": result.chance, "over_chance": result.over_chance}
        sums = np.stack([result.by_item, result.chance_by_item, np.ones(len(pairs))], axis=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            bounds = cluster_bootstrap(sums, _over_chance).estimate_interval
        rows.append(row | {"over_chance_low": bounds.low, "over_chance_high": bounds.high})
    return pd.DataFrame(rows)


def _over_chance(sums: np.ndarray) -> np.ndarray:
    """Take summed agreement over chance."""
    total, chance, n = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        over: np.ndarray = (total - chance) / (n - chance)
    return over
