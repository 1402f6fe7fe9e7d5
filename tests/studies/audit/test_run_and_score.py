import json

import numpy as np
import pandas as pd
import pytest

from surface_consistency.errors import (
    ContaminationWarning,
    RunLogError,
    RunMismatchError,
    UnscoredWarning,
)
from surface_consistency.retrieval import FuzzyRetriever
from surface_consistency.runs.log import read_generations
from surface_consistency.studies.audit import (
    AuditFolder,
    AuditSettings,
    Retrievers,
    audit_tables,
    finish_audit,
    run_audit,
    score_audit,
)
from surface_consistency.studies.audit.published_rows import (
    CROSS_STATE_COLUMNS,
    PER_STATE_COLUMNS,
)

KNOWN = {("Corvia", "Capital"): "Tallow"}
SETTINGS = AuditSettings(retriever="fuzzy", threshold=0.5)


def test_leaks_and_decoys_come_out_as_what_they_are(audit):
    """The model knows one fact; the noise database has a decoy for each of two others."""
    frame = score_audit(audit(known=KNOWN))
    leaked = frame["second_correct"].astype(bool)
    survives = frame["first_correct"].astype(bool)

    assert frame["full_correct"].all()
    assert set(zip(frame[leaked]["subject"], frame[leaked]["relation"], strict=True)) == set(KNOWN)
    mediated = frame[survives & ~leaked]
    assert set(mediated["database"]) == {"lands/noise"}
    assert len(mediated) == 2 * 2
    assert set(mediated["attribution"]) == {"same_object"}
    assert set(mediated["attributed_to"]) == {
        "Arania State | Capital City | Lumo",
        "Beldova State | Capital City | Serrin",
    }


def test_published_files_agree_with_the_outcomes(audit):
    folder = audit(known=KNOWN)
    frame = score_audit(folder)
    per_state, cross = pd.read_csv(folder.per_state), pd.read_csv(folder.cross_state)

    assert tuple(per_state) == PER_STATE_COLUMNS
    assert tuple(cross) == CROSS_STATE_COLUMNS
    assert len(per_state) == 4 * 3
    assert len(cross) == 4
    noise = frame[(frame["database"] == "lands/noise") & (frame["style"] == "cloze")]
    row = cross[cross["prompt_file"] == "lands/prompts/noise/prompts_cloze.jsonl"].iloc[0]
    right = noise["first_correct"].astype(bool)
    leaked = noise["second_correct"].astype(bool)
    assert row["count"] == 3 * row["paired_count"] == 42
    assert row["parametric_leakage"] == pytest.approx(leaked.mean())
    assert row["retrieval_mediated_correctness"] == pytest.approx((right & ~leaked).mean())
    assert row["retrieval_artifact_rate"] == pytest.approx(right.mean())
    means = per_state[per_state["prompt_file"] == row["prompt_file"]].set_index("state")
    assert means.loc["DEL-ON", "exact_match"] == pytest.approx(right.mean())
    assert row["exact_match"] == pytest.approx(means["exact_match"].mean())


def test_published_columns_are_those_of_the_published_files(shared_dir):
    folder = shared_dir / "data" / "lmlm_audit" / "outputs" / "audit"

    assert tuple(pd.read_csv(folder / "per_state_metrics.csv")) == PER_STATE_COLUMNS
    assert tuple(pd.read_csv(folder / "cross_state_metrics.csv")) == CROSS_STATE_COLUMNS


