import numpy as np
import pandas as pd
import pytest

from surface_consistency.errors import RunMismatchError
from surface_consistency.inference import FakeRunner
from surface_consistency.runs.log import read_generations
from surface_consistency.studies.audit import (
    AuditSettings,
    augmented_runners,
    retrievers_by_name,
    score_audit,
    sweep_audit,
)
from surface_consistency.studies.audit.ask import run_audit


def test_a_sweep_is_one_audit_a_retriever_and_threshold(cells, asking, tmp_path):
    """Without retrieval the model is asked once for all; a higher threshold lets less survive."""
    runners, found = [], []

    def make(source):
        runners.append(asking(source))
        return runners[-1]

    def find(name):
        found.append(name)
        return retrievers_by_name(name)

    result = sweep_audit(
        cells,
        make,
        tmp_path / "sweep",
        model="asking",
        retrievers=("fuzzy", "bm25"),
        thresholds=(0.3, 0.95),
        find_retrievers=find,
        n_resamples=200,
        progress=False,
    )

    assert found == ["fuzzy", "bm25"]
    assert [folder.path.name for folder in result.folders] == [
        "fuzzy-0.3",
        "fuzzy-0.95",
        "bm25-0.3",
        "bm25-0.95",
    ]
    n_off = [sum(name.endswith("/DEL-OFF") for name in runner.asked) for runner in runners]
    assert n_off == [28, 0, 0, 0]
    for folder in result.folders:
        assert len(list(read_generations(folder.generations))) == 52 + 52 + 28
    table = result.table.set_index(["retriever", "threshold", "variant"])
    assert set(result.table["variant"]) == {"all", "base", "noise"}
    low, high = (table.loc[("fuzzy", limit, "noise")] for limit in (0.3, 0.95))
    assert low["retrieval_mediated"] > high["retrieval_mediated"]
    written = pd.read_csv(tmp_path / "sweep" / "tables" / "sweep.csv")
    assert len(written) == len(result.table) == 12


@pytest.mark.parametrize("options", [{"retrievers": ()}, {"thresholds": (0.5, 0.5)}])
def test_a_sweep_rejects_nothing_and_the_same_twice(cells, asking, tmp_path, options):
    with pytest.raises(ValueError, match="must be given, each once"):
        sweep_audit(cells, asking, tmp_path, model="asking", **options)


@pytest.mark.parametrize(
    ("label", "off_mode", "differing"),
    [("other", "forbid", "another model"), ("asking", "null", "another off_mode")],
)
def test_answers_of_another_model_are_not_taken_over(audit, label, off_mode, differing):
    first = audit("first")
    settings = AuditSettings(retriever="fuzzy", threshold=0.5, off_mode=off_mode)

    with pytest.raises(RunMismatchError, match=differing):
        audit("second", model=label, settings=settings, without_retrieval=first)

    assert not (first.path.parent / "second").exists()


def test_any_runner_is_audited_with_facts_before_its_prompts(cells, fuzzy, tmp_path):
    """A reader that takes the object of the first fact before its prompt."""

    def read(prompt):
        if not prompt.text.startswith("Facts:\n"):
            return "unknown"
        return prompt.text.splitlines()[1].split(" | ")[-1]

    settings = AuditSettings(retriever="fuzzy", threshold=0.5)
    folder = run_audit(
        cells,
        augmented_runners(FakeRunner(read), n_facts=3),
        tmp_path / "reader",
        model="reader",
        settings=settings,
        retrievers=fuzzy,
        progress=False,
    )
    frame = score_audit(folder)

    assert frame["full_correct"].all()
    assert not frame["second_correct"].any()
    survived = frame[frame["first_correct"].astype(bool)]
    assert set(survived["database"]) == {"lands/noise"}
    assert set(survived["attribution"]) == {"same_object"}
    assert np.all(frame["n_lookups"] == 1)


def test_a_sweep_and_a_single_run_do_not_share_a_folder(audit, cells, asking, tmp_path):
    """Neither replaces the other's tables; what was there stays as it was."""
    single = audit("single")
    before = sorted(single.path.rglob("*"))
    options = {"model": "asking", "retrievers": ("fuzzy",), "progress": False}

    with pytest.raises(RunMismatchError, match="holds a single run"):
        sweep_audit(cells, asking, single.path, thresholds=(0.3, 0.9), **options)
    assert sorted(single.path.rglob("*")) == before

    sweep_audit(cells, asking, tmp_path / "sweep", thresholds=(0.3, 0.9), n_resamples=50, **options)
    with pytest.raises(RunMismatchError, match="holds a sweep"):
        audit("sweep")
    assert not (tmp_path / "sweep" / "manifest.json").exists()
