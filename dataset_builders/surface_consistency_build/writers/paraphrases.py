"""Questions in other words: any runner paraphrases, a program checks, a person reviews.

RedirectQA asks every question in two wordings, its template and a paraphrase by GPT-4o (arXiv
2604.21882, section 2.3 and appendix B.2). Neither the request nor the paraphrases are printed.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from surface_consistency.engine.judging.judges import generate_cached, logged_answers
from surface_consistency.errors import DataError, RecordError, SourceNotFoundError
from surface_consistency.models.runner import Runner
from surface_consistency.rows.readers import Place
from surface_consistency.runs.log import read_manifest
from surface_consistency.schemas import Generation, GenerationParams, Prompt
from surface_consistency.schemas.settings import Settings
from surface_consistency.studies.redirectqa.data import RedirectQA
from surface_consistency.taxonomy import TEMPLATES
from surface_consistency_build.writers.paraphrase_prompts import paraphrase_prompt
from surface_consistency_build.writers.paraphrase_rows import (
    DROP_REASONS,
    ParaphraseCandidate,
    ParaphraseUnit,
    ParaphraseUnits,
    check_paraphrase,
    find_units,
    parse_paraphrases,
    select_candidates,
    write_paraphrase_rows,
)
from surface_consistency_build.writers.review_sheet import ReviewSheet, mark_of

_STUDY: Final = "paraphrases"
_LOG: Final = "writer.jsonl"
_SHEET: Final = ReviewSheet(
    shown=("id", "relation", "n_facts", "question", "paraphrase", "dropped"),
    filled=("keep", "corrected", "note"),
    marks=("keep",),
    unread=("note",),
)


class ParaphraseSettings(Settings):
    """How questions are paraphrased."""

    paraphrases: int = Field(default=1, ge=1)
    """Paraphrases of each question; the paper has one."""

    sharing: Literal["wording", "fact"] = "wording"
    """Whether all facts that are asked in one wording share its paraphrases, as in the paper, or
    each fact has its own."""

    attempts: int = Field(default=2, ge=1)
    """Requests a wording at most, where one leaves too few."""

    completion: bool = False
    """Whether requests are plain text, for models without a chat template."""

    max_new_tokens: int = Field(default=256, ge=1)
    """Longest answer of the writer, in tokens."""

    limit: int | None = Field(default=None, ge=1)
    """Take only so many facts, spread over the relations."""

    @property
    def params(self) -> GenerationParams:
        """Greedy decoding; plain text ends at a blank line, behind which it would go on asking."""
        stop = ("\n\n",) if self.completion else ()
        return GenerationParams(max_new_tokens=self.max_new_tokens, stop=stop)


class ParaphraseReviewSettings(Settings):
    """What the review is held against."""

    written: Path | None = None
    """Folder that build paraphrases wrote; that of the sheet by default."""

    unreviewed: Literal["refuse", "keep", "drop"] = "refuse"
    """What becomes of paraphrases of which the reviewer said nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParaphraseSummary:
    """What came of the questions."""

    n_wordings: int
    """Wordings that were paraphrased."""

    n_taken: int
    """Paraphrases of them that are in the data set."""

    n_rows: int
    """Rows of the data set, the original questions among them."""

    dropped: Mapping[str, int]
    """Paraphrases that are not taken, by reason."""

    left_out: Mapping[str, str]
    """Facts that stand in their original wording alone, and why."""

    short: tuple[str, ...]
    """Wordings with fewer paraphrases than asked for."""

    n_corrected: int = 0
    """Paraphrases in the reviewer's words."""


@dataclass(slots=True)
class _Draft:
    """Where one wording stands."""

    unit: ParaphraseUnit
    texts: list[str] = field(default_factory=list)
    candidates: list[ParaphraseCandidate] = field(default_factory=list)

    @property
    def taken(self) -> list[ParaphraseCandidate]:
        """The paraphrases that hold."""
        return [one for one in self.candidates if one.reason is None]


