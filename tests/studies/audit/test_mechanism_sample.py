"""Pairs of an audit that the analysis of mechanism samples."""

import json

import pytest

from surface_consistency.errors import DataError
from surface_consistency.runs.loader import load_runs
from surface_consistency.studies.audit.records import AuditOutcome
from surface_consistency.studies.mechanism.sample import sample_pairs


def sampled(folder):
    [run] = load_runs([folder.path], outcome=AuditOutcome)
    return sample_pairs(run, per_class=4, seed=0, cluster="item")


def test_states_of_a_lookup_model_are_sampled_as_pairs(audit, score):
    folder = audit()
    score(folder)

    sample = sampled(folder)

    # The answer contains the inserted value, so that the model can process it again.
    assert sample.counts["n_misaligned"] == 4
    assert sample.counts["drawn_misaligned"] == len({pair.item for pair in sample.pairs}) == 2
    for pair in sample.pairs:
        assert pair.first.judged in pair.first.text
        assert pair.first.text.startswith("<|db_entity|>")
        assert pair.second.text == "unknown."
        assert pair.first.prompt.text == pair.second.prompt.text


def test_answers_with_facts_before_the_prompt_are_rejected(audit, score):
    folder = audit()
    manifest = json.loads(folder.manifest.read_text())
    manifest["runner"]["runner"] = "retrieval_augmented"
    folder.manifest.write_text(json.dumps(manifest))
    score(folder)

    with pytest.raises(DataError, match="written with facts before the prompt: 4"):
        sampled(folder)
