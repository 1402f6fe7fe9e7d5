"""Interchange between the two conditions of a run, from answers to tables and sentences."""

import shutil

import numpy as np
import pandas as pd
import pytest

from surface_consistency.engine.design import Report
from surface_consistency.errors import DataError
from surface_consistency.report import table_text
from surface_consistency.report.page import Heatmap, Prose
from surface_consistency.runs.loader import load_runs
from surface_consistency.schemas import PairedOutcome, Prompt
from surface_consistency.studies.mechanism.analysis import MechanismAnalysis
from surface_consistency.studies.mechanism.interchange import (
    ALL_COMPONENTS,
    InterchangedRun,
    interchange_rows,
)
from surface_consistency.studies.mechanism.settings import MechanismSettings
from tests.studies.mechanism.planted_run import (
    KNOWN,
    SILENT,
    SUBJECTS,
    FormsStudy,
    make_forms_run,
    right_answer,
    save_planted,
)

N = len(SUBJECTS)

pytestmark = pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    return save_planted(tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="module")
def forms_run(tmp_path_factory):
    return make_forms_run(tmp_path_factory.mktemp("forms") / "run").path


def interchange(runs, weights, **options):
    """Give the prose and pictures of the section, and the tables by name."""
    runs, models = (one if isinstance(one, tuple) else (one,) for one in (runs, weights))
    report = Report(
        runs=load_runs(runs, outcome=PairedOutcome), design=FormsStudy.design, cluster="fact_id"
    )
    analysis = MechanismAnalysis()
    settings = {"ablation": "interchange", "model": tuple(map(str, models)), "device": "cpu"}
    tables = analysis.tables(report, MechanismSettings(**settings | options))
    [section] = analysis.sections(report, tables)
    prose = "".join(
        part if isinstance(part, str) else str(round(part.value, 3))
        for block in section.blocks
        if isinstance(block, Prose)
        for part in block.parts
    )
    maps = [block for block in section.blocks if isinstance(block, Heatmap)]
    return prose, maps, tables


@pytest.fixture(scope="module")
def interchanged(forms_run, weights, tmp_path_factory):
    return interchange(forms_run, weights, store=tmp_path_factory.mktemp("store"))


def test_the_planted_head_alone_restores_and_breaks(interchanged):
    _, _, tables = interchanged
    frame = tables["mechanism_interchange"].frame

    assert frame[["direction", "component"]].to_numpy().tolist() == [
        ["restore", ALL_COMPONENTS],
        ["restore", "1.2"],
        ["break", ALL_COMPONENTS],
        ["break", "1.2"],
    ]
    assert (frame["n"] == N).all()
    assert (frame["by_condition"] == 1.0).all()
    assert frame.loc[frame["direction"] == "restore", "by_fact"].eq(0.0).all()
    # In the long form the head reads no subject, so another fact's value breaks as much.
    assert frame.loc[frame["direction"] == "break", "difference"].eq(0.0).all()
    assert frame["way"].to_numpy() == pytest.approx(1.0, abs=1e-3)


def test_a_difference_has_an_interval_and_a_test_that_agree(interchanged):
    _, _, tables = interchanged
    row = tables["mechanism_interchange"].frame.iloc[1]

    assert row["difference"] == 1.0
    assert 0.0 < row["difference_low"] < 1.0 == row["difference_high"]
    assert row["p_value"] < 0.05
    # One of ten components: eight heads and two MLPs.
    assert row["p_value"] < row["adjusted_p_value"] <= 10 * row["p_value"] + 1e-12


def test_flips_that_cannot_be_looked_into_are_listed_with_the_reason(interchanged):
    _, _, tables = interchanged
    flips = tables["mechanism_flips"].frame.set_index("pair_id")

    assert len(flips) == N + 2
    assert flips.loc[SILENT, "reason"] == "its words are not written again where they were right"
    assert flips.loc[KNOWN, "reason"] == "its words are written under both conditions"
    assert (flips["reason"] == "").sum() == N
    assert flips.loc["s3", ["right", "words"]].tolist() == ["first", "o3"]
    assert tables["mechanism_sample"].frame["drawn_aligned"].tolist() == [0]


