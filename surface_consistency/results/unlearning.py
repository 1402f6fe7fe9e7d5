"""Read logs of benchmarks of unlearning and of model editing.

The logs are open-unlearning's `TOFU_EVAL.json` and `MUSE_EVAL.json`, TOFU's own
`eval_log_aggregated.json`, RWKU's results and EasyEdit's records. The task is the benchmark and the
set of the question. Only EasyEdit's records contain the model: "original" before the edits,
"edited" after them.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from surface_consistency.errors import DataError, RecordError
from surface_consistency.results.rows import Cells, Flat, Flats, at
from surface_consistency.results.tools import summary
from surface_consistency.rows.cells import count_of, text_of
from surface_consistency.rows.readers import Place

FORGET: Final = "forget"
"""The set of facts that should be forgotten, or of the old objects of edits."""

NEW: Final = "new object"
"""The set of the new objects of edits."""

NEIGHBOUR: Final = "neighbour"
"""The set of facts related to an edit, which should not change."""

PLAIN: Final = "plain"
"""The form that was unlearned, or that standard tests use."""

_FORMS: Final = {
    "Subject_Aliasing": "name",
    "Reasoning": "hop",
    "Compositionality_I": "hop",
    "Compositionality_II": "hop",
    "Logical_Generalization": "reverse",
}
_NEIGHBOUR_FIELDS: Final = ("Relation_Specificity", "Forgetfulness")
_ENDS: Final = {"portability": "acc", "locality": "output"}
_LEGACY: Final = {
    "eval_log_forget": "forget",
    "eval_log": "retain",
    "eval_real_author_wo_options": "ra",
    "eval_real_world_wo_options": "wf",
}
_TEXTS: Final = ("input", "generation", "ground_truth")


def tofu(row: Cells, place: Place) -> Flats:
    """Read TOFU_EVAL.json of open-unlearning, whose metrics contain questions by number."""
    yield from _open_unlearning(_metrics(row), place, "TOFU", lambda name: name.partition("_")[0])


def muse(row: Cells, place: Place) -> Flats:
    """Read MUSE_EVAL.json of open-unlearning, as `tofu` does."""
    yield from _open_unlearning(row, place, "MUSE", lambda name: name.removesuffix("_ROUGE"))


def _open_unlearning(
    row: Cells, place: Place, benchmark: str, set_of: Callable[[str], str]
) -> Flats:
    """Read questions by their set; values that are not scores of one answer are dropped."""
    sets: dict[str, dict[str, list[tuple[str, Cells]]]] = {}
    for metric, cell in row.items():
        is_of_forgotten = metric in ("exact_memorization", "extraction_strength")
        name = "forget" if is_of_forgotten else set_of(metric)
        for number, values in (at(cell, "value_by_index") or {}).items():
            short = metric.removeprefix(f"{name}_")
            sets.setdefault(name, {}).setdefault(number, []).append((short, values))
    for name, items in sets.items():
        for number, cells in sorted(items.items(), key=lambda item: count_of(item[0]) or 0):
            texts = next((values for _, values in cells if "generation" in values), {})
            if texts and None in (texts.get("input"), text_of(texts.get("ground_truth"))):
                raise RecordError(
                    f"{place}: question {number[:60]} of {benchmark} {name[:60]} lacks its input "
                    "or ground_truth; give the file as it was written"
                )
            parts = {
                "id": number,
                "task": f"{benchmark} {name}",
                "question": _question(texts["input"]) if texts else None,
                "prediction": texts.get("generation"),
                "target": texts.get("ground_truth"),
                # The question contains the chat template, with the date of the run.
                "content": texts.get("ground_truth"),
            }
            scores = {
                short if value == "score" else f"{short}.{value}": score
                for short, values in cells
                for value, score in values.items()
                if value in ("score", "prob") or value.startswith("rouge")
            }
            single = {n: score for n, score in scores.items() if not isinstance(score, list)}
            yield Flat(parts, single, {})


def _metrics(content: Cells) -> Cells:
    """Name the metrics of a log as open-unlearning does, also those of TOFU's own log."""
    parts = {name.removesuffix(".json"): part for name, part in content.items()}
    if "eval_log_forget" not in parts:
        # Logs and configurations of open-unlearning write the name in two ways.
        ratio = "forget_Truth_Ratio"
        return {n.replace(ratio, "forget_truth_ratio"): metric for n, metric in content.items()}
    metrics: dict[str, Any] = {}
    for part, prefix in _LEGACY.items():
        cells = {name: _indexed(values) for name, values in parts.get(part, {}).items()}
        losses = {"Prob": "avg_gt_loss", "PARA_Prob": "avg_paraphrased_loss"}
        values = {
            f"{prefix}_Q_A_{name}": {i: {"prob": math.exp(-x)} for i, x in rows}
            for name, field in losses.items()
            if (rows := cells.get(field, {}).items())
        }
        texts, recalls = cells.get("generated_text", {}), cells.get("rougeL_recall", {})
        values[f"{prefix}_Q_A_ROUGE"] = {
            i: dict(zip(_TEXTS, texts.get(i) or (), strict=i in texts))
            | {"rougeL_recall": recalls.get(i)}
            for i in {**texts, **recalls}
        }
        ratio = "truth_ratio" if prefix == FORGET else "Truth_Ratio"
        values[f"{prefix}_{ratio}"] = {
            i: {"score": x} for i, x in cells.get("truth_ratio", {}).items()
        }
        metrics |= {n: {"value_by_index": x} for n, x in values.items() if x}
    return metrics


