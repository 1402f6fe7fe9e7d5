"""The study with runners that answer by plan."""

import pandas as pd
import pytest

from surface_consistency import FakeRunner
from surface_consistency.data.redirectqa import RedirectQA, load_redirectqa
from surface_consistency.engine.run import run_study, sample_prompts
from surface_consistency.engine.score import score_run
from surface_consistency.errors import DataError, DataWarning, RunnerError, UnscoredWarning
from surface_consistency.models.runner import Runner
from surface_consistency.models.stored import StoredRunner
from surface_consistency.schemas import Generation, Prompt, read_jsonl
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.taxonomy import RELATIONS, TEMPLATES
from tests.made_rows import data, rows  # noqa: F401 - fixtures

LONG = "Redirects_from_long_names"


def run_redirectqa(data, runner, out, *, progress=False, **options):
    """Run the study."""
    return run_study(RedirectQAStudy(), data, runner, out, progress=progress, **options)


def subject_of(prompt: Prompt) -> str:
    """The last question of a prompt."""
    return prompt.text.rpartition("Q: ")[2]


def knowing(data, wrong=()):
    """A handler that knows every fact, but not under the names in `wrong`."""
    answers = {q.question: q.triple.answers[0] for q in data.questions}

    def handler(prompt: Prompt) -> str:
        question = subject_of(prompt).removesuffix(" A:")
        return "dunno" if any(name in question for name in wrong) else f" {answers[question]}"

    return handler


def answering(data, wrong=()):
    """A runner with such a handler."""
    return FakeRunner(knowing(data, wrong))


class Rebatched(Runner):
    """A runner whose answers depend on its batches: every one changes when it is rebatched."""

    name = "rebatched"

    def __init__(self, inner, layout=0):
        self.inner, self.layout = inner, layout

    def fingerprint(self):
        return {"runner": self.name, "layout": self.layout}

    def rebatched(self, seed):
        return Rebatched(self.inner, seed)

    def generate(self, prompts, params):
        for item in self.inner.generate(prompts, params):
            yield item if not self.layout else Generation(prompt_id=item.prompt_id, text="dunno")


def test_run_finds_the_planted_weakness(data, tmp_path):
    """A model that misses married names flips on them alone, in every template."""
    settings = RedirectQASettings(template="both")
    runner = answering(data, wrong=["Smith"])

    folder = run_redirectqa(data, runner, tmp_path / "run", model="m", settings=settings)
    frame = score_run(folder)

    assert frame["first_correct"].all()
    assert list(frame["second_correct"]) == list(~frame["second_surface"].str.endswith("Smith"))
    assert set(frame["template"]) == {"original", "paraphrase"}
    floor = pd.read_csv(folder.checks / "noise_floor.csv")
    assert list(floor["n_repeated"]) == [12, 12]
    assert list(floor["n_verdict_flips"]) == [0, 0]


def test_defaults_ask_the_original_template_with_a_shot_for_each_other_relation(data, tmp_path):
    """Two relations leave one demonstration; the manifest says so."""
    folder = run_redirectqa(data, answering(data), tmp_path / "run", model="m")

    manifest = folder.read_manifest()
    assert manifest.settings["shots"] == 1
    assert manifest.settings["template"] == "original"
    assert manifest.data.n_questions == 12
    prompts = list(read_jsonl(folder.prompts, Prompt))
    assert {p.text.count("Q: ") for p in prompts} == {2}


def test_limit_keeps_facts_whole_and_demonstrations_as_they_were(data, tmp_path):
    """The first fact is asked under its three names, with demonstrations from all of the data."""
    full = run_redirectqa(data, answering(data), tmp_path / "full", model="m")
    settings = RedirectQASettings(limit=1)

    part = run_redirectqa(data, answering(data), tmp_path / "part", model="m", settings=settings)

    prompts = {p.id: p for p in read_jsonl(full.prompts, Prompt)}
    asked = list(read_jsonl(part.prompts, Prompt))
    assert len(asked) == 3
    assert all(prompts[p.id].text == p.text for p in asked)


