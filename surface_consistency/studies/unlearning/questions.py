"""Facts and the forms in which they are asked: TOFU, edits in five layouts, anyone's table."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pandas as pd

from surface_consistency.errors import DataError, RecordError
from surface_consistency.rows.cells import RowCells, answers_of, identifier_of, text_of
from surface_consistency.rows.readers import Place

FORGET: Final = "forget"
"""The set of facts that should be forgotten, or of the old objects of edits."""

NEW: Final = "new object"
"""The set of the new objects of edits."""

NEIGHBOUR: Final = "neighbour"
"""The set of facts beside an edit, which should stay as they are."""

PLAIN: Final = "plain"
"""The form that was unlearned, or that the field's tests ask."""

A_PERSON: Final = 20
"""Questions about each of TOFU's authors, one below the other."""

TOFU_SIZES: Final = (40, 200, 300, 400, 3600, 3800, 3960, 4000)
"""Questions in TOFU's own sets about authors; of other lengths no persons are known."""

_FORMS: Final = {
    "Subject_Aliasing": "name",
    "Reasoning": "hop",
    "Compositionality_I": "hop",
    "Compositionality_II": "hop",
    "Logical_Generalization": "reverse",
}
_BESIDE: Final = ("Relation_Specificity", "Forgetfulness")
_OTHERS_FIRST: Final = 3
_NAME: Final = re.compile(r"[A-Z][\w’'-]+(?: (?:[A-Z][\w’'-]+|al|bin|da|de|van|von))+")


class EditQuestion(NamedTuple):
    """A question about an edit, with the answers that count in a set."""

    fact_id: str
    """The edit, for the first question of each set and form but neighbours; else a fact of its
    own."""

    subject_id: str
    """Whom or what the edit is about."""

    source: str
    """Field of the layout: "rewrite", "rephrase", or "portability/KEY" and "locality/KEY"."""

    place: int
    """Number within that field."""

    set: str
    """`FORGET` for the old object, `NEW` for the new one, or `NEIGHBOUR`."""

    form: str
    """How it is asked."""

    question: str
    """The question."""

    answers: tuple[str, ...]
    """Accepted answers."""


def edit_questions(record: Mapping[str, Any], number: int = 0) -> Iterator[EditQuestion]:
    """List the questions about an edit.

    Args:
        record: A record of CounterFact as of ROME or in EasyEdit's flat layout, of zsRE, KnowEdit
            or RippleEdits.
        number: Place of the record, its name where it has none.

    Yields:
        Questions with answers; those without any are left out. Those of the edited fact itself
        share its name across forms.

    Notes:
        ROME's neighbourhood prompts have the old object as their answer. RippleEdits asks for new
        objects and neighbours alone.
    """
    edit = {**record, **record.get("requested_rewrite", {})}
    old, new = (
        _first(edit, *names)
        for names in (("target_true", "ground_truth", "answers"), ("target_new", "alt"))
    )
    objects = {FORGET: old, NEW: new}
    prompt = _first(edit, "prompt", "src")
    if isinstance(prompt, str):
        prompt = prompt.replace("{}", str(edit.get("subject", "")))
    fields: list[tuple[str, str, object, Mapping[str, object]]] = [
        ("rewrite", PLAIN, prompt, objects),
        ("rephrase", "reworded", _first(edit, "rephrase_prompt", "rephrase"), objects),
        ("rephrase", "reworded", edit.get("paraphrase_prompts"), objects),
        ("locality/neighborhood", PLAIN, edit.get("neighborhood_prompts"), {NEIGHBOUR: old}),
    ]
    beside = _first(edit, "locality_ground_truth", "loc_ans")
    named = _first(edit, "locality_prompt", "loc")
    fields.append(("locality/neighborhood", PLAIN, named, {NEIGHBOUR: beside}))
    for kind, of_set in (("portability", NEW), ("locality", NEIGHBOUR)):
        for key, tests in (edit.get(kind) or {}).items():
            cells = tests if isinstance(tests, list) else [tests]
            texts = [text for one in cells for text in _listed(one["prompt"])]
            truths = [truth for one in cells for truth in _truths(one)]
            of_sets: dict[str, object] = {of_set: truths}
            if key == "Subject_Aliasing" and new in {
                name for one in truths for name in _names(one, 0)
            }:
                of_sets[FORGET] = old  # Another name of the subject asks for the old object too.
            fields.append((f"{kind}/{key}", _FORMS.get(key, key), texts, of_sets))
    for key in (*_FORMS, *_BESIDE):
        of_set = NEIGHBOUR if key in _BESIDE else NEW
        queries = [query for test in edit.get(key) or () for query in test.get("test_queries", ())]
        names = [[n for a in q["answers"] for n in (a["value"], *a["aliases"])] for q in queries]
        texts = [query["prompt"] for query in queries]
        fields.append((f"portability/{key}", _FORMS.get(key, key), texts, {of_set: names}))
    fact, seen = str(record.get("case_id", number)), {(NEIGHBOUR, form) for _, form, *_ in fields}
    for source, form, prompts, accepted in fields:
        for place, text in enumerate(_listed(prompts)):
            for of_set, objects_of_set in accepted.items():
                if known := _names(objects_of_set, place):
                    name = f"{fact} {source} {place}" if (of_set, form) in seen else fact
                    seen.add((of_set, form))
                    about = (name, str(edit.get("subject") or fact), source, place)
                    yield EditQuestion(*about, of_set, form, str(text), known)


