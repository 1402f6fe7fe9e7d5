import shutil
from pathlib import Path

import numpy as np
import pytest

from surface_consistency.errors import DataWarning
from surface_consistency.models import encoders
from surface_consistency.schemas import LookupQuery, Prompt
from surface_consistency.studies.audit import (
    AuditData,
    AuditSettings,
    find_conditions,
    plan as plan_module,
)
from surface_consistency.studies.audit.lookup.fact_store import LookupRequest
from surface_consistency.studies.audit.plan import AuditPlan, plan_audit
from surface_consistency.studies.audit.retrieval.retrievers import (
    EmbeddingRetriever,
    FuzzyRetriever,
)
from surface_consistency.studies.audit.stores import retrievers_by_name
from surface_consistency.text import token_key

SAMPLE = Path(plan_module.__file__).with_name("sample")


def planned(data, chosen):
    """Plan an audit whose lookups compare letters."""
    return plan_audit(data, chosen, FuzzyRetriever)


def prompts_of(plan):
    return {prompt.id: prompt for group in plan.groups.values() for prompt in group.prompts}


def test_every_fact_has_a_target_in_every_state(data, settings):
    plan = planned(data, settings())

    assert len(plan.pairs) == 12 * 2 + 14 * 2
    assert len(plan.items) == len(prompts_of(plan)) == 3 * len(plan.pairs)
    shared = {name: group.is_shared for name, group in plan.groups.items()}
    assert shared == {"store": False, "off": True}
    assert isinstance(plan.prepare, AuditPlan)
    # Answers end at the newline; the folder of the indices is not recorded.
    assert {group.params.stop for group in plan.groups.values()} == {("\n",)}
    assert planned(data, settings(index_cache="x")).settings == settings()


def test_plan_with_fewer_prompts_and_states_and_without_a_stop(data, settings):
    plan = planned(data, settings(limit=3, states=("FULL",), stop=False))

    assert plan.pairs.groupby(["database", "style"]).size().tolist() == [3] * 4
    assert plan.checks["fit"]["n_prompts"].tolist() == [3] * 4
    assert set(plan.groups) == {"store"}
    assert set(plan.items["state"]) == {"FULL"}
    assert plan.pairs["first_target"].isna().all()
    assert plan.groups["store"].params.stop == ()


def test_without_retrieval_equal_texts_are_one_prompt(data, settings):
    """They do not depend on a database; in the other states each fact has its own prompt."""
    prompts = prompts_of(planned(data, settings())).values()
    keys = {
        state: {prompt.key for prompt in prompts if prompt.id.endswith(f"/{state}")}
        for state in settings().states
    }

    counts = {state: len(found) for state, found in keys.items()}
    assert counts == {"FULL": 52, "DEL-ON": 52, "DEL-OFF": 28}


def test_store_uses_the_database_and_the_state_of_each_prompt(data, settings):
    plan = planned(data, settings())
    store, by_id = plan.prepare.store, prompts_of(plan)
    query = LookupQuery(entity="Arania", relation="Capital")
    asked = [
        by_id[f"lands/{topology}/cloze/0/{state}"]
        for topology in ("base", "noise")
        for state in ("FULL", "DEL-ON")
    ]

    found = store.look_up([LookupRequest(prompt, query) for prompt in asked])

    assert found[0].value == "Lumo"
    selected = [lookup.trace.selected_candidate for lookup in found]
    assert selected[0].supports_target_fact
    assert selected[1].object != "Lumo"
    # The decoy of the noise database is returned.
    assert (selected[3].subject, selected[3].object) == ("Arania State", "Lumo")
    assert not selected[3].supports_target_fact
    modes = {
        state: store.mode(by_id[f"lands/base/cloze/0/{state}"])
        for state in ("FULL", "DEL-ON", "DEL-OFF")
    }
    assert modes == {"FULL": "answer", "DEL-ON": "answer", "DEL-OFF": "forbid"}
    with pytest.raises(ValueError, match="is not part of this audit"):
        store.mode(Prompt(id="elsewhere", text="?"))


