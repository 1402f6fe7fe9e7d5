"""Find and load a causal language model and its tokenizer."""

import hashlib
import logging
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from surface_consistency.errors import MissingDependencyError, RunnerError, SourceNotFoundError
from surface_consistency.models.snapshots import check_complete, find_snapshot, is_hub_cache

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "tekken.json",
)
DTYPES = ("auto", "float32", "bfloat16", "float16")
"""Torch dtypes of `TransformersRunner`."""
UNREADABLE: Final = (
    ImportError,
    IndexError,
    KeyError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
)
"""Errors that libraries raise on weights or tokenizers that they cannot read."""
_QUANTIZATIONS = (None, "int8", "int4")
_DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """The location of a model."""

    location: str
    """Folder or hub id, as for `from_pretrained`."""

    label: str
    """Name for errors and fingerprints: the folder's name or the hub id."""

    revision: str | None = None
    """Commit of the hub repository; None for a folder."""

    digest: str | None = None
    """Digest of the folder's files; None for the hub."""

    gguf_file: str | None = None
    """The GGUF file with weights and tokenizer; None for files of transformers."""


def find_model(
    model: str | os.PathLike[str], revision: str | None, gguf_file: str | None = None
) -> ModelSource:
    """Find a model without loading it.

    Args:
        model: Folder, GGUF file or hub id. A folder may be a repository in the layout of the hub's
            cache, or contain one folder per checkpoint.
        revision: Branch, tag or commit of the hub repository, None for its main branch; or the
            checkpoint in a folder.
        gguf_file: GGUF file in the folder or repository; None for files of transformers.

    Returns:
        Its location, with a commit or a digest.

    Raises:
        SourceNotFoundError: If the folder or repository does not exist or cannot be reached.
        RunnerError: If the model is gated, or the folder is not a model.
    """
    folder = Path(model).expanduser()
    if folder.suffix == ".gguf" and folder.is_file() and gguf_file is None:
        folder, gguf_file = folder.parent, folder.name
    if folder.is_dir():
        return _local(folder, revision, gguf_file)
    text = os.fspath(model)
    is_path = folder.is_absolute() or text.startswith((".", "~")) or text.count("/") > 1
    if is_path or folder.exists():
        raise SourceNotFoundError(
            f"model folder {folder} not found; name a folder with config.json, or a hub id such "
            "as 'EleutherAI/pythia-70m'"
        )
    return _remote(text, revision, gguf_file)


def _local(folder: Path, revision: str | None, gguf_file: str | None) -> ModelSource:
    """Check that a folder contains the files of a model."""
    if revision is not None or is_hub_cache(folder):
        snapshot = find_snapshot(folder, revision)
        check_complete(snapshot.path, snapshot.label)
        if snapshot.commit is None:
            return replace(_local(snapshot.path, None, gguf_file), label=snapshot.label)
        source = ModelSource(
            location=str(snapshot.path), label=snapshot.label, revision=snapshot.commit
        )
        return replace(source, gguf_file=gguf_file)
    if gguf_file is not None:
        if not (folder / gguf_file).is_file():
            raise SourceNotFoundError(f"{folder} contains no {gguf_file}; check the file name")
        name, digest = Path(gguf_file).stem, _digest(folder / gguf_file)
        return ModelSource(location=str(folder), label=name, digest=digest, gguf_file=gguf_file)
    if not (folder / "config.json").is_file():
        raise SourceNotFoundError(
            f"{folder} contains no config.json, so it is not a model folder; save the model there "
            "with save_pretrained()"
        )
    if not any((folder / name).is_file() for name in _TOKENIZER_FILES):
        raise SourceNotFoundError(
            f"{folder} contains a model but no tokenizer (none of {', '.join(_TOKENIZER_FILES)}); "
            "save the tokenizer there with tokenizer.save_pretrained()"
        )
    return ModelSource(location=str(folder), label=folder.resolve().name, digest=_digest(folder))


