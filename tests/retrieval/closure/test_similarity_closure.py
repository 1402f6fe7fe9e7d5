import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surface_consistency.errors import RetrievalError
from surface_consistency.retrieval.closure import Closure, alias_closures, similarity_closures
from surface_consistency.schemas import Triplet, TripletDatabase


def letters(texts):
    """Embed a text as its counts of letters."""
    return np.array([[text.count(letter) for letter in "abcdefgh "] for text in texts], float)


def indices(closures):
    """Entries of closures as lists."""
    return [closure.indices.tolist() for closure in closures]


def naive(database, closures, embed, radius):
    """Compare each entry of a closure with every entry."""
    vectors = embed([f"{s.lower()} {r.lower()}" for s, r, _ in database.triplets])
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return [
        sorted(
            {
                other
                for entry in closure.indices
                for other in range(len(units))
                if 1 - units[entry] @ units[other] <= radius + 1e-6
            }
        )
        for closure in closures
    ]


WORDS = st.text("abc", min_size=1, max_size=3)


@settings(max_examples=50)
@given(
    triplets=st.lists(st.builds(Triplet, WORDS, WORDS, WORDS), min_size=1, max_size=10),
    radius=st.sampled_from([0.0, 0.05, 0.2, 0.5, 2.0]),
    data=st.data(),
)
def test_similarity_agrees_with_a_naive_one(triplets, radius, data):
    database = TripletDatabase(
        entities=(), relationships=(), return_values=(), triplets=tuple(triplets)
    )
    entries = st.sets(st.integers(0, len(triplets) - 1), max_size=3)
    closures = [
        Closure(indices=np.array(sorted(chosen), dtype=np.int64), n_triplets=len(triplets))
        for chosen in data.draw(st.lists(entries, min_size=1, max_size=3))
    ]

    found = similarity_closures(database, closures, embed=letters, radius=radius)

    assert indices(found) == naive(database, closures, letters, radius)


def test_radius_catches_a_decoy_and_spares_other_objects(make, fact):
    database = make(
        ("abc", "cap", "x"), ("abc h", "cap", "x"), ("abc", "cap h", "y"), ("ddd", "ggg", "x")
    )
    closures = alias_closures(database, [fact("abc", "cap", "x")])
    options = {"embed": letters, "radius": 0.2}

    every = similarity_closures(database, closures, **options)
    spared = similarity_closures(database, closures, same_object="published", **options)

    assert indices(every) == [[0, 1, 2]]
    assert every[0].by_similarity.tolist() == [1, 2]
    assert indices(spared) == [[0, 1]]


def test_texts_are_encoded_once(published):
    database, facts = published["countries/noise"]
    asked = []

    def embed(texts):
        """Remember what is asked."""
        asked.extend(texts)
        return letters(texts) + 0.1

    similarity_closures(database, alias_closures(database, facts), embed=embed, radius=0.0)

    assert len(asked) == len(set(asked)) == 180


def test_radius_zero_takes_entries_of_one_text(make, fact):
    database = make(("New_York", "r", "x"), ("new york", "R", "y"), ("new jersey", "r", "x"))
    closures = alias_closures(database, [fact("New_York", "r", "x")])

    found = similarity_closures(database, closures, embed=letters, radius=0.0)

    assert indices(found) == [[0, 1]]


@pytest.mark.parametrize(
    ("embed", "message"),
    [
        (lambda texts: np.ones(len(texts)), r"one vector a text, shape \(2, d\); got \(2,\)"),
        (lambda texts: np.full((len(texts), 3), np.nan), "no usable vector for 2 texts"),
        (lambda texts: np.zeros((len(texts), 3)), "such as 'a r'; a vector must be finite"),
    ],
    ids=["shape", "nan", "zero"],
)
def test_useless_encoders_are_rejected(make, fact, embed, message):
    database = make(("a", "r", "x"), ("b", "r", "x"))
    closures = alias_closures(database, [fact("a", "r", "x")])

    with pytest.raises(RetrievalError, match=message):
        similarity_closures(database, closures, embed=embed, radius=0.1)


@pytest.mark.parametrize("radius", [-0.1, 2.1, float("nan")])
def test_impossible_radius_is_rejected(make, radius):
    with pytest.raises(ValueError, match=r"radius must be a cosine distance in \[0, 2\]"):
        similarity_closures(make(), [], embed=letters, radius=radius)


def test_closures_of_another_database_are_rejected(make):
    closure = Closure(indices=np.array([0]), n_triplets=5)

    with pytest.raises(ValueError, match="of this database of 1 triplets"):
        similarity_closures(make(("a", "b", "c")), [closure], embed=letters, radius=0.1)


def test_nothing_to_widen_is_left_alone(make, fact):
    database = make(("a", "r", "x"))
    empty = alias_closures(database, [fact("b", "r", "x")])

    assert similarity_closures(database, [], embed=letters, radius=0.1) == []
    assert indices(similarity_closures(database, empty, embed=letters, radius=0.1)) == [[]]