def _indexed(values: object) -> Mapping[str, Any]:
    """Return a list as a mapping by index; a mapping is returned unchanged."""
    if isinstance(values, Mapping):
        return values
    return {str(i): x for i, x in enumerate(values)} if isinstance(values, list) else {}


def _question(prompt: str) -> str:
    """Extract the question from a prompt that was decoded with its chat template."""
    text = prompt.strip()
    for mark in ("assistant", "[/INST]", "Answer:"):
        text = text.removesuffix(mark).rstrip()
    line = (text.splitlines() or [""])[-1].removeprefix("[INST]")
    return line.strip().removeprefix("Question:").strip()


def rwku(row: Cells, place: Place) -> Flats | None:
    """Read results of RWKU: the samples with their predictions; reject means of other tools."""
    samples = row["results"]
    if not isinstance(samples, list) or None in (at(samples, "0.query"), at(samples, "0.subject")):
        return summary(row, place)
    of_set = NEIGHBOUR if any("neighbor" in name for name in row) else FORGET
    forms = {"1": "cloze", "2": PLAIN}
    return [
        Flat(
            {
                "id": number,
                "task": f"RWKU {of_set}",
                "form": forms.get(
                    str(one.get("level", "2")), f"adversarial: {one.get('type', 'other')}"
                ),
                "question": str(one["query"]),
                "target": str(one["answer"]),
                "prediction": one["prediction"],
            },
            {},
            {"subject": str(one["subject"])},
        )
        for number, one in enumerate(samples)
    ]


def edits(row: Cells, place: Place) -> Flats:
    """Read a record of EasyEdit: the output of the model before the edit and after it.

    Each text has the answers of the old object, of the new one, or of a neighbour.
    """
    roles = {"pre": "original", "post": "edited"}
    flats = []
    for when, role in roles.items():
        written = row.get(when) or {}
        for one in edit_questions(row, place.number - 1):
            kind, _, key = one.source.partition("/")
            texts = written.get(f"{kind}_gen_content")
            if key:
                texts = (written.get(kind) or {}).get(f"{key}_{_ENDS[kind]}")
            listed = texts if isinstance(texts, list) else [texts]
            text = listed[one.place] if one.place < len(listed) else None
            if isinstance(text, str):  # Tokens and their accuracies are not texts.
                parts = {"id": one.fact_id, "task": f"EasyEdit {one.set}", "model": role}
                parts |= {"form": one.form, "question": one.question, "prediction": text}
                subject = {"subject": one.subject_id}
                flats.append(Flat({**parts, "target": list(one.answers)}, {}, subject))
    if not flats or flats[-1].parts["model"] != "edited":
        raise DataError(
            f"{place} contains accuracies of tokens under teacher forcing, which reveals the "
            "target's length and first tokens: 96.8 % of edits succeed by them and 38.5 % when "
            "the model generates (arXiv 2502.11177); evaluate with evaluation_type: "
            "generate-text, which keeps the texts (*_gen_content)"
        )
    return flats


class EditQuestion(NamedTuple):
    """A question about an edit, with the answers that count in a set."""

    fact_id: str
    """Id of the edit for the first question of each set and form except neighbours; otherwise that
    of a separate fact."""

    subject_id: str
    """Id of the subject of the edit."""

    source: str
    """Field of the layout: "rewrite", "rephrase", or "portability/KEY" and "locality/KEY"."""

    place: int
    """Number within that field."""

    set: str
    """`FORGET` for the old object, `NEW` for the new one, or `NEIGHBOUR`."""

    form: str
    """The form of the question."""

    question: str
    """The question."""

    answers: tuple[str, ...]
    """Accepted answers."""