def test_the_page_claims_what_is_shown_and_no_more(interchanged):
    prose, maps, _ = interchanged

    assert f"Of {N} flips of planted the values of all components" in prose
    assert "By itself, 1.2 restores 1.0 more than its value of another fact" in prose
    assert "No single component is shown to break more than its value of another fact" in prose
    assert "what it does under the other condition, where the same words are read" in prose
    [picture] = maps
    assert picture.columns == ["0", "1", "2", "3", "MLP"]
    (_, restored), (_, broken) = picture.panels
    assert restored == [("0", [0.0] * 5), ("1", [0.0, 0.0, 1.0, 0.0, 0.0])]
    assert not np.any([values for _, values in broken])


@pytest.mark.parametrize("positions", ["answer", "last"])
def test_the_head_works_at_the_last_position(forms_run, weights, tmp_path, positions):
    options = {"positions": positions, "per_class": 6}
    _, _, tables = interchange(forms_run, weights, store=tmp_path, **options)

    frame = tables["mechanism_interchange"].frame
    assert frame["component"].tolist() == [ALL_COMPONENTS, "1.2"] * 2
    assert (frame["by_condition"] == 1.0).all()


def test_whole_attention_is_a_component(forms_run, weights, tmp_path):
    options = {"unit": "attention", "per_class": 6}
    _, [picture], tables = interchange(forms_run, weights, store=tmp_path, **options)

    frame = tables["mechanism_interchange"].frame
    assert frame["component"].tolist() == [ALL_COMPONENTS, "1.attn"] * 2
    assert picture.columns == ["attention", "MLP"]


@pytest.fixture(scope="module")
def unlearned(weights, tmp_path_factory):
    """The planted model whose head no longer writes what it reads, and a run that it answered."""
    import torch
    from transformers import AutoModelForCausalLM

    home = tmp_path_factory.mktemp("unlearned")
    shutil.copytree(weights, home / "model")
    model = AutoModelForCausalLM.from_pretrained(weights)
    with torch.no_grad():
        model.transformer.h[1].attn.c_proj.weight.zero_()
    model.save_pretrained(home / "model")
    return home / "model", make_forms_run(home / "run", answer=lambda prompt: " ask").path


def test_between_two_models_the_changed_attention_restores(forms_run, weights, unlearned, tmp_path):
    """The value of the original, at the same question, in the run of the unlearned model."""
    other, run = unlearned
    options = {"unit": "attention", "between": "models", "store": tmp_path}

    prose, _, tables = interchange((run, forms_run), (other, weights), **options)

    frame = tables["mechanism_interchange"].frame.set_index(["direction", "component"])
    flips = tables["mechanism_flips"].frame
    assert frame.index.tolist() == [
        (direction, component)
        for direction in ("restore", "break")
        for component in (ALL_COMPONENTS, "1.attn")
    ]
    assert (frame["by_condition"] == 1.0).all()
    assert frame.loc["restore", "by_fact"].eq(0.0).all()
    assert frame["way"].to_numpy() == pytest.approx(1.0, abs=1e-3)
    assert (frame["n"] == N + 1).all()
    # The original is right in the short form alone, so that every flip is one of that question.
    assert flips["pair_id"].str.endswith("/short").all()
    assert set(flips["right"]) == {"second"}
    assert "what it does in the other model, where the same words are read" in prose
    again = interchange((run, forms_run), (other, weights), **options)[2]
    assert table_text(again["mechanism_flips"]) == table_text(tables["mechanism_flips"])


def test_questions_asked_otherwise_of_the_other_model_are_left_out(
    forms_run, weights, unlearned, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "tests.studies.mechanism.planted_run.Prompt",
        lambda id, text: Prompt(id=id, text=f"{text} ask" if id.startswith("s3/") else text),
    )
    run = make_forms_run(tmp_path / "run", answer=lambda prompt: " ask").path

    options = {"unit": "attention", "between": "models", "store": tmp_path / "store"}
    tables = interchange((run, forms_run), (unlearned[0], weights), **options)[2]

    row = tables["mechanism_sample"].frame.iloc[0]
    assert row["left_out"] == "asked otherwise of the other model: 1"


