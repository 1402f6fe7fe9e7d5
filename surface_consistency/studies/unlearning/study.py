"""The same fact in several forms, of one model: what `analyse unlearning` crosses with models."""

from pathlib import Path
from typing import Annotated, Final

import pandas as pd
from pydantic import AfterValidator, Field

from surface_consistency.engine import (
    Design,
    Plan,
    PromptGroup,
    RuleScoring,
    SourceSettings,
    Study,
    StudySettings,
    check_rule,
    open_source,
)
from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.models import Runner
from surface_consistency.schemas import (
    DataSource,
    GenerationParams,
    Items,
    Message,
    PairedOutcome,
    Prompt,
)
from surface_consistency.studies.unlearning.logs import read_answers, standing_answers
from surface_consistency.studies.unlearning.questions import (
    FORGET,
    PLAIN,
    edit_rows,
    table_rows,
    tofu_rows,
    with_long,
)

_EDITS: Final = ({"requested_rewrite"}, {"target_new"}, {"alt", "src"}, {"edit"})


class UnlearningSource(SourceSettings):
    """Where facts and forms come from."""

    source: str
    """Hub id, folder, Parquet, JSONL, JSON or CSV file: TOFU, edits (CounterFact, zsRE, KnowEdit,
    RippleEdits), or a table with fact_id, form, question and answers."""

    split: str = "train"
    """Split of the data; configurations of TOFU are files or folders of its repository."""

    short_answers: Path | None = None
    """File of short answers to TOFU's questions, with the columns index and answer; those of
    forget10 come along and serve forget05 and forget01 too."""

    set: str = FORGET
    """Set that TOFU's questions are: forget, or another such as retain for what should be kept."""


class UnlearningSettings(StudySettings):
    """How facts are asked."""

    forms: Items[str] = ()
    """Forms that are asked, plain among them; all that the data have, and long, by default."""

    template: str = "Question: {}\nAnswer:"
    """What is written around a question, at {}."""

    chat: bool = False
    """Whether questions are turns for the model's chat template rather than plain text."""

    max_new_tokens: int = Field(default=64, ge=1)
    """Longest answer, in tokens."""


class UnlearningScoring(RuleScoring):
    """How answers are judged: short answers may stand within a sentence."""

    rule: Annotated[str, AfterValidator(check_rule)] = "boundary"
    """Matching rule: a name of `matching.RULES`, or one of another package as package:name."""


class UnlearningOutcome(PairedOutcome):
    """One fact, asked plainly and in another form."""

    set: Items[str]
    """What becomes of the fact: forget, new object, neighbour, retain."""

    form: Items[str]
    """The other form."""

    subject_id: str
    """Whom or what the fact is about: the cluster of intervals."""