def test_fingerprint_of_the_store_depends_on_policies_and_deletions(data, settings):
    changes = ({"threshold": (0.9,)}, {"off_mode": "null"}, {"closure_scope": ("object",)})
    several = [settings(), *(settings(**change) for change in changes)]

    prints = [str(planned(data, one).prepare.store.fingerprint()) for one in several]

    assert len(set(prints)) == len(several)
    assert prints[0] == str(planned(data, settings()).prepare.store.fingerprint())


@pytest.mark.parametrize(
    ("domain", "topology", "n"), [("sports", "collision", 22), ("released", "released", 2)]
)
def test_facts_with_further_objects_agree_with_counting(data_files, settings, domain, topology, n):
    """The United States have ten star athletes, one gold each: a lookup may find any of them."""
    folder = data_files / "lmlm_audit" / "data"
    (condition,) = find_conditions(
        folder, domains=[domain], topologies=[topology], styles=["cloze"]
    )

    plan = planned(AuditData(id="x", conditions=[condition]), settings())

    (database,) = plan.prepare.databases.values()
    entries = [tuple(map(token_key, entry)) for entry in condition.database]
    expected = [
        {
            place
            for place, entry in enumerate(entries)
            if entry[0] in keys(fact.subject, fact.subject_aliases)
            and entry[1] in keys(fact.relation, fact.relation_aliases)
            and entry[2] not in keys(fact.gold_object, fact.object_aliases)
        }
        for fact in condition.prompts
    ]
    assert [set(found) for found in database.others] == expected
    assert len(database.left) == len(database.others)
    assert plan.checks["closure"]["n_other_objects"].tolist() == [n]
    assert plan.checks["closure_facts"]["other_objects"].ne("").sum() == n
    assert plan.pairs["n_surviving"].eq(0).all()
    groups = planned(AuditData(id="x", conditions=[condition]), settings(closure="groups"))
    assert groups.pairs["n_deleted"].ge(plan.pairs["n_deleted"]).all()


def keys(name, aliases):
    return {token_key(form) for form in (name, *aliases)}


def test_databases_of_equal_content_emit_a_warning(databases, settings):
    for name in ("prompts/twin", "twin.json"):
        source = databases / "lands" / name.replace("twin", "base")
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, databases / "lands" / name)

    with pytest.warns(DataWarning, match="lands/base, lands/twin contain the same entries"):
        planned(AuditData(id="x", conditions=find_conditions(databases)), settings())


def test_two_databases_of_one_name_are_rejected(conditions, settings, databases):
    file = databases / "lands" / "base.json"
    file.write_text(file.read_text().replace("Lumo", "Lumos"))
    with pytest.warns(DataWarning, match="1 of 12 prompts are about facts"):
        others = find_conditions(databases, topologies=["base"])

    with pytest.raises(ValueError, match="two different databases are named lands/base"):
        planned(AuditData(id="x", conditions=[*conditions, *others]), settings())
    with pytest.raises(ValueError, match="there are no conditions"):
        planned(AuditData(id="x", conditions=[]), settings())


class Letters:
    """An encoder by letter counts."""

    def fingerprint(self):
        return {"encoder": "letters"}

    def encode(self, texts):
        counts = np.array([[text.count(chr(97 + i)) for i in range(26)] for text in texts], float)
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


def test_radius_also_deletes_decoys(data, settings):
    """The first remedy of the paper's future work, and the encoder that it needs."""

    def letters(triplets):
        return EmbeddingRetriever(triplets, Letters())

    wide = settings(radius=0.2, radius_same_object=True)

    near, plain = plan_audit(data, wide, letters), plan_audit(data, settings(), letters)

    def deleted(plan, pair):
        return plan.pairs.set_index("pair").loc[pair, "n_deleted"]

    assert deleted(plain, "lands/noise/cloze/0") == 1
    assert deleted(near, "lands/noise/cloze/0") == 2
    assert deleted(near, "lands/base/cloze/0") == 1
    with pytest.raises(ValueError, match="does not have an encoder"):
        planned(data, settings(radius=0.2))


