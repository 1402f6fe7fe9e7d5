"""Examples of the linking probe."""

import re
from itertools import zip_longest

import numpy as np
import pytest

from surface_consistency.data.redirectqa import RedirectQA, load_redirectqa
from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.schemas import Entity, FactualTriple, QuestionRealization, SurfaceForm
from surface_consistency.studies.linking import data as linking_data
from surface_consistency.studies.linking.data import ngram_vectors, word_vectors
from surface_consistency.taxonomy import CATEGORIES


def linking_examples(data, **options):
    """The examples, one by one."""
    return list(linking_data.linking_examples(data, **options).itertuples(index=False))


def of_names(*names, categories=()):
    """Questions of subjects: each a canonical name and its redirects, which have one category."""
    made = []
    for number, ((canonical, *redirects), label) in enumerate(zip_longest(names, categories), 2):
        subject, place = Entity(id=f"Q{number}", name=canonical), Entity(id="Q1", name="Rome")
        fact = {"id": f"f{number}", "relation": "capital", "object": place, "answers": ("Rome",)}
        for name in (canonical, *redirects):
            labels = (label,) if label and name != canonical else ()
            shown = {"text": name, "is_canonical": name == canonical, "categories": labels}
            one = QuestionRealization(
                id=f"{number}/{name}",
                triple=FactualTriple(subject=subject, **fact),
                surface=SurfaceForm(types=tuple(CATEGORIES[key].type for key in labels), **shown),
                template="original",
                question=f"What is the capital of {name}?",
            )
            made.append(one)
    return RedirectQA.from_questions(made, source="toy")


def _shape(name):
    """Kinds of characters, each run once, by independent regular expressions."""
    for pattern, kind in (("[^\\W\\d_]", "a"), (r"\d", "0")):
        name = re.sub(pattern, lambda m, k=kind: "A" if k == "a" and m[0].isupper() else k, name)
    return re.sub(r"([Aa0])\1+", r"\1", name)


@pytest.fixture(scope="module")
def sample():
    return load_redirectqa("sample")


@pytest.fixture(scope="module")
def examples(sample):
    return linking_examples(sample, encode=ngram_vectors)


def test_every_pair_of_names_has_one_true_and_two_false_examples(sample, examples):
    pairs = set(zip(sample.pairs["subject_id"], sample.pairs["surface"], strict=True))
    main = [example for example in examples if example.is_main]
    positives = [example for example in main if example.kind == "positive"]
    assert {(item.subject_id, item.redirect) for item in positives} == pairs
    kinds = [sum(item.kind == kind for item in main) for kind in ("positive", "surface_negative")]
    assert kinds == [len(pairs)] * 2
    assert len({item.id for item in examples}) == len(examples)


def test_negatives_do_not_contain_two_known_names_of_one_entity(sample, examples):
    names = {}
    for item in sample.questions:
        subject = item.triple.subject
        for name in (item.surface.text, subject.name, *subject.aliases):
            names.setdefault(name.casefold(), set()).add(subject.id)
    for example in examples:
        if example.kind == "semantic_negative":
            assert example.subject_id not in names[example.canonical.casefold()]
        if example.kind == "surface_negative":
            changed = {example.redirect.casefold(), example.canonical.casefold()} - names.keys()
            assert len(changed) == 1


def test_surface_negatives_differ_in_one_character(examples):
    true = {item.source_id: item for item in examples if item.kind == "positive"}
    for item in examples:
        if item.kind != "surface_negative":
            continue
        of_pair = true[item.source_id]
        both = zip(
            item.redirect + item.canonical, of_pair.redirect + of_pair.canonical, strict=True
        )
        assert sum(one != other for one, other in both) == 1


def test_a_misspelling_with_one_more_character_replaced_is_disputable(examples):
    disputable = {item.types for item in examples if item.is_disputable}
    assert disputable == {("spelling_variants",), ("typical_errors",)}
    assert all(item.kind == "surface_negative" for item in examples if item.is_disputable)


def test_a_character_that_makes_another_known_name_is_drawn_again():
    # Every number of two digits except one is a known name.
    data = of_names(tuple(f"{number:02}" for number in range(100) if number != 77))
    negatives = [
        item
        for item in linking_examples(data, encode=ngram_vectors)
        if item.kind == "surface_negative"
    ]
    assert negatives
    assert all("77" in (item.redirect, item.canonical) for item in negatives)


def test_names_that_are_equal_after_composition_are_not_a_pair():
    data = of_names(("Caf\u00e9", "Cafe\u0301"))
    with pytest.raises(DataError, match="toy contains no pair of two different names"):
        linking_examples(data, encode=ngram_vectors)


