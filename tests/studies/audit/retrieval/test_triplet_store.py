"""Lookups and their traces: states, deletion, flags, abstention."""

import numpy as np
import pytest

from surface_consistency.errors import RunnerError
from surface_consistency.schemas import AuditPrompt, LookupQuery, RetrievalTrace, Triplet
from surface_consistency.studies.audit.retrieval import Triplets, TripletStore
from surface_consistency.studies.audit.retrieval.retriever import Hits
from surface_consistency.studies.audit.retrieval.retrievers import (
    EmbeddingRetriever,
    FuzzyRetriever,
)
from surface_consistency.studies.audit.retrieval.triplets import content_digest
from surface_consistency.text import folded, token_key

TARGET = AuditPrompt(
    **{"prompt_id": 0, "fact_id": 0, "prompt_text": "?"},
    **{"subject": "Republic of Chad", "subject_aliases": ("Chad",)},
    **{"relation": "capital city", "relation_aliases": ("capital",)},
    **{"gold_object": "N'Djamena", "object_aliases": ("Fort Lamy",)},
)


def store_of(database, k=3, **options):
    return TripletStore(database, FuzzyRetriever(database), k=k, **options)


@pytest.fixture
def store(database):
    return store_of(database)


def objects(candidates):
    return [candidate.object for candidate in candidates]


def test_states_determine_the_searched_entries(store, ask):
    """FULL searches all entries, DEL-ON the remaining ones, DEL-OFF none."""
    query = ask("Chad", "capital")
    full, on, off = store.look_up(
        [query] * 3,
        states=["FULL", "DEL-ON", "DEL-OFF"],
        deleted=[[1, 5]] * 3,
        targets=[TARGET] * 3,
    )

    assert objects(full.all_candidates)[:2] == ["N'Djamena", "Fort-Lamy"]
    assert full.retained_candidates == full.all_candidates
    assert full.deleted_candidates == ()
    # The published audit flags the deletion's entries in FULL too, where they are still there.
    marked = [one.object for one in full.retained_candidates if one.matches_deleted_fact]
    assert marked == ["N'Djamena", "Fort-Lamy"]
    assert full.selected_candidate.matches_deleted_fact
    assert full.selected_value == "N'Djamena"
    assert objects(on.all_candidates) == objects(full.all_candidates)
    assert objects(on.deleted_candidates) == ["N'Djamena", "Fort-Lamy"]
    assert len(on.retained_candidates) == 3
    assert not {"N'Djamena", "Fort-Lamy"} & {*objects(on.retained_candidates)}
    assert off == RetrievalTrace(
        state="DEL-OFF", retrieval_enabled=False, lookup_query=query, threshold=0.6
    )


def test_flags_compare_candidates_with_the_target(store, ask):
    """Names of equal key under any alias; an entry that states all three supports the fact."""
    (trace,) = store.look_up(
        [ask("Chad", "capital")], states=["DEL-ON"], deleted=[[5]], targets=[TARGET]
    )
    flags = {
        c.object: (
            *(c.matches_subject, c.matches_relation, c.matches_object),
            *(c.supports_target_fact, c.matches_deleted_fact),
        )
        for c in trace.all_candidates + trace.retained_candidates
    }

    assert flags["N'Djamena"] == (True, True, True, True, False)
    # "Fort-Lamy" is one token with its hyphen, "Fort Lamy" two.
    assert flags["Fort-Lamy"] == (True, True, False, False, True)
    assert flags["Paris"] == (False, True, False, False, False)
    keyed = TripletStore(store.triplets, FuzzyRetriever(store.triplets), key=lambda text: text)
    bare, other = keyed.look_up(
        [ask("chad", "Capital")] * 2, states=["FULL"] * 2, targets=[None, TARGET]
    )
    assert not any(candidate.matches_subject for candidate in bare.all_candidates)
    assert [c.matches_subject for c in other.all_candidates if c.object == "Fort-Lamy"] == [False]


