"""What the names of columns and metrics say: contexts, labels, directions and costs.

Names are read by whole words: `lossless` does not contain `loss`, and `valLoss` and `val_loss` do.
"""

import re
from typing import Final, Literal

_CONTEXTS: Final = frozenset(
    "passage paragraph context article document story conversation dialogue dialog video image "
    "cluster".split()
)
"""What items share that are asked about one text or picture. A column named `cluster` is declared
to be one, as in outcomes of studies."""

_LABELS: Final = frozenset(
    "topic subject category relation template difficulty domain group fact repo doc".split()
)
_ID: Final = re.compile(r"(?<=.)[\W_]*(id|idx|index|key|uid|uuid|hash|name|title|url|path|file)$")

_HIGHER: Final = frozenset(
    "accuracy acc precision recall f1 auc auroc correct correctness right success pass passed "
    "detection detected recovery recovered correction corrected reduction improvement avoidance "
    "handling tolerance robustness resistance awareness free freedom quality agreement overlap "
    "match similarity".split()
)
_LOWER: Final = frozenset(
    "loss losses xent crossentropy wer cer ter mer perplexity ppl nll bpb error errors err "
    "hallucination hallucinations hallucinated toxicity toxic bias misuse harmfulness mae mse rmse "
    "mape brier ece distance divergence violation violations failure failures mistakes".split()
)
_LIKELY: Final = frozenset("likelihood loglikelihood logprob".split())
_COSTS: Final = frozenset(
    "latency duration runtime elapsed seconds secs ms time cost costs price usd tokens".split()
)
_NEGATIONS: Final = frozenset("neg negative inverse no non not without".split())
_UNITS: Final = frozenset("s mean avg total sum max min p50 p90 p95 p99 used".split())
_PHRASES: Final = {"cross entropy": "crossentropy", "bits per byte": "bpb", "token count": "tokens"}
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+\d*|[A-Z]+\d*(?![a-z])")
_OF: Final = re.compile(r"\b(?:of|under|with|on|in|at|by|for|per|to|given|after)\b")

Direction = Literal["higher", "lower", "cost"]


def is_context(column: str) -> bool:
    """Tell whether a column names a context that items share, such as `article` or `videoID`."""
    return _ID.sub("", column.casefold()) in _CONTEXTS


def is_label(column: str) -> bool:
    """Tell whether a column names a usual label of items, such as `topic` or `subject_id`."""
    return _ID.sub("", column.casefold()) in _LABELS


def direction(metric: str) -> Direction:
    """Return which scores of a metric are better, as far as its name says.

    The last word that is known decides, before the first preposition that follows one: in
    `error_recovery_accuracy` it is accuracy, in `accuracy_loss` and `loss_of_accuracy` loss. A
    negation before a loss turns it.

    Args:
        metric: Name of the metric, with or without the filter of lm-evaluation-harness.

    Returns:
        "lower" for an error or a loss; "cost" for the resources of an answer, such as its latency
        or tokens, which are not a score and of which less is better; else "higher".

    Examples:
        >>> [direction(name) for name in ("WER", "error_recovery_accuracy", "latency_ms")]
        ['lower', 'higher', 'cost']
    """
    text = " ".join(_WORDS.findall(metric.partition(",")[0])).casefold()
    for phrase, word in _PHRASES.items():
        text = text.replace(phrase, word)
    for words in map(str.split, _OF.split(text)):
        known = [word for word in words if word in _HIGHER | _LOWER | _LIKELY | _COSTS]
        if not known:
            continue
        last = known[-1]
        if last in _COSTS:
            return "cost" if {*words[words.index(last) + 1 :]} <= _UNITS else "higher"
        is_negated = words[0] in _NEGATIONS and last not in _HIGHER
        return "lower" if (last in _LOWER) != is_negated else "higher"
    return "higher"
