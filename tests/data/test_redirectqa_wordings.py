import pandas as pd
import pytest

from surface_consistency.data.redirectqa_wordings import (
    infer_relation,
    relation_name,
    resolve_templates,
)
from surface_consistency.errors import DataError
from surface_consistency.taxonomy import RELATIONS, TEMPLATES


def framed(*rows):
    """A frame of rows: relation, surface, question, template."""
    columns = ["relation", "surface", "question", "template"]
    return pd.DataFrame(rows, columns=columns, dtype=object)


def wordings(values, relation="author"):
    """Two rows, the first in PopQA's wording."""
    asked = RELATIONS[relation].question("X")
    return framed(
        (relation, "X", asked, values[0]),
        (relation, "X", "Can you tell me who wrote X?", values[1]),
    )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("surface", ["Cat Stevens", "{}", "What is", "'s"])
def test_infer_relation_recognises_every_template(relation, template, surface):
    """The relation of a question that follows a template of the taxonomy is found."""
    question = RELATIONS[relation].question(surface, template=template)

    assert infer_relation(question, surface) == relation


def test_infer_relation_returns_none_for_ambiguous_questions():
    """For a subject named "the capital of", two relations have the same question."""
    asked = {RELATIONS[name].question("the capital of") for name in ("capital", "capital_of")}

    assert len(asked) == 1
    assert infer_relation(asked.pop(), "the capital of") is None


@pytest.mark.parametrize("question", ["Who wrote it?", "", "what genre is X?", "What genre is X ?"])
def test_infer_relation_returns_none_for_other_wordings(question):
    """Questions that only resemble a template are not recognised."""
    assert infer_relation(question, "X") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("place of birth", "place_of_birth"),
        ("P19", "place_of_birth"),
        ("218", "place_of_birth"),
        (" employer ", "employer"),
    ],
)
def test_relation_name_keeps_unknown_relations(text, name):
    """A relation outside the taxonomy keeps its name."""
    assert relation_name(text) == name


@pytest.mark.parametrize(
    "values",
    [
        ("original", "paraphrase"),
        ("Original", "PARAPHRASE"),
        (None, None),
        ("0", "1"),
        ("2", "1"),
        ("template_1", "template_2"),
        ("popqa", "gpt-4o"),
        ("Who is the author of {}?", "Can you tell me who wrote {}?"),
        ("original", "paraphrased"),
    ],
)
def test_resolve_templates_recognises_the_wording_of_popqa(values):
    """Under any names, PopQA's wording is "original" and the other one "paraphrase"."""
    assert list(resolve_templates(wordings(values))) == ["original", "paraphrase"]


def test_resolve_templates_applies_a_value_to_all_rows():
    """A value is one template in all rows, also if the wording of a relation differs slightly."""
    rows = pd.concat(
        [wordings(("a", "b")), framed(("color", "X", "Which colour is X?", "a"))], ignore_index=True
    )

    assert list(resolve_templates(rows)) == ["original", "paraphrase", "original"]


def test_resolve_templates_of_unknown_relations_and_missing_questions():
    """A row without a template value and without a known wording is "original"."""
    # A value that is one of the two names is kept for any question.
    names = resolve_templates(wordings(("paraphrase", "original")))
    assert list(names) == ["paraphrase", "original"]
    rows = framed(
        ("employer", "X", "Who employs X?", None),
        ("author", "X", None, None),
        ("author", "X", None, "paraphrase"),
    )

    assert list(resolve_templates(rows)) == ["original", "original", "paraphrase"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        # Two templates of one relation under one name would make pairs of different wordings.
        (
            [("author", "X", "Whose work is X?", "1"), ("author", "X", "Who penned X?", "2")],
            r"templates '1', '2' of relation 'author' would all be 'pa",
        ),
        # A number does not determine a wording.
        ([("author", "X", None, "1")], r"template '1' of relation 'author' has no question.*write"),
    ],
)
def test_resolve_templates_rejects_ambiguous_templates(rows, message):
    with pytest.raises(DataError, match=message):
        resolve_templates(framed(*rows))
