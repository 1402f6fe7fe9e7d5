"""An audit, scored: generations to verdicts to the outcomes frame and the published files."""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from surface_consistency.data.features import to_parquet
from surface_consistency.errors import RunLogError, UnscoredWarning
from surface_consistency.matching.audit import CLEANERS, EQUIVALENCES
from surface_consistency.runs.files import write_text
from surface_consistency.runs.log import read_generations
from surface_consistency.schemas import Prompt, read_jsonl
from surface_consistency.schemas.audit import AuditOutcome, AuditTarget
from surface_consistency.schemas.manifest import RunManifest
from surface_consistency.schemas.memory import MemoryState
from surface_consistency.studies.audit._judged import JudgedAnswer, judged_answer
from surface_consistency.studies.audit._outcome import outcome_of
from surface_consistency.studies.audit._result_files import ResultFiles
from surface_consistency.studies.audit.attribution import Given, accepted_candidates
from surface_consistency.studies.audit.checks import check_states, write_table
from surface_consistency.studies.audit.folder import AuditFolder
from surface_consistency.studies.audit.published_rows import (
    CROSS_STATE_COLUMNS,
    PER_STATE_COLUMNS,
    PairVerdicts,
    cross_state_row,
    per_state_row,
)
from surface_consistency.studies.audit.settings import STATES

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["audit_frame", "score_audit"]

_SETTINGS: Final = "scoring.json"

_Judged = Mapping[tuple[int, MemoryState], JudgedAnswer]


def score_audit(
    folder: AuditFolder, *, cleaner: str = "audit", equivalence: str = "audit"
) -> "pd.DataFrame":
    """Judge an audit's answers and write outcomes, published files and checks beside them.

    May be called again with other rules: nothing is asked anew. The log is read once, answer by
    answer.

    Args:
        folder: A run that `run_audit` finished, or stopped in.
        cleaner: Name of a cleaner, one of `matching.audit.CLEANERS`.
        equivalence: Name of an equivalence, one of `matching.audit.EQUIVALENCES`.

    Returns:
        The outcomes frame: one row a fact and style, DEL-ON first and DEL-OFF second.

    Raises:
        ValueError: If there is no such rule.
        SourceNotFoundError: If a file of the run is missing.
        RunLogError: If the run has no answer yet.

    Warns:
        UnscoredWarning: If answers are missing.
        ContaminationWarning: If the database whole is no baseline, as `check_states` tells.
    """
    _check_rule("cleaner", cleaner, CLEANERS)
    _check_rule("equivalence", equivalence, EQUIVALENCES)
    manifest = folder.read_manifest()
    targets = list(read_jsonl(folder.targets, AuditTarget))
    judged = _judge(folder, targets, manifest, cleaner=cleaner, equivalence=equivalence)
    if not judged:
        raise RunLogError(
            f"{folder.generations} holds no answer{_first_error(folder.generations)}; let the run "
            "finish first"
        )
    states = _asked_states(manifest)
    _warn_unscored(len(targets) * len(states) - len(judged))
    outcomes = [
        outcome_of(target, *(judged.get((place, state)) for state in STATES), model=manifest.model)
        for place, target in enumerate(targets)
    ]
    to_parquet(folder.outcomes, outcomes, AuditOutcome)
    _write_published(folder, targets, judged)
    chosen = {"cleaner": cleaner, "equivalence": equivalence}
    write_text(folder.path / _SETTINGS, json.dumps(chosen) + "\n")
    write_table(_lookup_rows(targets, judged), folder.checks / "lookups.csv")
    frame = audit_frame(outcomes)
    write_table(check_states(frame), folder.checks / "contamination.csv")
    return frame


def audit_frame(outcomes: Sequence[AuditOutcome]) -> "pd.DataFrame":
    """Gather outcomes into the frame that metrics and the report read.

    Args:
        outcomes: The outcomes.

    Returns:
        One row an outcome, columns of `AuditOutcome`; verdicts as nullable booleans, counts as
        nullable integers.
    """
    import pandas as pd

    columns = list(AuditOutcome.model_fields)
    rows = [tuple(getattr(item, name) for name in columns) for item in outcomes]
    kinds = {
        **dict.fromkeys(("first_correct", "second_correct", "full_correct", "has_gold"), "boolean"),
        **dict.fromkeys(("n_lookups", "n_abstained"), "Int64"),
        **dict.fromkeys(("full_f1", "first_f1", "second_f1"), "float64"),
    }
    return pd.DataFrame(rows, columns=columns).astype(kinds)


def _check_rule(name: str, rule: str, rules: Mapping[str, object]) -> None:
    """Refuse a rule that there is not."""
    if rule not in rules:
        raise ValueError(f"{name} must be one of {', '.join(rules)}; got {rule!r}")


