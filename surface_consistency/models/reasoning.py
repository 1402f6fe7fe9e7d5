"""Separation of a model's reasoning from its answer, before matching rules are applied."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from surface_consistency.errors import DataError
from surface_consistency.schemas.generations import Generation
from surface_consistency.schemas.prompts import GenerationParams

if TYPE_CHECKING:
    import pandas as pd

_HARMONY_ANSWER = "<|channel|>final<|message|>"

REASONING_TAGS: Final[tuple[tuple[str, str], ...]] = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis", _HARMONY_ANSWER),
    ("<|channel|>commentary", _HARMONY_ANSWER),
)
"""Opening and closing tags of the reasoning of known models: DeepSeek-R1, Qwen3 and most others;
models that are prompted to use tags; EXAONE Deep; Granite; Magistral; Seed-OSS; Sky-T1 and
OpenThinker; Command A; Kimi-VL; and the channels of gpt-oss. Letter case is ignored."""

_WRAPPERS: Final = (
    ("<answer>", "</answer>"),
    ("<response>", "</response>"),
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
)
_CHANNELS: Final = tuple(
    opens.lower() for opens, closes in REASONING_TAGS if closes == _HARMONY_ANSWER
)
_CHANNEL_MARKERS: Final = re.compile(r"\A<\|message\|>|(?:<\|end\|>)?(?:<\|start\|>)?assistant\Z")
_HARMONY_TAIL: Final = re.compile(r"(?:<\|(?:start|end|return|call)\|>(?:assistant)?\s*)++")
# Remains of the channels if special tokens were removed from the text.
_BARE_HARMONY: Final = re.compile(r"\s*analysis(?=[A-Z])")
_BARE_FINAL: Final = "assistantfinal"
_BARE_COMMENTARY: Final = "assistantcommentary"
_TEMPLATE_TAG: Final = re.compile(
    r"(?:<(/?)([\w:|-]{0,40}(?:think|thought|reason|reflect)[\w:|-]{0,40})>)"
    r"|(?:\[(/?)([\w-]{0,40}(?:think|thought|reason|reflect)[\w-]{0,40})\])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitReply:
    """A reply, split into reasoning and answer."""

    answer: str | None
    """The answer, which is scored; None if the reasoning has no closing tag."""

    reasoning: str | None = None
    """The reasoning, passages separated by a blank line; None if it is absent."""

    source: str | None = None
    """The tag that separated the parts; None if the reply contains no reasoning."""


@dataclass(frozen=True, slots=True)
class ReasoningTags:
    """Tags that mark reasoning; create it with `reasoning_tags`."""

    closing: dict[str, str]
    """Closing tag of each opening tag, in lower case."""

    any_tag: re.Pattern[str]
    """Matches an opening or a closing tag."""

    opening_tag: re.Pattern[str]
    """Matches an opening tag."""

    closing_tag: re.Pattern[str]
    """Matches a closing tag."""

    def may_open(self, text: str) -> bool | None:
        """Return whether a reply that starts with a text starts with reasoning.

        Args:
            text: The reply so far.

        Returns:
            True if it starts with an opening tag, None if it may become one, else False.
        """
        head = text.lstrip().lower()
        if any(head.startswith(tag) for tag in self.closing):
            return True
        return None if any(tag.startswith(head) for tag in self.closing) else False

    def has(self, token: str) -> bool:
        """Return whether a token is a tag or a part of one.

        Args:
            token: A special token of a tokenizer.

        Returns:
            True if it is one.
        """
        part = token.lower()
        return any(part in tag for pair in self.closing.items() for tag in pair)

    def is_opened_by(self, prompt: str) -> bool:
        """Return whether a prompt ends with an opening tag, so that the reply starts in reasoning.

        Args:
            prompt: The prompt as the model receives it, or its end.

        Returns:
            True if it does.
        """
        end = prompt.rstrip().lower()
        return any(end.endswith(tag) for tag in self.closing)


@lru_cache(maxsize=16)
def reasoning_tags(further: tuple[str, ...] = ()) -> ReasoningTags:
    """Combine the known tags with further ones.

    Args:
        further: Opening and closing tags, alternating.

    Returns:
        The known and the further tags.

    Raises:
        ValueError: If a tag is empty or an opening tag has no closing tag.
    """
    if len(further) % 2 or not all(tag.strip() for tag in further):
        raise ValueError(
            "reasoning_tags must contain pairs of an opening and a closing tag, not empty; got "
            f"{' '.join(map(repr, further))}"
        )
    pairs = (*REASONING_TAGS, *zip(further[::2], further[1::2], strict=True))
    closing = {opens.lower(): closes.lower() for opens, closes in pairs}
    return ReasoningTags(
        closing=closing,
        any_tag=_one_of((*closing, *closing.values())),
        opening_tag=_one_of(closing),
        closing_tag=_one_of(closing.values()),
    )


def split_reasoning(
    text: str, *, tags: Sequence[str] = (), opened: bool | None = None
) -> SplitReply:
    r"""Separate the reasoning of a reply from its answer.

    The text between an opening tag and the next closing tag of its kind is reasoning. So is all
    text before a closing tag without an opening tag: the prompt opened that reasoning. An opening
    tag without a closing tag starts reasoning only at the start of the reply or of a line;
    elsewhere it is part of the answer.

    Args:
        text: The reply, uncut, including special tokens that are tags.
        tags: Further opening and closing tags, alternating.
        opened: Whether the prompt opened the reasoning. With True, a reply without a closing tag
            is unclosed reasoning; with False, a closing tag without an opening tag is part of the
            answer; with None, a reply without tags is an answer.

    Returns:
        The two parts. A reply without reasoning is returned unchanged. For an answer after
        reasoning, leading white space and the tags that some models put around it are removed.

    Examples:
        >>> split_reasoning("<think>Could it be GOLD? No.</think> I do not know.").answer
        'I do not know.'
        >>> split_reasoning("It was Rome. No.\n</think>\n\nParis").reasoning
        'It was Rome. No.'
        >>> split_reasoning("<think>\nThe capital of") == SplitReply(
        ...     answer=None, reasoning="The capital of", source="<think>"
        ... )
        True
        >>> split_reasoning("In HTML there is no <think>.").reasoning is None
        True
    """
    known = reasoning_tags(tuple(tags))
    bare = _BARE_HARMONY.match(text) if opened is None else None
    if bare is not None and not known.any_tag.search(text):
        reasoning, final, answer = text[bare.end() :].partition(_BARE_FINAL)
        if final:
            reasoning = reasoning.partition(_BARE_COMMENTARY)[0]
        return SplitReply(
            answer=answer.lstrip() if final else None,
            reasoning=reasoning.strip() or None,
            source="analysis",
        )
    passages: list[str] = []
    answer_parts: list[str] = []
    source: str | None = None
    start = place = 0
    # A closing tag that is absent from the rest of the text is searched for only once.
    absent = set[str]()
    if opened and known.may_open(text) is not True:
        source, match = "the prompt", known.closing_tag.search(text)
        if match is None:
            return SplitReply(answer=None, reasoning=text.strip() or None, source=source)
        passages.append(text[: match.start()])
        start = place = match.end()
    while (match := known.any_tag.search(text, place)) is not None:
        closes = known.closing.get(match.group().lower())
        line = max(text.rfind("\n", place, match.start()) + 1, place)
        is_first = line > place or place == 0 or text[place - 1] == "\n"
        place = match.end()
        if closes is None:
            if opened is False and not passages:
                continue
            passages.append("".join(answer_parts) + text[start : match.start()])
            answer_parts.clear()
        else:
            end = None
            if closes not in absent:
                end = re.compile(re.escape(closes), re.IGNORECASE).search(text, place)
            if end is None:
                absent.add(closes)
                if not is_first or text[line : match.start()].strip():
                    continue
            answer_parts.append(text[start : match.start()])
            source = source or match.group()
            if end is None:
                passages += [*answer_parts, text[place:]]
                return SplitReply(answer=None, reasoning=_joined(passages, source), source=source)
            passages.append(text[place : end.start()])
            place = end.end()
        source = source or match.group()
        start = place
    if source is None:
        return SplitReply(answer=text)
    answer = "".join((*answer_parts, text[start:]))
    return SplitReply(answer=_unwrapped(answer), reasoning=_joined(passages, source), source=source)


def split_replies(
    texts: Sequence[str | None], *, tags: Sequence[str] = (), opened: bool | None = None
) -> list[SplitReply | None]:
    """Separate the reasoning of many replies of one model, such as a file of predictions.

    Args:
        texts: The replies, None if missing.
        tags: As for `split_reasoning`.
        opened: As for `split_reasoning`.

    Returns:
        One per text; None if it is missing or contains no reasoning.

    Raises:
        DataError: If some replies contain only a closing tag, so that the prompt opened their
            reasoning, others contain no tag, and `opened` is None.
    """
    known = reasoning_tags(tuple(tags))
    splits: list[SplitReply | None] = []
    n_closed = n_plain = 0
    for text in texts:
        if text is None or not (opened or known.any_tag.search(text) or _is_bare_harmony(text)):
            n_plain += text is not None and bool(text.strip())
            splits.append(None)
            continue
        split = split_reasoning(text, tags=tags, opened=opened)
        splits.append(split if split.source is not None else None)
        n_closed += split.source is not None and split.source.lower() in known.closing.values()
    if opened is None and n_closed and n_plain:
        raise DataError(
            f"{n_closed:,} of {len(texts):,} predictions end reasoning that their prompt opened "
            f"(only a closing tag such as </think>) and {n_plain:,} contain no tag: give "
            "`reasoning_opened` if those are unclosed reasoning, which is not an answer, or "
            "`reasoning_opened=False` if the tag is part of the answers"
        )
    return splits


def separate_reasoning(
    generation: Generation,
    params: GenerationParams,
    *,
    tags: Sequence[str] = (),
    opened: bool | None = None,
) -> Generation:
    """Separate the reasoning of a generation from its answer.

    Args:
        generation: The output of the model; returned unchanged if it has no text or if its
            reasoning is already separated.
        params: The decoding parameters: further tags, and the option `reasoning_opened`.
        tags: Further tags of the model, from the runner; see `split_reasoning`.
        opened: Whether the prompt opened the reasoning, from the runner; see `split_reasoning`.

    Returns:
        The generation with `reasoning`, and the answer as `text`: None, with the reason, if the
        reasoning has no closing tag.
    """
    is_split = generation.reasoning is not None or generation.reasoning_source is not None
    if generation.text is None or is_split:
        return generation
    split = split_reasoning(
        generation.text,
        tags=(*(params.reasoning_tags or ()), *tags),
        opened=opened if params.reasoning_opened is None else params.reasoning_opened,
    )
    if split.source is None:
        return generation
    ended = "the model" if generation.finish_reason == "stop" else "the limit of tokens"
    return generation.model_copy(update=_fields(split, f": {ended} ended it"))


def separate_stored(texts: "pd.Series", params: GenerationParams) -> "pd.DataFrame":
    """Return stored replies as columns of `Generation`, with separate reasoning.

    Args:
        texts: The replies by prompt id, missing values allowed.
        params: The decoding parameters: further tags, and the option `reasoning_opened`.

    Returns:
        One row per reply that is not missing: prompt_id, text, finish_reason, error, reasoning and
        reasoning_source.

    Raises:
        DataError: As `split_replies` does.
    """
    import pandas as pd

    given = texts[texts.notna()]
    frame = pd.DataFrame(
        {"prompt_id": given.index, "text": given.array, "finish_reason": "stop"}
    ).astype({"text": object})
    for name in ("error", "reasoning", "reasoning_source"):
        frame[name] = pd.Series(None, index=frame.index, dtype=object)
    splits = split_replies(
        given.tolist(), tags=params.reasoning_tags or (), opened=params.reasoning_opened
    )
    for row, split in enumerate(splits):
        for name, value in {} if split is None else _fields(split, "").items():
            frame.at[row, name] = value
    return frame


def _fields(split: SplitReply, ended: str) -> dict[str, str | None]:
    """Return the fields of a `Generation` that a split determines."""
    fields = {"text": split.answer, "reasoning": split.reasoning, "reasoning_source": split.source}
    if split.answer is None:
        fields["finish_reason"] = "unclosed_reasoning"
        fields["error"] = f"the reasoning was never closed{ended}"
    return fields


def template_tags(template: str) -> tuple[str, ...]:
    """Find the tags in a model's own chat template that are not in `REASONING_TAGS`.

    Args:
        template: The chat template, Jinja.

    Returns:
        Opening and closing tags, alternating: names of reasoning that the template contains both as
        `<name>` and `</name>`, or in square brackets.

    Examples:
        >>> template_tags("{{ content.split('</my_think>')[-1] }}<my_think>")
        ('<my_think>', '</my_think>')
    """
    names = {match.group() for match in _TEMPLATE_TAG.finditer(template)}
    known = reasoning_tags().closing
    return tuple(
        tag
        for opens in sorted(names)
        if not opens.startswith(("</", "[/")) and opens.lower() not in known
        if (closes := f"{opens[0]}/{opens[1:]}") in names
        for tag in (opens, closes)
    )


def _is_bare_harmony(text: str) -> bool:
    """Return whether a reply starts like the channels of gpt-oss without their special tokens."""
    return _BARE_HARMONY.match(text) is not None


def _one_of(tags: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of any of some tags, the longest first, in any letter case."""
    ordered = sorted(set(tags), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, ordered)), re.IGNORECASE)


def _joined(passages: Sequence[str], source: str) -> str | None:
    """Join reasoning without the markers of channels; None if it is empty."""
    cleaned = (reasoning.strip() for reasoning in passages)
    if source.lower() in _CHANNELS:
        cleaned = (_CHANNEL_MARKERS.sub("", reasoning).strip() for reasoning in cleaned)
    return "\n\n".join(filter(None, cleaned)) or None


def _unwrapped(answer: str) -> str:
    """Remove the tags that models put around an answer after reasoning."""
    bare = answer.lstrip()
    for tail in _HARMONY_TAIL.finditer(bare):
        if tail.end() == len(bare):
            bare = bare[: tail.start()]
    for opens, closes in _WRAPPERS:
        if bare.lower().startswith(opens.lower()):
            inner = bare[len(opens) :].strip()
            if inner.lower().endswith(closes.lower()):
                inner = inner[: -len(closes)].rstrip()
            return inner
    return bare
