"""Store of the measurements of the sampled answers: one Parquet file per answer."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from surface_consistency.errors import RunError
from surface_consistency.reading import parse_json
from surface_consistency.rows.columnar import open_parquet
from surface_consistency.runs.files import reject_foreign, write_csv, write_json, write_parquet
from surface_consistency.runs.frames import arrow_schema
from surface_consistency.schemas import Items, Record
from surface_consistency.schemas._record import NonEmpty
from surface_consistency.studies.mechanism.sample import Sample
from surface_consistency.studies.mechanism.settings import MechanismSettings
from surface_consistency.studies.mechanism.spans import Span, SpanSource

if TYPE_CHECKING:
    from surface_consistency.studies.mechanism.ablation.components import ComponentMap
    from surface_consistency.studies.mechanism.ablation.texts import LoadedModel


_FOLDER: Final = "importances"
_DEPENDS_ON: Final = (
    *("positions", "readout", "ablation", "sets", "threshold", "unit", "target"),
    "whole_answer",
)


class AnswerMechanism(Record):
    """Importances of the components of a model for one answer; the row of a Parquet file."""

    answer_id: NonEmpty
    """Id of the target of the answer in the run."""

    content: NonEmpty
    """Digest of prompt, answer and span."""

    span_source: SpanSource
    """How the span of the fact was found."""

    tokens: Items[str]
    """Text of each token of the answer, up to the last one that was read."""

    in_span: Items[bool]
    """Whether each token belongs to the span of the fact."""

    is_greedy: Items[bool]
    """Whether the model would generate each token under greedy decoding."""

    base: Items[float]
    """Readout of each token in the unmodified model."""

    floor: Items[float]
    """Readout of each token with all components ablated."""

    ablated: Items[Items[float]]
    """Readout of each token without each component, in the order of `components.csv`."""

    sets: Items[Items[int]]
    """For each token of the span the columns of its minimal set; empty for others."""

    recovery: Items[float]
    """For each token of the span the recovery of its set; NaN for others."""

    is_reached: Items[bool]
    """For each token of the span whether the recovery reaches the threshold; False for others."""

    joint: Items[float]
    """For each token of the span the proportion lost without its set; NaN for others, and if sets
    are by sum."""

    sum_of_parts: Items[float]
    """For each token of the span the sum of the proportions lost without each component of its set;
    NaN for others."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """One answer, as arrays."""

    row: AnswerMechanism
    """The row."""

    importance: npt.NDArray[np.float64]
    """Importance of each component for each token, `(n_tokens, n_components)`; NaN if the
    unmodified readout is 0."""

    @property
    def in_span(self) -> npt.NDArray[np.bool_]:
        """Whether each token belongs to the span."""
        return np.array(self.row.in_span, dtype=bool)

    @property
    def masks(self) -> npt.NDArray[np.bool_]:
        """Minimal sets of the span's tokens as rows, `(n_span_tokens, n_components)`."""
        places = np.flatnonzero(self.in_span)
        masks = np.zeros((len(places), self.importance.shape[1]), dtype=bool)
        for number, place in enumerate(places):
            masks[number, list(self.row.sets[place])] = True
        return masks

    def share_reached_by_sum(self, threshold: float) -> float:
        """Compute the proportion of the span's tokens whose positive importances reach a threshold.

        Args:
            threshold: Threshold of the sum of the positive importances.

        Returns:
            The proportion; NaN if no token has finite importances.
        """
        rows = self.importance[self.in_span]
        rows = rows[np.isfinite(rows).all(axis=1)]
        return (
            float((np.clip(rows, 0, None).sum(axis=1) >= threshold).mean()) if len(rows) else np.nan
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredRun:
    """Measurements of one run; importances have one column per component."""

    label: str
    """Label of the run."""

    sample: Sample
    """Sampled pairs of the run."""

    spans: Mapping[str, Span]
    """The span of the fact in each answer."""

    components: "ComponentMap"
    """The components of its model."""

    fingerprint: Mapping[str, Any]
    """The model and the methods of its ablation."""

    measured: Mapping[str, Measured]
    """Each answer in which the fact was found."""

    similarity: pd.DataFrame
    """One row per pair and method of comparison."""


class Store:
    """A folder of measured answers, from which an interrupted analysis resumes.

    Args:
        folder: The folder; created if it does not exist.
        settings: Settings of the analysis.
        loaded: The model, whose digest and fingerprint are stored.

    Raises:
        RunError: If the folder contains answers that were analysed with other settings.
    """

    def __init__(self, folder: Path, settings: MechanismSettings, loaded: "LoadedModel") -> None:
        self._rows = folder / _FOLDER
        source, parts = loaded.source, loaded.model.map.components
        model = {**loaded.model.fingerprint(), "digest": source.digest or source.revision}
        used = {name: getattr(settings, name) for name in _DEPENDS_ON}
        manifest = json.loads(json.dumps({"settings": used, "model": model}))
        path = folder / "manifest.json"
        if not path.is_file():
            reject_foreign(folder, [_FOLDER, "components.csv", "similarity.parquet"])
        self._rows.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            known = parse_json(path.read_bytes(), str(path))
            for part, now in manifest.items():
                before = known.get(part, {})
                for name in sorted({*before, *now}):
                    if before.get(name) != now.get(name):
                        raise RunError(
                            f"{folder} contains answers that were analysed with other settings: "
                            f"{name} is {before.get(name)!r} there and {now.get(name)!r} now; pass "
                            "another `store`, or the same settings"
                        )
        write_json(path, manifest)
        table = [{"component": c.name, "kind": c.kind, "layer": c.layer} for c in parts]
        write_csv(folder / "components.csv", pd.DataFrame(table))

    def read(self, answer_id: str, content: str) -> AnswerMechanism | None:
        """Read an answer that was measured before.

        Args:
            answer_id: The answer.
            content: Digest of its current prompt, answer and span.

        Returns:
            The row; None if it does not exist or has another digest.
        """
        path = self._path(answer_id)
        if not path.is_file():
            return None
        with open_parquet(path) as file:
            row = AnswerMechanism.model_validate(file.read().to_pylist()[0])
        return row if (row.answer_id, row.content) == (answer_id, content) else None

    def write(self, row: AnswerMechanism) -> None:
        """Write an answer.

        Args:
            row: The row.
        """
        # A frame would turn NaN into missing values.
        table = pa.Table.from_pylist([row.model_dump()], schema=arrow_schema(AnswerMechanism))
        write_parquet(self._path(row.answer_id), table)

    def _path(self, answer_id: str) -> Path:
        """Return the path of the file of an answer."""
        name = hashlib.sha256(answer_id.encode()).hexdigest()[:16]
        return self._rows / f"{name}.parquet"
