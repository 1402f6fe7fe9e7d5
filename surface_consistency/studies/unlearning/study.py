"""The study of one model for `analyse unlearning`, which compares runs of several models.

It is the study of forms, with facts that should be forgotten and facts that should be preserved.
"""

import warnings
from dataclasses import replace
from typing import Final

from surface_consistency.data import open_source
from surface_consistency.engine import Design
from surface_consistency.errors import ColumnNotFoundError, DataError, SurfaceConsistencyWarning
from surface_consistency.reading import first_names
from surface_consistency.results.rows import readable
from surface_consistency.results.unlearning import PLAIN
from surface_consistency.rows.cells import text_of
from surface_consistency.studies.forms.data import Forms, forms_of
from surface_consistency.studies.forms.layouts import Layout
from surface_consistency.studies.forms.study import FormOutcome, FormsStudy
from surface_consistency.studies.unlearning import questions
from surface_consistency.studies.unlearning.logs import matching_answers, read_answers
from surface_consistency.studies.unlearning.settings import RECORDS, UnlearningSource

_EDITS: Final = ({"requested_rewrite"}, {"target_new"}, {"alt", "src"}, {"edit"})


class UnlearningStudy(FormsStudy):
    """Test unlearned or edited facts with a plain question and with other forms."""

    name = "unlearning"
    design = Design(
        title="Forgetting in weights",
        question="the same fact in a plain question and in another form, of one model",
        conditions=("plain question", "other form"),
        clusters={"cluster": "subjects", "item": "facts"},
        groupings={"by_set": ("kind",), "by_form": ("second_condition",)},
        exploded_names={"second_condition": "form", "kind": "set"},
    )
    records = replace(RECORDS, outcome=FormOutcome)

    def load(self, source: UnlearningSource) -> Forms:  # type: ignore[override]
        """Read facts and forms by the columns of the rows; see `Study.load`.

        Raises:
            DataError: If the layout is unknown, or the short answers belong to other questions.
        """
        opened = open_source(source.source, revision=source.revision, split=source.split)
        if strange := set(source.column.values()) - set(opened.columns):
            raise ColumnNotFoundError(
                f"{source.source} has no column {first_names(sorted(strange))}; it has "
                f"{first_names(opened.columns)}"
            )
        columns = {*opened.columns, *source.column}
        placed = [
            (place, {**row, **{name: row.get(column) for name, column in source.column.items()}})
            for place, row in opened.rows
        ]
        records = [row for _, row in placed]
        if any(names <= columns for names in _EDITS):
            rows = questions.edit_rows(placed)
        elif "item" in columns:
            rows = questions.table_rows(placed)
        elif "question" in columns:
            for place, row in placed:
                with readable(place, "TOFU"):
                    text_of(row["question"])
            path = source.short_answers
            texts = [str(row.get("answer")) for row in records]
            given = matching_answers(texts, None if path is None else read_answers(path))
            if given is None:
                raise DataError(
                    f"the short answers do not belong to the questions of {source.source}: less "
                    "than 90 % are in its answers; pass the short answers of its questions by "
                    "`short_answers`"
                )
            if len(records) not in questions.TOFU_SIZES:
                warnings.warn(
                    f"{source.source} has {len(records)} questions, and no set of TOFU has this "
                    "number, so each question is treated as a separate subject; to set "
                    "subjects, pass a table with item, form, question, references and subject_id",
                    SurfaceConsistencyWarning,
                    stacklevel=2,
                )
            rows = questions.tofu_rows(records, given, source.set)
        else:
            raise DataError(
                f"{source.source} has the columns {first_names(opened.columns)}; pass rows of "
                "TOFU (question, paraphrased_question), edits (CounterFact, zsRE, KnowEdit, "
                "RippleEdits), or a table with item, form, question and references"
            )
        rows = rows if "long" in set(rows["form"]) else questions.with_long(rows)
        if rows.empty:
            raise DataError(f"{source.source} contains no facts; pass at least one")
        rows = rows.assign(
            item=rows["set"] + " / " + rows["item"],
            kind=rows["set"],
            cluster=rows["subject_id"],
            is_reference=rows["form"] == PLAIN,
        )
        layout = Layout(reference=PLAIN, frame="Question: {question}\nAnswer:")
        return forms_of(
            rows, name=opened.id, revision=opened.revision, layout=layout, needs_two=False
        )