def test_result_rows_have_the_published_fields(audit):
    folder = audit()
    score_audit(folder)
    lines = (folder.results / "lands" / "noise" / "cloze.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    row = next(row for row in rows if row["fact_id"] == 0 and row["state"] == "DEL-ON")

    assert len(rows) == 14 * 3
    assert not list(folder.results.rglob("*.part"))
    assert set(row) == {
        *("fact_id", "subject", "subject_aliases", "relation", "relation_aliases", "state"),
        *("prompt", "ground_truth", "object_aliases", "model_output", "retrieval_trace"),
    }
    trace = row["retrieval_trace"]
    assert set(trace) == {
        *("state", "retrieval_enabled", "lookup_query", "threshold", "all_candidates"),
        *("deleted_candidates", "retained_candidates", "selected_candidate", "selected_value"),
        "error",
    }
    assert trace["deleted_candidates"][0]["object"] == "Lumo"
    assert trace["selected_value"] == "Lumo"
    off = next(row for row in rows if row["fact_id"] == 0 and row["state"] == "DEL-OFF")
    assert not off["retrieval_trace"]["retrieval_enabled"]
    assert off["retrieval_trace"]["all_candidates"] == []


def test_a_killed_run_goes_on_and_asks_nothing_twice(cells, fuzzy, asking, tmp_path):
    """Killed after 70 prompts; the second start asks the rest, and the answers are those of one."""
    runners = []

    def start(dies_after, out):
        def make(source):
            runners.append(asking(source, KNOWN, dies_after))
            return runners[-1]

        return run_audit(
            cells,
            make,
            out,
            model="asking",
            settings=SETTINGS,
            retrievers=fuzzy,
            progress=False,
        )

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        start(70, tmp_path / "killed")
    killed = AuditFolder(tmp_path / "killed")
    n_logged = len(list(read_generations(killed.generations)))
    with pytest.warns(UnscoredWarning, match="answers of the audit are missing"):
        part = score_audit(killed)
    start(None, tmp_path / "killed")
    start(None, tmp_path / "whole")

    assert len(runners[0].asked) == n_logged == 70
    assert not set(runners[0].asked) & set(runners[1].asked)
    assert len(runners[0].asked) + len(runners[1].asked) == len(runners[2].asked) == 52 + 52 + 28
    assert part["first_correct"].isna().any()
    resumed, whole = score_audit(killed), score_audit(AuditFolder(tmp_path / "whole"))
    pd.testing.assert_frame_equal(resumed, whole)


def test_a_run_is_not_continued_with_another_policy(audit):
    audit()

    with pytest.raises(RunMismatchError, match="threshold"):
        audit(settings=AuditSettings(retriever="fuzzy", threshold=0.9))


def test_scoring_again_by_the_published_rules_asks_nothing(audit):
    folder = audit(known=KNOWN)
    ours = score_audit(folder)
    theirs = score_audit(folder, cleaner="published", equivalence="published")

    assert json.loads((folder.path / "scoring.json").read_text()) == {
        "cleaner": "published",
        "equivalence": "published",
    }
    assert list(ours["pair_id"]) == list(theirs["pair_id"])
    # The published cleaner takes the first value of a lookup, "unknown", whatever stands after it.
    assert theirs["first_correct"].sum() <= ours["first_correct"].sum()
    with pytest.raises(ValueError, match="cleaner must be one of audit, published"):
        score_audit(folder, cleaner="none")


def test_a_store_of_the_wrong_index_is_told_by_the_guards(audit, cells):
    """An index cached by file name and size: base is answered with the keys of other facts."""

    class WrongIndex:
        """Searches the keys of another database, and says that they are this one's."""

        def __init__(self, database):
            own, turned = database.triplets, database.triplets[5:] + database.triplets[:5]
            self.other, self.true = FuzzyRetriever(turned), FuzzyRetriever(own)

        def fingerprint(self):
            return self.true.fingerprint()

        def search(self, queries, *, k, deleted=None):
            return self.other.search(queries, k=k, deleted=deleted)

    wrong = Retrievers(
        make=lambda database: (
            WrongIndex(database)
            if len(database.triplets) == 12
            else FuzzyRetriever(database.triplets)
        )
    )
    folder = audit(retrievers=wrong)

    with pytest.warns(ContaminationWarning, match=r"lands/base \(asking\): 0\.0% are right"):
        score_audit(folder)

    checks = pd.read_csv(folder.checks / "contamination.csv").set_index("database")
    assert checks.loc["lands/base", "is_contaminated"]
    assert not checks.loc["lands/noise", "is_contaminated"]


def test_a_model_that_does_not_read_the_store_is_told_by_the_guards(cells, fuzzy, asking, tmp_path):
    """FULL equals DEL-ON where the model answers from itself alone."""
    known = {
        (prompt.subject, prompt.relation): prompt.gold_object
        for cell in cells
        for prompt in cell.prompts[::2]
    }

    class Deaf(asking):
        def _answer(self, prompt):
            fact = self.source.query(prompt)
            text = known.get((fact.entity, fact.relation), "no")
            return super()._answer(prompt).model_copy(update={"text": text})

    folder = run_audit(
        cells,
        Deaf,
        tmp_path / "deaf",
        model="deaf",
        settings=SETTINGS,
        retrievers=fuzzy,
        progress=False,
    )

    with pytest.warns(ContaminationWarning, match="near zero or the same"):
        frame = score_audit(folder)

    right = frame[frame["first_correct"].astype(bool)]
    assert (frame["full_correct"] == frame["first_correct"]).all()
    assert set(right["attribution"]) <= {"same_object", "same_subject", "unrelated", "echo"}


def test_abstentions_are_counted(audit):
    """At a threshold that only the fact itself reaches, every lookup after deletion abstains."""
    folder = audit(settings=AuditSettings(retriever="fuzzy", threshold=0.999))
    frame = score_audit(folder)
    lookups = pd.read_csv(folder.checks / "lookups.csv").set_index(["database", "state"])

    assert (frame["n_abstained"] == frame["n_lookups"]).all()
    assert lookups.loc[("lands/base", "DEL-ON"), "n_abstained"] == 24
    assert lookups.loc[("lands/base", "FULL"), "n_abstained"] == 0
    assert lookups.loc[("lands/base", "DEL-OFF"), "n_without_lookup"] == 24
    assert not frame["first_correct"].any()


def test_lookups_that_ask_for_nothing_are_counted(audit):
    """A runner hands no blank query to the store, so such a lookup has no trace."""
    folder = audit()
    lines = [json.loads(line) for line in folder.generations.read_text().splitlines()]
    asking = next(line for line in lines if line["lookups"])
    asking["lookups"] = [{"query": {"entity": "", "relation": ""}, "value": None, "trace": None}]
    folder.generations.write_text("".join(json.dumps(line) + "\n" for line in lines))

    score_audit(folder)

    lookups = pd.read_csv(folder.checks / "lookups.csv")
    assert lookups["n_blank"].sum() == 1


def test_the_published_policy_never_abstains(audit):
    settings = AuditSettings(retriever="fuzzy", threshold=0.999, fallback="top1_anyway")
    folder = audit(settings=settings)
    score_audit(folder)

    lookups = pd.read_csv(folder.checks / "lookups.csv").set_index(["database", "state"])
    assert lookups["n_abstained"].sum() == 0
    assert lookups.loc[("lands/base", "DEL-ON"), "n_fallback"] == 24


def test_a_run_without_answers_is_rejected(audit):
    folder = audit()
    folder.generations.write_text("")

    with pytest.raises(RunLogError, match="holds no answer"):
        score_audit(folder)


def test_two_states_are_enough_for_some_tables(audit):
    """Without FULL there is no baseline to check, and no rate that needs it."""
    folder = audit(settings=AuditSettings(retriever="fuzzy", states=("DEL-ON", "DEL-OFF")))
    tables = finish_audit(folder, n_resamples=200)

    assert "full_accuracy" not in tables["overall"]
    assert set(tables["states"]["state"]) == {"DEL-ON", "DEL-OFF"}


class TestTables:
    """The tables of a run, against counting by hand."""

    @pytest.fixture
    def run(self, audit):
        folder = audit(known=KNOWN)
        return folder, score_audit(folder)

    def test_rates_agree_with_counting(self, run):
        _, frame = run
        tables = audit_tables(frame, n_resamples=500)
        first, second = frame["first_correct"].astype(bool), frame["second_correct"].astype(bool)
        row = tables["overall"].iloc[0]

        assert row["n"] == len(frame)
        assert row["n_clusters"] == frame["fact_id"].nunique() == 12 + 14
        assert row["leakage"] == pytest.approx(second.mean())
        assert row["retrieval_mediated"] == pytest.approx((first & ~second).mean())
        assert row["interference"] == pytest.approx((~first & second).mean())
        assert row["del_on_accuracy"] == pytest.approx(first.mean())
        assert len(tables["by_cell"]) == 4
        assert list(tables["by_style"]["style"]) == ["direct_questions", "cloze"]

    def test_the_identity_holds_and_a_says_nothing_of_its_own(self, run):
        _, frame = run
        tables = audit_tables(frame, n_resamples=200)

        for name in ("overall", "by_variant", "by_domain", "by_style", "by_database", "by_cell"):
            assert tables[name]["identity_residual"].abs().max() < 1e-12
            assert tables[name]["artifacts_equal_del_on"].all()

    def test_attribution_adds_up_to_the_right_answers(self, run):
        _, frame = run
        tables = audit_tables(frame, n_resamples=500)

        for name in ("attribution", "attribution_by_variant", "attribution_by_style"):
            table = tables[name]
            assert table["count"].sum() == frame["first_correct"].sum()
            assert table["rate_low"].le(table["rate"]).all()
            assert table["rate_high"].ge(table["rate"]).all()
        # Nothing of a kind that never occurs is certain: Wilson's bound over 26 facts.
        none = tables["attribution"].query("attribution == 'echo'").iloc[0]
        assert none["rate_high"] == pytest.approx(1.96**2 / (26 + 1.96**2), abs=1e-3)

    def test_an_incomplete_closure_stands_in_every_table(self, run):
        _, frame = run
        frame = frame.assign(n_surviving=np.where(frame["database"] == "lands/noise", 1, 0))
        tables = audit_tables(frame, n_resamples=200)

        for name, table in tables.items():
            assert {"closure_is_complete", "n_incomplete", "closure_note"} <= set(table), name
        by_variant = tables["by_variant"].set_index("variant")
        assert by_variant.loc["base", "closure_is_complete"]
        assert by_variant.loc["noise", "closure_note"] == (
            "closure incomplete: 14 of 14 facts are still stated"
        )

    def test_states_are_means_of_the_frame(self, run):
        _, frame = run
        table = audit_tables(frame, n_resamples=200)["states_by_variant"]
        row = table.query("variant == 'noise' and state == 'DEL-ON'").iloc[0]
        noise = frame[frame["variant"] == "noise"]

        assert row["exact_match"] == pytest.approx(noise["first_correct"].astype(bool).mean())
        assert row["f1"] == pytest.approx(noise["first_f1"].mean())
        assert row["f1_low"] <= row["f1"] <= row["f1_high"]


def test_one_state_gives_its_means_and_no_pairs(audit):
    """What was not asked is missing, not wrong."""
    folder = audit(settings=AuditSettings(retriever="fuzzy", states=("FULL",)))
    tables = finish_audit(folder, n_resamples=200)

    assert set(tables["states"]["state"]) == {"FULL"}
    assert tables["overall"]["n"].iloc[0] == 0
    assert np.isnan(tables["overall"]["leakage"].iloc[0])
    assert tables["attribution"].empty
    assert pd.read_csv(folder.cross_state)["parametric_leakage"].isna().all()