def write_paraphrases(
    data: RedirectQA,
    runner: Runner,
    out: str | os.PathLike[str],
    *,
    model: str,
    settings: ParaphraseSettings | None = None,
    progress: bool = False,
) -> ParaphraseSummary:
    """Let a runner paraphrase the questions of a data set, check them, and write the files.

    Started again with the same arguments it asks only what is not in the log.

    Args:
        data: The questions; those of other templates than the original are left out.
        runner: Who writes.
        out: Folder for `test.jsonl`, `review.csv` and `writer.jsonl`.
        model: Label of the writer.
        settings: How; None for the defaults.
        progress: Whether to show a progress bar on a terminal.

    Returns:
        What was written.

    Raises:
        DataError: If no question can be paraphrased, no paraphrase holds, or a reviewer has written
            into the `review.csv` of an earlier start.
        RunMismatchError: If the folder holds a run with other settings or questions.
    """
    settings = settings or ParaphraseSettings()
    data, units = _units(data, settings)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / _LOG

    def ask(prompts: Sequence[Prompt]) -> Mapping[str, Generation]:
        return generate_cached(
            runner,
            prompts,
            settings.params,
            log,
            manifest_path=log.with_suffix(".manifest.json"),
            model=model,
            data=data.source,
            study=_STUDY,
            settings=settings.model_dump(mode="json"),
            progress=progress,
        )

    drafts = _drafts(units, settings, ask)
    if not any(draft.taken for draft in drafts):
        reasons = ", ".join(f"{n} {reason}" for reason, n in _dropped(drafts).items())
        raise DataError(
            f"no paraphrase of {len(drafts)} wordings holds ({reasons or 'nothing was written'}); "
            f"take a model that follows instructions; its answers are in {log}"
        )
    _SHEET.write(folder / "review.csv", (row for draft in drafts for row in _rows(draft)))
    return _finish(data, units, drafts, settings, folder)


def apply_paraphrase_review(
    sheet: str | os.PathLike[str],
    data: RedirectQA,
    out: str | os.PathLike[str],
    *,
    settings: ParaphraseReviewSettings | None = None,
) -> ParaphraseSummary:
    """Make the data set of what a reviewer left.

    A paraphrase stays with yes under `keep`, goes with no, and gives way to a text under
    `corrected`, which is checked as a writer's is. What was dropped comes back by a correction.

    Args:
        sheet: The review sheet, filled in.
        data: The questions that it was written from.
        out: Folder for `test.jsonl`.
        settings: How; None for the defaults.

    Returns:
        What was written.

    Raises:
        SourceNotFoundError: If there is no sheet, or no log of what was written.
        ColumnNotFoundError: If a column of the sheet is gone.
        RecordError: If a row is none of those that were written, stands twice, or was changed
            outside the columns that are to be filled in; if a correction breaks a rule, or what was
            dropped is kept without one. Names file and line.
        RunLogError: If the log or its manifest is damaged.
        DataError: If the questions or the log are others, rows are gone, nothing was reviewed, or
            no paraphrase is left.
    """
    settings = settings or ParaphraseReviewSettings()
    path = Path(sheet)
    folder = settings.written or path.parent
    written_with, drafts, data, units = _written(folder, data)
    given = _read_sheet(path, drafts)
    if not any(cells["keep"] or cells["corrected"] for _, cells in given.values()):
        raise DataError(
            f"{path}: nobody has filled it in; write yes or no under `keep`, or a better question "
            "under `corrected`"
        )
    n_corrected = 0
    for draft in drafts:
        passed: list[ParaphraseCandidate] = []
        for one in draft.candidates:
            place, cells = given[one.id]
            reviewed = _reviewed(one, place, cells, draft.unit, passed, settings.unreviewed)
            n_corrected += bool(cells["corrected"])
            if reviewed is not None:
                passed.append(reviewed)
        taken = {one.id for one in passed}
        others = (one for one in draft.candidates if one.id not in taken)
        refused = (replace(one, reason=one.reason or "refused") for one in others)
        draft.candidates = [*passed, *refused]
    if not any(draft.taken for draft in drafts):
        raise DataError(f"{path}: no paraphrase is left; every row is refused")
    place_out = Path(out)
    place_out.mkdir(parents=True, exist_ok=True)
    done = _finish(data, units, drafts, written_with, place_out)
    return replace(done, n_corrected=n_corrected)


