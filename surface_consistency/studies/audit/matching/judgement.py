"""Score one answer of an audit: equivalence, containment and token overlap."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType
from typing import TypeVar

from surface_consistency.schemas.memory import AuditPrompt, Lookup
from surface_consistency.studies.audit.matching.cleaners import CLEANERS, Cleaner, says_unknown
from surface_consistency.text import normalized, token_key

_Rule = TypeVar("_Rule")
_TOKEN = re.compile(r"(?:(?<!\S)[.#@+\u2212-])?(?:\d+\.\d+|\w+(?:[-'’]\w+)*)(?:[+#]+(?!\w))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """A rule that compares answers with gold objects."""

    name: str
    """Name in tables."""

    key: Callable[[str], str]
    """Returns the key of a name, which equivalent names share: words with single spaces between."""

    contains: Callable[[str, str], bool]
    """Returns whether an answer contains a gold; called with the keys of both."""

    scores_aliases: bool
    """Whether precision, recall and F1 use the best of gold and aliases, and not only the gold."""


def audit_key(text: str) -> str:
    """Return the key by which the default equivalence compares names.

    The key is the words as in `token_key`, in NFKC form and case-folded, but signs that belong to a
    word are kept: ".us" is not "US", "-5" not "5", "C++" not "C".

    Args:
        text: An answer or a gold.

    Returns:
        The key; empty for a text without letters and digits.

    Examples:
        >>> audit_key("Washington, D.C."), audit_key(".us"), audit_key("US")
        ('washington d c', '.us', 'us')
    """
    plain = normalized("NFKC", normalized("NFKC", text).casefold())
    return " ".join(_TOKEN.findall(plain.replace("’", "'")))


def token_overlap(answer: str, gold: str) -> tuple[float, float, float]:
    """Compute precision, recall and F1 of the words that two keys share, with multiplicity.

    Args:
        answer: Key of the answer.
        gold: Key of the gold.

    Returns:
        Shared words over words of the answer (precision), over words of the gold (recall), and the
        harmonic mean of both (F1), each in [0, 1]: 1 for two empty keys, 0 without shared words.

    Examples:
        >>> precision, recall, f1 = token_overlap("the spice girls", "spice girls")
        >>> recall
        1.0
    """
    words, wanted = answer.split(), gold.split()
    if not words and not wanted:
        return 1.0, 1.0, 1.0
    n_shared = sum((Counter(words) & Counter(wanted)).values())
    if not n_shared:
        return 0.0, 0.0, 0.0
    precision, recall = n_shared / len(words), n_shared / len(wanted)
    return precision, recall, 2 * precision * recall / (precision + recall)


def _contains_words(answer: str, gold: str) -> bool:
    """Return whether the answer contains the gold as whole words."""
    return f" {gold} " in f" {answer} "


def _contains_either_way(answer: str, gold: str) -> bool:
    """Return whether one is part of the other, as in the published code: "a" in "washington"."""
    return gold in answer or answer in gold


EQUIVALENCES: Mapping[str, Equivalence] = MappingProxyType(
    {
        "audit": Equivalence(
            name="audit", key=audit_key, contains=_contains_words, scores_aliases=True
        ),
        "published": Equivalence(
            name="published", key=token_key, contains=_contains_either_way, scores_aliases=False
        ),
    }
)
"""The equivalences by name: that of this package, and that of the published code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditJudgement:
    """Scores of one answer by the audit's rules; the mean of each field is a published column."""

    answer: str
    """The cleaned answer."""

    correct: bool
    """Whether it is equivalent to the gold object or one of its aliases ("exact_match")."""

    contains: bool
    """Whether it contains one of them ("contains_match"); true of every correct answer."""

    is_unknown: bool
    """Whether it is empty or a phrase such as "I don't know" ("unknown_rate")."""

    precision: float
    """Proportion of its words that the gold contains, in [0, 1]; 1 for a correct answer."""

    recall: float
    """Proportion of the gold's words that it contains, in [0, 1]; 1 for a correct answer."""

    f1: float
    """Harmonic mean of both, in [0, 1]; 1 for a correct answer."""


def judge_answer(
    text: str,
    prompt: AuditPrompt,
    *,
    lookups: Sequence[Lookup] | None = None,
    cleaner: str | Cleaner = "audit",
    equivalence: str | Equivalence = "audit",
) -> AuditJudgement:
    """Score the output of a model by the gold object and its aliases.

    Args:
        text: The continuation that a runner returns, lookups included.
        prompt: The prompt with its gold object.
        lookups: `Generation.lookups`; only the published cleaner uses them.
        cleaner: Name of a cleaner, one of `CLEANERS`, or a function of text, prompt and lookups.
        equivalence: Name of an equivalence, one of `EQUIVALENCES`, or an `Equivalence`.

    Returns:
        The scores. Under "audit" an answer that equals the gold is never unknown ("NA" for
        Namibia), and an answer contains a gold only as whole words. Precision, recall and F1 are
        those of the gold or alias with the highest F1. Under "published" an answer that is part of
        the gold also counts as containing it. Precision, recall and F1 are those of the gold only;
        for a correct answer all are 1.

    Raises:
        TypeError: If `text` is not a string.
        ValueError: If the cleaner or the equivalence is unknown.

    References:
        arXiv 2607.00605, section 4, and the published code.

    Examples:
        >>> prompt = AuditPrompt(
        ...     prompt_id=0, fact_id=0, subject="United States", relation="Capital",
        ...     gold_object="Washington, D.C.", prompt_text="What is the capital?",
        ... )
        >>> judge_answer("It is Washington, D.C.", prompt).correct
        True
        >>> [judge_answer("a", prompt, equivalence=name).contains for name in EQUIVALENCES]
        [False, True]
    """
    if not isinstance(text, str):
        raise TypeError(
            f"`text` must be a string, got {type(text).__name__}; omit prompts that could not be "
            "run"
        )
    clean = rule_named("cleaner", cleaner, CLEANERS)
    rule = rule_named("equivalence", equivalence, EQUIVALENCES)
    answer = clean(text, prompt, lookups or ())
    key = rule.key(answer)
    golds = [rule.key(gold) for gold in (prompt.gold_object, *prompt.object_aliases)]
    correct = bool(key) and key in golds
    precision, recall, f1 = 1.0, 1.0, 1.0
    if not correct:
        compared = golds if rule.scores_aliases else golds[:1]
        precision, recall, f1 = max(
            (token_overlap(key, gold) for gold in compared), key=itemgetter(2)
        )
    return AuditJudgement(
        answer=answer,
        correct=correct,
        contains=correct
        or (bool(key) and any(gold and rule.contains(key, gold) for gold in golds)),
        is_unknown=says_unknown(answer) and not (correct and rule.name != "published"),
        precision=precision,
        recall=recall,
        f1=f1,
    )


def rule_named(option: str, rule: str | _Rule, rules: Mapping[str, _Rule]) -> _Rule:
    """Find a rule by name.

    Args:
        option: Name of the option, for errors.
        rule: Its name, or the rule itself.
        rules: The rules by name.

    Returns:
        The rule.

    Raises:
        ValueError: If the name is unknown.
    """
    if not isinstance(rule, str):
        return rule
    if rule not in rules:
        raise ValueError(f"`{option}` must be one of {', '.join(rules)}; got {rule!r}")
    return rules[rule]
