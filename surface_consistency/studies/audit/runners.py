"""Runners of an audit: models that look facts up, and any other with facts before its prompts."""

import os
from dataclasses import fields

from surface_consistency.errors import RunnerError
from surface_consistency.inference.lookup import LookupRunner
from surface_consistency.inference.lookup_settings import LookupSettings
from surface_consistency.inference.retrieval_augmented import RetrievalAugmentedRunner
from surface_consistency.inference.runner import Runner
from surface_consistency.studies.audit.ask import RunnerFactory
from surface_consistency.studies.audit.source import AuditSource

__all__ = ["augmented_runners", "lookup_runners"]


def lookup_runners(model: str | os.PathLike[str], **options: object) -> RunnerFactory:
    """Ask a limited-memory model; it is loaded once, whatever the number of stores.

    Args:
        model: Folder of the model, or hub id.
        options: Keyword arguments of `LookupRunner`, and fields of `LookupSettings`.

    Returns:
        Makes the runner of a store.

    Raises:
        RunnerError: If there is no such option; when the runner is made.
    """
    known = {field.name for field in fields(LookupSettings)}
    decoding = {name: value for name, value in options.items() if name in known}
    others = {name: value for name, value in options.items() if name not in known}
    loaded: list[LookupRunner] = []

    def make(source: AuditSource) -> Runner:
        """Load the model, or share the memory of the one that was loaded."""
        if not loaded:
            loaded.append(_loaded(model, source, decoding, others))
        return loaded[0].with_store(source)

    return make


def augmented_runners(runner: Runner, *, n_facts: int = 5) -> RunnerFactory:
    """Ask any model, with the facts that the store finds before its prompts.

    Args:
        runner: Who answers.
        n_facts: Facts a prompt at most.

    Returns:
        Makes the runner of a store.
    """
    return lambda source: RetrievalAugmentedRunner(
        runner, source, query=source.query, n_facts=n_facts
    )


def _loaded(
    model: str | os.PathLike[str],
    source: AuditSource,
    decoding: dict[str, object],
    others: dict[str, object],
) -> LookupRunner:
    """Load a model, saying in a line which options it does not take."""
    try:
        settings = LookupSettings(**decoding)  # type: ignore[arg-type]
        return LookupRunner(model, store=source, settings=settings, **others)  # type: ignore[arg-type]
    except TypeError as error:
        raise RunnerError(f"the lookup runner cannot be made: {error}") from error
