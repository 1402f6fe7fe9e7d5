"""Multiple choice: answers by the log-probabilities of options instead of generated text."""

import math
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Final, Literal, get_args

from pydantic import JsonValue

from surface_consistency.errors import DataError, RunnerError
from surface_consistency.models.reasoning import reasoning_tags
from surface_consistency.models.runner import Runner
from surface_consistency.reading import shown
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.prompts import GenerationParams, Prompt
from surface_consistency.schemas.scoring import OptionScore, ScoredText, ScoringRequest, best_option

TIE: Final = "tie: options are equally probable, so none is chosen"
"""Reason for a missing answer if the best options have equal scores."""

_PROMPTS_PER_BATCH = 64
_EVEN: Final = 1e-9


class MultipleChoiceRunner(Runner):
    """Answers each prompt with the most probable of its options.

    The generation of a prompt contains the log-probabilities of all options, token by token, so
    that another `option_score` can be computed later from the log. With `majority`, an option is
    the answer only if it is more probable than all others together, so its log-odds are above 0; if
    they are below 0, the answer is blank. If several options have the greatest score, or the
    log-odds are 0, there is no answer (`finish_reason` "tie").

    Args:
        runner: A runner that defines `score`.
        option_score: Score of an option: the sum of its log-probabilities ("sum", `acc` of
            lm-evaluation-harness), or the sum divided by its number of tokens ("per_token"), or of
            characters without leading space ("per_character", `acc_norm` of the harness).
        majority: Whether an option is the answer only if it is more probable than all others
            together.
        spellings: Whether options that differ only in letter case and outer spaces are one answer,
            which has the sum of their probabilities.

    Raises:
        RunnerError: If the runner does not define `score`.
        ValueError: If `option_score` is unknown.
    """

    name: str
    """The name of the runner that computes the scores."""

    def __init__(
        self,
        runner: Runner,
        *,
        option_score: OptionScore = "sum",
        majority: bool = False,
        spellings: bool = False,
    ) -> None:
        if option_score not in get_args(OptionScore):
            raise ValueError(
                f"option_score must be one of {', '.join(get_args(OptionScore))}, got "
                f"{shown(option_score)}"
            )
        runner.score(())  # Raises an error early if the runner cannot score.
        self._runner = runner
        self._option_score: OptionScore = option_score
        self._majority = majority
        self._spellings = spellings
        self.name = runner.name
        self.is_stored = runner.is_stored

    def fingerprint(self) -> dict[str, JsonValue]:
        """Return the fingerprint of the runner, and how options are compared."""
        details = {**self._runner.fingerprint(), "option_score": self._option_score}
        return {**details, "majority": True} if self._majority else details

    def rebatched(self, seed: int) -> "MultipleChoiceRunner":
        """Return a runner of the same model with another composition of batches, if possible.

        Args:
            seed: Seed of the other composition.

        Returns:
            The runner.
        """
        again = copy(self)
        again._runner = self._runner.rebatched(seed)
        return again

    def plan(
        self, prompts: Sequence[Prompt], params: GenerationParams
    ) -> Iterator[Sequence[Prompt]]:
        """Divide the run into batches, prompts of a group together; see `Runner.plan`."""
        ordered = sorted(prompts, key=lambda prompt: prompt.group or "")
        for start in range(0, len(ordered), _PROMPTS_PER_BATCH):
            yield ordered[start : start + _PROMPTS_PER_BATCH]

    def generate(self, prompts: Sequence[Prompt], params: GenerationParams) -> Iterator[Generation]:
        """Choose an option for each prompt.

        Args:
            prompts: The prompts; each has options.
            params: Not used: nothing is generated.

        Yields:
            One generation for each prompt, with the chosen option as its text.

        Raises:
            RunnerError: If a prompt has no options or ends within reasoning, or an option cannot
                be scored.
            RunnerError: If a prompt and an option do not fit the model's context.
        """
        requests = [request for prompt in prompts for request in self._requests(prompt)]
        scored = {score.request_id: score for score in self._runner.score(requests)}
        if scored.keys() != {request.id for request in requests}:
            raise RunnerError(
                f"runner {shown(self.name)} returned log-probabilities of {len(scored)} texts for "
                f"{len(requests)} requests, or under other ids; the first request is "
                f"{shown(requests[0].id)}. Yield one `ScoredText` per request, with "
                "`request_id=request.id`"
            )
        for prompt in prompts:
            options = prompt.options or ()
            scores = tuple(
                scored[_id(prompt, number)].model_copy(update={"request_id": str(number)})
                for number in range(len(options))
            )
            values = option_scores(options, scores, self._option_score)
            text = self._chosen(options, values)
            yield Generation(
                prompt_id=prompt.id,
                text=text,
                finish_reason="stop" if text is not None else "tie",
                error=None if text is not None else TIE,
                scores=scores,
            )

    def _chosen(self, options: Sequence[str], values: Sequence[float]) -> str | None:
        """Choose an option by the scores; None if the best scores are equal."""
        if self._spellings:
            options, values = _merged(options, values)
        best = best_option(values)
        if not self._majority:
            return None if best is None else options[best]
        odds = option_log_odds(values, values.index(max(values)))
        if is_even(odds):
            return None
        return "" if best is None or odds < 0.0 else options[best]

    def _requests(self, prompt: Prompt) -> Iterator[ScoringRequest]:
        """Yield a scoring request for each option after the prompt."""
        if not prompt.options:
            raise RunnerError(
                f"prompt {shown(prompt.id)} has no options to choose from; set `read=generate`"
            )
        context = prompt.text
        bos: Literal["model", "none"] = "model"
        if context is None:
            context, bos = self._runner.render(prompt), "none"
            if reasoning_tags().is_opened_by(context):
                raise RunnerError(
                    f"the chat template of runner {shown(self.name)} opens reasoning before the "
                    "answer (the prompt ends with an opening tag such as <think>), so options "
                    "would be scored as reasoning; set `read=generate`, or use a template without "
                    "such a tag"
                )
        for number, option in enumerate(prompt.options):
            yield ScoringRequest(
                id=_id(prompt, number),
                context=prompt.contexts[number] if prompt.contexts else context,
                continuation=option,
                group=prompt.group,
                bos=bos,
                vocabulary_moments=prompt.vocabulary_moments,
            )