def _judge(
    folder: AuditFolder,
    targets: Sequence[AuditTarget],
    manifest: RunManifest,
    *,
    cleaner: str,
    equivalence: str,
) -> dict[tuple[int, MemoryState], JudgedAnswer]:
    """Judge every answer of the log, and write it as a published row on the way."""
    given = _given(manifest)
    places = _places(folder, targets)
    judged: dict[tuple[int, MemoryState], JudgedAnswer] = {}
    with ResultFiles(folder.results) as files:
        for generation in read_generations(folder.generations):
            for place, state in places.get(generation.prompt_key or "", ()):
                target = targets[place]
                found = judged_answer(
                    target,
                    state,
                    generation,
                    cleaner=cleaner,
                    equivalence=equivalence,
                    given=given,
                )
                if found is not None:
                    judged[place, state] = found
                    files.write(target, state, generation)
    return judged


def _places(
    folder: AuditFolder, targets: Sequence[AuditTarget]
) -> dict[str, list[tuple[int, MemoryState]]]:
    """Find which targets and states each prompt of the log stands for."""
    asked = {
        target.prompt_id(state): (place, state)
        for place, target in enumerate(targets)
        for state in STATES
    }
    places: dict[str, list[tuple[int, MemoryState]]] = {}
    for prompt in read_jsonl(folder.prompts, Prompt):
        places.setdefault(prompt.key, []).append(asked[prompt.id])
    return places


def _given(manifest: RunManifest) -> Given | None:
    """Tell what the model of a run was given of each lookup."""
    n_facts = manifest.runner.get("n_facts")
    return accepted_candidates(n_facts) if isinstance(n_facts, int) else None


def _asked_states(manifest: RunManifest) -> tuple[str, ...]:
    """Read which states were asked."""
    return tuple(str(manifest.settings["states"]).split("+"))


def _write_published(folder: AuditFolder, targets: Sequence[AuditTarget], judged: _Judged) -> None:
    """Write the two tables of the published audit."""
    import pandas as pd

    cells: dict[str, list[int]] = {}
    for place, target in enumerate(targets):
        cells.setdefault(f"{target.database}/{target.style}", []).append(place)
    per_state, cross_state = [], []
    for places in cells.values():
        target = targets[places[0]]
        everything = []
        for state in STATES:
            answers = [
                judged[place, state].judgement for place in places if (place, state) in judged
            ]
            if answers:
                per_state.append(per_state_row(target, state, answers))
                everything += answers
        if everything:
            cross_state.append(cross_state_row(target, everything, list(_pairs(places, judged))))
    for rows, columns, file in (
        (per_state, PER_STATE_COLUMNS, folder.per_state),
        (cross_state, CROSS_STATE_COLUMNS, folder.cross_state),
    ):
        write_table(pd.DataFrame(rows, columns=list(columns)), file)


def _pairs(places: Sequence[int], judged: _Judged) -> Iterator[PairVerdicts]:
    """Pair the verdicts on each fact after deletion."""
    for place in places:
        first, second = judged.get((place, "DEL-ON")), judged.get((place, "DEL-OFF"))
        if first is not None and second is not None:
            yield PairVerdicts(
                del_on=first.judgement.is_correct,
                del_off=second.judgement.is_correct,
                has_gold=first.has_gold,
            )


def _lookup_rows(targets: Sequence[AuditTarget], judged: _Judged) -> Iterator[dict[str, Any]]:
    """Count lookups and abstentions by database and state."""
    rows: dict[tuple[str, MemoryState], dict[str, Any]] = {}
    for (place, state), answer in sorted(judged.items(), key=lambda item: item[0][0]):
        row = rows.setdefault(
            (targets[place].database, state),
            {"database": targets[place].database, "state": state}
            | dict.fromkeys(
                ("n_answers", "n_without_lookup", "n_lookups", "n_abstained", "n_fallback"), 0
            )
            | {"n_blank": 0},
        )
        row["n_answers"] += 1
        row["n_without_lookup"] += not answer.n_lookups
        for name in ("n_lookups", "n_abstained", "n_fallback", "n_blank"):
            row[name] += getattr(answer, name) or 0
    yield from rows.values()


def _warn_unscored(n_missing: int) -> None:
    """Say how many answers are missing."""
    if n_missing:
        warnings.warn(
            f"{n_missing} answers of the audit are missing, because the run is not finished or the "
            "model could not be asked; facts without them are left out of the tables",
            UnscoredWarning,
            stacklevel=3,
        )


def _first_error(log: Path) -> str:
    """Quote the first error of a run log."""
    errors = (generation.error for generation in read_generations(log))
    first = next((error for error in errors if error is not None), None)
    return "" if first is None else f", only errors such as {first!r}"
