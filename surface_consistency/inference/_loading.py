"""Loading a causal language model and its tokenizer, every failure with its remedy."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from surface_consistency.errors import MissingDependencyError, RunnerError
from surface_consistency.inference._hub import ModelSource

if TYPE_CHECKING:
    import torch

__all__ = ["LoadedModel", "check_dependencies", "load_model", "pick_device", "quiet_bars"]

_DTYPES = ("auto", "float32", "bfloat16", "float16")
_QUANTIZATIONS = (None, "int8")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A model ready to be asked."""

    model: Any
    """The causal language model, in evaluation mode on its device."""

    tokenizer: Any
    """Its tokenizer."""


def check_dependencies(dtype: str, quantization: str | None) -> None:
    """Check the options and that the libraries they need are there.

    Args:
        dtype: Name of the number format.
        quantization: None or "int8".

    Raises:
        ValueError: If an option is unknown.
        MissingDependencyError: If a library is missing.
        RunnerError: If 8-bit loading is asked for without a CUDA GPU.
    """
    if dtype not in _DTYPES:
        raise ValueError(f"`dtype` is one of {', '.join(_DTYPES)}, got {dtype!r}")
    if quantization not in _QUANTIZATIONS:
        raise ValueError(f"`quantization` is None or 'int8', got {quantization!r}")
    for library in ("torch", "transformers"):
        if find_spec(library) is None:
            raise MissingDependencyError("TransformersRunner", library, "inference")
    if quantization is None:
        return
    import torch

    if not torch.cuda.is_available():
        raise RunnerError(
            "quantization='int8' needs a CUDA GPU and there is none; leave it out, or use "
            "dtype='bfloat16'"
        )
    for library in ("accelerate", "bitsandbytes"):
        if find_spec(library) is None:
            raise MissingDependencyError("8-bit loading", library, "quant")


def pick_device(device: str | None) -> "torch.device":
    """Turn a name into a device that is there; None takes the GPU if there is one.

    Args:
        device: Such as "cuda", "cuda:1", "mps" or "cpu".

    Returns:
        The device.

    Raises:
        ValueError: If the name is no device.
        RunnerError: If there is no such device here.
    """
    import torch

    has_mps = torch.backends.mps.is_available()
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu")
    try:
        picked = torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"`device` is a name such as 'cuda:0' or 'cpu', got {device!r}") from error
    n_gpus = torch.cuda.device_count()
    if picked.type == "cuda" and (picked.index or 0) >= n_gpus:
        raise RunnerError(
            f"device {device!r} is not there (CUDA GPUs found: {n_gpus}); use device='cpu', or "
            "leave it out to take what there is"
        )
    if picked.type == "mps" and not has_mps:
        raise RunnerError("device 'mps' is not there; use device='cpu', or leave it out")
    return picked


def load_model(
    source: ModelSource,
    *,
    dtype: str,
    device: "torch.device",
    quantization: str | None,
    trust_remote_code: bool,
) -> LoadedModel:
    """Load tokenizer, then model.

    Args:
        source: Where they are.
        dtype: Name of the number format.
        device: Where the model goes.
        quantization: None or "int8".
        trust_remote_code: Whether code of the repository may run.

    Returns:
        Both.

    Raises:
        RunnerError: If either cannot be loaded; says why and what to do.
    """
    import torch

    transformers: Any = import_module("transformers")
    common: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    if source.revision is not None:
        common["revision"] = source.revision
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(source.location, **common)
    except (ImportError, KeyError, OSError, TypeError, ValueError) as error:
        raise _failed(source, "tokenizer", error) from error
    options = common | {"dtype": dtype if dtype == "auto" else getattr(torch, dtype)}
    if quantization is not None:
        options["quantization_config"] = transformers.BitsAndBytesConfig(load_in_8bit=True)
        options["device_map"] = {"": device}
    try:
        with quiet_bars(transformers.utils.logging):
            model = transformers.AutoModelForCausalLM.from_pretrained(source.location, **options)
        if quantization is None:
            model = model.to(device)
    except torch.OutOfMemoryError as error:
        raise RunnerError(
            f"{source.label} does not fit into the memory of {device}; use dtype='bfloat16' or "
            "quantization='int8', or a smaller model"
        ) from error
    except (ImportError, KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise _failed(source, "model", error) from error
    return LoadedModel(model=model.eval(), tokenizer=tokenizer)


@contextmanager
def quiet_bars(logging: Any) -> Iterator[None]:  # noqa: ANN401
    """Keep loading bars out of files: they are for terminals."""
    if sys.stderr.isatty() or not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()


def _failed(source: ModelSource, what: str, error: Exception) -> RunnerError:
    """Say in a line what could not be loaded."""
    text = str(error)
    if "trust_remote_code=True" in text:
        return RunnerError(
            f"{source.label} brings code of its own; read it, then pass trust_remote_code=True to "
            "run it"
        )
    reason = next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
    return RunnerError(
        f"the {what} of {source.label} cannot be loaded ({type(error).__name__}: {reason}); check "
        "that it is a causal language model saved with its tokenizer by save_pretrained()"
    )
