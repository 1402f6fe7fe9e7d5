"""Infer the meaning of columns and metrics from their names: contexts, labels, direction, costs.

Only complete words are matched: `lossless` does not contain `loss`, but `valLoss` and `val_loss`
do.
"""

import re
from collections.abc import Iterable
from typing import Final, Literal

_TASK: Final = re.compile(
    r"\W*((helm|harness|lighteval|leaderboard|custom)\W)?(\w?mmlu|m?gsm.?8?k?|arc|hellaswag"
    r"|truthful.?qa|winogrande|human.?eval|mbpp|boolq|[ps]iqa|trivia.?qa|bbh|gpqa|ifeval|squad"
    r"|openbook.?qa|lambada|commonsense.?qa|math.?500|aime(.?20\d\d)?|simpleqa|popqa|nq.?open|agieval"
    r"|live.?code.?bench|ceval|average|avg|mean|overall|all|total|(macro|micro).?(avg|average))"
    r"([_:|,./-][^\d\s]*)?(\|\d+)*",
    re.IGNORECASE,
)
"""Labels of benchmarks and of averages over them, which do not name items."""

_FLAG: Final = re.compile(
    r"\b(is|has|was|can|needs|flag|hard|easy|(un)?answerable|ambiguous|negated|(un)?seen|valid"
    r"|multi ?hop|popular|rare|temporal|label|winner|tie)\b"
)
_QUANTITY: Final = re.compile(
    r"\b(id|idx|index|key|number|year|turn|round|level|split|fold|version|position|popularity"
    r"|difficulty|frequency|fraction|weight|confidence|prob(ability)?|temperature|top p|threshold"
    r"|entropy)\b"
)

_ID: Final = r"[\W_]*(id|idx|index|key|uid|uuid|hash|name|title|url|path|file)?"
_CONTEXT: Final = re.compile(
    "(passage|paragraph|context|article|document|story|conversation|dialogue|dialog|video|image"
    f"|cluster){_ID}"
)
"""Contexts of several items, such as one text or picture. A column named `cluster` is always a
context, as in the outcomes of studies."""
_LABEL: Final = re.compile(
    f"(topic|subject|category|relation|template|difficulty|domain|group|fact|repo|doc){_ID}"
)

_KNOWN: Final = re.compile(
    r"\b(?:(?P<higher>acc(uracy)?|precision|recall|f1|au(ro)?c|correct(ness|ed|ion)?|right|success"
    r"|pass(ed)?|detect(ed|ion)|recover(ed|y)|reduction|improvement|avoidance|handling|tolerance"
    r"|robustness|resistance|awareness|free(dom)?|quality|agreement|overlap|similarity|match"
    r"|(log)?likelihood|logprob|role violation|identification|localization|classification"
    r"|analysis)"
    r"|(?P<lower>loss(es)?|xent|cross ?entropy|[wct]er|perplexity|ppl|nll|bpb|bits per|err(ors?)?"
    r"|hallucinat(ions?|ed)|toxic(ity)?|bias|misuse|harmfulness|mae|r?mse|mape|brier|ece|distance"
    r"|noise sensitivity|divergence|violations?|fail(ures?|ed)|mistakes?|incorrect|wrong|regret"
    r"|contradictions?|harmful|false (positives?|negatives?)|fpr|fnr|eer|der|mer"
    r"|neg(ative)? log ?(likelihood|prob))"
    r"|(?P<cost>(?:latency|tpot|ttft|itl|duration|runtime|elapsed|seconds|ms|time|costs?|price|usd"
    r"|tokens|token count)"
    r"(?= (?:s|ms|mean|avg|total|sum|max|min|p\d+|used|to|per(?! s| ms))\b|$)))\b"
)
_NEGATED: Final = re.compile(r"(neg|negative|inverse|no|non|not|without)\b")
_COMPLEMENT: Final = re.compile(r"\s*(1\s*[-−–]|one[ _]minus[ _])", re.IGNORECASE)
_WORD: Final = re.compile(r"[A-Z]?[a-z]+\d*|[A-Z]+\d*(?![a-z])")
_OF: Final = re.compile(r" (?:of|under|with|on|in|at|by|for|given|after) ")

Direction = Literal["higher", "lower", "cost"]

DIRECTIONS: Final = frozenset({"higher_is_better", "lower_is_better"})
"""Columns with the direction of the metric of a row: true or false."""


def is_context(column: str) -> bool:
    """Return whether a column is named as a context of items, such as `article` or `videoID`."""
    return _CONTEXT.fullmatch(column.casefold()) is not None


def is_label(column: str) -> bool:
    """Return whether a column is named as a label of items, such as `topic` or `subject_id`."""
    return _LABEL.fullmatch(column.casefold()) is not None


def is_task(label: str) -> bool:
    """Return whether a label is that of a benchmark, or of an average over several benchmarks."""
    return _TASK.fullmatch(label) is not None


def is_flag(column: str) -> bool:
    """Return whether a column is named as a flag of items, such as `is_hard`."""
    return _FLAG.search(_words(column)) is not None


def is_property(column: str) -> bool:
    """Return whether a column is named as a property of items or requests, such as `turn`."""
    return is_flag(column) or _QUANTITY.search(_words(column)) is not None


def is_metric(name: str) -> bool:
    """Return whether a name contains a word for a score or an error, such as `judge_score`."""
    return re.search(rf"\bscores?\b|{_KNOWN.pattern}", _words(name)) is not None


def _words(name: str) -> str:
    """Split a name into words, without the filter of lm-evaluation-harness."""
    return " ".join(_WORD.findall(name.partition(",")[0])).casefold()


def cluster_names(columns: Iterable[object]) -> list[str]:
    """List the columns that may group items, by their names: contexts and labels."""
    return [name for name in map(str, columns) if is_context(name) or is_label(name)]


def direction(metric: str) -> Direction:
    """Return the direction of a metric (which scores are better), from its name.

    The name is split at prepositions. In the first part with a known word, the last known word
    determines the direction: "accuracy" in `error_recovery_accuracy`, "loss" in `accuracy_loss` and
    `loss_of_accuracy`. A negation at the start reverses a loss.

    Args:
        metric: Name of the metric, with or without the filter of lm-evaluation-harness.

    Returns:
        "lower" for an error or a loss; "cost" for the resources of an answer, such as latency or
        tokens, which are not scores and for which lower is better; otherwise "higher".

    Examples:
        >>> [direction(name) for name in ("WER", "error_recovery_accuracy", "latency_ms")]
        ['lower', 'higher', 'cost']
    """
    if _COMPLEMENT.match(metric):
        return "higher"
    for part in _OF.split(_words(metric)):
        *_, last = [None, *_KNOWN.finditer(part)]
        if last is not None:
            is_turned = last["lower"] and last.start() and _NEGATED.match(part)
            return "higher" if last["higher"] or is_turned else "lower" if last["lower"] else "cost"
    return "higher"
