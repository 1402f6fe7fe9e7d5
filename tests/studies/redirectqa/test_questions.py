import random

from hypothesis import given, strategies as st

from surface_consistency.schemas import SurfaceForm
from surface_consistency.studies.redirectqa.data import load_redirectqa
from surface_consistency.studies.redirectqa.question_table import QuestionTable, question_id

surfaces = st.builds(
    SurfaceForm,
    text=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1),
    is_canonical=st.just(False),
    redirect_title=st.none() | st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1),
)


@given(st.lists(surfaces, unique_by=lambda item: (item.text, item.redirect_title)))
def test_question_id_is_unique(items):
    """Different names of one fact have different ids."""
    assert len({question_id("1", "original", item) for item in items}) == len(items)


def test_question_id_tells_a_canonical_name_from_a_redirect_of_the_same_text():
    """A redirect whose title differs by its parenthesis alone is another question."""
    canonical = SurfaceForm(text="Cat Stevens", is_canonical=True)
    redirect = SurfaceForm(text="Cat Stevens", is_canonical=False)

    assert question_id("1", "original", canonical) != question_id("1", "original", redirect)


def test_question_id_ignores_what_is_not_asked(rows):
    """Categories, page views and order of rows do not rename a question."""
    before = {question.id for question in load_redirectqa(rows).questions}
    for row in rows:
        row["subject_pageviews"] = None
        if row["subject_redirect_wiki_title"]:
            row["subject_surface_category"] = ["Redirects_from_surnames"]

    assert {question.id for question in load_redirectqa(rows[::-1]).questions} == before


def test_pairs_of_records_agree_with_a_naive_loop(rows):
    """Each redirect question meets the canonical one of its fact and template."""
    questions = load_redirectqa(rows).questions
    naive = [
        (first.id, second.id)
        for second in questions
        for first in questions
        if first.surface.is_canonical
        and not second.surface.is_canonical
        and first.triple.id == second.triple.id
        and first.template == second.template
    ]

    canonical, redirect, unpaired = QuestionTable.from_records(questions).pair()

    paired = zip(canonical, redirect, strict=True)
    assert [(questions[first].id, questions[second].id) for first, second in paired] == naive
    assert len(naive) == 6
    assert not len(unpaired)


def test_digest_of_records_is_order_free_and_reads_every_word(rows):
    """The digest changes with question, answers and number of rows, and with nothing else."""
    questions = load_redirectqa(rows).questions
    source = QuestionTable.from_records(questions).describe(source="a", revision=None)
    shuffled = list(questions)
    random.Random(0).shuffle(shuffled)
    reworded = [questions[0].model_copy(update={"question": "Who?"}), *questions[1:]]
    triple = questions[0].triple.model_copy(update={"answers": ("Paris",)})
    answered = [questions[0].model_copy(update={"triple": triple}), *questions[1:]]

    assert QuestionTable.from_records(shuffled).describe(source="a", revision=None) == source
    assert source.n_questions == 10
    digests = {
        QuestionTable.from_records(changed).describe(source="a", revision=None).digest
        for changed in (questions, questions[1:], reworded, answered)
    }
    assert len(digests) == 4