def _units(data: RedirectQA, settings: ParaphraseSettings) -> tuple[RedirectQA, ParaphraseUnits]:
    """Choose the questions, and find what is paraphrased."""
    data = data.select(templates=TEMPLATES[0], limit=settings.limit)
    units = find_units(data.questions, sharing=settings.sharing)
    if not units.units:
        reason = next(iter(units.left_out.values()), "there are no questions")
        raise DataError(f"no question of {data.source.id} can be paraphrased: {reason}")
    return data, units


def _drafts(
    units: ParaphraseUnits,
    settings: ParaphraseSettings,
    ask: Callable[[Sequence[Prompt]], Mapping[str, Generation]],
) -> list[_Draft]:
    """Ask until there are enough paraphrases, or the attempts are used up."""
    drafts = [_Draft(unit) for unit in units.units]
    for attempt in range(1, settings.attempts + 1):
        pending = [draft for draft in drafts if len(draft.taken) < settings.paraphrases]
        prompts = [_prompt(draft, settings, attempt) for draft in pending]
        answers = ask(prompts) if prompts else {}
        for draft, prompt in zip(pending, prompts, strict=True):
            answer = answers.get(prompt.key)
            text = (answer.text if answer is not None else None) or ""
            draft.texts += parse_paraphrases(f"1. {text}" if settings.completion else text)
            draft.candidates = select_candidates(
                draft.texts, draft.unit, number=settings.paraphrases
            )
    return drafts


def _prompt(draft: _Draft, settings: ParaphraseSettings, attempt: int) -> Prompt:
    """Ask for a wording's paraphrases, or for those that are still missing."""
    return paraphrase_prompt(
        draft.unit.question,
        draft.unit.name,
        number=settings.paraphrases - len(draft.taken),
        prompt_id=f"{draft.unit.id}/write/{attempt}",
        taken=tuple(dict.fromkeys(draft.texts)),
        prompt_format="completion" if settings.completion else "chat",
    )


def _rows(draft: _Draft) -> list[tuple[str, ...]]:
    """Lay the paraphrases of a wording out for the sheet."""
    unit = draft.unit
    rows: list[tuple[str, ...]] = []
    for one in draft.candidates:
        dropped = "" if one.reason is None else DROP_REASONS[one.reason]
        n_facts = str(len(unit.facts) - len(one.refused_facts))
        rows.append((one.id, unit.relation, n_facts, unit.question, one.text, dropped))
    return rows


def _written(
    folder: Path, data: RedirectQA
) -> tuple[ParaphraseSettings, list[_Draft], RedirectQA, ParaphraseUnits]:
    """Read again what was written, from the log and its manifest."""
    log = folder / _LOG
    described = log.with_suffix(".manifest.json")
    if not (log.is_file() and described.is_file()):
        raise SourceNotFoundError(
            f"{folder} holds no {_LOG} with its manifest; name the folder that `build paraphrases` "
            "wrote by `written`"
        )
    manifest = read_manifest(described)
    if manifest.study != _STUDY:
        raise DataError(
            f"{log} is of {manifest.study}, not of {_STUDY}; name the folder that `build "
            "paraphrases` wrote by `written`"
        )
    settings = ParaphraseSettings.model_validate(manifest.settings)
    data, units = _units(data, settings)
    if data.source.digest != manifest.data.digest:
        raise DataError(
            f"the questions are not those that {folder} was written from "
            f"({manifest.data.id}); give the same `source`"
        )
    if not log.stat().st_size:
        raise DataError(
            f"{log} holds no answers: the build was stopped before its first; give the command of "
            "`build paraphrases` again, it goes on"
        )
    drafts = _drafts(units, settings, partial(logged_answers, log))
    if not any(draft.candidates for draft in drafts):
        raise DataError(
            f"{log} answers none of the requests of this version of the package; it was written "
            f"by {manifest.package_version}; take that version, or write the paraphrases again"
        )
    return settings, drafts, data, units


