"""Revisions of one model, told apart by their weights before any is loaded.

Names of revisions are not what they say: of pythia-2.8b 86 of 154 step branches hold the final
weights (EleutherAI/pythia, issue 205), and a curve over them is flat for that reason alone.
"""

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from surface_consistency.errors import RunnerError, SourceNotFoundError
from surface_consistency.models.loading import ModelSource, find_model
from surface_consistency.models.snapshots import check_whole, weight_hashes


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One revision of a model."""

    name: str
    """What it is called: a branch, tag, commit or checkpoint."""

    source: ModelSource
    """Where it is."""

    weights: Mapping[str, str]
    """SHA-256 by file of weights; empty where the hub does not tell them."""

    same_as: str | None = None
    """The earlier revision of the list that has the same weights; None where there is none."""


def find_revisions(model: str | os.PathLike[str], names: Sequence[str]) -> list[Revision]:
    """Find revisions of a model and hold their weights against each other; loads none.

    Args:
        model: Hub id, folder in the hub's cache layout, or folder of checkpoints.
        names: The revisions.

    Returns:
        The revisions in this order. Hashes of the hub are asked for, and those of its cache are
        names of files; only checkpoints of one's own are read.

    Raises:
        ValueError: If no revision is named, or one twice.
        SourceNotFoundError: If one does not exist or is half downloaded: all of them are told.
        RunnerError: If the model is gated, or the hub refuses.
    """
    if not names:
        raise ValueError("`revisions` names no revision; give at least one, such as step1000")
    repeated = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if repeated is not None:
        raise ValueError(f"`revisions` names {repeated!r} twice; give each once")
    revisions: list[Revision] = []
    problems: list[str] = []
    owners: dict[tuple[tuple[str, str], ...], str] = {}
    for name in names:
        try:
            source = find_model(model, name)
            weights = _hashes(source)
        except SourceNotFoundError as error:
            problems.append(str(error))
            continue
        key = tuple(sorted(weights.items()))
        same_as = owners.get(key) if key else None
        if key:
            owners.setdefault(key, name)
        revisions.append(Revision(name=name, source=source, weights=weights, same_as=same_as))
    if problems:
        raise SourceNotFoundError("\n".join(problems))
    return revisions


def step_of(revision: str) -> float:
    """Read the step of training from the name of a revision.

    Args:
        revision: The name.

    Returns:
        The number behind "step", else the last one in it; NaN without one, and of commits.

    Examples:
        >>> step_of("stage2-step143000-tokens300B"), step_of("checkpoint-500")
        (143000.0, 500.0)
    """
    named = re.search(r"step[-_]?(\d+)", revision) or re.search(r"(\d+)\D*$", revision)
    is_commit = re.fullmatch("[0-9a-f]{7,40}", revision) is not None
    return float(named[1]) if named and not is_commit else math.nan


def _hashes(source: ModelSource) -> dict[str, str]:
    """Tell the content of the weights of a model: of the hub's, without fetching them."""
    folder = Path(source.location)
    if folder.is_dir():
        check_whole(folder, source.label)
        return weight_hashes(folder)
    from huggingface_hub import constants, hf_hub_download

    if constants.HF_HUB_OFFLINE:
        config = hf_hub_download(source.location, "config.json", revision=source.revision)
        check_whole(Path(config).parent, source.label)
        return weight_hashes(Path(config).parent)
    return _hashes_of_hub(source)


def _hashes_of_hub(source: ModelSource) -> dict[str, str]:
    """Ask the hub for the hashes of the weights of a commit."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        info = HfApi().model_info(source.location, revision=source.revision, files_metadata=True)
    except HfHubHTTPError as error:
        raise RunnerError(
            f"{source.label}: the hub refused to tell the hashes of its weights: {error}"
        ) from error
    hashes = {
        sibling.rfilename: sibling.lfs.sha256
        for sibling in info.siblings or ()
        if sibling.lfs is not None
    }
    for kind in (".safetensors", ".bin", ".pt"):
        of_kind = {name: digest for name, digest in hashes.items() if name.endswith(kind)}
        if of_kind:
            return of_kind
    return {}
