"""inspect_ai: the studies as tasks, their scoring as a scorer, their metrics as a metric.

The tool finds them by this package's entry point of the group `inspect_ai`. They are created on
first use, so that this module can be imported without the tool.
"""

import json
import warnings
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from surface_consistency.errors import SurfaceConsistencyWarning
from surface_consistency.integrations import inspect_scorers
from surface_consistency.integrations.extras import check_tool
from surface_consistency.integrations.paired_task import Document, PairedTask, to_verdicts

if TYPE_CHECKING:
    from inspect_ai.dataset import Sample

_FEATURE: Final = "The integration with inspect_ai"
_VERDICTS: Final = "verdicts"


@cache
def register() -> dict[str, Any]:
    """Register tasks, scorers and metrics with inspect_ai.

    Returns:
        All registered objects by name: the tasks redirectqa, slaq and forms, their scorer
        paired_verdicts and metric paired_numbers, and those of `inspect_scorers`.

    Raises:
        MissingDependencyError: If inspect_ai is not installed.
        MissingDependencyError: If its version is too old or too new.
    """
    check_tool(_FEATURE, "inspect-ai", "inspect")
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset
    from inspect_ai.model import GenerateConfig
    from inspect_ai.scorer import (
        Metric,
        SampleScore,
        Score,
        Scorer,
        Target,
        accuracy,
        metric,
        scorer,
        stderr,
    )
    from inspect_ai.solver import Generate, Solver, TaskState, solver

    @metric
    def paired_numbers(study: str = "redirectqa", options: str = "{}") -> Metric:
        """Compute the metrics of pairs with clustered intervals; see `PairedTask.numbers`."""

        def compute(scores: list[SampleScore]) -> dict[str, float]:
            verdicts = {
                target: verdict
                for score in scores
                for target, verdict in ((score.score.metadata or {}).get(_VERDICTS) or {}).items()
            }
            with warnings.catch_warnings():
                # The tool computes metrics repeatedly while answers arrive, and shows n_cut.
                warnings.simplefilter("ignore", SurfaceConsistencyWarning)
                return _task(study, options).numbers(verdicts)

        return compute

    @scorer(metrics=[accuracy(), stderr(cluster="cluster")])
    def paired_verdicts(study: str = "redirectqa", options: str = "{}") -> Scorer:
        """Score answers as the study does."""

        async def score(state: TaskState, target: Target) -> Score:
            document, reply = str(state.sample_id), state.output.completion
            verdicts = to_verdicts(_task(study, options).judge({document: reply}))
            known = [verdict for verdict in verdicts.values() if verdict is not None]
            return Score(
                value=sum(known) / len(known) if known else float("nan"),
                answer=reply,
                metadata={_VERDICTS: verdicts},
            )

        return score

    @solver
    def answer_within() -> Solver:
        """Generate an answer within the maximum length of the prompt."""

        async def solve(state: TaskState, generate: Generate) -> TaskState:
            return await generate(state, max_tokens=state.metadata["max_tokens"])

        return solve

    def make(study: str, options: Mapping[str, object]) -> Task:
        """Create the task of a study."""
        written = json.dumps(dict(options), sort_keys=True)
        paired = _task(study, written)
        first = paired.documents[0].id
        if paired.prompt(first).options is not None:
            raise ValueError(
                "read=multiple-choice needs the probabilities of options, which inspect_ai does not"
                " return; omit `read`, or use lm-evaluation-harness or `surface-consistency "
                f"run {study}`"
            )
        stop = list(paired.params(first).stop)
        return Task(
            name=study,
            dataset=MemoryDataset([_sample(paired, each) for each in paired.documents], name=study),
            solver=answer_within(),
            scorer=paired_verdicts(study, written),
            metrics=[accuracy(), stderr(cluster="cluster"), paired_numbers(study, written)],
            config=GenerateConfig(**_greedy(), stop_seqs=stop or None),
        )

    # inspect_ai 0.3.200 accepts any option only if the parameter is called `kwargs`.
    @task
    def redirectqa(**kwargs: object) -> Task:
        """Query the same fact by the title of its article and by redirects to it."""
        return make("redirectqa", {"chat": True} | kwargs)

    @task
    def slaq(**kwargs: object) -> Task:
        """Query the same fact alone and as one of five in a long query."""
        return make("slaq", kwargs)

    @task
    def forms(**kwargs: object) -> Task:
        """Query your own items, `source`, in any number of forms."""
        return make("forms", {"chat": True} | kwargs)

    return {
        "redirectqa": redirectqa,
        "slaq": slaq,
        "forms": forms,
        "paired_verdicts": paired_verdicts,
        "paired_numbers": paired_numbers,
        **inspect_scorers.register(),
    }


def __getattr__(name: str) -> dict[str, Any]:
    """Register everything when the entry point, which names `registered`, is loaded."""
    if name != "registered":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return register()


@lru_cache(maxsize=4)
def _task(study: str, options: str) -> PairedTask:
    """Load a study, once for the task, its scorer and its metric."""
    return PairedTask.load(study, json.loads(options), tool="inspect_ai")


def _greedy() -> dict[str, Any]:
    """Return the options of greedy decoding for the provider of the evaluated model."""
    from inspect_ai.model import get_model

    # transformers rejects a temperature of 0; top_k=1 is equivalent.
    api = type(get_model().api).__name__
    return {"top_k": 1} if api == "HuggingFaceAPI" else {"temperature": 0.0}


def _sample(paired: PairedTask, document: Document) -> "Sample":
    """Convert a document to a sample of the tool."""
    from inspect_ai.dataset import Sample
    from inspect_ai.model import (
        ChatMessage,
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
    )

    kinds: dict[str, type[Any]] = {
        "system": ChatMessageSystem,
        "user": ChatMessageUser,
        "assistant": ChatMessageAssistant,
    }
    prompt = paired.prompt(document.id)
    turns: Sequence[ChatMessage] = [
        kinds[turn.role](content=turn.content) for turn in prompt.messages or ()
    ]
    return Sample(
        id=document.id,
        input=list(turns) or prompt.text or "",
        target=list(document.answers) or "",
        metadata={
            "question": document.question,
            "item": document.facts[0],
            "cluster": document.cluster,
            "max_tokens": paired.params(document.id).max_tokens,
        },
    )