def test_heads_of_two_models_are_not_interchanged(forms_run, weights, unlearned):
    other, run = unlearned

    with pytest.raises(ValueError, match="`between=models` needs two runs or more, `ablation=int"):
        interchange((run, forms_run), (other, weights), between="models")
    with pytest.raises(ValueError, match="needs two runs or more"):
        interchange(forms_run, weights, between="models", unit="attention")


def test_a_stopped_interchange_measures_nothing_twice(forms_run, weights, tmp_path, monkeypatch):
    from surface_consistency.studies.mechanism import ablation

    _, _, tables = interchange(forms_run, weights, store=tmp_path, per_class=6)
    flips = tables["mechanism_flips"].frame
    rows = pd.read_parquet(tmp_path / "run" / "interchange" / "interchanges")
    monkeypatch.setattr(ablation, "ablate", None)
    _, _, again = interchange(forms_run, weights, store=tmp_path, per_class=6)

    # Both directions from the other condition, and from another fact where nothing speaks against.
    assert len(rows) == 2 * len(flips) + 2 * (flips["reason"] == "").sum()
    assert np.stack(rows["patched"].iloc[0]).shape == (1, 11)
    assert table_text(tables["mechanism_interchange"]) == table_text(again["mechanism_interchange"])


def test_without_another_fact_there_is_no_floor_and_no_number(forms_run, weights, tmp_path):
    prose, maps, tables = interchange(forms_run, weights, store=tmp_path, per_class=1)

    [reason] = tables["mechanism_flips"].frame["reason"]
    assert reason == "no other fact of the sample can be held against it"
    assert tables["mechanism_interchange"].frame.empty
    assert not maps
    assert "No flip of planted can be looked into; the table of flips says why." in prose


def test_few_facts_allow_no_claim(weights, tmp_path):
    run = make_forms_run(tmp_path / "run", facts=3).path

    prose, _, tables = interchange(run, weights, store=tmp_path / "store")

    assert (tables["mechanism_interchange"].frame["n"] == 3).all()
    assert tables["mechanism_interchange"].frame["difference_low"].isna().all()
    assert "The facts are too few to infer what single components do." in prose


def test_rows_are_those_of_a_plain_count():
    rng = np.random.default_rng(4)
    names = ["0.0", "0.mlp", ALL_COMPONENTS]
    frames = [
        pd.DataFrame(
            {
                "model": "a",
                "direction": direction,
                "component": names,
                "pair_id": f"p{pair}",
                "cluster": f"c{pair // 2}",
                "by_condition": rng.random(3) < 0.7,
                "by_fact": rng.random(3) < 0.2,
                "way": rng.normal(1, 0.3, 3),
                "whole": 2.0 + rng.random(),
            }
        )
        for pair in range(24)
        for direction in ("restore", "break")
    ]
    effects = pd.concat(frames, ignore_index=True)
    run = InterchangedRun(
        label="a",
        sample=None,
        spans={},
        flips=pd.DataFrame(),
        effects=effects,
        components=None,
        fingerprint={},
    )

    rows = interchange_rows([run])

    assert rows["component"].tolist() == names * 2
    assert (rows["n_clusters"] == 12).all()
    for row in rows.to_dict("records"):
        part = effects[
            (effects["direction"] == row["direction"]) & (effects["component"] == row["component"])
        ]
        own, other = part["by_condition"].mean(), part["by_fact"].mean()
        assert row["by_condition"] == pytest.approx(own)
        assert row["difference"] == pytest.approx(own - other)
        assert row["way"] == pytest.approx(part["way"].sum() / part["whole"].sum())
        assert row["way_low"] < row["way"] < row["way_high"]


def test_a_run_without_a_flip_is_refused(weights, tmp_path):
    run = make_forms_run(tmp_path / "run", answer=right_answer).path

    with pytest.raises(DataError, match="planted has no pair that is right once, so nothing can"):
        interchange(run, weights, store=tmp_path / "store")
