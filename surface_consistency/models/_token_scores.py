"""Log-probabilities of the tokens of texts, in batches that share prefixes."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from surface_consistency.errors import RunnerError
from surface_consistency.models._batching import common_prefix_length, cut_batches
from surface_consistency.models._engine import Batch, Engine, shared_batch
from surface_consistency.reading import shown
from surface_consistency.schemas.scoring import ScoredText, ScoringRequest

if TYPE_CHECKING:
    import torch

_CHUNK = 1024
_LOGITS = 2**26  # a quarter of a GiB in 32 bits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Row:
    """The tokens of a request; those from `start` on are scored."""

    request: ScoringRequest
    ids: "array[int]"
    start: int
    boundary: Literal["clean", "moved"]

    @property
    def first(self) -> int:
        """Index of the first scored token that has a token before it."""
        return max(self.start, 1)

    @property
    def n_read(self) -> int:
        """Number of tokens whose log-probability is computed from logits."""
        return len(self.ids) - self.first


@dataclass(kw_only=True, eq=False)
class TokenScorer:
    """Scores requests with a model; shared prefixes of a group are computed once."""

    engine: Engine
    """The model."""

    tokenizer: Any
    """Its tokenizer, which must be a fast one."""

    label: str
    """Name of the model, for error messages."""

    context: int | None
    """Maximum number of tokens of a text; None for no limit."""

    batch_size: int
    """Maximum number of texts per batch."""

    reuse_prefix: bool
    """Whether texts of a group may share a prefix."""

    shuffle_seed: int | None
    """Seed of a random composition of batches; None for the default order."""

    def batches(self, requests: Sequence[ScoringRequest]) -> Iterator[list[list[_Row]]]:
        """Tokenise and check all requests, then yield batches.

        Rows of a batch with the same input tokens are in one list, and share one forward pass.
        """
        members: dict[bytes, list[_Row]] = {}
        for row in self._rows(requests):
            members.setdefault(bytes(row.ids[:-1]) or b"\0" + bytes(row.ids), []).append(row)
        same = list(members.values())
        for places in cut_batches(
            [len(rows[0].ids) for rows in same],
            [rows[0].request.group or rows[0].request.context for rows in same],
            batch_size=self.batch_size,
            shuffle_seed=self.shuffle_seed,
        ):
            yield [same[place] for place in places]

    def score(self, batch: Sequence[Sequence[_Row]]) -> list[ScoredText]:
        """Score one batch; returns every text under its id."""
        scored = [_scored(row, None) for same in batch for row in same if row.n_read == 0]
        rows = [same for same in batch if max(row.n_read for row in same) > 0]
        while rows:
            n_last = max(row.n_read for same in rows for row in same)
            n_rows = max(1, _LOGITS // (n_last * self.engine.vocabulary))
            part, rows = rows[:n_rows], rows[n_rows:]
            n_last = max(row.n_read for same in part for row in same)
            logits = self.engine.score(self._lay_out(part), n_last)
            for same, of_row in zip(part, logits, strict=True):
                scored += [_scored(row, of_row) for row in same if row.n_read]
        return scored

    def _lay_out(self, rows: Sequence[Sequence[_Row]]) -> Batch:
        """Split rows into the prefixes of their contexts and the rest, if that saves work."""
        inputs = [same[0].ids[:-1] for same in rows]
        if not self.reuse_prefix:
            return Batch(suffixes=inputs)
        members: dict[str, list[int]] = {}
        for place, same in enumerate(rows):
            request = same[0].request
            members.setdefault(request.group or request.context, []).append(place)
        shared: list[tuple[int, ...]] = [()] * len(rows)
        for places in members.values():
            # The prefix ends before the tokens that predict scored tokens: it has no logits.
            n = min(
                common_prefix_length([inputs[place] for place in places]),
                *(row.first - 1 for place in places for row in rows[place]),
            )
            for place in places:
                shared[place] = tuple(inputs[place][:n])
        return shared_batch(inputs, shared)

    def _rows(self, requests: Sequence[ScoringRequest]) -> Iterator[_Row]:
        """Tokenise requests, and raise an error for those that do not fit."""
        if not getattr(self.tokenizer, "is_fast", False):
            raise RunnerError(
                f"the tokenizer of {self.label} does not return the characters of its tokens, so "
                "context and continuation cannot be separated; save it as a fast tokenizer "
                "(tokenizer.json)"
            )
        for start in range(0, len(requests), _CHUNK):
            chunk = requests[start : start + _CHUNK]
            for adds_special in (True, False):
                part = [item for item in chunk if (item.bos == "model") == adds_special]
                if part:
                    yield from self._encoded(part, adds_special=adds_special)

    def _encoded(self, requests: Sequence[ScoringRequest], *, adds_special: bool) -> Iterator[_Row]:
        """Tokenise requests with or without special tokens."""
        encoded = self.tokenizer(
            [request.context + request.continuation for request in requests],
            add_special_tokens=adds_special,
            return_attention_mask=False,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            verbose=False,
        )
        for request, ids, spans, special in zip(
            requests,
            encoded["input_ids"],
            encoded["offset_mapping"],
            encoded["special_tokens_mask"],
            strict=True,
        ):
            yield self._checked(self._row(request, ids, spans, special))

    def _row(
        self,
        request: ScoringRequest,
        ids: Sequence[int],
        spans: Sequence[tuple[int, int]],
        special: Sequence[int],
    ) -> _Row:
        """Find the first token of the continuation by the characters that tokens cover."""
        n_context, covered = len(request.context), 0
        last = max((place for place, added in enumerate(special) if not added), default=-1)
        # Some tokenizers omit a leading space from a token's span, so uncovered characters are
        # part of the next token.
        for place, (begin, end) in enumerate(spans):
            if special[place]:
                continue
            if end > n_context or not n_context:
                is_moved = min(begin, covered) < n_context
                break
            covered = max(covered, end)
        else:
            raise RunnerError(
                f"the continuation {shown(request.continuation)} of request {shown(request.id)} "
                f"has no tokens in {self.label}; give it some text"
            )
        token_ids = list(ids[: last + 1])
        if place == 0:
            before = self._before(request)
            token_ids, place = before + token_ids, len(before)
        return _Row(
            request=request,
            ids=array("i", token_ids),
            start=place,
            boundary="moved" if is_moved else "clean",
        )

    def _before(self, request: ScoringRequest) -> list[int]:
        """Return the token before the first one, by the option `bos` of the request."""
        if request.bos == "none":
            return []
        name, token, other = "end", self.tokenizer.eos_token_id, '"model" for the begin token'
        if request.bos == "model":
            name, token, other = "begin", self.tokenizer.bos_token_id, '"eos" for the end token'
        if token is None:
            raise RunnerError(
                f"{self.label} has no {name} token to put before request {shown(request.id)}, a "
                "text "
                f'without context; use bos={other}, or bos="none", which excludes its first '
                "token"
            )
        return [token]

    def _checked(self, row: _Row) -> _Row:
        """Raise an error for a row that the model cannot process."""
        vocabulary = self.engine.vocabulary
        if max(row.ids) >= vocabulary:
            raise RunnerError(
                f"the tokenizer of {self.label} returns token {max(row.ids)} for request "
                f"{shown(row.request.id)}, but the vocabulary has {vocabulary} tokens; use the "
                "tokenizer of the model"
            )
        if self.context is not None and len(row.ids) - 1 > self.context:
            raise RunnerError(
                f"request {shown(row.request.id)} has {len(row.ids):,} tokens; {self.label} "
                f"accepts {self.context:,}: shorten its context, or use a model with more context"
            )
        return row


def _scored(row: _Row, logits: "torch.Tensor | None") -> ScoredText:
    """Compute the log-probabilities of a row's tokens, in 32 bits for any dtype of the model."""
    import torch

    unscored: list[float | None] = [None] * (row.first - row.start)
    log_probabilities = list(unscored)
    is_greedy, means, deviations = None, None, None
    if logits is not None:
        of_row = logits[-row.n_read :].float()
        targets = torch.tensor(row.ids[row.first :], device=of_row.device)
        of_targets = of_row.gather(-1, targets[:, None])[:, 0] - of_row.logsumexp(-1)
        if bool(of_targets.isnan().any()):
            raise RunnerError(
                f"the logits of the model for request {shown(row.request.id)} are NaN; load it "
                "with dtype='float32', and check that its weights are complete"
            )
        # Rounding can give a log-probability slightly above 0.
        log_probabilities += of_targets.clamp(max=0.0).tolist()
        is_greedy = bool((of_row.argmax(-1) == targets).all())
        if row.request.vocabulary_moments:
            of_all = of_row.log_softmax(-1)
            weights = of_all.exp()
            # A token of probability 0 contributes 0, although its logarithm is infinite.
            of_all = of_all.where(weights > 0.0, 0.0)
            mean = (weights * of_all).sum(-1)
            spread = (weights * (of_all - mean[:, None]).square()).sum(-1).sqrt()
            means = (*unscored, *mean.tolist())
            deviations = (*unscored, *spread.tolist())
    return ScoredText(
        request_id=row.request.id,
        log_probabilities=tuple(log_probabilities),
        token_ids=tuple(row.ids[row.start :]),
        n_context_tokens=row.start,
        is_greedy=is_greedy,
        boundary=row.boundary,
        vocabulary_means=means,
        vocabulary_deviations=deviations,
    )
