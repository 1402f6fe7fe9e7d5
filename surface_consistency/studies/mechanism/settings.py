"""Which pairs of a run are looked into by `mechanism`, and how."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from surface_consistency.engine.settings import PaperSettings
from surface_consistency.models.registry import RunnerName
from surface_consistency.schemas import Items


class MechanismSettings(PaperSettings):
    """Which pairs are looked into, and how."""

    model: Items[str] = ()
    """Hub id or folder of the weights that answered, one for each run in their order; by default
    what the run's manifest names."""

    per_class: int = Field(default=30, ge=1)
    """Pairs right both times, and as many right once, that are drawn from each run."""

    seed: int = 0
    """Seed of the draw and of the folds."""

    readout: Literal["logit", "centred_logit", "log_probability"] = "centred_logit"
    """What is read of a token: its logit, as in the paper; less the mean of all logits; or the
    logarithm of its probability."""

    positions: Literal["all", "answer", "last"] = "all"
    """Where components are taken away: everywhere; only where the answer is written, which is
    faster and another definition; or only at the token before the answer."""

    ablation: Literal["zero", "mean", "resample"] = "zero"
    """What replaces a component: nothing, as in the paper; its mean over the sampled prompts; or
    its value in the next sampled answer."""

    unit: Literal["head", "kv_group", "attention"] = "head"
    """Query heads; groups of them that share keys and values; or a layer's whole attention."""

    sets: Literal["run", "sum"] = "run"
    """Whether minimal sets are found by running the model with them alone, or by adding up
    importances."""

    threshold: float = Field(default=0.9, gt=0, le=1)
    """Share of the readout that a minimal set recovers."""

    target: Literal["generated", "reference"] = "generated"
    """Whose tokens are read: what the model wrote, or the reference in the span's place."""

    spans: Literal["auto", "alignment", "judge", "whole"] = "auto"
    """How the fact is found in the second answer: by the first one's content words, by a model that
    copies, or all that was judged; auto aligns SLAQ's long answers and takes others whole."""

    span_sheet: Path | None = None
    """CSV file to write, of second answers and the spans that were found, for a person to mark."""

    marked_spans: Path | None = None
    """Such a file with a person's spans, which come before those that were found."""

    judge_model: str | None = None
    """Model of `spans=judge`: a hub id, folder or server's id."""

    judge_runner: RunnerName = "openai"
    """Runner of `spans=judge`; openai reads OPENAI_BASE_URL."""

    judge_option: Mapping[str, str] = Field(default_factory=dict)
    """Keyword argument of that runner, its value JSON or text."""

    whole_answer: bool = True
    """Whether whole answers are compared besides spans, so that the rule of spans is seen not to
    make the result; without, reading stops where the span ends."""

    folds: int = Field(default=5, ge=2)
    """Folds of the prediction of alignment."""

    heat_maps: int = Field(default=2, ge=0)
    """Pairs of each run whose components are drawn, of either class in turn."""

    dtype: str = "float32"
    """Number format: auto, float32, bfloat16 or float16; 16 bits round many effects to nothing."""

    device: str | None = None
    """Where the model runs: cpu, cuda, cuda:1, mps; the best there is by default."""

    device_map: str | None = None
    """How weights are spread over devices: auto, balanced, balanced_low_0 or sequential."""

    max_rows: int | None = Field(default=None, ge=1)
    """Most rows of a batch; halved when memory is full."""

    chat_option: Mapping[str, str] = Field(default_factory=dict)
    """Variable of the chat template, its value JSON or text, as the run was given it."""

    trust_remote_code: bool = False
    """Whether code of the model's repository may run."""

    store: Path | None = None
    """Folder of what was measured, one Parquet file an answer, to which a stopped analysis comes
    back; "mechanism" in each run folder by default."""
