"""Choice of word senses in a run: the first sense, a file, or a model with a log."""

import warnings
from collections.abc import Iterator, Sequence

from surface_consistency.engine.judging.judges import generate_cached
from surface_consistency.engine.settings import SideModel
from surface_consistency.errors import UnscoredWarning
from surface_consistency.models.options import MultipleChoiceRunner
from surface_consistency.models.runner import Runner
from surface_consistency.schemas import DataSource, Generation, GenerationParams, Prompt
from surface_consistency.studies.lexical.perturbation import senses
from surface_consistency.studies.lexical.perturbation.wordnet import Synset
from surface_consistency.studies.lexical.settings import LexicalSettings


def choose_senses(settings: LexicalSettings) -> senses.SenseChooser:
    """Return the chooser of the senses of words.

    Args:
        settings: The options of the study. An LLM judge of senses writes its log and the senses to
            the folder `settings.home`; if it is None, it does not write them.

    Returns:
        The chooser; a model is queried once for all wordings of the same words.
    """
    if settings.senses == "first":
        return senses.FirstSense()
    if settings.senses == "judge":
        return _LoggedSenses(settings)
    return senses.StoredSense(settings.senses)


class _LoggedSenses:
    """Queries an LLM judge of senses once; logs its answers next to the run, writes the senses."""

    def __init__(self, settings: "LexicalSettings") -> None:
        self._settings = settings
        self._home = settings.home
        self._chosen: Sequence[Synset | None] | None = None

    def choose(self, questions: Sequence[senses.SenseQuestion]) -> Sequence[Synset | None]:
        """Choose senses; further calls return the senses of the first call."""
        if self._chosen is None:
            self._chosen = self._query(questions)
        return self._chosen

    def _query(self, questions: Sequence[senses.SenseQuestion]) -> Sequence[Synset | None]:
        """Query the LLM judge."""
        self._runner: Runner = SideModel.of(self._settings, "sense").load()
        if self._settings.sense_read == "multiple-choice":
            self._runner = MultipleChoiceRunner(self._runner)
        judge = senses.JudgedSense(self)
        chosen = judge.choose(questions)
        if self._home is not None:
            senses.write_senses(questions, chosen, self._home / "senses.jsonl")
        if judge.n_unclear:
            warnings.warn(
                f"the LLM judge did not choose a sense for {judge.n_unclear} of {len(questions)} "
                "words, which are not replaced",
                UnscoredWarning,
                stacklevel=3,
            )
        return chosen

    def generate(self, prompts: Sequence[Prompt], params: GenerationParams) -> Iterator[Generation]:
        """Run the prompts that are not in the log yet."""
        if self._settings.sense_read == "generate":
            prompts = [prompt.model_copy(update={"options": None}) for prompt in prompts]
        if self._home is None:
            yield from self._runner.generate(prompts, params)
            return
        answers = generate_cached(
            self._runner,
            prompts,
            params,
            self._home / "senses-generations.jsonl",
            manifest_path=self._home / "senses-manifest.json",
            model=self._settings.sense_model or self._runner.name,
            data=DataSource(
                id="senses of words", revision="1", digest="senses-of-words-v1", n_questions=0
            ),
        )
        for prompt in prompts:
            yield answers[prompt.key].model_copy(update={"prompt_id": prompt.id})
