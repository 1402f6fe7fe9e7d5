import shutil

import pytest

from surface_consistency.errors import ContaminationWarning, IncompleteClosureWarning
from surface_consistency.inference.fact_store import LookupRequest
from surface_consistency.retrieval import EmbeddingRetriever, FuzzyRetriever
from surface_consistency.schemas import LookupQuery, Prompt
from surface_consistency.studies.audit import (
    AuditSettings,
    Retrievers,
    build_memory,
    find_cells,
    retrievers_by_name,
)
from surface_consistency.text import token_key

SETTINGS = AuditSettings(retriever="fuzzy", threshold=0.5)


def test_every_target_is_asked_in_every_state(cells, fuzzy):
    memory = build_memory(cells, SETTINGS, fuzzy)

    assert len(memory.targets) == 12 * 2 + 14 * 2
    assert len(memory.prompts) == 3 * len(memory.targets)
    assert len({prompt.id for prompt in memory.prompts}) == len(memory.prompts)


def test_without_retrieval_equal_texts_are_one_question(cells, fuzzy):
    """Nothing of a database bears on them; in the other states each fact is asked by itself."""
    memory = build_memory(cells, SETTINGS, fuzzy)
    keys = {
        state: {prompt.key for prompt in memory.prompts if prompt.id.endswith(f"/{state}")}
        for state in SETTINGS.states
    }

    assert {state: len(found) for state, found in keys.items()} == {
        "FULL": 52,
        "DEL-ON": 52,
        "DEL-OFF": 28,
    }


def test_the_source_answers_each_prompt_from_its_own_database_and_state(cells, fuzzy):
    memory = build_memory(cells, SETTINGS, fuzzy)
    by_id = {prompt.id: prompt for prompt in memory.prompts}
    query = LookupQuery(entity="Arania", relation="Capital")
    asked = [
        by_id[f"lands/{variant}/cloze/0/{state}"]
        for variant in ("base", "noise")
        for state in ("FULL", "DEL-ON")
    ]

    found = memory.source.look_up([LookupRequest(prompt, query) for prompt in asked])

    assert found[0].value == "Lumo"
    selected = [lookup.trace.selected_candidate for lookup in found]
    assert selected[0].supports_target_fact
    assert selected[1].object != "Lumo"
    # The decoy of the noise database takes over.
    assert (selected[3].subject, selected[3].object) == ("Arania State", "Lumo")
    assert not selected[3].supports_target_fact
    modes = {
        state: memory.source.mode(by_id[f"lands/base/cloze/0/{state}"])
        for state in ("FULL", "DEL-ON", "DEL-OFF")
    }
    assert modes == {"FULL": "answer", "DEL-ON": "answer", "DEL-OFF": "forbid"}


def test_the_source_rejects_prompts_of_another_audit(cells, fuzzy):
    source = build_memory(cells, SETTINGS, fuzzy).source

    with pytest.raises(ValueError, match="is none of this audit"):
        source.mode(Prompt(id="elsewhere", text="?"))


def test_the_fingerprint_of_the_source_tells_policies_and_deletions_apart(cells, fuzzy):
    settings = [
        SETTINGS,
        AuditSettings(retriever="fuzzy", threshold=0.9),
        AuditSettings(retriever="fuzzy", threshold=0.5, off_mode="null"),
        AuditSettings(retriever="fuzzy", threshold=0.5, closure_scope=("object",)),
    ]

    told = [str(build_memory(cells, one, fuzzy).source.fingerprint()) for one in settings]

    assert len(set(told)) == len(settings)
    assert told[0] == str(build_memory(cells, SETTINGS, fuzzy).source.fingerprint())


def test_an_incomplete_closure_is_warned_of_and_kept_with_its_facts(shared_dir, fuzzy):
    """Twenty politicians facts delete one of two entries; the alias groups delete both."""
    folder = shared_dir / "data" / "lmlm_audit" / "data" / "custom_databases"
    cells = find_cells(folder, domains=["politicians"], variants=["alias"], styles=["cloze"])

    with pytest.warns(IncompleteClosureWarning, match="politicians/alias: closure INCOMPLETE: 20"):
        memory = build_memory(cells, SETTINGS, fuzzy)
    groups = build_memory(
        cells, AuditSettings(retriever="fuzzy", threshold=0.5, closure="groups"), fuzzy
    )

    assert sum(bool(target.surviving) for target in memory.targets) == 20
    assert not any(target.surviving for target in groups.targets)


