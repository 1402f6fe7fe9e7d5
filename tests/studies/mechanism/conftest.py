"""A run of SLAQ with planted answers, and a tiny model that can read them."""

import pytest

from surface_consistency.data.slaq import load_slaq_sample
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
from surface_consistency.engine.toy_models import Segment, TrainingSettings, train_on_examples
from surface_consistency.models import FakeRunner
from surface_consistency.studies.slaq.prompts import slaq_prompts
from surface_consistency.studies.slaq.settings import SlaqScoring, SlaqSettings
from surface_consistency.studies.slaq.study import SlaqStudy
from surface_consistency.studies.slaq.toy_model import plan_memory, planted_answer

SETTINGS = {"permutations": 1, "limit": 6, "repeat": 0}


@pytest.fixture(scope="session")
def slaq_data():
    return load_slaq_sample().select(limit=6)


@pytest.fixture(scope="session")
def weights(tmp_path_factory, slaq_data):
    """A model of two layers that has seen one step of training."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    asked, _ = slaq_prompts(slaq_data.rows, SlaqSettings(**SETTINGS))
    texts = [turn.content for prompt in asked for turn in prompt.messages]
    template = "{% for turn in messages %}{{ turn['content'] }}\n{% endfor %}Answer:"
    size = {"steps": 1, "context": 2048, "vocabulary_size": 1_500}
    settings = TrainingSettings(chat_template=template, **size)
    folder = tmp_path_factory.mktemp("weights") / "toy_model"
    examples = [(Segment("A short text.", True),)]
    return train_on_examples(examples, folder, settings, vocabulary=texts)


@pytest.fixture(scope="session")
def make_slaq_run(slaq_data):
    """Asks for planted answers and judges them: `make_slaq_run(folder)`."""
    settings = SlaqSettings(**SETTINGS)
    asked = slaq_prompts(slaq_data.rows, settings)[1].set_index("prompt_id")
    topics = dict(list(slaq_data.rows.groupby("topic_id")))
    memory = plan_memory(slaq_data.rows["fact_id"])

    def answer(prompt):
        topic_id, order = asked.loc[prompt.id, ["topic_id", "order"]]
        return " " + planted_answer(topics[topic_id], order, memory)

    def run(folder, *, label="toy_model", answer=answer):
        options = {"model": label, "settings": settings, "progress": False}
        made = run_study(SlaqStudy(), slaq_data, FakeRunner(answer), folder, **options)
        score_run(made, study=SlaqStudy(), scoring=SlaqScoring(all_facts=True))
        return made.path

    return run


@pytest.fixture(scope="session")
def slaq_run(make_slaq_run, tmp_path_factory):
    return make_slaq_run(tmp_path_factory.mktemp("slaq") / "run")
