"""The options of the analysis of mechanism."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from surface_consistency.engine.settings import PaperSettings
from surface_consistency.models.registry import RunnerName
from surface_consistency.schemas import Items


class MechanismSettings(PaperSettings):
    """Selection of pairs, and method of the analysis."""

    model: Items[str] = ()
    """Hub id or folder of the weights, one per run, in the order of the runs; by default the model
    in the manifest of the run."""

    per_class: int = Field(default=30, ge=1)
    """Maximum number of sampled pairs per run that are correct both times, and of pairs correct
    once."""

    seed: int = 0
    """Random seed of the sample and of the folds."""

    readout: Literal["logit", "centred_logit", "log_probability"] = "centred_logit"
    """Readout of a token: its logit, as in the paper; its logit minus the mean of all logits; or
    the logarithm of its probability."""

    positions: Literal["all", "answer", "last"] = "all"
    """Positions of the ablation: all; only those that generate the answer, which is faster but a
    different definition; or only the token before the answer."""

    ablation: Literal["zero", "mean", "resample"] = "zero"
    """Value that replaces a component: zero, as in the paper; its mean over the sampled prompts; or
    its value in the next sampled answer."""

    unit: Literal["head", "kv_group", "attention"] = "head"
    """Query heads; groups of query heads that share keys and values; or a layer's attention."""

    sets: Literal["run", "sum"] = "run"
    """Find minimal sets by running the model with only their components, or by summing
    importances."""

    threshold: float = Field(default=0.9, gt=0, le=1)
    """Proportion of the readout that a minimal set recovers."""

    target: Literal["generated", "reference"] = "generated"
    """Tokens whose readout is measured: those of the generated answer, or those of the reference in
    place of the span."""

    spans: Literal["auto", "alignment", "judge", "whole"] = "auto"
    """Method of finding the fact in the second answer: content words of the first answer, an LLM
    judge that copies it, or the whole scored part; auto uses content words for the long answers of
    SLAQ and the whole scored part otherwise."""

    span_sheet: Path | None = None
    """CSV file to write, with second answers and the spans that were found, for annotation."""

    marked_spans: Path | None = None
    """Annotated CSV file; its spans replace those that were found."""

    judge_model: str | None = None
    """Model of `spans=judge`: a hub id, folder or server's id."""

    judge_runner: RunnerName = "openai"
    """Runner of `spans=judge`; openai reads OPENAI_BASE_URL."""

    judge_option: Mapping[str, str] = Field(default_factory=dict)
    """Keyword argument of that runner; its value is JSON or text."""

    whole_answer: bool = True
    """Compare whole answers as well, to check that the result does not depend on the rule of spans.
    This reads the tokens after the span."""

    folds: int = Field(default=5, ge=2)
    """Number of folds of the prediction of alignment."""

    heat_maps: int = Field(default=2, ge=0)
    """Number of pairs per run that are shown as heat maps, from both classes in turn."""

    dtype: str = "float32"
    """Torch dtype: auto, float32, bfloat16 or float16; 16 bits round many effects to 0."""

    device: str | None = None
    """Device of the model: cpu, cuda, cuda:1, mps; the best available one by default."""

    device_map: str | None = None
    """Placement of weights on several devices: auto, balanced, balanced_low_0 or sequential."""

    max_rows: int | None = Field(default=None, ge=1)
    """Maximum number of rows of a batch; halved if the device is out of memory."""

    chat_option: Mapping[str, str] = Field(default_factory=dict)
    """Variable of the chat template; its value is JSON or text; use the values of the run."""

    trust_remote_code: bool = False
    """Allow code of the model's repository to run."""

    store: Path | None = None
    """Folder of the results, one Parquet file per answer, from which an interrupted analysis
    resumes; "mechanism" in each run folder by default."""
