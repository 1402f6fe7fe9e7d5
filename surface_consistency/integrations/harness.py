"""lm-evaluation-harness: the studies as its tasks, and its command line with their path.

The harness finds tasks only in its own folder and under `--include_path`, takes demonstrations from
its own sampler, and computes no standard error for unknown aggregations. Therefore the task files
of this package name a class, which takes prompts, labels and intervals from a `PairedTask`.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from surface_consistency.engine.paired.tables import is_hardly_right
from surface_consistency.integrations.extras import check_tool
from surface_consistency.integrations.paired_task import PairedTask, to_verdicts
from surface_consistency.reading import shown
from surface_consistency.schemas import Prompt
from surface_consistency.schemas.scoring import best_option

_FEATURE: Final = "The integration with lm-evaluation-harness"
_EXTRA: Final = "lm-eval"
_KEYS: Final = ("task", "class", "study", "options", "metadata", "tag", "num_fewshot", "repeats")


def lm_eval_path() -> Path:
    """Return the folder of the task files, for the harness' `--include_path`.

    Returns:
        The folder within the installed package.

    Raises:
        MissingDependencyError: If lm-evaluation-harness is not installed.
        MissingDependencyError: If its version is too old or too new.
    """
    check_tool(_FEATURE, "lm-eval", _EXTRA)
    return Path(__file__).parent / "lm_eval_tasks"


def run_lm_eval(arguments: Sequence[str]) -> int:
    """Run the command line of the harness with the path of this package's tasks.

    Args:
        arguments: Arguments of `lm_eval`, such as ["run", "--tasks", "redirectqa"].

    Returns:
        Its exit code.

    Raises:
        MissingDependencyError: As `lm_eval_path` does.
        MissingDependencyError: As `lm_eval_path` does.
        ValueError: If the arguments contain `--include_path`.
    """
    given = [*arguments]
    path = str(lm_eval_path())
    if any(word.partition("=")[0] == "--include_path" for word in given):
        raise ValueError(
            "--include_path is set by this command, and the harness accepts one path; for your own "
            'tasks run `lm_eval run --include_path FOLDER`, with links to the files of "$('
            'surface-consistency lm-eval-path)" in FOLDER'
        )
    import lm_eval.utils
    from lm_eval.__main__ import cli_evaluate

    if given and "--help" not in given and "-h" not in given:
        given += ["--include_path", path]
    before, sys.argv = sys.argv, ["lm_eval", *given]
    make_table = lm_eval.utils.make_table
    lm_eval.utils.make_table = partial(_table, make_table)
    try:
        cli_evaluate()
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.argv = before
        lm_eval.utils.make_table = make_table
    return 0


def _table(
    make_table: Callable[..., str],
    results: Mapping[str, Any],
    column: str = "results",
    **given: object,
) -> str:
    """Format the table of the harness with consistency first, not sorted by name."""
    rows, better, notes = dict(results[column]), dict(results.get("higher_is_better", {})), []
    for task, numbers in rows.items():
        if "consistency,none" not in numbers:
            continue
        rows[task] = {
            f" {name}" if name.startswith("consistency,") else name: value
            for name, value in numbers.items()
        }
        better[task] = {**better.get(task, {}), " consistency": True}
        rates = {
            name.removesuffix(",none"): value
            for name, value in numbers.items()
            if name.startswith("accuracy_")
            and name != "accuracy_difference,none"
            and "_stderr," not in name
        }
        first, second, *_ = [*rates.values(), math.nan, math.nan]
        row = {"n": numbers["n_pairs,none"], "first_accuracy": first, "second_accuracy": second}
        if is_hardly_right(row):
            shown = ", ".join(f"{name} {rate:.4f}" for name, rate in [*rates.items()][:2])
            notes.append(
                f"{task}: the model is almost never correct ({shown}), so its labels agree mostly "
                "because both are incorrect: consistency is not informative"
            )
    # lm-eval 0.4.12 requires the number of shots.
    shown_results = {"n-shot": {}, **results, column: rows, "higher_is_better": better}
    table = make_table(shown_results, column, **given)
    return "\n".join([table, *notes])


@cache
def task_class() -> type[Any]:
    """Return the class that the task files of this package name.

    A task file contains the key `study`; and `options`, fields of the study's source, settings and
    scoring records by name, with `intervals`, which adds the bounds of each number. A mapping under
    the study's name in `metadata`, which `--metadata` of the harness sets, overrides the options.

    Returns:
        The class, a subclass of the harness' `Task`, to be called with `config`, the task file. It
        raises ValueError if a key or an option is unknown, DataError if the data cannot be read.

    Raises:
        MissingDependencyError: As `lm_eval_path` does.
        MissingDependencyError: As `lm_eval_path` does.
    """
    check_tool(_FEATURE, "lm-eval", _EXTRA)
    from lm_eval.api.instance import Instance
    from lm_eval.api.task import Task, TaskConfig
    from lm_eval.filters import build_filter_ensemble

    class HarnessTask(Task):  # type: ignore[misc]
        """A study as a task: its documents, prompts, labels and numbers are those of the study."""

        def __init__(self, config: Mapping[str, Any]) -> None:
            self._paired, has_intervals = _load(config)
            paired = self._paired
            self._names = [
                name
                for name in paired.names
                if has_intervals or not name.endswith(("_low", "_high"))
            ]
            self._targets = paired.targets.groupby("prompt_id")["target_id"].agg(list).to_dict()
            self._labels: dict[tuple[str, str | None], list[list[Any]]] = {}
            first = paired.prompt(paired.documents[0].id, chat=False)
            self._is_choice = first.options is not None
            self.OUTPUT_TYPE = "multiple_choice" if self._is_choice else "generate_until"
            metadata = dict(config.get("metadata") or {})
            self.VERSION = metadata.get("version", 0)
            self._config = TaskConfig(
                task=config["task"],
                tag=config.get("tag"),
                output_type=self.OUTPUT_TYPE,
                num_fewshot=config.get("num_fewshot", paired.shots or 0),
                repeats=config.get("repeats", 1),
                generation_kwargs=None if self._is_choice else {"until": []},
                metadata=metadata,
            )
            if not self._is_choice:
                # Values that all documents share; `--gen_kwargs` overrides these and the others.
                self._config.generation_kwargs = _shared(
                    [self._decoding(document.id, chat=False) for document in paired.documents]
                )
            self._docs = [
                {
                    "id": document.id,
                    "question": document.question,
                    "item": document.facts[0],
                    "cluster": document.cluster,
                    "possible_answers": list(document.answers),
                }
                for document in paired.documents
            ]
            self._training_docs = self._fewshot_docs = self._instances = None
            self.fewshot_rnd = None
            self._filters = [build_filter_ensemble("none", [["take_first", None]])]

        def has_training_docs(self) -> bool:
            return False

        def has_validation_docs(self) -> bool:
            return False

        def has_test_docs(self) -> bool:
            return True

        def test_docs(self) -> list[dict[str, Any]]:
            return self._docs

        def doc_to_text(self, doc: Mapping[str, Any]) -> str:
            return str(self._paired.prompt(doc["id"], chat=False).text)

        def doc_to_target(self, doc: Mapping[str, Any]) -> str:
            return f" {doc['possible_answers'][0]}" if doc["possible_answers"] else ""

        def fewshot_context(
            self,
            doc: Mapping[str, Any],
            num_fewshot: int = 0,
            system_instruction: str | None = None,
            apply_chat_template: bool = False,
            fewshot_as_multiturn: bool = False,
            chat_template: Callable[..., str] | None = None,
            **_: object,
        ) -> str:
            prompt = self._paired.prompt(doc["id"], chat=apply_chat_template, shots=num_fewshot)
            if chat_template is None or not apply_chat_template:
                return "\n\n".join(filter(None, (system_instruction, prompt.text)))
            turns = _turns(prompt, fewshot_as_multiturn)
            if system_instruction:
                turns.insert(0, {"role": "system", "content": system_instruction})
            return chat_template(turns)

        def construct_requests(
            self, doc: Mapping[str, Any], ctx: str, **given: object
        ) -> Instance | list[Instance]:
            about = {"doc": doc, "metadata": given["metadata"]}
            if self._is_choice:
                options = self._paired.prompt(
                    doc["id"], chat=bool(given.get("apply_chat_template"))
                )
                return [
                    Instance("loglikelihood", arguments=(ctx, option), idx=number, **about)
                    for number, option in enumerate(options.options or ())
                ]
            decoding = self._decoding(doc["id"], chat=bool(given.get("apply_chat_template")))
            decoding |= self.config.generation_kwargs
            return Instance("generate_until", arguments=(ctx, decoding), idx=0, **about)

        def _decoding(self, document_id: str, *, chat: bool) -> dict[str, Any]:
            params = self._paired.params(document_id, chat=chat)
            until, longest = list(params.stop), params.max_tokens
            return {"do_sample": False, "until": until, "max_gen_toks": longest}

        def apply_filters(self) -> object:
            done = super().apply_filters()
            if not self._is_choice:
                replies = {
                    instance.doc["id"]: instance.filtered_resps["none"]
                    for instance in self.instances
                }
                self._score(replies)
            return done

        def process_results(self, doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
            if self._is_choice:
                options = self._paired.prompt(doc["id"]).options or ()
                best = best_option([float(result[0]) for result in results])
                reply = None if best is None else options[best]
            else:
                reply = results[0]
            if reply is None:
                self._labels[doc["id"], reply] = [[name, None] for name in self._targets[doc["id"]]]
            elif (doc["id"], reply) not in self._labels:
                self._score({doc["id"]: reply})
            verdicts = self._labels[doc["id"], reply]
            known = [verdict for _, verdict in verdicts if verdict is not None]
            proportion = sum(known) / len(known) if known else None
            return {"acc": proportion} | dict.fromkeys(self._names, _Verdicts.of(verdicts))

        def aggregation(self) -> dict[str, Callable[[Sequence[Any]], float]]:
            of_pairs = {name: partial(self._number, name) for name in self._names}
            return {"acc": _mean, **of_pairs}

        def higher_is_better(self) -> dict[str, bool]:
            return {"acc": True, **self._paired.higher_is_better}

        def _number(self, name: str, items: Sequence["_Verdicts"]) -> float:
            verdicts = {target: verdict for item in items for target, verdict in item.verdicts}
            return self._paired.numbers(verdicts)[name]

        def _score(self, replies: Mapping[str, str]) -> None:
            verdicts = to_verdicts(self._paired.judge(replies))
            for document, reply in replies.items():
                self._labels[document, reply] = [
                    [target, verdicts[target]] for target in self._targets[document]
                ]

    return HarnessTask


class _Verdicts(str):
    """The labels of a document, which samples show under every number only as their count."""

    verdicts: Sequence[Sequence[Any]]

    @classmethod
    def of(cls, verdicts: Sequence[Sequence[Any]]) -> "_Verdicts":
        """Create the text from labels, pairs of target id and label."""
        known = [verdict for _, verdict in verdicts if verdict is not None]
        n_lacking = len(verdicts) - len(known)
        lacking = f", {n_lacking} unscored" if n_lacking else ""
        made = cls(f"{sum(known)} of {len(verdicts)} correct{lacking}")
        made.verdicts = verdicts
        return made


def _load(config: Mapping[str, Any]) -> tuple[PairedTask, bool]:
    """Load the study that a task file names, and return whether bounds are included."""
    foreign = [name for name in config if name not in _KEYS]
    if foreign:
        raise ValueError(
            f"task {config.get('task')}: unknown key {shown(foreign[0])}; the settings of "
            f"prompts and scoring belong under `options`. Known keys: {', '.join(_KEYS)}"
        )
    study = str(config["study"])
    laid_over = (config.get("metadata") or {}).get(study) or {}
    if not isinstance(laid_over, Mapping):
        raise ValueError(
            f"metadata {study!r} is {shown(laid_over)}; give a mapping of options, such as "
            f'--metadata \'{{"{study}": {{"source": "FOLDER"}}}}\''
        )
    options = {**(config.get("options") or {}), **laid_over}
    has_intervals = options.pop("intervals", False) is True
    return PairedTask.load(study, options, tool="lm-evaluation-harness"), has_intervals


def _shared(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values that are equal in all parts."""
    return {
        name: value
        for name, value in parts[0].items()
        if all(part[name] == value for part in parts[1:])
    }


def _turns(prompt: Prompt, as_turns: bool) -> list[dict[str, str]]:
    """Return a conversation as in the harness: demonstrations in one turn, unless `as_turns`."""
    turns = [{"role": turn.role, "content": turn.content} for turn in prompt.messages or ()]
    if as_turns or len(turns) == 1:
        return turns
    solved = zip(turns[:-1:2], turns[1::2], strict=False)
    parts = [f"{question['content']} {answered['content']}" for question, answered in solved]
    return [{"role": "user", "content": "\n\n".join([*parts, turns[-1]["content"]])}]


def _mean(items: Sequence[float | None]) -> float:
    """Return the mean of the scored values; NaN without any."""
    known = [item for item in items if item is not None]
    return sum(known) / len(known) if known else float("nan")
