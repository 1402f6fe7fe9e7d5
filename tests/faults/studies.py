"""Hostile questions of `run forms` and `run unlearning`, shards of runs, and unlearning logs."""

import json
import math
import shutil

from tests.faults.inputs import (
    ANY,
    REJECTED,
    TEXTS,
    Family,
    command,
    damaged,
    mutated,
    verify,
    violation,
)

RUNNER = ("--runner", "tests.faults.plugins:Yes", "--repeat", 0, "--json")


def labels(folder):
    """Read the correctness labels of a run."""
    import pandas as pd

    frame = pd.read_parquet(folder / "verdicts.parquet")
    frame = frame[frame["correct"].notna()]
    return {name: bool(one) for name, one in zip(frame["target_id"], frame["correct"], strict=True)}


class _Run(Family):
    """Sources of questions; the model answers every question with "yes"."""

    def __init__(self, home):
        super().__init__(home)
        self.out = home / "run"

    def found(self):
        """Return the numbers of questions and of correct answers."""
        read = labels(self.out)
        correct = [read[name] for name in read if not name.endswith("| long")]
        return len(correct), sum(correct)

    def run(self, study, path, expected):
        """Run a study on a source."""
        shutil.rmtree(self.out, ignore_errors=True)
        ended = command(["run", study, "--source", path, "--out", self.out, *RUNNER])
        return verify(*ended, expected, self.found)


class Questions(_Run):
    """Tables of items in several forms."""

    def attempt(self, rng):
        extra, forms = f"{rng.choice(TEXTS)}_x", [f"{rng.choice(TEXTS)}{n}" for n in range(2)]
        rows = []
        for item in (f"{rng.choice(TEXTS)}{n}" for n in range(rng.randint(1, 5))):
            references = rng.choice((["yes"], [f"{rng.choice(TEXTS)} q", "yes"], ["no"], "yes", 7))
            cells = {"item": item, "references": references, extra: rng.choice(TEXTS)}
            rows += [
                {**cells, "form": form, "question": f"{rng.choice(TEXTS)} {item} {form}?"}
                for form in forms
            ]
        rng.shuffle(rows)
        expected = len(rows), sum("yes" in (row["references"], *self.listed(row)) for row in rows)
        if rng.random() < 0.35:
            rows, expected = mutated(rows, rng), ANY
        path = self.home / rng.choice(("q.jsonl", "q.json"))
        data = json.dumps(rows).encode()
        if path.suffix == ".jsonl":
            data = "\n".join(map(json.dumps, rows)).encode()
        if rng.random() < 0.1:
            data, expected = damaged(data, rng), ANY
        path.write_bytes(data)
        return self.run(rng.choice(("forms", "unlearning")), path, expected)

    def listed(self, row):
        """Return the accepted answers of a row as a list."""
        return row["references"] if isinstance(row["references"], list) else [row["references"]]


class Edits(_Run):
    """Records of CounterFact; a run queries the old and the new object of each."""

    def attempt(self, rng):
        records, n, n_correct = [], 0, 0
        for case in range(rng.randint(1, 4)):
            subject, old, new = (f"{rng.choice(TEXTS)} {name}{case}" for name in "son")
            old, new = rng.choice(((old, "yes"), ("yes", new), (old, new)))
            reworded, beside = (
                [f"{rng.choice(TEXTS)} {kind} {case} {k}" for k in range(rng.randint(0, 2))]
                for kind in ("reworded", "beside")
            )
            edit = {"prompt": "{} is in", "subject": subject}
            edit |= {"target_new": {"str": new}, "target_true": {"str": old}}
            record = {"case_id": case, "requested_rewrite": edit}
            record |= {"paraphrase_prompts": reworded, "neighborhood_prompts": beside}
            records.append(record)
            n += 2 * (1 + len(reworded)) + len(beside)
            n_correct += (1 + len(reworded)) * ("yes" in (old, new)) + len(beside) * (old == "yes")
        expected = n, n_correct
        if rng.random() < 0.35:
            records, expected = mutated(records, rng), ANY
        path = self.home / "edits.json"
        path.write_bytes(json.dumps(records).encode())
        return self.run("unlearning", path, expected)


