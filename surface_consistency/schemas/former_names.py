"""Names in run folders that were written before settings and columns had their present names."""

from typing import Any, Final

_FORMER: Final = {
    "judge_max_thought_tokens": "judge_max_reasoning_tokens",
    "max_thought_tokens": "max_reasoning_tokens",
    "memorisation": "memorization",
    "n_unclosed_thought": "n_unclosed_reasoning",
    "n_with_thought": "n_with_reasoning",
    "thought_opened": "reasoning_opened",
    "thought_tags": "reasoning_tags",
    "unclosed_thought": "unclosed_reasoning",
}


def present_name(name: Any) -> Any:  # noqa: ANN401 - what is no name comes back
    """Give the present name of a setting, a column or an ending of replies.

    Args:
        name: As it stands in a file.

    Returns:
        The present name of a former one; everything else as it is.

    Examples:
        >>> present_name("thought_tags"), present_name("limit")
        ('reasoning_tags', 'limit')
    """
    return _FORMER.get(name, name) if isinstance(name, str) else name


def with_present_names(value: Any) -> Any:  # noqa: ANN401 - whatever stands in the file
    """Give all keys of nested objects their present names.

    Args:
        value: What a file holds.

    Returns:
        The same with other keys.
    """
    if not isinstance(value, dict):
        return value
    return {present_name(key): with_present_names(item) for key, item in value.items()}