def _read_sheet(path: Path, drafts: Sequence[_Draft]) -> dict[str, tuple[Place, Mapping[str, str]]]:
    """Read the sheet, and hold what the reviewer was shown against what was written."""
    shown = {row[0]: row for draft in drafts for row in _rows(draft)}
    given: dict[str, tuple[Place, Mapping[str, str]]] = {}
    for place, cells in _SHEET.read(path):
        name = cells["id"]
        if name not in shown:
            raise RecordError(
                f"{place}: there is no paraphrase {name!r}; leave the column `id` as it was written"
            )
        if name in given:
            raise RecordError(f"{place}: paraphrase {name!r} stands twice; keep one row")
        for column, text in zip(_SHEET.shown, shown[name], strict=True):
            if cells[column].removesuffix(".0") != text.strip().removesuffix(".0"):
                raise RecordError(
                    f"{place}: column {column!r} of {name!r} was changed from {text!r} to "
                    f"{cells[column]!r}; undo that, and write a better question under `corrected`"
                )
        given[name] = (place, cells)
    if lost := [name for name in shown if name not in given]:
        raise DataError(
            f"{path}: {len(lost)} rows are gone, such as {lost[0]!r}; a paraphrase is left out by "
            "a no under `keep`, not by deleting its row"
        )
    return given


def _reviewed(
    one: ParaphraseCandidate,
    place: Place,
    cells: Mapping[str, str],
    unit: ParaphraseUnit,
    passed: Sequence[ParaphraseCandidate],
    unreviewed: str,
) -> ParaphraseCandidate | None:
    """Decide on one paraphrase; None when it goes."""
    mark, text = mark_of(cells["keep"]), " ".join(cells["corrected"].split())
    if not text and mark is None and one.reason is None:
        if unreviewed == "refuse":
            raise DataError(
                f"{place}: nobody has said anything of {one.id!r}; write yes or no under `keep`, "
                "or say what becomes of such rows by `unreviewed`: keep or drop"
            )
        mark = unreviewed == "keep"
    if not (text or mark):
        return None
    text = text or one.text
    reason, refused = check_paraphrase(text, unit, taken=[other.text for other in passed])
    if reason is not None:
        raise RecordError(
            f"{place}: {text!r} cannot be taken, since {DROP_REASONS[reason]}; write another "
            f"question about {unit.name!r} under `corrected`, or leave both columns empty"
        )
    return replace(one, text=text, reason=None, refused_facts=refused)


def _dropped(drafts: Sequence[_Draft]) -> Counter[str]:
    """Count what is not taken by reason."""
    reasons = (one.reason for draft in drafts for one in draft.candidates)
    return Counter(DROP_REASONS[reason] for reason in reasons if reason is not None)


def _finish(
    data: RedirectQA,
    units: ParaphraseUnits,
    drafts: Sequence[_Draft],
    settings: ParaphraseSettings,
    folder: Path,
) -> ParaphraseSummary:
    """Write the rows, and sum up."""
    taken = {draft.unit.id: draft.taken for draft in drafts}
    n_rows = write_paraphrase_rows(folder / "test.jsonl", units, taken, data.questions)
    return ParaphraseSummary(
        n_wordings=len(drafts),
        n_taken=sum(map(len, taken.values())),
        n_rows=n_rows,
        dropped=_dropped(drafts),
        left_out=dict(units.left_out),
        short=tuple(
            draft.unit.wording for draft in drafts if len(draft.taken) < settings.paraphrases
        ),
    )