class Shards(_Run):
    """Shards of a run with logs that are damaged before the shards are merged."""

    def __init__(self, home):
        super().__init__(home)
        source, self.parts = home / "q.jsonl", home / "parts"
        rows = [
            {"item": n, "form": form, "question": f"{n} {form}?", "references": answer}
            for n, answer in enumerate(("yes", "no") * 3)
            for form in ("a", "b")
        ]
        source.write_text("\n".join(map(json.dumps, rows)))
        self.words = ["run", "forms", "--source", source, *RUNNER]
        assert command([*self.words, "--out", self.out])[0] == 0
        self.complete = labels(self.out)
        for number in (1, 2):
            words = [*self.words, "--out", self.parts, "--shards", 2, "--shard", number]
            assert command(words)[0] == 0

    def attempt(self, rng):
        shutil.rmtree(self.out)
        shutil.copytree(self.parts, self.out)
        logs = sorted(self.out.rglob("generations.jsonl"))
        log, expected = rng.choice(logs), self.complete
        lines = log.read_text("utf-8").splitlines()
        place, kind = rng.randrange(len(lines)), rng.randrange(10)
        other = json.dumps(json.loads(lines[place]) | {"text": rng.choice(TEXTS)})
        if kind < 2:
            rng.shuffle(lines)
        elif kind < 4:
            lines.insert(rng.randrange(len(lines) + 1), lines[place])
        elif kind == 4:
            lines.insert(rng.randrange(len(lines) + 1), other)
            expected = REJECTED
        elif kind == 5:
            name = json.loads(lines.pop(place))["prompt_id"]
            expected = {key: one for key, one in expected.items() if key != name}
        elif kind == 6:
            # Both shards contain the same answer to a question.
            with (logs[0] if log == logs[1] else logs[1]).open("a", encoding="utf-8") as file:
                file.write(lines[place] + "\n")
            expected = ANY
        elif kind == 7:
            lines[place] = damaged(lines[place].encode(), rng).decode("utf-8", "replace")
            expected = ANY
        elif kind == 8:
            lines[place] = json.dumps(mutated(json.loads(lines[place]), rng))
            expected = ANY
        else:
            file = rng.choice([one for one in log.parent.iterdir() if one.suffix == ".json"])
            file.write_text(json.dumps(mutated(json.loads(file.read_text("utf-8")), rng)))
            expected = ANY
        log.write_text("\n".join(lines) + "\n", encoding="utf-8")
        ended = command([*self.words, "--out", self.out, "--shards", 2])
        return verify(*ended, expected, lambda: labels(self.out))


class Unlearned(Family):
    """Logs of open-unlearning: of an unlearned model, and of one not trained on the facts."""

    def attempt(self, rng):
        short = self.home / "short.csv"
        short.write_text("index,answer\n" + "".join(f"{n},Name{n}\n" for n in range(8)))
        texts = [[f"{n}? {rng.choice(TEXTS)}", rng.choice(TEXTS)] for n in range(8)]
        logs = [self.log(rng, texts) for _ in range(2)]
        is_legal = rng.random() < 0.65
        if not is_legal:
            logs[rng.randrange(2)] = mutated(logs[0], rng)
        for log, name in zip(logs, "ab", strict=True):
            (self.home / f"{name}.json").write_text(json.dumps(log))
        words = ["analyse", "unlearning", self.home / "a.json", self.home / "b.json"]
        words += ["--short-answers", short, "--out", self.home / "out", "--no-page", "--json"]
        code, out, err = command([*words, "--setting", "resamples=5"])
        fault = violation(code, out, err)
        if fault or (code and not is_legal):
            return fault
        if code:
            return f"rejected legal logs: {err[:400]}"
        try:
            known = [self.known(log) for log in logs]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            return f"accepted {error!r}"
        shared = known[0].keys() & known[1].keys()
        rates = [sum(one[name] for name in shared) / len(shared) for one in known]
        expected = dict(zip(("survival", "floor"), rates, strict=True))
        (row,) = json.loads(out)["tables"]["unlearning"]
        is_same = all(math.isclose(row[name], expected[name]) for name in expected)
        return None if is_same else f"{row} rather than {expected}"

    def log(self, rng, texts):
        """Return the log of a model with some correct answers to eight questions."""
        rouge = {
            str(n): {
                "input": f"Question: {question}\nAnswer:",
                "ground_truth": f"It is Name{n}, {ending}.",
                "generation": f"{rng.choice((f'Name{n}', 'No idea'))} {rng.choice(TEXTS)}",
                "rougeL_recall": rng.random(),
            }
            for n, (question, ending) in enumerate(texts)
        }
        scores = {str(n): {"score": rng.random()} for n in range(8)}
        metrics = {"forget_Q_A_ROUGE": rouge, "forget_truth_ratio": scores}
        return {name: {"value_by_index": cells} for name, cells in metrics.items()}

    def known(self, log):
        """Return for each question whether the answer contains the name."""
        cells = log["forget_Q_A_ROUGE"]["value_by_index"]
        texts = {n: cell.get("generation") for n, cell in cells.items()}
        texts = {n: str(one) for n, one in texts.items() if one is not None and one == one}
        return {n: f"Name{int(n)}" in one for n, one in texts.items()}
