"""Plan an audit: prompts, deletions and the store that answers lookups, from the databases."""

import hashlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import compress
from typing import Any

import pandas as pd

from surface_consistency.data.selection import warn_limited
from surface_consistency.engine.plan import Plan, PromptGroup
from surface_consistency.errors import DataWarning
from surface_consistency.models.runner import Runner
from surface_consistency.schemas import DataSource, GenerationParams
from surface_consistency.schemas.memory import AuditPrompt, MemoryState
from surface_consistency.schemas.prompts import Prompt
from surface_consistency.studies.audit.base_facts import BaseFact, base_facts, draw_base_facts
from surface_consistency.studies.audit.conditions import AuditCondition, AuditData
from surface_consistency.studies.audit.lookup.retrieval_augmented import RetrievalAugmentedRunner
from surface_consistency.studies.audit.lookup.settings import LookupSettings
from surface_consistency.studies.audit.retrieval.triplets import Triplets
from surface_consistency.studies.audit.retrieval.verification import database_coverage
from surface_consistency.studies.audit.settings import AuditSettings
from surface_consistency.studies.audit.stores import (
    AuditDatabase,
    AuditFactStore,
    LookupContext,
    MakeRetriever,
    build_database,
    fact_key,
)

_ALIASES = ("subject_aliases", "relation_aliases", "object_aliases")
_NAMES = ("subject", "relation", "gold_object")
_ENTRIES = ("remaining", "shared_surface", "shared_by_punctuation")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditPlan:
    """The store and settings that a runner of an audit needs; it is used as `Plan.prepare`."""

    store: AuditFactStore
    """The store that answers lookups."""

    databases: Mapping[str, AuditDatabase]
    """The databases by name, with the deletions and the entries that remain after them."""

    settings: AuditSettings
    """The settings of the study."""

    def __call__(self, runner: Any) -> Runner:  # noqa: ANN401 - with `with_store` or without
        """Pass the store to a runner with a method `with_store`; others get facts in prompts.

        Args:
            runner: The runner that the user named.

        Returns:
            The runner of the study.

        Raises:
            ValueError: If the audit is as published, and the runner decodes differently.
        """
        if self.settings.as_published:
            _check_published(runner)
        if hasattr(runner, "with_store"):
            return runner.with_store(self.store)  # type: ignore[no-any-return]
        return RetrievalAugmentedRunner(
            runner, self.store, query=self.store.query, n_facts=self.settings.n_facts
        )