class UnlearningStudy(Study):
    """Facts that may have been taken out of the weights, asked plainly and in other forms."""

    name = "unlearning"
    design = Design(
        title="Forgetting in weights",
        question="the same fact, asked plainly and in another form, of one model",
        conditions=("plain question", "other form"),
        clusters={"subject_id": "subjects", "fact_id": "facts"},
        groupings={"by_set": ("set",), "by_form": ("form",)},
        second_condition_columns=("form",),
    )
    source = UnlearningSource
    settings = UnlearningSettings
    scoring = UnlearningScoring
    outcome = UnlearningOutcome

    def load(self, source: UnlearningSource) -> tuple[DataSource, pd.DataFrame]:
        """Read facts and forms by what the rows hold; see `Study.load`.

        Raises:
            DataError: If they are no layout that is known, or nothing tells short answers.
        """
        opened = open_source(source.source, revision=source.revision, split=source.split)
        if strange := set(source.column.values()) - set(opened.columns):
            raise ColumnNotFoundError(
                f"{source.source} has no column {', '.join(sorted(strange))}; it has "
                f"{', '.join(opened.columns)}"
            )
        columns = {*opened.columns, *source.column}
        records = [
            {**row, **{name: row.get(column) for name, column in source.column.items()}}
            for _, row in opened.rows
        ]
        if any(names <= columns for names in _EDITS):
            rows = edit_rows(records)
        elif "fact_id" in columns:
            rows = table_rows(records)
        elif "question" in columns:
            path = source.short_answers
            texts = [str(row.get("answer")) for row in records]
            given = standing_answers(texts, None if path is None else read_answers(path))
            if given is None:
                raise DataError(
                    f"the short answers are of other questions than {source.source}: less than "
                    "nine in ten stand in its answers; give those of its questions by "
                    "--short-answers"
                )
            rows = tofu_rows(records, given, source.set)
        else:
            raise DataError(
                f"{source.source} has the columns {', '.join(opened.columns)}; rows are TOFU's "
                "(question, paraphrased_question), edits (CounterFact, zsRE, KnowEdit, "
                "RippleEdits), or a table with fact_id, form, question and answers"
            )
        digest = f"{int(pd.util.hash_pandas_object(rows.astype(str), index=False).sum()):016x}"
        described = DataSource(
            id=opened.id, revision=opened.revision, digest=digest, n_questions=len(rows)
        )
        return described, rows

    def plan(
        self,
        data: tuple[DataSource, pd.DataFrame],
        settings: UnlearningSettings,
        *,
        runner: Runner | None = None,
    ) -> Plan:
        """Ask every fact in every form, and pair each with its plain question; see `Study.plan`.

        Raises:
            DataError: If no fact is left to ask, or a form is not there.
        """
        source, rows = data
        rows = rows if "long" in set(rows["form"]) else with_long(rows)
        if unknown := set(settings.forms) - set(rows["form"]):
            raise DataError(
                f"forms names {', '.join(sorted(unknown))}; the data have "
                f"{', '.join(rows['form'].drop_duplicates())}"
            )
        if settings.forms:
            rows = rows[rows["form"].isin([*settings.forms, PLAIN])]
        if settings.limit is not None:
            facts = rows["fact_id"].drop_duplicates()[: settings.limit]
            rows = rows[rows["fact_id"].isin(set(facts))]
        if rows.empty:
            raise DataError(f"{source.id} holds no fact to ask")
        name = rows["set"] + " / " + rows["fact_id"] + " / " + rows["form"]
        items = rows.assign(target_id=name, prompt_id=name)
        prompts = [
            _prompt(target, question, settings)
            for target, question in zip(items["target_id"], items["question"], strict=True)
        ]
        params = GenerationParams(max_new_tokens=settings.max_new_tokens)
        group = PromptGroup(prompts=prompts, params=settings.with_reasoning(params))
        return Plan(data=source, groups={"": group}, items=items, pairs=_pairs(items))


def _prompt(name: str, question: str, settings: UnlearningSettings) -> Prompt:
    """Write the prompt of a question."""
    if settings.chat:
        return Prompt(id=name, messages=(Message(role="user", content=question),))
    return Prompt(id=name, text=settings.template.replace("{}", question))


def _pairs(items: pd.DataFrame) -> pd.DataFrame:
    """Pair each form of a fact with its plain question; what has one form alone has no partner."""
    keys = ["set", "fact_id"]
    is_plain = items["form"] == PLAIN
    plain = items[is_plain].set_index(keys)["target_id"]
    others = items[~is_plain]
    alone = items[is_plain & ~items.set_index(keys).index.isin(others.set_index(keys).index)]
    rows = pd.concat([others, alone], ignore_index=True)
    first = plain.reindex(pd.MultiIndex.from_frame(rows[keys])).to_numpy(dtype=object)
    return pd.DataFrame(
        {
            "pair_id": rows["target_id"],
            "fact_id": rows["fact_id"],
            "first_target": pd.Series(first, dtype=object).where(pd.notna(first), None),
            "second_target": rows["target_id"].where(rows["form"] != PLAIN, None),
            "set": rows["set"].map(lambda one: [one]),
            "form": rows["form"].map(lambda one: [one]),
            "subject_id": rows["subject_id"],
        }
    )
