"""Finding and loading a causal language model and its tokenizer, every failure with its remedy."""

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
from surface_consistency.models.snapshots import check_whole, find_snapshot, is_hub_cache

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
"""Number formats of `TransformersRunner`."""
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
    """A model that was found."""

    location: str
    """Folder or hub id, as `from_pretrained` takes it."""

    label: str
    """Name for errors and fingerprints: the folder's name or the hub id."""

    revision: str | None = None
    """Commit of the hub repository; None for a folder."""

    digest: str | None = None
    """Digest of the folder's files; None for the hub."""

    gguf_file: str | None = None
    """The GGUF file that holds weights and tokenizer; None for files of transformers."""


def find_model(
    model: str | os.PathLike[str], revision: str | None, gguf_file: str | None = None
) -> ModelSource:
    """Find a model before anything is loaded.

    Args:
        model: Folder, GGUF file or hub id. A folder may be that of a repository in the hub's
            cache layout, or contain one folder per checkpoint.
        revision: Branch, tag or commit of the hub repository, None for its main branch; or the
            checkpoint of a folder.
        gguf_file: GGUF file of the folder or repository; None for files of transformers.

    Returns:
        Where it is, pinned to a commit or a digest.

    Raises:
        SourceNotFoundError: If there is no such folder or repository, or it cannot be reached.
        RunnerError: If access must be asked for, or the folder is not a model.
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
            f"no model folder {folder}; name a folder with config.json, or a hub id such as "
            "'EleutherAI/pythia-70m'"
        )
    return _remote(text, revision, gguf_file)


def _local(folder: Path, revision: str | None, gguf_file: str | None) -> ModelSource:
    """Check a folder for what a model needs."""
    if revision is not None or is_hub_cache(folder):
        snapshot = find_snapshot(folder, revision)
        check_whole(snapshot.path, snapshot.label)
        if snapshot.commit is None:
            return replace(_local(snapshot.path, None, gguf_file), label=snapshot.label)
        source = ModelSource(
            location=str(snapshot.path), label=snapshot.label, revision=snapshot.commit
        )
        return replace(source, gguf_file=gguf_file)
    if gguf_file is not None:
        if not (folder / gguf_file).is_file():
            raise SourceNotFoundError(f"{folder} holds no {gguf_file}; see the name of the file")
        name, digest = Path(gguf_file).stem, _digest(folder / gguf_file)
        return ModelSource(location=str(folder), label=name, digest=digest, gguf_file=gguf_file)
    if not (folder / "config.json").is_file():
        raise SourceNotFoundError(
            f"{folder} holds no config.json, so it is not a model folder; save the model there "
            "with save_pretrained()"
        )
    if not any((folder / name).is_file() for name in _TOKENIZER_FILES):
        raise SourceNotFoundError(
            f"{folder} holds a model but no tokenizer (looked for {', '.join(_TOKENIZER_FILES)}); "
            "save the tokenizer there with tokenizer.save_pretrained()"
        )
    return ModelSource(location=str(folder), label=folder.resolve().name, digest=_digest(folder))


def _remote(repository: str, revision: str | None, gguf_file: str | None) -> ModelSource:
    """Fetch the first file from the hub, or say in one line what to do."""
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
            f"no model {repository} on the hub, or it is private: check the spelling, or log in "
            "with `hf auth login` or set HF_TOKEN"
        ) from error
    except LocalEntryNotFoundError as error:
        raise SourceNotFoundError(
            f"{repository}{at} is not in the local cache and the hub cannot be reached; connect "
            "(and unset HF_HUB_OFFLINE), or name a local folder or GGUF file"
        ) from error
    except EntryNotFoundError as error:
        remedy = (
            "see the name of the file"
            if gguf_file
            else "so transformers cannot load it; name the repository of the original weights, or "
            "a GGUF file of this one with gguf_file"
        )
        raise SourceNotFoundError(f"{repository}{at} holds no {wanted}, {remedy}") from error
    except HfHubHTTPError as error:
        raise RunnerError(f"{repository}{at}: the hub refused the request: {error}") from error
    # Files of a repository may lie in folders of it, below that of the commit.
    commit = Path(fetched).parents[Path(wanted).as_posix().count("/")].name
    label = repository if gguf_file is None else f"{repository}/{gguf_file}"
    return ModelSource(location=repository, label=label, revision=commit, gguf_file=gguf_file)


def _digest(path: Path) -> str:
    """Digest a file, or names and content of a folder: one other byte, another digest."""
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
    """Check the options and that the libraries they need are there.

    Args:
        dtype: Name of the number format.
        quantization: None, "int8" or "int4".
        device: Where the whole model goes; None for the best there is.
        device_map: How weights are spread over devices; None for one device.

    Raises:
        ValueError: If an option is unknown, or two exclude each other.
        MissingDependencyError: If a library is missing.
        RunnerError: If quantised loading is asked for without a CUDA GPU.
    """
    if dtype not in DTYPES:
        raise ValueError(f"`dtype` is one of {', '.join(DTYPES)}, got {dtype!r}")
    if quantization not in _QUANTIZATIONS:
        raise ValueError(f"`quantization` is None, 'int8' or 'int4', got {quantization!r}")
    if isinstance(device_map, str) and device_map not in _DEVICE_MAPS:
        raise ValueError(
            f"`device_map` is one of {', '.join(_DEVICE_MAPS)} or a mapping of modules to devices, "
            f"got {device_map!r}"
        )
    if device is not None and device_map is not None:
        raise ValueError(
            "`device` is one place for the whole model and `device_map` spreads it over several; "
            "take one of them"
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
            f"quantization={quantization!r} needs a CUDA GPU and there is none; leave it out, or "
            "use dtype='bfloat16'"
        )
    bits = quantization.removeprefix("int")
    for library in ("accelerate", "bitsandbytes"):
        if find_spec(library) is None:
            raise MissingDependencyError(f"{bits}-bit loading", library, "inference")


def quantization_options(quantization: str, dtype: str) -> dict[str, Any]:
    """Say how bitsandbytes quantises.

    Args:
        quantization: "int8" (LLM.int8()) or "int4" (NF4 with the scales quantised too, as QLoRA).
        dtype: Number format in which 4-bit weights are multiplied; "auto" is bfloat16.

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
    """Turn a name into a device that is there; None takes a GPU if there is one."""
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
    device: str | None,
    quantization: str | None,
    trust_remote_code: bool,
    device_map: str | Mapping[str, Any] | None = None,
) -> tuple[Any, Any]:
    """Load tokenizer, then model.

    Args:
        source: Where they are.
        dtype: Name of the number format.
        device: Where the model goes, such as "cuda:1" or "cpu"; None takes a GPU if there is one.
        quantization: None, "int8" or "int4".
        trust_remote_code: Whether code of the repository may run.
        device_map: How weights are spread over devices; None puts all on `device`.

    Returns:
        The model, in evaluation mode on its device, and its tokenizer.

    Raises:
        ValueError: If `device` is none.
        MissingDependencyError: If a GGUF file cannot be read without a further library.
        RunnerError: If there is no such device here, or either cannot be loaded; says what to do.
    """
    import torch

    if quantization is not None and source.gguf_file is not None:
        raise RunnerError(
            f"the weights of {source.label} come unpacked from a GGUF file and cannot be quantised "
            "again; leave out `quantization`"
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
        MissingDependencyError: If one is not; names the extra.
    """
    for library in ("torch", "transformers", "gguf", "accelerate"):
        if find_spec(library) is None:
            raise MissingDependencyError("reading a GGUF file", library, "inference")


def load_gguf(location: str, gguf_file: str, **options: object) -> "PreTrainedModel":
    """Load a model from a GGUF file, its weights unpacked to full numbers.

    Args:
        location: Folder or hub id.
        gguf_file: The file in it.
        options: Further arguments of `from_pretrained`, such as dtype.

    Returns:
        The model.
    """
    import transformers

    # Older versions of transformers always unpack, newer ones only with this option.
    config = getattr(transformers, "GgufConfig", None)
    if config is not None:
        options["quantization_config"] = config(dequantize=True)
    return transformers.AutoModelForCausalLM.from_pretrained(
        location, gguf_file=gguf_file, **options
    )


_SAID: Final[set[str]] = set()


def _once(record: logging.LogRecord) -> bool:
    """Pass a warning that comes with every product of matrices the first time alone."""
    text = record.getMessage()
    if text in _SAID:
        return False
    _SAID.add(text)
    return True


@contextmanager
def quiet_bars(logging: ModuleType) -> Iterator[None]:
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
        "that it is a causal language model saved with its tokenizer "
        + ("in a whole GGUF file" if source.gguf_file else "by save_pretrained()")
    )
