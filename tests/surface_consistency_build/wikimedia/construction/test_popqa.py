from dataclasses import replace

import pytest
from surface_consistency_build.wikimedia.construction.popqa import augment_popqa

from surface_consistency.errors import DataError
from surface_consistency.schemas import Entity, FactualTriple
from surface_consistency.taxonomy import CANONICAL_LABEL


def fact(number, item, name, relation="country"):
    return FactualTriple(
        id=str(number),
        subject=Entity(id=item, name=name, aliases=("alias",), pageviews=3),
        relation=relation,
        object=Entity(id="Q1", name="Somewhere"),
        answers=("Somewhere", "Elsewhere"),
    )


@pytest.fixture(scope="module")
def facts(built):
    """A fact about each subject of the build, in reverse order of their numbers."""
    subjects = {
        row.subject_id: row.subject_surface
        for row in built.rows()
        if row.subject_redirect_wiki_title is None
    }
    return [
        fact(1_000 - place, item, name)
        for place, (item, name) in enumerate(sorted(subjects.items()))
    ]


def redirects(result):
    return {
        (row.subject_id, row.subject_surface, row.subject_surface_category)
        for row in result.rows()
        if row.subject_redirect_wiki_title
    }


def test_augmented_facts_get_redirects_and_keep_names_and_answers(facts, built, dumps):
    states = []
    work = built.path.parents[1]

    result = augment_popqa(facts, dumps, work, config="enwiki", threads=1, progress=states.append)

    assert {state.path for state in states} == {None}
    assert redirects(result) == redirects(built)
    assert result.n_triples == len(facts)
    rows = list(result.rows())
    assert [row.triplet_id for row in rows] == sorted(row.triplet_id for row in rows)
    known = {int(item.id): item for item in facts}
    for row in rows:
        given = known[row.triplet_id]
        assert (row.object_aliases, row.subject_pageviews) == (given.answers, 3)
        if row.subject_surface_category == (CANONICAL_LABEL,):
            assert row.subject_surface == given.subject.name


def test_subjects_without_item_are_found_by_title(facts, dumps, tmp_path):
    """A title starts with an upper-case letter; without dumps of page views, they are unknown."""
    named = next(item for item in facts if item.subject.name == "Brisk Harbor")
    nameless = named.model_copy(update={"subject": Entity(id=None, name="brisk Harbor")})
    missing = fact(5, "Q1234567", "Nobody")

    unseen = replace(dumps, pageviews=())
    result = augment_popqa([nameless, missing], unseen, tmp_path, config="enwiki")

    rows = list(result.rows())
    surfaces = {row.subject_surface for row in rows}
    assert surfaces == {"brisk Harbor", "Brisk Harbour", "Brisk harbor"}
    assert {row.subject_wiki_title for row in rows} == {"Brisk Harbor"}
    assert {row.redirect_pageviews for row in rows} == {None}
    lost = {count.reason: count.removed for count in result.attrition if count.step == "facts"}
    assert lost == {"the subject has no article": 1}


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([fact(1, "Q1", "A"), fact(1, "Q2", "B")], "'1' is given twice"),
        ([fact(1, "Q1", "A", relation="spouse")], "relation 'spouse' is not one of enwiki's"),
        ([fact(1, "Q1", "Nobody")], "step 'facts' kept none: the subject has no article"),
    ],
)
def test_augment_popqa_rejects_invalid_facts(items, message, dumps, tmp_path):
    with pytest.raises(DataError, match=message):
        augment_popqa(items, dumps, tmp_path, config="enwiki")