def plan_audit(data: AuditData, settings: AuditSettings, make_retriever: MakeRetriever) -> Plan:
    """Compute the deletion of each fact, and its prompts in every style and state.

    Args:
        data: Databases with their prompts.
        settings: Settings of deletions and lookups; the first retriever and threshold are used.
        make_retriever: Makes the retriever of each database.

    Returns:
        The group "store" of prompts that read the store, and "off" of those without retrieval,
        which runs of one model share; one target per fact, style and state, one pair per fact and
        style; the checks fit, databases, closure and closure_facts; an `AuditPlan` as `prepare`.

    Raises:
        ValueError: If `data` has no conditions, two databases have one name, or a radius is set
            for a retriever without encoder.
        RunnerError: If a retriever was built over another database.

    Warns:
        DataWarning: For each database in which a fact is still stated after its deletion.
        DataWarning: If two databases are equal.
    """
    # Prompts that are not drawn or are beyond the limit also link the others.
    available = {
        (one.label.database, fact_key(prompt)): (one.label.topology, prompt)
        for one in data.conditions
        for prompt in one.prompts
    }
    origins = dict(zip(available, base_facts([*available.values()]), strict=True))
    conditions = [condition.limited(settings.limit) for condition in data.conditions]
    if settings.sample is not None:
        conditions = _sampled(conditions, origins, settings.sample, seed=settings.seed)
    n_asked, n_available = (
        sum(len(one.prompts) for one in some) for some in (conditions, data.conditions)
    )
    warn_limited(settings.limit, n_asked, n_available, "prompts")
    sources = _databases(conditions)
    contents = {name: item.content for name, item in sources.items()}
    _warn_equal(contents)
    databases = {
        name: build_database(
            name,
            source,
            [prompt for one in conditions if one.label.database == name for prompt in one.prompts],
            settings,
            make_retriever,
        )
        for name, source in sources.items()
    }
    groups: dict[str, list[Prompt]] = {}
    contexts: dict[str, LookupContext] = {}
    targets: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    for condition, prompt, left in _facts(conditions, databases):
        columns = _columns(condition, prompt, left, databases[condition.label.database])
        columns["base_fact"] = origins[condition.label.database, fact_key(prompt)].name
        pair = f"{condition.label.database}/{condition.label.style}/{prompt.prompt_id}"
        for state in settings.states:
            question = _prompt(pair, prompt, state)
            groups.setdefault("off" if state == "DEL-OFF" else "store", []).append(question)
            contexts[question.id] = LookupContext(
                database=condition.label.database,
                state=state,
                fact=prompt,
                deleted=databases[condition.label.database].closures[fact_key(prompt)],
            )
            targets.append(
                {"target_id": question.id, "prompt_id": question.id, "state": state} | columns
            )
        pairs.append(_pair(pair, columns, settings.states))
    params = GenerationParams(
        max_new_tokens=settings.max_new_tokens, stop=("\n",) if settings.stop else ()
    )
    context = AuditPlan(
        store=AuditFactStore(databases, contexts, off_mode=settings.off_mode, query=settings.query),
        databases=databases,
        settings=settings,
    )
    return Plan(
        data=DataSource(
            id=data.id, revision=None, digest=_digest(conditions, contents), n_questions=len(pairs)
        ),
        groups={
            name: PromptGroup(prompts=prompts, params=params, is_shared=name == "off")
            for name, prompts in groups.items()
        },
        items=pd.DataFrame(targets),
        pairs=pd.DataFrame(pairs),
        # The folder of the indices does not affect the answers.
        settings=settings.model_copy(update={"index_cache": None}),
        checks={
            "fit": pd.DataFrame(map(_fit_row, conditions)),
            "databases": pd.DataFrame(_database_rows(databases, origins)),
            "closure": pd.DataFrame(_closure_rows(databases)),
            "closure_facts": pd.DataFrame(_fact_rows(databases)),
        },
        prepare=context,
    )


def to_audit_prompt(target: Mapping[Any, Any]) -> AuditPrompt:
    """Read the fact and its prompt from a target.

    Args:
        target: A row of `Plan.items`, as planned or as read back from its file.

    Returns:
        The record.
    """
    aliases: dict[str, Any] = {name: tuple(map(str, target[name])) for name in _ALIASES}
    return AuditPrompt(
        prompt_id=int(target["prompt_number"]),
        fact_id=int(target["fact_number"]),
        prompt_text=target["question"],
        base_fact=target.get("base_fact"),
        **{name: target[name] for name in _NAMES},
        **aliases,
    )


def target_rows(targets: pd.DataFrame, *columns: str) -> Iterator[dict[str, Any]]:
    """Iterate over targets.

    Args:
        targets: Columns of `Plan.items`, and any others.
        columns: Columns to yield in addition to those that `to_audit_prompt` needs.

    Yields:
        Values by column.
    """
    names = ["prompt_number", "fact_number", "question", *_NAMES, *_ALIASES, *columns]
    names += ["base_fact"] * ("base_fact" in targets)
    for values in zip(*(targets[name].tolist() for name in names), strict=True):
        yield dict(zip(names, values, strict=True))


def _sampled(
    conditions: Sequence[AuditCondition],
    origins: Mapping[tuple[str, str], BaseFact],
    n_facts: int,
    *,
    seed: int,
) -> list[AuditCondition]:
    """Select the prompts on the base facts drawn; files without any of them are dropped."""
    named = [
        [origins[one.label.database, fact_key(prompt)].name for prompt in one.prompts]
        for one in conditions
    ]
    labelled = [
        (one, one.label.domain, of_one) for one, of_one in zip(conditions, named, strict=True)
    ]
    drawn = draw_base_facts(
        ((domain, one.label.topology, name) for one, domain, of_one in labelled for name in of_one),
        n_facts,
        seed=seed,
    )
    sampled = (
        replace(one, prompts=tuple(compress(one.prompts, [(domain, n) in drawn for n in of_one])))
        for one, domain, of_one in labelled
    )
    return [one for one in sampled if one.prompts]


