"""SLAQ: one fact per query, all five of a topic in one query in balanced orders, and free form.

The design is that of section 4.1 of SLAQ (arXiv 2510.11218). By default orders are balanced rather
than random, and prompts and judge are those of this package; `as_published` sets the paper's.
"""

import warnings
from dataclasses import replace
from typing import Final

import pandas as pd

from surface_consistency.data.selection import warn_limited
from surface_consistency.data.slaq import Slaq, load_slaq
from surface_consistency.engine.design import Design, bibtex
from surface_consistency.engine.judging.judges import Judge
from surface_consistency.engine.judging.labels import read_labels
from surface_consistency.engine.plan import Plan, PromptGroup
from surface_consistency.engine.study import Scored, Study
from surface_consistency.errors import SurfaceConsistencyWarning
from surface_consistency.models.runner import Runner
from surface_consistency.runs.folder import RunFolder
from surface_consistency.studies.slaq.judges import MatcherJudge
from surface_consistency.studies.slaq.labels import judge_checks
from surface_consistency.studies.slaq.page import SLAQ_PAGE
from surface_consistency.studies.slaq.prompts import slaq_prompts
from surface_consistency.studies.slaq.records import SlaqOutcome, SlaqVerdict
from surface_consistency.studies.slaq.settings import RECORDS, SlaqScoring, SlaqSettings, SlaqSource
from surface_consistency.studies.slaq.tables import reasons_unscored, slot_numbers

_ITEM_COLUMNS: Final = [
    *("target_id", "prompt_id", "references", "item", "topic_id", "topic", "form", "question"),
    *("is_entity", "question_index", "permutation", "slot", "order_id"),
]
_PAIR_COLUMNS: Final = [
    *("pair", "item", "first_condition", "second_condition", "first_target"),
    *("second_target", "topic_id", "category", "popularity", "is_entity", "question_index"),
    *("permutation", "slot", "n_slots", "order_id"),
]


def _run_checks(scored: Scored) -> dict[str, pd.DataFrame]:
    """Count the facts without a score, and compare the judge with labels; see `judge_checks`."""
    checks = {"unjudged": reasons_unscored(scored.verdicts)}
    if scored.labels is None:
        return checks
    labels = read_labels(scored.labels)
    return checks | judge_checks(scored.items, scored.verdicts, scored.outcomes, labels)


class SlaqStudy(Study):
    """Compare answers to short questions with answers to long queries."""

    name = "slaq"
    design = Design(
        title="SLAQ",
        citation=bibtex("surface_consistency.studies.slaq"),
        question="the same fact in a short query and as one of five in a long query",
        conditions=("short query", "long query"),
        cells=(
            "correct in both",
            "correct in the short answer only",
            "correct in the long answer only",
            "incorrect in both",
        ),
        clusters={"topic_id": "topics", "item": "facts"},
        stratum="form",
        kind="form",
        facet="second_condition",
        groupings={
            "by_category": ("category",),
            "by_popularity": ("popularity",),
            "by_entity": ("is_entity",),
        },
        exploded_names={"second_condition": "condition"},
        labels={
            "condition": {"long": "long query", "free": "free form"},
            "popularity": {"popular": "popular", "obscure": "obscure", "unknown": "unknown"},
            "is_entity": {"True": "named entity", "False": "description", "unknown": "unknown"},
        },
    )
    records = replace(RECORDS, verdict=SlaqVerdict, outcome=SlaqOutcome)
    report = replace(SLAQ_PAGE, run_checks=_run_checks, metrics=slot_numbers)

    def load(self, source: SlaqSource) -> Slaq:
        """Load the topics.

        Args:
            source: Source of the topics.

        Returns:
            The topics.

        Raises:
            DataError: If they cannot be read.
        """
        return load_slaq(
            source.source,
            revision=source.revision,
            split=source.split,
            columns=dict(source.column) or None,
        )

    def plan(self, data: Slaq, settings: SlaqSettings, *, runner: Runner | None = None) -> Plan:
        """Plan the prompts: one per fact, and those with the five facts of a topic.

        Args:
            data: The topics.
            settings: The settings.
            runner: The model backend; not used by this study.

        Returns:
            One group of prompts per form; one target per fact of a prompt; one pair per fact of a
            long or free prompt.

        Warns:
            SurfaceConsistencyWarning: If the long query of a topic had to be built from its short
                questions.
        """
        chosen = data if settings.limit is None else data.select(limit=settings.limit)
        n_topics, n_available = (one.rows["topic_id"].nunique() for one in (chosen, data))
        warn_limited(settings.limit, n_topics, n_available, "topics")
        prompts, described = slaq_prompts(chosen.rows, settings)
        rebuilt = described.loc[described["is_rebuilt"], "topic_id"].unique()
        if len(rebuilt):
            warnings.warn(
                f"the long query of {len(rebuilt)} of {n_topics} topics, such as {rebuilt[0]!r}, "
                "was built from its short questions, because the one in the data cannot be "
                "reordered",
                SurfaceConsistencyWarning,
                stacklevel=3,
            )
        targets = _targets(chosen, described)
        return Plan(
            data=chosen.source,
            groups={
                form: PromptGroup(
                    prompts=[
                        p for p, own in zip(prompts, described["form"], strict=True) if own == form
                    ],
                    params=settings.params(form),
                )
                for form in settings.forms
            },
            items=targets[_ITEM_COLUMNS],
            pairs=_pairs(targets),
        )

    def judge(self, scoring: SlaqScoring, folder: RunFolder | None) -> Judge:
        """Return the string matcher; see `Study.judge`."""
        return MatcherJudge(
            scoring.judge_rule, entities_only=not scoring.all_facts, part=scoring.judge_part
        )


def _targets(data: Slaq, prompts: pd.DataFrame) -> pd.DataFrame:
    """List the targets: each fact of each prompt, in the order of the source."""
    rows = prompts.merge(data.rows, on="topic_id")
    slots = [
        order.index(k) + 1 if k in order else None
        for order, k in zip(rows["order"], rows["question_index"], strict=True)
    ]
    rows = rows.assign(slot=pd.array(slots, dtype="Int64"))
    rows = rows[(rows["form"] != "short") | rows["slot"].notna()].reset_index(drop=True)
    is_short = rows["form"] == "short"
    of_prompt = rows["prompt_id"] + "/" + rows["question_index"].astype(str)
    return rows.assign(
        target_id=rows["prompt_id"].where(is_short, of_prompt),
        references=rows["answer"].map(lambda answer: [answer]),
        slot=rows["slot"].mask(is_short),
    )


def _pairs(targets: pd.DataFrame) -> pd.DataFrame:
    """List the pairs: each fact of a long or free prompt with that of the short prompt."""
    among = targets[targets["form"] != "short"].reset_index(drop=True)
    pairs = among.assign(
        pair=among["target_id"],
        first_condition="short",
        second_condition=among["form"],
        first_target=among["item"] + "/short",
        second_target=among["target_id"],
        n_slots=among["form"].map({"long": 5}).astype("Int64"),
    )
    return pairs[_PAIR_COLUMNS]
