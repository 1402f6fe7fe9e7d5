"""Prompt files of the audit: one target fact in one prompt style a line (arXiv 2607.00605)."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from surface_consistency.errors import RecordError
from surface_consistency.runs.files import write_text
from surface_consistency.schemas import AuditPrompt, read_jsonl

__all__ = ["prompt_line", "read_audit_prompts", "write_audit_prompts"]

_ALIASES: Final = ("subject_aliases", "relation_aliases", "object_aliases")


def read_audit_prompts(path: str | os.PathLike[str]) -> list[AuditPrompt]:
    """Read a prompt file.

    Args:
        path: The JSON-lines file.

    Returns:
        The rows, in order.

    Raises:
        SourceNotFoundError: If there is no such file.
        RecordError: If a line is not a prompt row, an alias is empty, or a prompt number stands
            twice.
    """
    prompts = list(_checked(read_jsonl(path, AuditPrompt), str(path)))
    if not prompts:
        raise RecordError(f"{path}: no prompts; the file needs at least one line")
    return prompts


def write_audit_prompts(path: str | os.PathLike[str], prompts: Iterable[AuditPrompt]) -> int:
    """Write a prompt file, as the audit publishes its own; it appears whole or not at all.

    Args:
        path: The file; its folder must exist. An older file of that name is replaced.
        prompts: The rows.

    Returns:
        The number of rows.

    Raises:
        RecordError: If an alias is empty or a prompt number stands twice.
    """
    lines = [prompt_line(prompt) for prompt in _checked(prompts, str(Path(path)))]
    write_text(path, "".join(lines))
    return len(lines)


def prompt_line(prompt: AuditPrompt) -> str:
    """Write a prompt row as a line: aliases stand only where there are some.

    Args:
        prompt: The row.

    Returns:
        The line, with its newline.

    Examples:
        >>> row = AuditPrompt(prompt_id=0, fact_id=7, subject="Japan", relation="Capital",
        ...     gold_object="Tokyo", prompt_text="Capital of Japan?")
        >>> "aliases" in prompt_line(row)
        False
    """
    row = prompt.model_dump(mode="json")
    kept = {key: value for key, value in row.items() if key not in _ALIASES or value}
    return json.dumps(kept, ensure_ascii=False) + "\n"


def _checked(prompts: Iterable[AuditPrompt], source: str) -> Iterator[AuditPrompt]:
    """Refuse empty aliases and prompt numbers that stand twice."""
    seen: set[int] = set()
    for prompt in prompts:
        if prompt.prompt_id in seen:
            raise RecordError(f"{source}: prompt_id {prompt.prompt_id} stands twice; number anew")
        seen.add(prompt.prompt_id)
        for field in _ALIASES:
            if not all(alias.strip() for alias in getattr(prompt, field)):
                raise RecordError(
                    f"{source}: prompt_id {prompt.prompt_id} has an empty name in {field}; drop it"
                )
        yield prompt