def _databases(conditions: Sequence[AuditCondition]) -> dict[str, Triplets]:
    """Collect the databases by name."""
    if not conditions:
        raise ValueError("there are no conditions; an audit needs a database with prompts")
    databases: dict[str, Triplets] = {}
    for condition in conditions:
        name = condition.label.database
        known, own = databases.setdefault(name, condition.database), condition.database
        if known.content != own.content:
            raise ValueError(f"two different databases are named {name}; run one audit for each")
    return databases


def _warn_equal(contents: Mapping[str, str]) -> None:
    """Warn about databases with the same entries."""
    names: dict[str, list[str]] = {}
    for name, content in contents.items():
        names.setdefault(content, []).append(name)
    for same in names.values():
        if len(same) > 1:
            warnings.warn(
                f"databases {', '.join(same)} contain the same entries in the same order, so "
                "their results are not independent; check that no file was copied over another",
                DataWarning,
                stacklevel=4,
            )


def _facts(
    conditions: Sequence[AuditCondition], databases: Mapping[str, AuditDatabase]
) -> Iterator[tuple[AuditCondition, AuditPrompt, dict[Any, Any]]]:
    """Iterate over the facts of all conditions, each with the remaining entries."""
    left = {
        name: dict(zip(database.closures, database.left.to_dict("records"), strict=True))
        for name, database in databases.items()
    }
    for condition in conditions:
        for prompt in condition.prompts:
            yield condition, prompt, left[condition.label.database][fact_key(prompt)]


def _columns(
    condition: AuditCondition, prompt: AuditPrompt, left: Mapping[Any, Any], database: AuditDatabase
) -> dict[str, Any]:
    """Return the columns of the targets for a fact in its style."""
    entries = database.store.triplets
    return {
        "item": f"{condition.label.database}/{prompt.fact_id}",
        "references": [prompt.gold_object, *prompt.object_aliases],
        "question": prompt.prompt_text,
        "database": condition.label.database,
        **asdict(condition.label),
        "database_file": condition.database_file,
        "prompt_file": condition.prompt_file,
        "prompt_number": prompt.prompt_id,
        "fact_number": prompt.fact_id,
        **{name: getattr(prompt, name) for name in _NAMES},
        **{name: list(getattr(prompt, name)) for name in _ALIASES},
        "n_deleted": left["n_deleted"],
        "surviving": [list(entries[index]) for index in left["remaining"]],
        "n_shared_surface": len(left["shared_surface"]),
        "echoes": list(left["echoes"]),
    }


def _pair(pair: str, columns: Mapping[str, Any], states: Sequence[MemoryState]) -> dict[str, Any]:
    """Pair a fact with retrieval on and off, with FULL as a further target."""
    labels = ("item", "base_fact", "database", "domain", "topology", "style", "subject", "relation")
    sides = {"full_target": "FULL", "first_target": "DEL-ON", "second_target": "DEL-OFF"}
    return {
        "pair": pair,
        "first_condition": "DEL-ON",
        "second_condition": "DEL-OFF",
        **{name: f"{pair}/{state}" if state in states else None for name, state in sides.items()},
        **{name: columns[name] for name in (*labels, "gold_object", "n_deleted")},
        "prompt_id": columns["prompt_number"],
        "n_surviving": len(columns["surviving"]),
        "echoes_subject": bool(columns["echoes"]),
    }


def _prompt(pair: str, prompt: AuditPrompt, state: MemoryState) -> Prompt:
    """Make the prompt of a fact in a state.

    With retrieval off nothing depends on the database, so each distinct text is sent once.
    """
    condition = state if state == "DEL-OFF" else f"{state}|{pair}"
    return Prompt(id=f"{pair}/{state}", text=prompt.prompt_text, condition=condition)


