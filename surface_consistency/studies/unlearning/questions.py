"""Read facts and their forms: TOFU, edits in five layouts, or a table."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from surface_consistency.errors import DataError, RecordError
from surface_consistency.reading import first_names, shown
from surface_consistency.results.columns import ITEMS, USUAL
from surface_consistency.results.rows import readable
from surface_consistency.results.unlearning import FORGET, PLAIN, edit_questions
from surface_consistency.rows.cells import RowCells, answers_of, identifier_of, text_of
from surface_consistency.rows.readers import Place

A_PERSON: Final = 20
"""Number of consecutive questions about each of TOFU's authors."""

TOFU_SIZES: Final = (40, 200, 300, 400, 3600, 3800, 3960, 4000)
"""Sizes of TOFU's sets about authors; the authors of sets of other sizes are unknown."""

_OTHERS_FIRST: Final = 3
_NAME: Final = re.compile(r"[A-Z][\w’'-]+(?: (?:[A-Z][\w’'-]+|al|bin|da|de|van|von))+")


def edit_rows(placed: Iterable[tuple[Place, Mapping[str, Any]]]) -> pd.DataFrame:
    """Make questions about edits.

    Args:
        placed: Records as `edit_questions` accepts them, with their positions.

    Returns:
        One row per set, form and question; see `tofu_rows`.

    Raises:
        RecordError: If a record is not in the layout of edits.
    """
    rows = []
    for number, (place, record) in enumerate(placed):
        with readable(place, "edits (CounterFact, zsRE, KnowEdit or RippleEdits)"):
            rows += [
                (one.set, one.form, one.fact_id, one.subject_id, one.question, list(one.answers))
                for one in edit_questions(record, number)
            ]
    return pd.DataFrame(rows, columns=COLUMNS)


COLUMNS: Final = ["set", "form", "item", "subject_id", "question", "references"]
"""Columns of a table of facts and forms."""


def tofu_rows(
    records: Sequence[Mapping[str, Any]], answers: Mapping[int, str], of_set: str
) -> pd.DataFrame:
    """Return TOFU's questions in plain form, reworded, and with another form of the author's name.

    Args:
        records: Rows with question and, if available, paraphrased_question; twenty consecutive rows
            per author if the number of rows is one of `TOFU_SIZES`.
        answers: Short answers by row; rows without one are omitted.
        of_set: The set of the questions.

    Returns:
        One row per set, form and question: the columns `COLUMNS`. The other name is the last part
        of the name that most of an author's questions contain; questions without it do not have
        this form. The accuracy of the original under it shows whether it identifies the author. If
        the number of rows is not one of `TOFU_SIZES`, each row is a separate subject without this
        form.
    """
    rows = []
    is_tofu = len(records) in TOFU_SIZES
    for index, record in enumerate(records):
        if index not in answers:
            continue
        person = index // A_PERSON if is_tofu else index
        name = _name_in(records[person * A_PERSON : (person + 1) * A_PERSON]) if is_tofu else None
        question = str(record["question"])
        forms = {PLAIN: question, "reworded": record.get("paraphrased_question")}
        if name and name in question:
            forms["name"] = question.replace(name, name.split()[-1])
        rows += [
            (of_set, form, f"{of_set} {index}", f"{of_set} {person}", str(text), [answers[index]])
            for form, text in forms.items()
            if text
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _name_in(records: Sequence[Mapping[str, Any]]) -> str | None:
    """Find the name that most questions about an author contain."""
    names = Counter(
        name.removesuffix("'s").removesuffix("’s")
        for record in records
        for name in set(_NAME.findall(str(record["question"])))
    )
    name, times = names.most_common(1)[0] if names else ("", 0)
    return name if 2 * times > len(records) else None


def table_rows(rows: Iterable[tuple[Place, Mapping[str, Any]]]) -> pd.DataFrame:
    """Read a table of facts and forms.

    Args:
        rows: Rows and their positions, with item, form, question and references (a list, or texts
            with ";" between) by their usual names (`results.columns.USUAL`), and optionally set
            (forget by default) and subject_id (the fact by default).

    Returns:
        The columns `COLUMNS`.

    Raises:
        DataError: If a column is missing, or a fact has a form twice in a set.
        RecordError: If a row lacks a fact, form, question or answer.
    """
    usual = {**USUAL, "item": ITEMS}
    read = []
    for place, row in rows:
        fields = {name: name for name in COLUMNS}
        for field in ("item", "form", "question", "references"):
            fields[field] = next((name for name in usual[field] if name in row), "")
        if missing := [field for field, name in fields.items() if not name]:
            raise DataError(
                f"{place}: a table of facts and forms needs the columns "
                f"{', '.join(sorted(missing))}; its columns: {first_names(row)}"
            )
        cells = RowCells(fields, place, row)
        fact, form = (cells.needed(name, identifier_of) for name in ("item", "form"))
        of_set = cells.read("set", identifier_of) or FORGET
        subject = cells.read("subject_id", identifier_of) or fact
        names = cells.read("references", answers_of)
        if isinstance(row[fields["references"]], str) and len(names) == 1:
            names = tuple(name.strip() for name in names[0].split(";") if name.strip())
        if not names:
            raise RecordError(
                f"{place}: no accepted answer of fact {shown(fact)}; fill in references"
            )
        read.append((of_set, form, fact, subject, cells.needed("question", text_of), [*names]))
    frame = pd.DataFrame(read, columns=COLUMNS)
    again = frame.duplicated(["set", "form", "item"])
    if again.any():
        twice = frame[again].iloc[0]
        raise DataError(
            f"fact {shown(twice['item'])} occurs twice under the form {shown(twice['form'])} in "
            f"the set {shown(twice['set'])}; rename the form of the second question"
        )
    return frame


def with_long(rows: pd.DataFrame) -> pd.DataFrame:
    """Add each plain question also as the last of several.

    Args:
        rows: Facts and forms.

    Returns:
        The same, and the form "long": the question after three plain questions about other
        subjects.
    """
    plain = rows[rows["form"] == PLAIN]
    questions, subjects = plain["question"].tolist(), plain["subject_id"].tolist()
    texts = []
    for place, question in enumerate(questions):
        later = [*range(place + 1, len(questions)), *range(place)]
        others = [questions[k] for k in later if subjects[k] != subjects[place]][:_OTHERS_FIRST]
        listed = "\n".join(f"{n}. {text}" for n, text in enumerate([*others, question], start=1))
        texts.append(f"Of these questions answer the last one alone.\n{listed}")
    return pd.concat([rows, plain.assign(form="long", question=texts)], ignore_index=True)