def test_examples_do_not_depend_on_the_order_of_the_data(sample):
    turned = RedirectQA.from_questions(sample.questions[::-1], source="turned")
    forward = linking_examples(sample, encode=ngram_vectors, seed=3)
    backward = linking_examples(turned, encode=ngram_vectors, seed=3)
    plain = [
        {(item.source_id, item.kind, item.redirect, item.canonical) for item in made}
        for made in (forward, backward)
    ]
    assert plain[0] == plain[1]
    other = linking_examples(sample, encode=ngram_vectors, seed=4)
    assert {item.redirect for item in other} != {item.redirect for item in forward}


def test_limit_samples_pairs_of_names(sample, examples):
    some = linking_examples(sample, encode=ngram_vectors, limit=10)
    assert len({item.source_id for item in some}) == 10
    assert {item.id for item in some} <= {item.id for item in examples}


def test_neighbours_are_the_nearest_by_squared_distance():
    data = of_names(("North", "Nord"), ("South", "Sud"), ("Moon", "Luna"))
    place = {"North": (0, 0), "South": (1, 0), "Moon": (0, 9)}
    made = linking_examples(
        data, encode=lambda names: np.array([place[name] for name in names], dtype=np.float32)
    )
    nearest = {item.redirect: item.canonical for item in made if item.kind == "semantic_negative"}
    assert nearest == {"Nord": "South", "Sud": "North", "Luna": "North"}
    with pytest.raises(DataError, match=r"vectors of 3 names have shape \(2, 2\)"):
        linking_examples(data, encode=lambda names: np.zeros((2, 2), dtype=np.float32))


@pytest.mark.parametrize(
    ("content", "names", "message"),
    [
        (b"3 2\nnorth 1 0\nsea 0 1\nother 5 5\n", ["North Sea", "sea", "unknown"], None),
        (b"\xef\xbb\xbfnorth 1 0\nsea 0 1\n", ["North Sea", "sea", "unknown"], None),
        (b"2 2\nnorth 1 0\n", ["nothing"], "has no vector of any word"),
        (b"3 2\nnorth 1 0\nsea 0\n", ["north"], r"toy\.vec:3: 1 numbers, but the line before"),
        (b"2 2\nnorth 1 0\nse\xff 0 1\n", ["north"], r"toy\.vec:3: not UTF-8 at byte 2"),
        (b"north 1 x\n", ["north"], r"toy\.vec:1: not a word vector .*could not convert string"),
    ],
)
def test_word_vectors_are_read_from_text(tmp_path, content, names, message):
    file = tmp_path / "toy.vec"
    file.write_bytes(content)
    if message is None:
        assert word_vectors(file)(names).tolist() == [[0.5, 0.5], [0.0, 1.0], [0.0, 0.0]]
        with pytest.raises(SourceNotFoundError, match=r"file .*missing\.vec not found"):
            word_vectors(tmp_path / "missing.vec")
    else:
        with pytest.raises(DataError, match=message):
            word_vectors(file)(names)


def test_surface_negative_can_be_a_redirect_of_the_same_shape(sample):
    shaped = {"encode": ngram_vectors, "surface_negative": "other-entity-same-shape"}
    made = linking_examples(sample, **shaped)
    names = {}
    for item in sample.questions:
        names.setdefault(item.surface.text, set()).add(item.triple.subject.id)
    positives = {e.source_id: e for e in made if e.kind == "positive"}
    negatives = [e for e in made if e.kind == "surface_negative" and e.is_main]
    assert len(negatives) > 0.7 * len(positives)
    for negative in negatives:
        true = positives[negative.source_id]
        assert negative.canonical == true.canonical
        assert true.subject_id not in names[negative.redirect]
        assert _shape(negative.redirect) == _shape(true.redirect)
    # These negatives are not misspellings, so none is disputable.
    assert not any(e.is_disputable for e in made)
    assert linking_examples(sample, **shaped) == made


def test_names_of_the_same_category_and_length_are_preferred():
    initialism, other = "Redirects_from_initialisms", "Redirects_from_synonyms"
    data = of_names(
        *(("The New York Times", "NYT"), ("United Kingdom", "UK")),
        *(("British Broadcasting Corporation", "BBC"), ("Oslo", "OSL"), ("Peru", "R9")),
        categories=(initialism, initialism, initialism, other, initialism),
    )
    made = linking_examples(data, encode=ngram_vectors, surface_negative="other-entity-same-shape")
    found = {e.canonical: e.redirect for e in made if e.kind == "surface_negative"}
    assert found["The New York Times"] == "BBC"
    assert found["Oslo"] in ("NYT", "BBC")
    assert "Peru" not in found


@pytest.mark.parametrize("name", ["X", "7", "!", "—", "東京"])
def test_names_of_one_character_have_no_negatives_that_cannot_be_made(name):
    made = linking_examples(of_names(('Old "Town" {x}', name)), encode=ngram_vectors)
    kinds = {example.kind for example in made}
    assert "positive" in kinds
    assert "semantic_negative" not in kinds
    assert all(example.redirect != example.canonical for example in made)
    made = linking_examples(of_names(("A", "B")), encode=ngram_vectors)
    assert [example.kind for example in made] == ["positive"]
