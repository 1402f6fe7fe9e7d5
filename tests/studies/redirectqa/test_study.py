"""The study RedirectQA with runners that have planned answers."""

import pytest

from surface_consistency.data.redirectqa import RedirectQA, load_redirectqa
from surface_consistency.engine.run import run_study, sample_prompts
from surface_consistency.errors import DataError, DataWarning, RunnerError, UnscoredWarning
from surface_consistency.models import FakeRunner
from surface_consistency.models.stored import StoredRunner
from surface_consistency.schemas import Prompt, read_jsonl
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.taxonomy import RELATIONS
from tests.made_data import rows_of
from tests.made_rows import data, rows  # noqa: F401 - fixtures


def run_redirectqa(data, runner, out, *, progress=False, **options):
    """Run the study."""
    return run_study(RedirectQAStudy(), data, runner, out, progress=progress, **options)


def test_defaults_are_the_original_template_and_one_shot_per_other_relation(data, tmp_path):
    """With two relations there is one demonstration, which the manifest records."""
    folder = run_redirectqa(data, FakeRunner(str), tmp_path / "run", model="m")

    manifest = folder.read_manifest()
    assert manifest.settings["shots"] == 1
    assert manifest.settings["template"] == "original"
    assert manifest.data.n_questions == 12
    prompts = list(read_jsonl(folder.prompts, Prompt))
    assert {p.text.count("Q: ") for p in prompts} == {2}


def test_limit_selects_all_names_of_a_fact_and_keeps_demonstrations(data, tmp_path):
    """The first fact has prompts for its three names, with demonstrations from all of the data."""
    full = run_redirectqa(data, FakeRunner(str), tmp_path / "full", model="m")
    settings = RedirectQASettings(limit=1)

    part = run_redirectqa(data, FakeRunner(str), tmp_path / "part", model="m", settings=settings)

    prompts = {p.id: p for p in read_jsonl(full.prompts, Prompt)}
    asked = list(read_jsonl(part.prompts, Prompt))
    assert len(asked) == 3
    assert all(prompts[p.id].text == p.text for p in asked)


def test_sample_prompts_is_a_fixed_choice_of_distinct_contents():
    """Equal contents are counted once; the order of the prompts does not matter."""
    prompts = [Prompt(id=f"p{number}", text=f"text {number % 50}") for number in range(100)]

    sample = sample_prompts(prompts, 20, seed=1)

    assert len({p.text for p in sample}) == 20
    assert {p.key for p in sample_prompts(prompts[::-1], 20, seed=1)} == {p.key for p in sample}
    assert {p.key for p in sample_prompts(prompts, 20, seed=2)} != {p.key for p in sample}
    assert len(sample_prompts(prompts, 1_000)) == 50


def test_truncate_uses_the_context_of_the_runner(data, tmp_path):
    """Prompts that do not fit lose their demonstration."""

    class Narrow(FakeRunner):
        def fits(self, prompt, params):
            return len(prompt.text) < 60

    runner = Narrow(lambda prompt: "x")
    settings = RedirectQASettings(truncate=True)

    with pytest.warns(DataWarning, match="12 of 12 prompts have fewer than 1 demonst"):
        folder = run_redirectqa(data, runner, tmp_path / "run", model="m", settings=settings)

    assert "truncate:True" in folder.read_manifest().signature
    assert all(len(p.text) < 60 for p in read_jsonl(folder.prompts, Prompt))


def test_invalid_runs_raise_errors(data, tmp_path):
    """A runner without `fits`; only canonical questions; a negative repeat."""
    settings = RedirectQASettings(truncate=True)
    canonical = data.rows[data.rows["is_canonical"]].reset_index(drop=True)
    lone = RedirectQA.from_rows(canonical, source="lone")

    with pytest.raises(RunnerError, match="'fake' does not define `fits`"):
        run_redirectqa(data, FakeRunner(str), tmp_path / "run", model="m", settings=settings)
    with pytest.raises(DataError, match="no canonical-redirect pairs in lone"):
        run_redirectqa(lone, FakeRunner(str), tmp_path / "run", model="m")
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        RedirectQASettings(repeat=-5)


def made_rows(n_relations, n_paraphrased):
    """A fact of each relation under two names; the first ones also as a paraphrase."""
    redirect = ["Redirects_from_long_names"]
    return [
        row
        for n, name in enumerate(list(RELATIONS)[:n_relations])
        for row in rows_of(n, f"Q{n}", f"Ann_{n}", 1, name, "Q0", ["gold"], {f"Al_{n}": redirect})
        if row["template"] == "original" or n < n_paraphrased
    ]


@pytest.mark.parametrize(
    ("n_relations", "n_paraphrased", "settings", "shots"),
    [
        # Paraphrases may exist for two relations of four.
        (4, 2, {"template": "original"}, 3),
        (4, 2, {"template": "paraphrase"}, 1),
        (4, 2, {"template": "both"}, 1),
        # 15 of 16 relations in release v1.0.0, 14 of 15 in v0.1.0, for any limit.
        (15, 0, {"limit": 2}, 14),
        (16, 0, {"limit": 2}, 15),
    ],
)
def test_default_shots_are_one_of_each_other_relation(n_relations, n_paraphrased, settings, shots):
    """The number depends on the template with the fewest relations."""
    data = load_redirectqa(made_rows(n_relations, n_paraphrased))
    chosen = RedirectQASettings(**settings)

    plan = RedirectQAStudy().plan(data, chosen, runner=FakeRunner(str))

    assert plan.settings.shots == shots


def test_run_warns_of_missing_and_foreign_predictions(data, tmp_path):
    """Stored predictions are compared with the prompts before the run."""
    asked = [q for q in data.questions if q.template == "original"]
    stored = {q.id: "x" for q in asked[1:]} | {"elsewhere": "x"}

    with pytest.warns(UnscoredWarning, match="1 .*elsewhere|elsewhere.* 1 "):
        run_redirectqa(data, StoredRunner(stored), tmp_path / "run", model="m")
