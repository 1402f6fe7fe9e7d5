"""A limited-memory model trained from scratch, audited over a store with planted decoys."""

from random import Random

import pytest

from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.log import read_generations
from surface_consistency.schemas import Triplet
from surface_consistency.studies.audit import (
    AuditData,
    AuditSettings,
    AuditStudy,
    LookupModel,
    find_conditions,
)
from surface_consistency.studies.audit.lookup.runner import LookupRunner
from surface_consistency.studies.audit.retrieval.retrievers import FuzzyRetriever
from surface_consistency.studies.audit.tables import audit_tables
from surface_consistency.studies.audit.toy_model import train_memory_toy_model
from tests.audit_databases import write_audit_databases

pytestmark = [pytest.mark.slow]

RELATIONS = ("Capital", "Currency", "Internet TLD")
LEAKED = (("Belora", "Currency"), ("Corvin", "Internet TLD"))
DECOYS = ("Ardia", "Dunmor", "Gondal")
SETTINGS = AuditSettings(retriever=("fuzzy",), threshold=(0.5,), repeat=0)
NAMES = ("Ardia", "Belora", "Corvin", "Dunmor", "Ester", "Falken", "Gondal", "Hesper", "Ivoria")


def entries():
    """Facts whose objects are all different, and one decoy for the capitals of three countries."""
    random = Random(3)
    syllables = ["ta", "lo", "mir", "ken", "su", "var", "pol", "ni", "gra", "do", "she", "wit"]
    words = random.sample([(a + b).title() for a in syllables for b in syllables], len(NAMES) * 2)
    facts = []
    for place, name in enumerate(NAMES):
        values = (words[place], words[-1 - place], f".{name[:3].lower()}")
        facts += [
            Triplet(name, relation, value)
            for relation, value in zip(RELATIONS, values, strict=True)
        ]
    decoys = [
        Triplet(f"{name} Land", "Capital", value)
        for name, relation, value in facts
        if name in DECOYS and relation == "Capital"
    ]
    return {"base": facts, "noise": [*facts, *decoys]}


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """The databases and a model that was trained on their prompts; decoys are not asked for."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("audit")
    write_audit_databases(folder / "databases", "lands", entries(), ["direct_questions"])
    conditions = find_conditions(folder / "databases")
    prompts = [prompt for one in conditions for prompt in one.prompts]
    model = train_memory_toy_model(prompts, folder / "toy_model", leaked=LEAKED, steps=220, seed=1)
    return AuditData(id="databases", conditions=conditions), model


@pytest.fixture(scope="module")
def runner(grid):
    """The model, loaded once."""
    return LookupModel(grid[1], device="cpu", batch_size=64)


FUZZY = FuzzyRetriever
STUDY = AuditStudy(find_retrievers=lambda name, cache_dir=None: FUZZY)


def audit(data, runner, out):
    options = {"model": "toy_model", "settings": SETTINGS, "progress": False}
    return run_study(STUDY, data, runner, out, **options)


def answers_of(folder):
    return [one for group in ("store", "off") for one in read_generations(folder.log(group))]


@pytest.fixture(scope="module")
def run(grid, runner, tmp_path_factory):
    """One audit, scored."""
    folder = audit(grid[0], runner, tmp_path_factory.mktemp("run"))
    frame = score_run(folder, study=STUDY)
    return folder, audit_tables(frame), frame


def test_full_is_high_and_nothing_but_the_leaks_survives_without_retrieval(run):
    _, tables, frame = run
    leaks = frame[frame["second_correct"].astype(bool)]

    assert tables["overall"]["full_accuracy"].iloc[0] > 0.9
    assert set(zip(leaks["subject"], leaks["relation"], strict=True)) == set(LEAKED)
    assert tables["overall"]["leakage"].iloc[0] == pytest.approx(4 / 57)


def test_planted_decoys_come_out_as_retrieval_of_the_same_object(run):
    _, _, frame = run
    first, second = (frame[f"{name}_correct"].astype(bool) for name in ("first", "second"))
    mediated = frame[first & ~second & (frame["relation"] == "Capital")]

    assert set(mediated["database"]) == {"lands/noise"}
    assert set(mediated["attribution"]) == {"same_object"}
    # The decoy answers for the fact, and when the decoy is what is deleted, the fact for it.
    assert set(zip(mediated["subject"], mediated["attributed_to"], strict=True)) == {
        (one, f"{other} | Capital | {row.gold_object}")
        for row in mediated.itertuples()
        for name in DECOYS
        for one, other in ((name, f"{name} Land"), (f"{name} Land", name))
        if row.subject == one
    }
    assert set(mediated["subject"]) == {*DECOYS, *(f"{name} Land" for name in DECOYS)}


def test_a_killed_run_gives_the_answers_of_a_whole_one(grid, run, tmp_path):
    """And asks nothing twice: there is one line a prompt."""
    data, model = grid

    class Dying(LookupRunner):
        """Is killed at its third batch."""

        left = 2

        def generate(self, prompts, params):
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1
            return super().generate(prompts, params)

    class Small(LookupModel):
        """Loads the runner of a kind."""

        kind = LookupRunner

        def with_store(self, source):
            return self.kind(model, store=source, device="cpu", batch_size=32)

    class DyingModel(Small):
        kind = Dying

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        audit(data, DyingModel(model), tmp_path)
    before = list(read_generations(RunFolder.open(tmp_path).log("store")))
    folder = audit(data, Small(model), tmp_path)

    lines = [
        line for group in ("store", "off") for line in folder.log(group).read_text().splitlines()
    ]
    whole = {a.prompt_key: a.text for a in answers_of(run[0])}
    assert 0 < len(before) < len(whole)
    assert len(lines) == len(whole)
    assert {a.prompt_key: a.text for a in answers_of(folder)} == whole