@pytest.mark.parametrize(
    ("domain", "variant", "n"), [("sports", "collision", 22), ("released", "released", 2)]
)
def test_facts_with_further_objects_agree_with_counting(shared_dir, fuzzy, domain, variant, n):
    """The United States have ten star athletes, one gold each: a lookup may find any of them."""
    folder = shared_dir / "data" / "lmlm_audit" / "data"
    cells = find_cells(folder, domains=[domain], variants=[variant], styles=["cloze"])

    memory = build_memory(cells, SETTINGS, fuzzy)

    (others,) = memory.others.values()
    (report,) = memory.reports.values()
    entries = [tuple(map(token_key, entry)) for entry in cells[0].database.triplets]
    expected = [
        {
            place
            for place, entry in enumerate(entries)
            if entry[0] in keys(fact.subject, fact.subject_aliases)
            and entry[1] in keys(fact.relation, fact.relation_aliases)
            and entry[2] not in keys(fact.gold_object, fact.object_aliases)
        }
        for fact in cells[0].prompts
    ]
    assert [set(found) for found in others] == expected
    assert len(report.facts) == len(others)
    assert sum(map(bool, others)) == n


def keys(name, aliases):
    return {token_key(form) for form in (name, *aliases)}


def test_databases_of_equal_content_are_warned_of(databases, fuzzy):
    for name in ("prompts/twin", "twin.json"):
        source = databases / "lands" / name.replace("twin", "base")
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, databases / "lands" / name)

    with pytest.warns(ContaminationWarning, match="lands/base, lands/twin hold the same entries"):
        build_memory(find_cells(databases), SETTINGS, fuzzy)


def test_two_databases_of_one_name_are_rejected(cells, fuzzy, databases):
    file = databases / "lands" / "base.json"
    file.write_text(file.read_text().replace("Lumo", "Lumos"))
    with pytest.warns(ContaminationWarning, match="1 of 12 prompts ask for facts"):
        others = find_cells(databases, variants=["base"])

    with pytest.raises(ValueError, match="two different databases are named lands/base"):
        build_memory([*cells, *others], SETTINGS, fuzzy)


class Letters:
    """An encoder by letter counts."""

    def fingerprint(self):
        return {"encoder": "letters"}

    def encode(self, texts):
        import numpy as np

        counts = np.array([[text.count(chr(97 + i)) for i in range(26)] for text in texts], float)
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


def test_a_radius_deletes_the_decoys_too(cells):
    """The first remedy of the paper's future work, and the encoder that it needs."""
    letters = Retrievers(
        make=lambda database: EmbeddingRetriever(database.triplets, Letters()), encoder=Letters()
    )
    wide = AuditSettings(retriever="minilm", radius=0.2, radius_same_object=True)

    near = build_memory(cells, wide, letters)
    plain = build_memory(cells, AuditSettings(retriever="minilm"), letters)

    def deleted(memory, pair):
        return next(target.n_deleted for target in memory.targets if target.pair_id == pair)

    assert deleted(plain, "lands/noise/cloze/0") == 1
    assert deleted(near, "lands/noise/cloze/0") == 2
    assert deleted(near, "lands/base/cloze/0") == 1
    with pytest.raises(ValueError, match="radius needs a retriever with an encoder"):
        build_memory(
            cells,
            AuditSettings(retriever="fuzzy", radius=0.2),
            Retrievers(make=lambda database: FuzzyRetriever(database.triplets)),
        )


def test_canonical_databases_follow_the_pointers_of_a_lookup(cells, fuzzy):
    """The second remedy: a lookup by an alias finds the record of the name."""
    settings = AuditSettings(retriever="fuzzy", threshold=0.99, canonical=True)
    memory = build_memory(cells, settings, fuzzy)
    prompt = next(one for one in memory.prompts if one.id == "lands/base/cloze/0/FULL")
    query = LookupQuery(entity="Republic of Arania", relation="Capital")

    (lookup,) = memory.source.look_up([LookupRequest(prompt, query)])

    assert lookup.value == "Lumo"
    assert lookup.query == query


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"states": ()}, "states must be some of"),
        ({"states": ("FULL", "OFF")}, "states must be some of"),
        ({"off_mode": "answer"}, "off_mode must be one of forbid, allow, null"),
        ({"closure": "all"}, "closure must be one of"),
        ({"closure_key": "loose"}, "closure_key must be one of"),
        ({"query": "both"}, "query must be one of"),
        ({"k": 0}, "k must be at least 1"),
        ({"radius": 3.0}, "radius must be a cosine distance"),
        ({"threshold": float("nan")}, "threshold must be a number"),
    ],
)
def test_settings_reject_what_cannot_be_run(options, message):
    with pytest.raises(ValueError, match=message):
        AuditSettings(**options)


def test_retrievers_by_name_know_their_kinds(cells):
    database = cells[0].database
    kinds = {
        name: retrievers_by_name(name, encoder=Letters()).make(database).fingerprint()["retriever"]
        for name in ("fuzzy", "hybrid")
    }

    assert kinds == {"fuzzy": "fuzzy", "hybrid": "hybrid"}
    assert retrievers_by_name("minilm", encoder=Letters()).encoder is not None
    with pytest.raises(ValueError, match="retriever must be one of minilm, faiss"):
        retrievers_by_name("minilmm")