def test_noise_floor_counts_the_questions_that_were_repeated(data, tmp_path):
    """A sample smaller than the run: what was asked once is neither a flip nor a repetition."""
    runner = Rebatched(answering(data))
    settings = RedirectQASettings(template="both", repeat=7, seed=1)
    folder = run_redirectqa(data, runner, tmp_path, model="m", settings=settings, progress=False)
    sample = sample_prompts(list(read_jsonl(folder.prompts, Prompt)), 7, seed=1)
    templates = {question.id: question.template for question in data.questions}

    score_run(folder)

    floor = pd.read_csv(folder.checks / "noise_floor.csv").set_index("template")
    repeated = pd.Series([templates[prompt.id] for prompt in sample]).value_counts()
    assert len(data.questions) == 24
    assert floor["n_repeated"].to_dict() == repeated.to_dict()
    assert (floor["n_verdict_flips"] == floor["n_repeated"]).all()
    assert (floor["n_text_changes"] == floor["n_repeated"]).all()
    assert floor["flip_rate"].eq(1.0).all()


def test_sample_prompts_is_a_fixed_choice_of_distinct_contents():
    """Equal contents count once; the order of the prompts does not matter."""
    prompts = [Prompt(id=f"p{number}", text=f"text {number % 50}") for number in range(100)]

    sample = sample_prompts(prompts, 20, seed=1)

    assert len({p.text for p in sample}) == 20
    assert {p.key for p in sample_prompts(prompts[::-1], 20, seed=1)} == {p.key for p in sample}
    assert {p.key for p in sample_prompts(prompts, 20, seed=2)} != {p.key for p in sample}
    assert len(sample_prompts(prompts, 1_000)) == 50


def test_truncate_asks_the_runner_what_fits(data, tmp_path):
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


def test_runs_that_cannot_be_asked_are_refused(data, tmp_path):
    """A runner that cannot tell what fits; canonical questions alone; a negative repeat."""
    settings = RedirectQASettings(truncate=True)
    canonical = data.rows[data.rows["is_canonical"]].reset_index(drop=True)
    lone = RedirectQA.from_rows(canonical, source="lone")

    with pytest.raises(RunnerError, match="'fake' does not define `fits`"):
        run_redirectqa(data, answering(data), tmp_path / "run", model="m", settings=settings)
    with pytest.raises(DataError, match="no canonical-redirect pair to ask in lone"):
        run_redirectqa(lone, answering(data), tmp_path / "run", model="m")
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        RedirectQASettings(repeat=-5)


def made_rows(relations, n_paraphrased):
    """A fact of each relation under two names; the first ones also as a paraphrase."""
    return [
        {
            "triplet_id": number,
            "subject_id": f"Q{number}",
            "subject_surface": surface,
            "subject_surface_category": [category],
            "subject_wiki_title": f"Ann {number}",
            "relation": relation.name,
            "object_aliases": ["gold"],
            "question": relation.question(surface, template=wording),
            "template": wording,
        }
        for number, relation in enumerate(relations)
        for surface, category in ((f"Ann {number}", "__MAIN__"), (f"Al {number}", LONG))
        for wording in (TEMPLATES if number < n_paraphrased else TEMPLATES[:1])
    ]


@pytest.mark.parametrize(
    ("n_relations", "n_paraphrased", "settings", "shots"),
    [
        # A writer may find a paraphrase for two relations of four.
        (4, 2, {"template": "original"}, 3),
        (4, 2, {"template": "paraphrase"}, 1),
        (4, 2, {"template": "both"}, 1),
        # 15 of 16 relations in release v1.0.0, 14 of 15 in v0.1.0, whatever the limit.
        (15, 0, {"limit": 2}, 14),
        (16, 0, {"limit": 2}, 15),
    ],
)
def test_default_shots_are_one_of_each_other_relation(n_relations, n_paraphrased, settings, shots):
    """They fit the wording that has the fewest relations."""
    data = load_redirectqa(made_rows(list(RELATIONS.values())[:n_relations], n_paraphrased))
    chosen = RedirectQASettings(**settings)

    plan = RedirectQAStudy().plan(data, chosen, runner=FakeRunner(str))

    assert plan.settings.shots == shots


def test_run_warns_of_predictions_that_are_missing_or_foreign(data, tmp_path):
    """Stored predictions are held against the prompts before anything is asked."""
    asked = [q for q in data.questions if q.template == "original"]
    stored = {q.id: "x" for q in asked[1:]} | {"elsewhere": "x"}

    with pytest.warns(UnscoredWarning, match="1 .*elsewhere|elsewhere.* 1 "):
        run_redirectqa(data, StoredRunner(stored), tmp_path / "run", model="m")