def _first(record: Mapping[str, Any], *names: str) -> object:
    """Take the first field that is there; of an object of CounterFact its name."""
    value = next((record[name] for name in names if record.get(name) is not None), None)
    return value.get("str") if isinstance(value, Mapping) else value


def _listed(value: object) -> list[Any]:
    """Make a list of what may be one."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _truths(cell: Mapping[str, Any]) -> list[Any]:
    """List the accepted names of each prompt of a test."""
    prompts, truths = _listed(cell["prompt"]), _listed(cell["ground_truth"])
    return truths if len(truths) == len(prompts) else [truths] * len(prompts)


def _names(accepted: object, place: int) -> tuple[str, ...]:
    """List the accepted names of one prompt: a name, names, or such for each prompt."""
    if isinstance(accepted, list) and accepted and isinstance(accepted[0], list):
        accepted = accepted[place] if place < len(accepted) else accepted[0]
    flat = [name for one in _listed(accepted) for name in _listed(one)]
    return tuple(str(name) for name in flat if str(name).strip())


def edit_rows(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Ask about edits.

    Args:
        records: As `edit_questions` takes.

    Returns:
        One row a set, form and question; see `tofu_rows`.
    """
    rows = [
        (one.set, one.form, one.fact_id, one.subject_id, one.question, list(one.answers))
        for number, record in enumerate(records)
        for one in edit_questions(record, number)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


COLUMNS: Final = ["set", "form", "fact_id", "subject_id", "question", "answers"]
"""Columns of a table of facts and forms."""


def tofu_rows(
    records: Sequence[Mapping[str, Any]], answers: Mapping[int, str], of_set: str
) -> pd.DataFrame:
    """Ask TOFU's questions plainly, reworded, and under another name of the author.

    Args:
        records: Rows with question, and paraphrased_question where there is one; twenty an author
            where they are as many as a set of TOFU has.
        answers: Short answers by row; rows without one are left out.
        of_set: The set that they are.

    Returns:
        One row a set, form and question: the columns `COLUMNS`. The other name is the last part of
        the name that most of an author's questions hold; questions without it have no such form.
        Whether it names the author well enough is seen by what the original answers under it. Of
        other numbers of rows than TOFU's each is about a subject of its own, and has no other name.
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
    """Find the name that most questions about an author hold."""
    names = Counter(
        name.removesuffix("'s").removesuffix("’s")
        for record in records
        for name in set(_NAME.findall(str(record["question"])))
    )
    name, times = names.most_common(1)[0] if names else ("", 0)
    return name if 2 * times > len(records) else None


def table_rows(rows: Iterable[tuple[Place, Mapping[str, Any]]]) -> pd.DataFrame:
    """Read anyone's table of facts and forms.

    Args:
        rows: Rows and where they stand, with fact_id, form, question and answers (a list, or texts
            with ";" between), and where there are, set (forget by default) and subject_id (the fact
            by default).

    Returns:
        The columns `COLUMNS`.

    Raises:
        DataError: If a column is not there, or a fact has a form twice in a set.
        RecordError: If a row lacks a fact, form, question or answer.
    """
    fields, read = {name: name for name in COLUMNS}, []
    for place, row in rows:
        if missing := {"fact_id", "form", "question", "answers"}.difference(row):
            raise DataError(
                f"{place}: a table of facts and forms needs the columns "
                f"{', '.join(sorted(missing))} besides {', '.join(map(str, row))}"
            )
        cells = RowCells(fields, place, row)
        fact, form = (cells.needed(name, identifier_of) for name in ("fact_id", "form"))
        of_set = cells.read("set", identifier_of) or FORGET
        subject = cells.read("subject_id", identifier_of) or fact
        names = cells.read("answers", answers_of)
        if isinstance(row["answers"], str) and len(names) == 1:
            names = tuple(name.strip() for name in names[0].split(";") if name.strip())
        if not names:
            raise RecordError(f"{place}: no accepted answer of fact {fact!r}; fill in answers")
        read.append((of_set, form, fact, subject, cells.needed("question", text_of), [*names]))
    frame = pd.DataFrame(read, columns=COLUMNS)
    again = frame.duplicated(["set", "form", "fact_id"])
    if again.any():
        twice = frame[again].iloc[0]
        raise DataError(
            f"fact {twice['fact_id']!r} stands twice under the form {twice['form']!r} in the set "
            f"{twice['set']!r}; name the second question another form"
        )
    return frame


def with_long(rows: pd.DataFrame) -> pd.DataFrame:
    """Ask each plain question also as the last of several.

    Args:
        rows: Facts and forms.

    Returns:
        The same, and the form "long": three plain questions about other subjects stand before it.
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
