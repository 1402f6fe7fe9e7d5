"""A runner that returns stored log-probabilities."""

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
    """A score and the line of its source."""

    score: ScoredText
    place: Place


class StoredScores(Runner):
    """Returns stored log-probabilities, from which options are chosen as answers without a model.

    A file is JSONL or CSV. Each row has one of three forms:

    - a `ScoredText`, identified by `request_id`: for an option, the prompt's id, a line feed, and
      the option's number from 0;
    - a text: `context`, `continuation`, and either `log_probability`, the sum over its tokens, or
      `log_probabilities` with `token_ids` or `tokens`;
    - a sample of lm-evaluation-harness with log-likelihoods (`--log_samples`): each of its
      arguments is a context and a continuation.

    A request is looked up by its id, else by its context and continuation, else by the question at
    the end of its context ("Q: ... A:") and the continuation without surrounding white space, if
    these identify a single score.

    Args:
        scores: The file.

    Raises:
        SourceNotFoundError: If the file does not exist.
        DataError: If the kind of file is unknown or it contains no rows.
        RecordError: If a row is invalid, or contradicts another row; the message names the line.
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
            raise DataError(f"{file} contains no log-probabilities; it is empty")

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return name and digest of the file, and the number of scores."""
        return {
            "runner": self.name,
            "source": self._file.name,
            "sha256": file_digest(self._file),
            "n_scores": len(self._by_key),
        }

    def score(self, requests: Sequence[ScoringRequest]) -> Iterator[ScoredText]:
        """Look up log-probabilities; see `Runner.score`.

        Args:
            requests: The texts.

        Yields:
            One scored text for each request, in order.

        Raises:
            RunnerError: If texts are not stored; the message contains the first one and their
                number.
        """
        pairs = [(request, self._find(request)) for request in requests]
        missing = [request for request, stored in pairs if stored is None]
        if missing:
            first = missing[0]
            raise RunnerError(
                f"{self._file} has no log-probability of {len(missing):,} of {len(pairs):,} texts, "
                f"the first {shown(first.continuation)} after {shown(_end_of(first.context))} "
                f"(request {shown(first.id)}); store them too, or request only stored texts "
                "(`limit`, `calibrate=False`)"
            )
        for request, stored in pairs:
            if stored is not None:
                yield stored.score.model_copy(update={"request_id": request.id})

    def _keep(self, request: ScoringRequest | None, stored: _Stored) -> None:
        """Store a score under all keys by which it is looked up."""
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
        """Store a score; raise an error if another one with the same key differs."""
        known = self._by_key.setdefault(key, stored)
        if not _agree(known.score, stored.score):
            raise RecordError(
                f"{stored.place}: the log-probability of the text differs from that at "
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
    """Read the texts of a row with their scores; None for a row with a request id."""
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
            f"{place}: a row identifies its text by 'request_id', or by 'context' and "
            f"'continuation'; saw {first_names(list(fields))}"
        )


def _of_sample(
    fields: Mapping[str, Any], place: Place
) -> Iterator[tuple[ScoringRequest | None, ScoredText]]:
    """Read a sample of lm-evaluation-harness: the log-likelihood of each argument."""
    options = sample_options(fields, place)
    if options is None:
        raise RecordError(
            f"{place}: the sample contains no log-likelihoods; only samples of tasks that "
            "compare options (output_type multiple_choice or loglikelihood) contain them. Score "
            "generated texts with `runner=stored`"
        )
    for context, text, value, is_greedy in options:
        yield (
            ScoringRequest(id="stored", context=context, continuation=text),
            _score("stored", {"log_probabilities": (value,), "is_greedy": is_greedy}, place),
        )


def _score(request_id: object, given: Mapping[str, Any], place: Place) -> ScoredText:
    """Create the record of a row."""
    try:
        return ScoredText(request_id=str(request_id), **given)
    except ValidationError as error:
        raise RecordError(f"{place}: {describe_validation_error(error)}") from error


def _agree(one: ScoredText, other: ScoredText) -> bool:
    """Return whether two rows have the same log-probability, up to rounding."""
    return math.isclose(one.log_probability, other.log_probability, rel_tol=0.0, abs_tol=1e-6)


def _end_of(context: str) -> str:
    """Return the end of a context, for messages."""
    return context if len(context) <= 60 else f"...{context[-60:]}"