def test_canonical_databases_follow_the_pointers_of_a_lookup(data, settings):
    """The second remedy: a lookup by an alias finds the record of the name."""
    plan = planned(data, settings(threshold=(0.99,), canonical=True))
    prompt = prompts_of(plan)["lands/base/cloze/0/FULL"]
    query = LookupQuery(entity="Republic of Arania", relation="Capital")

    (lookup,) = plan.prepare.store.look_up([LookupRequest(prompt, query)])

    assert lookup.value == "Lumo"
    assert lookup.query == query


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"states": ()}, "states needs one or more distinct"),
        ({"states": ("FULL", "FULL")}, "states needs one or more distinct"),
        ({"states": ("FULL", "OFF")}, "'FULL', 'DEL-ON' or 'DEL-OFF'"),
        ({"off_mode": "answer"}, "'forbid', 'allow' or 'null'"),
        ({"closure": "all"}, "'aliases' or 'groups'"),
        ({"closure_key": "loose"}, "'published' or 'strict'"),
        ({"query": "both"}, "'fact' or 'prompt'"),
        ({"retriever": ()}, "retriever needs one or more distinct"),
        ({"threshold": (0.5, 0.5)}, "threshold needs one or more distinct"),
        ({"k": 0}, "greater than or equal to 1"),
        ({"n_facts": 0}, "greater than or equal to 1"),
        ({"limit": 0}, "greater than or equal to 1"),
        ({"limit": 2, "sample": 2}, "`limit` and `sample` both select prompts"),
        ({"radius": 3.0}, "less than or equal to 2"),
        ({"threshold": (float("nan"),)}, "threshold must be a number"),
    ],
)
def test_settings_reject_invalid_values(options, message):
    with pytest.raises(ValueError, match=message):
        AuditSettings(**options)


def test_retrievers_by_name_returns_each_kind(conditions):
    database = conditions[0].database

    for name in ("fuzzy", "hybrid", "minilm"):
        retriever = retrievers_by_name(name, encoder=Letters())(database)
        kind = "embedding" if name == "minilm" else name
        assert retriever.fingerprint()["retriever"] == kind
        assert name == "fuzzy" or retriever.encode(["a"]).shape == (1, 26)
    with pytest.raises(ValueError, match="retriever must be one of minilm, bm25"):
        retrievers_by_name("minilmm")


def test_without_the_bundled_copy_the_encoder_is_loaded_from_the_hub(monkeypatch):
    """Both are all-MiniLM-L6-v2, the encoder of the paper."""
    loaded = []
    monkeypatch.setattr(encoders, "SentenceEncoder", loaded.append)
    retrievers_by_name("minilm")
    monkeypatch.setattr(encoders, "_PACKAGE", "a_package_that_is_not_installed")
    retrievers_by_name("hybrid")

    assert loaded == ["bundled-minilm", "sentence-transformers/all-MiniLM-L6-v2"]


@pytest.mark.parametrize("folder", [None, "data/custom_databases/countries"])
def test_a_sample_has_the_same_base_facts_in_each_topology_and_style(folder, data_files, settings):
    """Another seed draws other facts, and a large sample all facts."""
    home = SAMPLE if folder is None else data_files / "lmlm_audit" / folder
    data = AuditData(id="all", conditions=find_conditions(home, styles=["cloze", "continuations"]))

    def drawn(**chosen):
        pairs = planned(data, settings(states=("FULL",), **chosen)).pairs
        of_files = pairs.groupby(["topology", "style"])["base_fact"].agg(frozenset)
        assert len(of_files) == 4 * 2
        return pairs, frozenset.intersection(*of_files), of_files

    every, *_ = drawn()
    pairs, shared, of_files = drawn(sample=9, seed=3)
    assert len(shared) == 9
    # Decoys and near misses of the published files are linked to no base fact.
    assert set(of_files["base"]) == set(of_files["alias"]) == {shared}
    assert (set(of_files) == {shared}) == (folder is None)
    names = set(pairs["base_fact"])
    assert len(names) <= 9 * 4
    assert set(pairs["pair"]) == set(every["pair"][every["base_fact"].isin(names)])
    assert drawn(sample=9, seed=4)[1] != shared
    assert set(drawn(sample=999)[0]["pair"]) == set(every["pair"])