def _digest(conditions: Sequence[AuditCondition], contents: Mapping[str, str]) -> str:
    """Return the SHA-256 of all prompts and of the databases."""
    digest = hashlib.sha256()
    for name, content in sorted(contents.items()):
        digest.update(f"{name}{content}".encode())
    for condition in conditions:
        for prompt in condition.prompts:
            digest.update(prompt.model_dump_json(exclude_none=True).encode())
    return digest.hexdigest()


def _fit_row(condition: AuditCondition) -> dict[str, Any]:
    """Count the prompts of a condition that its database can answer."""
    with warnings.catch_warnings():
        # Reading the files already emits this warning.
        warnings.simplefilter("ignore", DataWarning)
        fit = database_coverage(condition.database, condition.prompts, max_missing=1.0)
    n_triplets = len(condition.database)
    label = condition.label
    return {"database": label.database, "style": label.style, "n_triplets": n_triplets} | fit


def _database_rows(
    databases: Mapping[str, AuditDatabase], origins: Mapping[tuple[str, str], BaseFact]
) -> Iterator[dict[str, Any]]:
    """Describe each store: entries, retriever, facts, and databases with the same content."""
    stores = {name: database.store for name, database in databases.items()}
    for name, store in stores.items():
        content = store.triplets.content
        retriever: Any = store.fingerprint()["retriever"]
        same = [
            other
            for other, one in stores.items()
            if one.triplets.content == content and other != name
        ]
        facts = [origins[name, key] for key in databases[name].closures]
        yield {
            "database": name,
            "n_triplets": len(store.triplets),
            "n_facts": len(facts),
            "n_base_facts": len({fact.name for fact in facts}),
            "n_unlinked": sum(not fact.is_linked for fact in facts),
            "content": content,
            "retriever_content": retriever.get("content"),
            "same_content_as": "; ".join(same),
        }


def _closure_rows(databases: Mapping[str, AuditDatabase]) -> Iterator[dict[str, Any]]:
    """Count the remaining entries of each database after the deletions."""
    for name, database in databases.items():
        counts = dict(database.counts)
        # In the order of the file's columns.
        echoing, summary = counts.pop("n_echoing"), counts.pop("summary")
        n_others = sum(map(bool, database.others))
        last = {"n_other_objects": n_others, "n_echoing": echoing, "summary": summary}
        yield {"database": name} | counts | last


def _fact_rows(databases: Mapping[str, AuditDatabase]) -> Iterator[dict[str, Any]]:
    """Describe each fact that is not deleted cleanly, echoes its subject, or has other objects."""
    for name, database in databases.items():
        entries = database.store.triplets

        def shown(indices: Iterable[int], entries: Sequence[Any] = entries) -> str:
            """Write entries into one cell."""
            return "; ".join(" | ".join(entries[index]) for index in indices)

        facts = database.left.to_dict("records")
        for fact, others in zip(facts, database.others, strict=True):
            findings = (fact["remaining"], fact["shared_surface"], fact["echoes"], others)
            if fact["n_deleted"] and not any(findings):
                continue
            yield {
                "database": name,
                "item": fact["fact_id"],
                **{part: fact[part] for part in (*_NAMES, "n_deleted")},
                "is_complete": not fact["remaining"],
                **{kind: shown(fact[kind]) for kind in _ENTRIES},
                "other_objects": shown(others),
                "echoes": "; ".join(fact["echoes"]),
            }


def _check_published(runner: Any) -> None:  # noqa: ANN401
    """Raise an error for a runner that does not decode as the published audit does."""
    if not hasattr(runner, "with_store"):
        raise ValueError(
            "`as_published` needs a model that looks facts up itself; use `runner=lookup`, or "
            "omit `as_published`"
        )
    given = getattr(runner, "settings", None)
    published = asdict(LookupSettings())
    for name, value in asdict(given).items() if isinstance(given, LookupSettings) else ():
        if value != published[name]:
            raise ValueError(
                f"`as_published` decodes with {name}={published[name]}, and `runner_option` "
                f"{name}={value} was given; omit one of the two"
            )