def test_names_without_letters_are_equivalent_only_to_themselves(ask, table_encoder):
    triplets = [Triplet("!!!", "genre", "dance"), Triplet("???", "genre", "rock")]
    database = Triplets.of(triplets)
    target = TARGET.model_copy(update={"subject": "!!!", "subject_aliases": ()})
    store = TripletStore(database, EmbeddingRetriever(triplets, table_encoder()), threshold=None)

    (trace,) = store.look_up([ask("!!!", "genre")], states=["FULL"], targets=[target])

    assert token_key("!!!") == token_key("???") == ""
    matches = {c.subject: c.matches_subject for c in trace.all_candidates}
    assert matches == {"!!!": True, "???": False}


def test_abstention_and_fallback_are_distinguished(database, store, ask):
    query = ask("Xylophone", "zzz")
    anyway = store_of(database, threshold=0.6, fallback="top1_anyway")

    (silent,) = store.look_up([query], states=["FULL"])
    (forced,) = anyway.look_up([query], states=["FULL"])
    (empty,) = anyway.look_up([ask("Chad", "capital")], states=["DEL-ON"], deleted=[range(6)])

    assert (silent.selected_candidate, silent.selected_value) == (None, None)
    assert (silent.is_fallback, silent.error) == (False, None)
    assert silent.retained_candidates == forced.retained_candidates
    assert forced.selected_candidate == forced.retained_candidates[0]
    assert forced.is_fallback
    # A lookup without remaining entries is an abstention under any policy.
    assert (empty.retained_candidates, empty.selected_candidate) == ((), None)
    assert empty.deleted_candidates == empty.all_candidates != ()
    assert not empty.is_fallback


@pytest.mark.parametrize(("entity", "relation"), [("", ""), (" ", "\t"), ("_", " _ ")])
def test_blank_lookup_is_an_error_and_not_a_fallback(database, ask, entity, relation):
    anyway = store_of(database, threshold=None, fallback="top1_anyway")

    full, off = anyway.look_up([ask(entity, relation)] * 2, states=["FULL", "DEL-OFF"])

    assert full.error == "empty lookup: neither entity nor relation was given"
    assert full.retrieval_enabled
    assert full.all_candidates == ()
    assert full.selected_value is None
    assert off.error is None


def test_batch_agrees_with_one_by_one(store, ask):
    rng = np.random.default_rng(0)
    names, relations = ["Chad", "France", "日本", "", "Peru"], ["capital", "ISO code", "首都", ""]
    queries = [ask(rng.choice(names), rng.choice(relations)) for _ in range(60)]
    queries.append(ask("\ud83d", "capital"))
    states = rng.choice(["FULL", "DEL-ON", "DEL-OFF"], len(queries)).tolist()
    deleted = [rng.integers(0, 6, rng.integers(0, 4)) for _ in queries]
    targets = [TARGET if rng.random() < 0.5 else None for _ in queries]

    traces = store.look_up(queries, states=states, deleted=deleted, targets=targets)

    for query, state, gone, target, trace in zip(
        queries, states, deleted, targets, traces, strict=True
    ):
        alone = store.look_up([query], states=[state], deleted=[gone], targets=[target])
        assert alone == [trace]
    assert store.look_up([], states=[]) == []


@pytest.mark.parametrize(
    ("hits", "message"),
    [
        ([(3, np.nan), (0, 0.2)], r"NaN as score: 1 entries \(3 \('Chad', 'ISO code', 'TD'\)\)"),
        ([(0, 0.9), (1, 0.2)], r"deleted entries: 1 entries \(1 \('Chad', 'capital', "),
        ([(0, 0.9), (6, 0.2)], r"entries outside the store: 1 entries \(6\)"),
        ([(0, 0.2), (2, 0.9)], r"entries below others of lower score: 1 entries \(2 \('France'"),
    ],
    ids=["nan", "deleted", "outside", "unsorted"],
)
def test_store_rejects_invalid_hits(database, ask, hits, message):
    """A retriever that ignores the deletion would look like a model that remembers."""

    class Broken:
        def fingerprint(self):
            return {"content": content_digest(database)}

        def search(self, queries, *, k, deleted=None):
            rows = [hits if len(gone) else [(0, 1.0), (-1, -np.inf)] for gone in deleted]
            indices, scores = np.moveaxis(np.array(rows), 2, 0)
            return Hits(indices=indices.astype(np.int64), scores=scores.astype(np.float32))

    store = TripletStore(database, Broken(), k=2)

    assert store.look_up([ask("a", "b")], states=["FULL"])[0].selected_value == "Paris"
    with pytest.raises(RunnerError, match=message):
        store.look_up([ask("a", "b")], states=["DEL-ON"], deleted=[[1]])


