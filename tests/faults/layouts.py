"""Result files of every layout with hostile texts, scores and damage, and a plain reader of each.

A file of legal values must be accepted, and its table of scores must equal that of the plain
reader in this module, which follows `docs/reference/results.md`. A damaged file is rejected, has
the same table, or `compare` prints a note on it.
"""

import gzip
import json
import math
import re
from collections import Counter, defaultdict
from pathlib import Path

from surface_consistency.errors import DataError
from tests.faults.inputs import TEXTS, Family, command, damaged, mutated, renamed, violation
from tests.made_layouts import made

FILES = Path(__file__).resolve().parents[1] / "data" / "files" / "forms"


def number(value):
    """Return a score as a float, or None if it is missing."""
    if isinstance(value, str):
        words = {"": None, "nan": None, "true": 1, "false": 0}
        stored = value.strip().lower()
        value = words[stored] if stored in words else float(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if not isinstance(value, int | float) or math.isinf(value):
        raise TypeError(value)
    return float(value)


def text(value):
    """Return an id or a name as a text; it can be a text, a number or a Boolean."""
    if not isinstance(value, str | int | float):
        raise TypeError(value)
    return str(value)


def numbered(names):
    """Append a number to each name that occurs more than once."""
    counts, seen = Counter(names), Counter()
    for name in names:
        seen[name] += 1
        yield f"{name} ({seen[name]})" if counts[name] > 1 else name


def lm_eval(rows):
    several = len({row.get("filter") for row in rows}) > 1
    known = "doc_id doc target arguments resps filtered_resps filter metrics doc_hash prompt_hash "
    known = f"{known}target_hash".split()
    for row in rows:
        for name in row.get("metrics") or [name for name in row if name not in known]:
            if not isinstance(row.get(name), list):
                metric = f"{name},{row['filter']}" if several else name
                yield None, row["doc_id"], "", 0, metric, row.get(name)


def fast_chat(rows):
    for row in rows:
        score = None if row.get("score") == -1 else row.get("score")
        form = "" if row["turn"] is None else row["turn"]
        yield row["model"], row["question_id"], form, 0, "score", score


def written_out(rows):
    for row in rows:
        for name in row:
            if not re.fullmatch(r"doc_id|prompt_\d+|logit_\d+|truth", name):
                yield None, row["prompt_0"], "", 0, name, row[name]


def lmms_eval(rows):
    texts = ("doc_id", "target", "token_counts", "doc_hash", "input", "filtered_resps")
    for row in rows:
        for name, cell in row.items():
            if isinstance(cell, dict) and "score" in cell:
                yield None, row["doc_id"], "", 0, name, cell["score"]
            elif name not in texts and isinstance(cell, int | float):
                yield None, row["doc_id"], "", 0, name, cell


def lighteval(rows):
    for row in rows:
        for name, score in row["metric"].items():
            yield None, row["doc"]["id"], "", 0, name, score


def old_lighteval(rows):
    for row in rows:
        for name, score in row["metrics"].items():
            yield None, row["example"], "", 0, name, score


def parts_of(scorer, value):
    grades = {"C": 1, "P": 0.5, "I": 0, "N": 0}
    cells = value if isinstance(value, dict) else {None: value}
    for name, cell in cells.items():
        score = grades.get(cell, cell) if isinstance(cell, str) else cell
        yield scorer if name is None else f"{scorer}.{name}", score


def inspect_ai(log):
    for row in log["samples"]:
        key = log["eval"]["model"], row["id"], "", row["epoch"] - 1
        for scorer, score in (row.get("scores") or {}).items():
            for name, part in parts_of(scorer, score["value"]):
                yield *key, name, part


def samples_df(rows):
    for row in rows:
        for name in row:
            if name.startswith("score_"):
                key = Path(row["log"]).stem, row["id"], "", row["epoch"] - 1
                for metric, score in parts_of(name.removeprefix("score_"), row[name]):
                    yield *key, metric, score


def helm(rows):
    costs = r"num_\w+|\w+_cost|\w*runtime\w*|batch_size|finish_reason_\w+|prompt_truncated"
    for row in rows:
        form = row["perturbation"]["name"] if "perturbation" in row else ""
        names = numbered([one["name"]["name"] for one in row["stats"]])
        for name, one in zip(names, row["stats"], strict=True):
            if not re.fullmatch(rf"{costs}|max_prob|logprob", name):
                yield None, row["instance_id"], form, 0, name, one.get("mean")


def promptfoo(content):
    # Tests of a provider with equal variables are repeats of one test.
    rows = sorted(content["results"]["results"], key=lambda row: row.get("testIdx") or 0)
    tests, seen = {}, Counter()
    variables = [json.dumps(row.get("vars") or row["testIdx"], sort_keys=True) for row in rows]
    keys = [
        (test, json.dumps(row["provider"], sort_keys=True), row.get("promptIdx"))
        for row, test in zip(rows, variables, strict=True)
    ]
    has_repeats = len({*keys}) < len(keys)
    for row, key in zip(rows, keys, strict=True):
        number = tests.setdefault(key[0], len(tests))
        number, repeat = (number, seen[key]) if has_repeats else (row["testIdx"], 0)
        seen[key] += 1
        provider = row["provider"]
        model = provider
        if isinstance(provider, dict):
            model = provider.get("label") or provider["id"]
        scores = {name: row[name] for name in ("success", "score")} | row.get("namedScores", {})
        is_error = row.get("failureReason") == 2
        for name, score in scores.items():
            yield model, number, "", repeat, name, None if is_error else score


def deepeval(content):
    for row in content["testCases"]:
        metrics, question = row.get("metricsData") or (), str(row["input"])
        has_failed = any(one.get("error") or one.get("score") is None for one in metrics)
        yield None, question, "", 0, "success", None if has_failed else row.get("success")
        for name, one in zip(numbered([one["name"] for one in metrics]), metrics, strict=True):
            yield None, question, "", 0, name, None if one.get("error") else one.get("score")


def simple_evals(content):
    seen = Counter()
    for turns, page in zip(content["convos"], content["htmls"], strict=True):
        question = [turn["content"] for turn in turns if turn["role"] == "user"][-1]
        score = re.search(r"<p>Score: (.*?)</p>", page)
        yield None, question, "", seen[question], "score", score and score[1]
        seen[question] += 1


def open_compass(content):
    details = content["details"]
    if isinstance(details, dict):
        details = [{"id": key, **row} for key, row in details.items() if isinstance(row, dict)]
    for row in details:
        name = row["id"] if "id" in row else row["example_abbr"]
        stored = row.get("correct")
        stored = stored if isinstance(stored, list) else [stored]
        for repeat, score in enumerate(stored):
            yield None, name, "", repeat, "correct", score


def open_compass_answers(content):
    for name, row in content.items():
        yield None, name, "", 0, "", row["prediction"]


def openai_evals(rows):
    seen, (model,) = Counter(), [row["spec"].get("completion_fns") for row in rows if "spec" in row]
    for row in rows:
        if row.get("type") == "match":
            name = row["sample_id"]
            yield (
                "/".join(model or ()) or None,
                name,
                "",
                seen[name],
                "correct",
                row["data"].get("correct"),
            )
            seen[name] += 1


def every_eval_ever(rows):
    for row in rows:
        name = text(row.get("evaluation_result_id") or "score")
        name = name.removeprefix(f"{row.get('evaluation_name')}.")
        scored = row["evaluation"] if isinstance(row["evaluation"], dict) else {}
        epoch = int((row.get("metadata") or {}).get("epoch") or 1)
        yield row["model_id"], row["sample_id"], "", epoch - 1, name, scored.get("score")


def vlm_eval_kit(rows):
    for row in rows:
        yield None, row["index"], "", 0, "hit", row.get("hit")


def vlm_eval_kit_answers(rows):
    for row in rows:
        turn, name = divmod(int(row["index"]), 10**6)
        yield None, name, f"rotation {turn}" if turn else "", 0, "", row["prediction"]


def nemo(rows):
    for row in rows:
        yield None, row["problem_idx"], "", row.get("repeat") or 0, "reward", row.get("reward")


def open_unlearning(metric):
    def read(content):
        (stored,) = content.values()
        for name, row in stored["value_by_index"].items():
            for field, score in row.items():
                if field.startswith("rouge") and not isinstance(score, list):
                    yield None, name, "", 0, f"{metric}.{field}", score

    return read


def tofu(content):
    (stored,) = content.values()
    for name, score in stored["rougeL_recall"].items():
        if not isinstance(score, list):
            yield None, name, "", 0, "Q_A_ROUGE.rougeL_recall", score


def easy_edit(rows):
    for row in rows:
        (answer,) = row["post"]["rewrite_gen_content"]
        yield "edited", row["case_id"], "plain", 0, "", answer


def prompt_eval(rows):
    for place, row in enumerate(rows):
        for name, score in row.items():
            yield None, name, f"template {place}", 0, "correct", score


def swe_bench(content):
    lists = {name.removesuffix("_ids"): names for name, names in content.items()}
    for name in {one for names in lists.values() for one in names}:
        failed = name in lists.get("error", ()) and name not in lists["resolved"]
        yield None, name, "", 0, "resolved", None if failed else name in lists["resolved"]


def evalplus(content):
    for name, solutions in content["eval"].items():
        for repeat, one in enumerate(solutions):
            score = {"pass": 1, "fail": 0, "timeout": 0, None: None}[one.get("base_status")]
            yield None, name, "", repeat, "base", score


def preferences(item, second, names):
    """Return a reader of battles; the reference is the first model of the first battle."""

    def read(rows):
        seen, reference = Counter(), rows[0][names[0]]
        for row in rows:
            score = second(row)
            score = 1 - score if score is not None and row[names[0]] != reference else score
            other = row[names[1]] if row[names[0]] == reference else row[names[0]]
            if other == row[names[0]] == row[names[1]]:
                raise ValueError(other)
            key = row[item], "", seen[row[item]], "preference"
            seen[row[item]] += 1
            yield reference, *key, 0.5
            yield other, *key, score

    return read


def alpaca(row):
    stored = row["preference"]
    return None if stored in (None, -1) else (stored or 1.5) - 1


def arena(row):
    score = {row["model_a"]: 0, row["model_b"]: 1, "model_a": 0, "model_b": 1, "tie": 0.5}
    return score[row["winner"]]


def mt_bench(row):
    won = {row["g1_winner"], row["g2_winner"]}
    scores = {"model_1": 0, "model_2": 1, "tie": 0.5}
    assert won <= {*scores}
    return scores[won.pop()] if len(won) == 1 else 0.5


def batches(rows):
    for row in rows:
        (choice,) = row["response"]["body"]["choices"]
        failed = row.get("error") or row["response"]["body"].get("error")
        answer = None if failed else choice["message"]["content"]
        answer = "".join(one["text"] for one in answer) if isinstance(answer, list) else answer
        yield None, row["custom_id"], "", 0, "", answer


def rwku(content):
    for place, row in enumerate(content["results"]):
        form = {"1": "cloze", "2": "plain"}.get(str(row["level"]))
        form = form or f"adversarial: {row.get('type', 'other')}"
        yield None, place, form, 0, "", row["prediction"]


READERS = {
    "doc resps": lm_eval,
    "doc filtered_resps": lm_eval,
    "question_id model judge judgment score turn": fast_chat,
    "prompt_0 logit_0": written_out,
    "doc_id doc_hash input filtered_resps": lmms_eval,
    "doc model_response metric": lighteval,
    "example full_prompt predictions metrics": old_lighteval,
    "version status eval samples": inspect_ai,
    "sample_id eval_id log epoch id": samples_df,
    "instance_id stats": helm,
    "evalId results": promptfoo,
    "testFile testCases": deepeval,
    "htmls convos": simple_evals,
    "details": open_compass,
    "0": open_compass_answers,
    "run_id event_id type data": openai_evals,
    "evaluation_id sample_id evaluation": every_eval_ever,
    "index question hit": vlm_eval_kit,
    "index question answer prediction A B": vlm_eval_kit_answers,
    "problem_idx reward": nemo,
    "forget_Q_A_ROUGE": open_unlearning("Q_A_ROUGE"),
    "forget_knowmem_ROUGE": open_unlearning("ROUGE"),
    "eval_log_forget.json": tofu,
    "eval_log_forget": tofu,
    "requested_rewrite post": easy_edit,
    "example_0 example_1": prompt_eval,
    "resolved_ids": swe_bench,
    "resolved": swe_bench,
    "eval": evalplus,
    "instruction output_1 output_2 preference": preferences(
        "instruction", alpaca, ("generator_1", "generator_2")
    ),
    "model_a model_b winner": preferences("question_id", arena, ("model_a", "model_b")),
    "question_id model_1 model_2 g1_winner g2_winner": preferences(
        "question_id", mt_bench, ("model_1", "model_2")
    ),
    "custom_id response": batches,
    "results": rwku,
}
"""A plain reader per layout; it yields model, item, form, repeat, metric and score or answer."""

NUMBERED = ("evalId results", "0", "index question answer prediction A B", "example_0 example_1")
NUMBERED += ("forget_Q_A_ROUGE", "forget_knowmem_ROUGE", "eval_log_forget.json", "eval_log_forget")
"""Layouts with numbers as ids."""

GRADED = ("doc resps", "doc filtered_resps", "question_id model judge judgment score turn")
GRADED += ("doc_id doc_hash input filtered_resps", "doc model_response metric")
GRADED += ("example full_prompt predictions metrics", "instance_id stats", "index question hit")
GRADED += ("evaluation_id sample_id evaluation", "problem_idx reward", "example_0 example_1")
"""Layouts in which a score can be any number or missing."""

REAL = {
    "lm_eval/0.4.13/*/*": "doc resps",
    "lm_eval/0.4.0-0.4.2/*": "doc resps",
    "lm_eval/two-ranks-two-filters/*/*": "doc resps",
    "lmms_eval/*/*": "doc_id doc_hash input filtered_resps",
    "lighteval/0.13/*/*": "doc model_response metric",
    "lighteval/0.6/*/*": "example full_prompt predictions metrics",
    "inspect_ai/1-epoch/*.json": "version status eval samples",
    "helm/*/per_instance_stats.json": "instance_id stats",
    "opencompass/results*/*/*": "details",
    "promptfoo/results.json": "evalId results",
    "openai_evals/*": "run_id event_id type data",
    "simple_evals/*": "htmls convos",
    "deepeval/*/*": "testFile testCases",
    "eee/*": "evaluation_id sample_id evaluation",
    "nemo_evaluator/*/*": "problem_idx reward",
}
"""Patterns of files that tools wrote, and their layouts."""

NO_REFERENCES = "no row contains an answer and references"


def table_of(cells):
    """Return the scores of a plain reader by sample and metric; contradictory ones are an error."""
    table = {}
    for model, item, form, repeat, metric, score in cells:
        key = (model and text(model), text(item), text(form), int(repeat), metric)
        score = number(score) if metric else score
        if table.setdefault(key, score) != score:
            raise ValueError(f"two scores of {key}")
    return table


def table_read(path, *, has_models):
    """Return the table that the package reads, in the format of `table_of`."""
    from surface_consistency.results.frame import read_results

    frame = read_results(path).frame
    keys = frame[["model", "item", "form", "repeat", "metric"]].to_numpy().tolist()
    cells = zip(keys, frame["score"].tolist(), frame["prediction"].tolist(), strict=True)
    return {
        (model if has_models else None, *key): number(score) if key[-1] else answer
        for (model, *key), score, answer in cells
    }


def written(content, path, rng):
    """Write JSON or JSONL, sometimes compressed; return the path and whether bytes are damaged."""
    is_ascii = rng.random() < 0.5
    if isinstance(content, list) and rng.random() < 0.5:
        path = path.with_suffix(".jsonl")
        data = "".join(json.dumps(row, ensure_ascii=is_ascii) + "\n" for row in content)
    else:
        data = json.dumps(content, ensure_ascii=is_ascii, indent=rng.choice((None, 1)))
    data = data.encode("utf-8", "surrogatepass")
    is_damaged = rng.random() < 0.05
    if is_damaged:
        data = damaged(data, rng)
    elif rng.random() < 0.2:
        path, data = path.with_name(f"{path.name}.gz"), gzip.compress(data)
    path.write_bytes(data)
    return path, is_damaged


class Layouts(Family):
    """Generated files of every layout."""

    def attempt(self, rng):
        layout, content = self.content(rng)
        is_legal = rng.random() < 0.65
        if not is_legal:
            content = mutated(content, rng)
        return self.checked(content, layout, is_legal, rng)

    def content(self, rng):
        """Return a layout, and the content of a file with hostile ids, texts and scores."""
        layout = rng.choice(list(READERS))
        scores = [1, 0, *(rng.choice((0, 1)) for _ in range(rng.randint(0, 6)))]
        ids = list(range(len(scores)))
        if layout in GRADED and rng.random() < 0.5:
            scores[2:] = [rng.choice((0.5, None, True, 0.25, 1.0)) for _ in scores[2:]]
        if layout not in NUMBERED and rng.random() < 0.7:
            ids = [f"{rng.choice(TEXTS)}{n}" for n in ids]
        names = {name: f"{rng.choice(TEXTS)}{name}" for name in ("A", "m", "p", "j", "t", "c", "v")}
        names["m"] = names["m"] if rng.random() < 0.5 else "m"
        content = renamed(made(list(zip(ids, scores, strict=True)))[layout], names)
        if isinstance(content, list) and layout != "example_0 example_1" and rng.random() < 0.5:
            first = content[:1] if "spec" in content[0] else []
            rest = content[len(first) :]
            content = first + rng.sample(rest, len(rest))
        return layout, content

    def is_of(self, layout, content):
        """Return whether a damaged file still has the columns that identify its layout."""
        row = content[0] if isinstance(content, list) and content else content
        if isinstance(row, dict) and layout == "example_0 example_1":
            is_full = {*layout.split()} <= {*row}
            return is_full and all(re.fullmatch(r"example_\d+", name) for name in row)
        is_first = isinstance(row, dict) and "spec" in row
        return is_first or (isinstance(row, dict) and {*layout.split()} <= {*row})

    def checked(self, content, layout, is_legal, rng):
        """Read a file with the package, and compare its table with that of the plain reader."""
        for old in self.home.iterdir():
            old.unlink()
        path, is_damaged = written(content, self.home / "m.json", rng)
        is_legal = is_legal and not is_damaged
        try:
            raw = path.read_bytes()
            content = parsed(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw, path)
            expected = {
                tuple(map(escaped, key)): score
                for key, score in table_of(READERS[layout](content)).items()
            }
        except Exception as error:
            expected, is_legal, self.why = None, False, repr(error)[:200]
        if not self.is_of(layout, content):
            return violation(*command(["compare", path, "--json"]))
        has_scores = expected is None or any(key[-1] for key in expected)
        words = ["compare", path, "--json", "--wide"]
        code, out, err = command(words if has_scores else [*words, "--rule", "exact"])
        if fault := violation(code, out, err):
            return fault
        if code == 2 and (has_scores or NO_REFERENCES not in err):
            return f"rejected a legal file: {err[:400]}" if is_legal else None
        try:
            found = table_read(path, has_models=bool(expected) and all(key[0] for key in expected))
        except DataError as error:
            return f"compare accepts a file that read_results rejects: {error}"
        if not is_legal and expected is not None:
            found, expected = (
                {key: score for key, score in table.items() if score is not None}
                for table in (found, expected)
            )
        if found != expected and (is_legal or "Note: " not in out):
            return difference(found, expected) if expected else f"accepted without note: {self.why}"
        return means(out, found) if has_scores and code == 0 else None


def means(out, table):
    """Compare the printed means of models with those of a table without forms and repeats."""
    printed = json.loads(out)["rows"]
    if "tasks with equal weights" in out:
        return None
    items = defaultdict(list)
    for (model, _, form, repeat, metric), score in table.items():
        if score is not None:
            items[model, metric].append(score)
        if form or repeat:
            return None
    models = {model for model, _ in items}
    for row in printed:
        if "mean" in row and len(models) == 1:
            scores = items[next(iter(models)), row.get("metric", next(iter(items))[1])]
            if row["mean"] is not None and not math.isclose(row["mean"], sum(scores) / len(scores)):
                return f"printed mean {row} of {scores}"
    return None


def difference(found, wanted):
    """Describe the cells in which two tables differ."""
    extra = {key: found[key] for key in found if key not in wanted or found[key] != wanted[key]}
    lost = {key: wanted[key] for key in wanted if key not in found or found[key] != wanted[key]}
    return f"{str(extra)[:300]} rather than {str(lost)[:300]}"


def escaped(name):
    """Replace lone surrogates of a name by escapes, because UTF-8 cannot encode them."""
    return name.encode(errors="backslashreplace").decode() if isinstance(name, str) else name


def parsed(data, path):
    """Parse JSON or JSONL with the standard library."""
    if ".jsonl" not in path.name:
        return json.loads(data)
    return [json.loads(line) for line in data.decode("utf-8-sig").split("\n") if line.strip()]


class Real(Layouts):
    """Files that tools wrote, with shuffled, repeated, dropped and damaged rows."""

    def content(self, rng):
        pattern = rng.choice(list(REAL))
        path = rng.choice(sorted(FILES.glob(pattern)))
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            content = pq.read_table(path).to_pylist()
        else:
            content = path.read_text("utf-8")
            is_rows = path.suffix == ".jsonl" and not content.startswith("[")
            content = parsed(content.encode(), path if is_rows else Path("x.json"))
        texts = json.loads((FILES / "truth.json").read_text("utf-8"))
        texts = {one for one in leaves(texts) if len(one) > 2}
        names = {one: f"{rng.choice(TEXTS)}{one}" for one in texts if rng.random() < 0.5}
        content = renamed(content, names)
        if isinstance(content, list) and "spec" not in content[0]:
            content = rng.sample(content, rng.randint(1, len(content)))
            content += [row for row in content if rng.random() < 0.1]
        return REAL[pattern], content


def leaves(value):
    """List the texts in a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value] if isinstance(value, str) else [one for cell in inner for one in leaves(cell)]
