"""Golden run of the mechanism analysis, on a tiny model with fixed weights."""

from pathlib import Path

from tests.golden_runs.files import GoldenRun
from tests.golden_runs.gather import of_study, scored_run
from tests.golden_runs.inputs import slaq_model
from tests.tiny_models import save_tiny_model

TOPICS = 6
TEMPLATE = "{% for turn in messages %}{{ turn['content'] }}\n{% endfor %}Answer:"


def mechanism(home: Path) -> GoldenRun:
    """Analyse the pairs of one run with the weights of a two-layer model."""
    import transformers

    from surface_consistency.data.slaq import Slaq, load_slaq
    from surface_consistency.studies.mechanism.analysis import MechanismAnalysis, MechanismSettings
    from surface_consistency.studies.slaq.settings import SlaqScoring, SlaqSettings
    from surface_consistency.studies.slaq.study import SlaqStudy

    sample, study = load_slaq("sample"), SlaqStudy()
    data = Slaq.from_rows(sample.rows[: 5 * TOPICS], source=sample.source.id)
    runner = slaq_model("ada", data.topics, knows=0.7)
    settings, scoring = SlaqSettings(permutations=1, repeat=0), SlaqScoring(all_facts=True)
    folder = scored_run(study, data, runner, home / "run", settings, scoring=scoring)
    config = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=2048,
    )
    questions = [question for topic in data.topics for question in topic.questions]
    texts = [text for question in questions for text in (question.question, question.answer)]
    save_tiny_model(home / "weights", config, texts)
    (home / "weights" / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    settings = MechanismSettings(
        model=(str(home / "weights"),), per_class=4, folds=2, device="cpu", store=home / "store"
    )
    return of_study(
        study, [folder], {}, analyses={MechanismAnalysis(): settings}, hidden=[home], answers=20
    )