def _remote(repository: str, revision: str | None, gguf_file: str | None) -> ModelSource:
    """Fetch the first file from the hub, or raise an error with the remedy."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    at = f" at revision {revision!r}" if revision else ""
    wanted = gguf_file or "config.json"
    try:
        fetched = hf_hub_download(repository, wanted, revision=revision)
    except HFValidationError as error:
        raise SourceNotFoundError(
            f"{repository!r} is neither a folder nor a GGUF file nor a hub id (owner/name); check "
            "the spelling"
        ) from error
    except GatedRepoError as error:
        raise RunnerError(
            f"{repository} is gated: accept its terms at https://huggingface.co/{repository}, then "
            "log in with `hf auth login` or set HF_TOKEN"
        ) from error
    except RevisionNotFoundError as error:
        raise SourceNotFoundError(
            f"{repository} has no revision {revision!r}; see "
            f"https://huggingface.co/{repository}/branches"
        ) from error
    except RepositoryNotFoundError as error:
        raise SourceNotFoundError(
            f"model {repository} not found on the hub, or private; check the spelling, or log in "
            "with `hf auth login` or set HF_TOKEN"
        ) from error
    except LocalEntryNotFoundError as error:
        raise SourceNotFoundError(
            f"{repository}{at} is not in the local cache and the hub cannot be reached; connect "
            "(and unset HF_HUB_OFFLINE), or name a local folder or GGUF file"
        ) from error
    except EntryNotFoundError as error:
        remedy = (
            "check the file name"
            if gguf_file
            else "so transformers cannot load it; name the repository of the original weights, or "
            "a GGUF file in this repository with gguf_file"
        )
        raise SourceNotFoundError(f"{repository}{at} contains no {wanted}, {remedy}") from error
    except HfHubHTTPError as error:
        raise RunnerError(f"{repository}{at}: the hub rejected the request: {error}") from error
    # Files of a repository can be in subfolders, below the folder of the commit.
    commit = Path(fetched).parents[Path(wanted).as_posix().count("/")].name
    label = repository if gguf_file is None else f"{repository}/{gguf_file}"
    return ModelSource(location=repository, label=label, revision=commit, gguf_file=gguf_file)


def _digest(path: Path) -> str:
    """Return a digest of a file, or of the names and contents of the files of a folder."""
    files = [path] if path.is_file() else sorted(item for item in path.rglob("*") if item.is_file())
    folder = path.parent if path.is_file() else path
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as content:
            of_file = hashlib.file_digest(content, "sha256").hexdigest()
        digest.update(f"{file.relative_to(folder).as_posix()}\0{of_file}\0".encode())
    return digest.hexdigest()[:16]


def check_dependencies(
    dtype: str,
    quantization: str | None,
    device: str | None = None,
    device_map: str | Mapping[str, Any] | None = None,
) -> None:
    """Check the options, and that the libraries they need are installed.

    Args:
        dtype: Name of the torch dtype.
        quantization: None, "int8" or "int4".
        device: Device of the whole model; None for the best available one.
        device_map: How to distribute weights over devices; None for one device.

    Raises:
        ValueError: If an option is unknown, or two options cannot be combined.
        MissingDependencyError: If a library is missing.
        RunnerError: If quantised loading is requested without a CUDA GPU.
    """
    if dtype not in DTYPES:
        raise ValueError(f"`dtype` must be one of {', '.join(DTYPES)}, got {dtype!r}")
    if quantization not in _QUANTIZATIONS:
        raise ValueError(f"`quantization` must be None, 'int8' or 'int4', got {quantization!r}")
    if isinstance(device_map, str) and device_map not in _DEVICE_MAPS:
        raise ValueError(
            f"`device_map` must be one of {', '.join(_DEVICE_MAPS)} or a mapping of modules to "
            f"devices, got {device_map!r}"
        )
    if device is not None and device_map is not None:
        raise ValueError(
            "`device` puts the whole model on one device and `device_map` distributes it over "
            "several; pass only one of them"
        )
    for library in ("torch", "transformers"):
        if find_spec(library) is None:
            raise MissingDependencyError("TransformersRunner", library, "inference")
    if device_map is not None and find_spec("accelerate") is None:
        raise MissingDependencyError("device_map", "accelerate", "inference")
    if device is not None:
        _pick_device(device)
    if quantization is None:
        return
    import torch

    if not torch.cuda.is_available():
        raise RunnerError(
            f"quantization={quantization!r} needs a CUDA GPU, and none was found; omit it, or "
            "use dtype='bfloat16'"
        )
    bits = quantization.removeprefix("int")
    for library in ("accelerate", "bitsandbytes"):
        if find_spec(library) is None:
            raise MissingDependencyError(f"{bits}-bit loading", library, "inference")


def quantization_options(quantization: str, dtype: str) -> dict[str, Any]:
    """Return the quantisation options of bitsandbytes.

    Args:
        quantization: "int8" (LLM.int8()) or "int4" (NF4 with double quantisation, as in QLoRA).
        dtype: Dtype in which 4-bit weights are multiplied; "auto" is bfloat16.

    Returns:
        Keyword arguments of `transformers.BitsAndBytesConfig`.

    References:
        Dettmers et al. 2022, arXiv 2208.07339; Dettmers et al. 2023, arXiv 2305.14314, section 3.
    """
    if quantization == "int8":
        return {"load_in_8bit": True}
    return {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": True,
        "bnb_4bit_compute_dtype": "bfloat16" if dtype == "auto" else dtype,
    }


def _pick_device(device: str | None) -> "torch.device":
    """Return the device with a name, if it is available; with None a GPU if there is one."""
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
            f"device {device!r} is not available (CUDA GPUs found: {n_gpus}); use device='cpu', or "
            "omit it to use the best available device"
        )
    if picked.type == "mps" and not has_mps:
        raise RunnerError("device 'mps' is not available; use device='cpu', or omit it")
    return picked


def load_model(
    source: ModelSource,
    *,
    dtype: str,
    device: str | None,
    quantization: str | None,
    trust_remote_code: bool,
    device_map: str | Mapping[str, Any] | None = None,
) -> tuple[Any, Any]:
    """Load the tokenizer, then the model.

    Args:
        source: Location of the model.
        dtype: Name of the torch dtype.
        device: Device of the model, such as "cuda:1" or "cpu"; None for a GPU if there is one.
        quantization: None, "int8" or "int4".
        trust_remote_code: Whether code of the repository may be run.
        device_map: How to distribute weights over devices; None puts all on `device`.

    Returns:
        The model, in evaluation mode on its device, and its tokenizer.

    Raises:
        ValueError: If `device` is not the name of a device.
        MissingDependencyError: If a library that reads GGUF files is not installed.
        RunnerError: If the device is not available, or model or tokenizer cannot be loaded; the
            message contains the remedy.
    """
    import torch

    if quantization is not None and source.gguf_file is not None:
        raise RunnerError(
            f"the weights of {source.label} are dequantised from a GGUF file and cannot be "
            "quantised again; omit `quantization`"
        )
    if source.gguf_file is not None:
        check_gguf_dependencies()
    place = _pick_device(device)
    transformers: Any = import_module("transformers")
    common: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    if source.revision is not None:
        common["revision"] = source.revision
    try:
        gguf = {} if source.gguf_file is None else {"gguf_file": source.gguf_file}
        tokenizer = transformers.AutoTokenizer.from_pretrained(source.location, **common, **gguf)
    except UNREADABLE as error:
        raise _failed(source, "tokenizer", error) from error
    options = common | {"dtype": dtype if dtype == "auto" else getattr(torch, dtype)}
    if quantization is not None:
        logging.getLogger("bitsandbytes.autograd._functions").addFilter(_once)
        options["quantization_config"] = transformers.BitsAndBytesConfig(
            **quantization_options(quantization, dtype)
        )
    if quantization is not None or device_map is not None:
        options["device_map"] = {"": place} if device_map is None else device_map
    try:
        with quiet_bars(transformers.utils.logging):
            if source.gguf_file is None:
                make = transformers.AutoModelForCausalLM.from_pretrained
            else:
                make = partial(load_gguf, gguf_file=source.gguf_file)
            model = make(source.location, **options)
        if "device_map" not in options:
            model = model.to(place)
    except torch.OutOfMemoryError as error:
        raise RunnerError(
            f"{source.label} does not fit into the memory of {place}; use dtype='bfloat16', "
            "quantization='int8' or 'int4', device_map='auto', or a smaller model"
        ) from error
    except (*UNREADABLE, import_module("safetensors").SafetensorError) as error:
        raise _failed(source, "model", error) from error
    return model.eval(), tokenizer


def check_gguf_dependencies() -> None:
    """Check that the libraries that read GGUF files are installed.

    Raises:
        MissingDependencyError: If one is not installed; the message names the extra.
    """
    for library in ("torch", "transformers", "gguf", "accelerate"):
        if find_spec(library) is None:
            raise MissingDependencyError("reading a GGUF file", library, "inference")


def load_gguf(location: str, gguf_file: str, **options: object) -> "PreTrainedModel":
    """Load a model from a GGUF file, with dequantised weights.

    Args:
        location: Folder or hub id.
        gguf_file: The file in the folder or repository.
        options: Further arguments of `from_pretrained`, such as dtype.

    Returns:
        The model.
    """
    import transformers

    # Older versions of transformers always dequantise, newer ones only with this option.
    config = getattr(transformers, "GgufConfig", None)
    if config is not None:
        options["quantization_config"] = config(dequantize=True)
    return transformers.AutoModelForCausalLM.from_pretrained(
        location, gguf_file=gguf_file, **options
    )


_LOGGED: Final[set[str]] = set()


def _once(record: logging.LogRecord) -> bool:
    """Filter repetitions of a warning, which is logged at every matrix multiplication."""
    text = record.getMessage()
    if text in _LOGGED:
        return False
    _LOGGED.add(text)
    return True


@contextmanager
def quiet_bars(logging: ModuleType) -> Iterator[None]:
    """Disable progress bars if the output is not a terminal."""
    if sys.stderr.isatty() or not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()


def _failed(source: ModelSource, what: str, error: Exception) -> RunnerError:
    """Describe in one line what could not be loaded."""
    text = str(error)
    if "trust_remote_code=True" in text:
        return RunnerError(
            f"{source.label} contains its own code; read it, then pass trust_remote_code=True to "
            "run it"
        )
    reason = next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
    return RunnerError(
        f"the {what} of {source.label} cannot be loaded ({type(error).__name__}: {reason}); check "
        "that it is a causal language model saved with its tokenizer "
        + ("in a complete GGUF file" if source.gguf_file else "by save_pretrained()")
    )