def edit_questions(record: Mapping[str, Any], number: int = 0) -> Iterator[EditQuestion]:
    """List the questions about an edit.

    Args:
        record: A record of CounterFact as of ROME or in EasyEdit's flat layout, of zsRE, KnowEdit
            or RippleEdits.
        number: Number of the record, which is its id if it has none.

    Yields:
        Questions with answers; those without answers are dropped. Questions of the edited fact have
        its id in all forms.

    Notes:
        ROME's neighbourhood prompts have the old object as their answer. RippleEdits has questions
        for new objects and neighbours only.
    """
    edit = {**record, **record.get("requested_rewrite", {})}
    old, new = (
        _first(edit, *names)
        for names in (("target_true", "ground_truth", "answers"), ("target_new", "alt"))
    )
    objects = {FORGET: old, NEW: new}
    prompt = _first(edit, "prompt", "src")
    if isinstance(prompt, str):
        prompt = prompt.replace("{}", str(edit.get("subject", "")))
    fields: list[tuple[str, str, object, Mapping[str, object]]] = [
        ("rewrite", PLAIN, prompt, objects),
        ("rephrase", "reworded", _first(edit, "rephrase_prompt", "rephrase"), objects),
        ("rephrase", "reworded", edit.get("paraphrase_prompts"), objects),
        ("locality/neighborhood", PLAIN, edit.get("neighborhood_prompts"), {NEIGHBOUR: old}),
    ]
    neighbour_answers = _first(edit, "locality_ground_truth", "loc_ans")
    named = _first(edit, "locality_prompt", "loc")
    fields.append(("locality/neighborhood", PLAIN, named, {NEIGHBOUR: neighbour_answers}))
    for kind, of_set in (("portability", NEW), ("locality", NEIGHBOUR)):
        for key, tests in (edit.get(kind) or {}).items():
            cells = tests if isinstance(tests, list) else [tests]
            texts = [text for one in cells for text in _listed(one["prompt"])]
            truths = [truth for one in cells for truth in _truths(one)]
            of_sets: dict[str, object] = {of_set: truths}
            if key == "Subject_Aliasing" and new in {
                name for one in truths for name in _names(one, 0)
            }:
                of_sets[FORGET] = old  # An alias of the subject also tests the old object.
            fields.append((f"{kind}/{key}", _FORMS.get(key, key), texts, of_sets))
    for key in (*_FORMS, *_NEIGHBOUR_FIELDS):
        of_set = NEIGHBOUR if key in _NEIGHBOUR_FIELDS else NEW
        queries = [query for test in edit.get(key) or () for query in test.get("test_queries", ())]
        names = [[n for a in q["answers"] for n in (a["value"], *a["aliases"])] for q in queries]
        texts = [query["prompt"] for query in queries]
        fields.append((f"portability/{key}", _FORMS.get(key, key), texts, {of_set: names}))
    fact, seen = str(record.get("case_id", number)), {(NEIGHBOUR, form) for _, form, *_ in fields}
    for source, form, prompts, accepted in fields:
        for place, text in enumerate(_listed(prompts)):
            for of_set, objects_of_set in accepted.items():
                if known := _names(objects_of_set, place):
                    name = f"{fact} {source} {place}" if (of_set, form) in seen else fact
                    seen.add((of_set, form))
                    about = (name, str(edit.get("subject") or fact), source, place)
                    yield EditQuestion(*about, of_set, form, str(text), known)


def _first(record: Mapping[str, Any], *names: str) -> object:
    """Return the first field that exists; if it is an object of CounterFact, its name."""
    value = next((record[name] for name in names if record.get(name) is not None), None)
    return value.get("str") if isinstance(value, Mapping) else value


def _listed(value: object) -> list[Any]:
    """Return a value as a list; None is an empty list."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _truths(cell: Mapping[str, Any]) -> list[Any]:
    """List the accepted names of each prompt of a test."""
    prompts, truths = _listed(cell["prompt"]), _listed(cell["ground_truth"])
    return truths if len(truths) == len(prompts) else [truths] * len(prompts)


def _names(accepted: object, place: int) -> tuple[str, ...]:
    """List the accepted names of one prompt, from one name, several, or one of these per prompt."""
    if isinstance(accepted, list) and accepted and isinstance(accepted[0], list):
        accepted = accepted[place] if place < len(accepted) else accepted[0]
    flat = [name for one in _listed(accepted) for name in _listed(one)]
    return tuple(str(name) for name in flat if str(name).strip())