def test_store_rejects_hits_of_other_queries_and_the_retriever_of_another_database(
    database, facts, ask
):
    class Broken(FuzzyRetriever):
        def search(self, queries, **options):
            return super().search([*queries, *queries], k=1)

    store = TripletStore(database, Broken(database))

    with pytest.raises(RunnerError, match=r"one row of hits per query, 1 rows; got .* \(2, 1\)"):
        store.look_up([ask("a", "b")], states=["FULL"])
    # Databases of equal name and size with different content.
    others = [entry._replace(object="?") for entry in facts]
    with pytest.raises(RunnerError, match=r"built over other triplets .* build it over"):
        TripletStore(database, FuzzyRetriever(others))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be at least 1; got 0"),
        ({"threshold": np.nan}, "threshold must be a num"),
        ({"states": ["FULL"] * 2}, "states must have one item per query; got 2 for 1 queries"),
        ({"states": ["FULL"], "targets": []}, "targets must have one item per query; got 0 for 1"),
        ({"states": ["OFF"]}, r"states must be FULL, DEL-ON or DEL-OFF; got \['OFF'\]"),
        ({"states": ["FULL"], "deleted": [[6]]}, "contains entry 6, but the store has 6 entries"),
        ({"states": ["DEL-ON"], "deleted": [[6]]}, "contains entry 6, but the store has 6 entries"),
        ({"states": ["DEL-OFF"], "deleted": [[6]]}, "contains entry 6, but the store has 6 e"),
        (
            {"states": ["DEL-ON"], "deleted": [np.zeros(6, bool)]},
            r"deleted\[0\] must be .* for a mask",
        ),
    ],
)
def test_invalid_policies_and_lookups_are_rejected(database, ask, options, message):
    policy = {"k": options.get("k", 3), "threshold": options.get("threshold", 0.6)}
    asked = {name: value for name, value in options.items() if name not in policy}

    with pytest.raises(ValueError, match=message):
        store_of(database, **policy).look_up([ask("Chad", "capital")], **asked)


def test_fingerprint_contains_the_policy(store):
    policy = {"k": 3, "threshold": 0.6, "fallback": "abstain", "key": "published"}
    assert store.fingerprint() == policy | {"retriever": store.fingerprint()["retriever"]}
    keyed = TripletStore(store.triplets, FuzzyRetriever(store.triplets), key=folded)
    assert keyed.fingerprint()["key"] == "surface_consistency.text.folded"
    other = store_of(store.triplets, threshold=None, fallback="top1_anyway")
    assert other.fingerprint() != store.fingerprint()


def test_published_facts_are_found_and_replaced_after_deletion(published):
    """In every database a fact answers its own lookup until deleted, then k others come."""
    for database, prompts in published.values():
        # Up to ten athletes are listed under the United States.
        k = 12
        store = TripletStore(database, FuzzyRetriever(database), k=k, key=folded)
        queries = [LookupQuery(entity=p.subject, relation=p.relation) for p in prompts]
        place = {entry: i for i, entry in enumerate(database)}
        gone = [[place[p.subject, p.relation, p.gold_object]] for p in prompts]

        for state in ("FULL", "DEL-ON"):
            traces = store.look_up(
                queries, states=[state] * len(prompts), deleted=gone, targets=prompts
            )
            for trace, prompt in zip(traces, prompts, strict=True):
                top = trace.all_candidates[0]
                assert (top.score, top.matches_subject, top.matches_relation) == (1.0, True, True)
                stated = [c for c in trace.retained_candidates if c.supports_target_fact]
                exact = [(c.subject, c.relation, c.object) for c in stated]
                fact = (prompt.subject, prompt.relation, prompt.gold_object)
                assert (fact in exact) == (state == "FULL")
                assert len(trace.retained_candidates) == k