def option_scores(
    options: Sequence[str], scores: Sequence[ScoredText], option_score: OptionScore = "sum"
) -> list[float]:
    """Compute the score of each option; scores other than "sum" are normalised by length.

    Args:
        options: The options.
        scores: Their log-probabilities, in the same order.
        option_score: The sum in nats, or the sum per token, or per character without leading space.

    Returns:
        One score per option, at most 0; higher is more probable.

    Raises:
        RunnerError: If "per_token" is requested and only sums were stored.

    Examples:
        >>> tokens = ScoredText(request_id="0", token_ids=(5, 6), log_probabilities=(-1.0, -2.0))
        >>> option_scores([" Rome"], [tokens], "per_character")
        [-0.75]
    """
    sums = [score.log_probability for score in scores]
    if option_score == "sum":
        return sums
    if option_score == "per_character":
        lengths: list[int | None] = [max(len(option.lstrip()), 1) for option in options]
    else:
        lengths = [score.n_scored for score in scores]
    means = []
    for total, length in zip(sums, lengths, strict=True):
        if length is None:
            raise RunnerError(
                "the stored scores are sums without tokens, so they cannot be divided by tokens; "
                "use `option_score=sum` or `per_character`"
            )
        means.append(total / length)
    return means


def check_scores_of_options(
    prompt_ids: Iterable[str],
    options: Iterable[Sequence[str]],
    scores: Iterable[Sequence[ScoredText] | None],
) -> None:
    """Raise an error for answers whose log-probabilities cannot be those of their options.

    Args:
        prompt_ids: Identifiers of the prompts, for the message.
        options: The options of each prompt.
        scores: Their stored log-probabilities; None for an answer without them.

    Raises:
        DataError: If the number of log-probabilities of an answer differs from that of options.
    """
    for prompt_id, offered, given in zip(prompt_ids, options, scores, strict=True):
        if given is not None and len(given) != len(offered):
            raise DataError(
                f"the answer to {shown(prompt_id)} contains log-probabilities of {len(given)} "
                f"options, but the prompt has {len(offered)}, so the run log was edited; remove "
                "that line (its prompt is sent again) or restore the file"
            )


def option_log_odds(values: Sequence[float], option: int) -> float:
    """Return the log-odds of one option against all others together.

    Args:
        values: Log-probabilities of the options, as from `option_scores`.
        option: Number of the option, from 0.

    Returns:
        Log-odds in nats: above 0 the option is more probable than the others together. NaN if all
        have probability 0; infinite for a single option.

    Examples:
        >>> round(option_log_odds([math.log(0.4), math.log(0.1), math.log(0.1)], 0), 6)
        0.693147
    """
    others = [value for place, value in enumerate(values) if place != option]
    top = max(others, default=-math.inf)
    if top == -math.inf:
        return math.inf if values[option] > -math.inf else math.nan
    return values[option] - _log_sum(others)


def is_even(odds: float) -> bool:
    """Return whether log-odds are 0 up to rounding, or undefined.

    Args:
        odds: Log-odds, in nats.

    Returns:
        True if they are 0 up to rounding, or NaN.
    """
    return math.isnan(odds) or abs(odds) <= _EVEN


def _merged(options: Sequence[str], values: Sequence[float]) -> tuple[list[str], list[float]]:
    """Return the most probable spelling of each answer, and the log of its total probability."""
    groups: dict[str, list[int]] = {}
    for place, option in enumerate(options):
        groups.setdefault(option.strip().casefold(), []).append(place)
    best = [options[max(places, key=lambda place: values[place])] for places in groups.values()]
    return best, [_log_sum([values[place] for place in places]) for places in groups.values()]


def _log_sum(values: Sequence[float]) -> float:
    """Return the logarithm of the sum of exponentials; -inf if all values are -inf."""
    top = max(values)
    if not math.isfinite(top):
        return top
    return top + math.log(math.fsum(math.exp(value - top) for value in values))


def _id(prompt: Prompt, number: int) -> str:
    """Return the id of the request for an option."""
    return f"{prompt.id}\n{number}"
