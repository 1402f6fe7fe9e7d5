"""A scorer over log-probabilities that were told elsewhere."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue, ValidationError

from surface_consistency.errors import DataError, RecordError, RunnerError
from surface_consistency.models.runner import Runner
from surface_consistency.reading import existing_file, file_digest, first_names, shown
from surface_consistency.results.archives import packed_rows
from surface_consistency.results.rows import question_of
from surface_consistency.results.samples import is_sample, log_probability, sample_options
from surface_consistency.rows.readers import Place
from surface_consistency.schemas.jsonl import describe_validation_error
from surface_consistency.schemas.scoring import ScoredText, ScoringRequest

_FIELDS = ("log_probabilities", "token_ids", "tokens", "n_context_tokens", "is_greedy", "boundary")


class _Stored(NamedTuple):
    """A score and the line that tells it."""

    score: ScoredText
    place: Place


class StoredScores(Runner):
    """Tells stored log-probabilities, so that anyone's are read as answers without a model.

    A file is JSONL or CSV. A row is one of three:

    - a `ScoredText`, which goes by `request_id`: that of an option is the prompt's id, a line feed,
      and the option's number from 0;
    - a text: `context`, `continuation`, and either `log_probability`, the sum over its tokens, or
      `log_probabilities` with `token_ids` or `tokens`;
    - a sample of lm-evaluation-harness with log-likelihoods (`--log_samples`): each of its
      arguments is a context and a continuation.

    A request is looked up by its id, else by its context and continuation, else by the question
    with which its context ends ("Q: ... A:") and the continuation, white space around it aside,
    where one row alone has those.

    Args:
        scores: The file.

    Raises:
        SourceNotFoundError: If there is no such file.
        DataError: If the kind of file is unknown or it holds no row.
        RecordError: If a row is broken, or says of a text what another row denies; names the line.
    """

    name: str = "stored-scores"
    """The runner's name."""

    is_stored: bool = True
    """The answers are stored."""

    def __init__(self, scores: str | os.PathLike[str]) -> None:
        file = existing_file(Path(scores), "a file of stored log-probabilities", "*.jsonl")
        self._file = file
        self._by_key: dict[object, _Stored] = {}
        self._by_question: dict[tuple[str, str], _Stored | None] = {}
        n_rows = 0
        for place, fields in packed_rows(file):
            n_rows += 1
            for request, score in _read(fields, place):
                self._keep(request, _Stored(score, place))
        if not n_rows:
            raise DataError(f"{file} holds no log-probabilities; it is empty")

    def fingerprint(self) -> dict[str, JsonValue]:
        """Tell the file's name and digest."""
        return {
            "runner": self.name,
            "source": self._file.name,
            "sha256": file_digest(self._file),
            "n_scores": len(self._by_key),
        }

    def score(self, requests: Sequence[ScoringRequest]) -> Iterator[ScoredText]:
        """Look log-probabilities up; see `Runner.score`.

        Args:
            requests: What to score.

        Yields:
            One scored text for each request, in order.

        Raises:
            RunnerError: If one is not stored; names the first and how many.
        """
        pairs = [(request, self._find(request)) for request in requests]
        missing = [request for request, stored in pairs if stored is None]
        if missing:
            first = missing[0]
            raise RunnerError(
                f"{self._file} has no log-probability of {len(missing):,} of {len(pairs):,} texts, "
                f"the first {shown(first.continuation)} after {shown(_end_of(first.context))} "
                f"(request {shown(first.id)}); store them too, or ask what is stored alone "
                "(`limit`, `calibrate=False`)"
            )
        for request, stored in pairs:
            if stored is not None:
                yield stored.score.model_copy(update={"request_id": request.id})

    def _keep(self, request: ScoringRequest | None, stored: _Stored) -> None:
        """Store a score under all that it may be asked by."""
        if request is None:
            self._put(stored.score.request_id, stored)
            return
        self._put((request.context, request.continuation), stored)
        question = question_of(request.context)
        if question is not None:
            name = (question, request.continuation.strip())
            known = self._by_question.setdefault(name, stored)
            if known is not None and not _agree(known.score, stored.score):
                self._by_question[name] = None

    def _put(self, key: object, stored: _Stored) -> None:
        """Store a score; refuse a second one that says something else."""
        known = self._by_key.setdefault(key, stored)
        if not _agree(known.score, stored.score):
            raise RecordError(
                f"{stored.place}: another log-probability of the same text than that of "
                f"{known.place}; keep one of them"
            )

    def _find(self, request: ScoringRequest) -> _Stored | None:
        """Find the score of a request."""
        stored = self._by_key.get(request.id)
        if stored is None:
            stored = self._by_key.get((request.context, request.continuation))
        question = question_of(request.context)
        if stored is None and question is not None:
            stored = self._by_question.get((question, request.continuation.strip()))
        return stored


def _read(
    fields: Mapping[str, Any], place: Place
) -> Iterator[tuple[ScoringRequest | None, ScoredText]]:
    """Read the texts of a row with their scores; None for a row that goes by an id."""
    if is_sample(fields):
        yield from _of_sample(fields, place)
        return
    given = {name: fields[name] for name in _FIELDS if fields.get(name) not in (None, "")}
    if "log_probability" in fields and "log_probabilities" not in given:
        given["log_probabilities"] = (log_probability(fields["log_probability"], place),)
    if "log_probabilities" not in given:
        raise RecordError(
            f"{place}: no field 'log_probability' or 'log_probabilities'; saw "
            f"{first_names(list(fields))}"
        )
    if fields.get("request_id"):
        yield None, _score(fields["request_id"], given, place)
    elif isinstance(fields.get("context"), str) and fields.get("continuation"):
        request = ScoringRequest(
            id="stored", context=fields["context"], continuation=str(fields["continuation"])
        )
        yield request, _score("stored", given, place)
    else:
        raise RecordError(
            f"{place}: a row names its text by 'request_id', or by 'context' and 'continuation'; "
            f"saw {first_names(list(fields))}"
        )


def _of_sample(
    fields: Mapping[str, Any], place: Place
) -> Iterator[tuple[ScoringRequest | None, ScoredText]]:
    """Read a sample of lm-evaluation-harness: the log-likelihood of each argument."""
    options = sample_options(fields, place)
    if options is None:
        raise RecordError(
            f"{place}: a sample without log-likelihoods; only those of tasks that compare "
            "options (output_type multiple_choice or loglikelihood) hold them: score generated "
            "texts with `runner=stored`"
        )
    for context, text, value, is_greedy in options:
        yield (
            ScoringRequest(id="stored", context=context, continuation=text),
            _score("stored", {"log_probabilities": (value,), "is_greedy": is_greedy}, place),
        )


def _score(request_id: object, given: Mapping[str, Any], place: Place) -> ScoredText:
    """Make the record of a row."""
    try:
        return ScoredText(request_id=str(request_id), **given)
    except ValidationError as error:
        raise RecordError(f"{place}: {describe_validation_error(error)}") from error


def _agree(one: ScoredText, other: ScoredText) -> bool:
    """Tell whether two rows say the same of a text, rounding aside."""
    return math.isclose(one.log_probability, other.log_probability, rel_tol=0.0, abs_tol=1e-6)


def _end_of(context: str) -> str:
    """Show the end of a context."""
    return context if len(context) <= 60 else f"...{context[-60:]}"
