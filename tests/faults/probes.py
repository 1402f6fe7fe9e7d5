"""Studies that read log-probabilities: logs with hostile scores, benchmarks with hostile rows."""

import json
import math
import shutil
import warnings
from pathlib import Path

from tests.faults.inputs import ANY, REJECTED, TEXTS, Family, command, damaged, verify

WORDNET = str(
    Path(__file__).resolve().parents[1] / "studies" / "lexical" / "perturbation" / "wordnet"
)
SCORER = "tests.faults.plugins:Scorer"
PIQA = [
    {"goal": "To choose a dog,", "sol1": "look at it.", "sol2": "eat the apple.", "label": 0},
    {"goal": "To use an apple,", "sol1": "throw it.", "sol2": "eat it up.", "label": 1},
]
COPA = {
    "premise": "The man fell.",
    "choice1": "He slipped.",
    "choice2": "He slept on a dog.",
    "question": "cause",
    "label": 0,
}
ROWS = {
    "piqa": PIQA[0],
    "copa": COPA,
    "winogrande": {
        "sentence": "Ann gave dogs to Sue because _ was kind.",
        "option1": "Ann",
        "option2": "Sue",
        "answer": "1",
    },
    "lambada": {"text": "He had a dog and she had a dog"},
    "anaphor_agreement": {
        "sentence_good": "Some dog helped Mary.",
        "sentence_bad": "Some dogs helps Mary.",
        "UID": "anaphor_number_agreement",
    },
}
VALUES = (0, -0.5, -3.0, -700.0, -1e308, 5e-324 * -1)
INVALID = (1.0, float("nan"), "x", [], True, "-1")


def without_pages():
    """Replace the page of `run` and `score` by an empty report; other tests check the page."""
    from surface_consistency.cli import score
    from surface_consistency.engine import sweep as variants
    from surface_consistency.engine.report import Reported

    def scored_only(folders, out, **_):
        import pandas as pd

        overall = type("Nothing", (), {"frame": pd.DataFrame()})()
        return Reported(
            page=out, tables={"overall": overall}, runs=[], finding="", notes=[], warnings=[]
        )

    score.report_runs = variants.report_runs = scored_only


class _Scored(Family):
    """Runs of the studies that read log-probabilities."""

    def __init__(self, home):
        super().__init__(home)
        without_pages()
        self.out = home / "run"

    def run(self, source, out, task, *more):
        """Run a benchmark."""
        words = ["run", "lexical", "--task", task, "--source", source, "--out", out, "--json"]
        words += ["--runner", SCORER, "--wordnet", WORDNET, "--repeat", 0, "--limit", 4]
        return command([*words, *more])

    def verdicts(self):
        """Read the correctness labels of the run."""
        import pandas as pd

        frame = pd.read_parquet(self.out / "verdicts.parquet")
        labelled = frame[frame["reason"].isna()]
        return dict(zip(labelled["target_id"], labelled["correct"].astype(bool), strict=True))


class Scores(_Scored):
    """Logs with changed scores; the option with the largest sum is chosen, or the log rejected."""

    def __init__(self, home):
        super().__init__(home)
        source = home / "piqa" / "validation.jsonl"
        source.parent.mkdir()
        source.write_text("".join(json.dumps(row) + "\n" for row in PIQA))
        lexical = self.run(source.parent, home / "lexical", "piqa")
        words = ["run", "linking", "--source", "sample", "--limit", 4, "--repeat", 0, "--json"]
        linking = command([*words, "--runner", SCORER, "--out", home / "linking"])
        if lexical[0] or linking[0]:
            raise RuntimeError(f"{lexical} {linking}")
        self.fresh = [self._read(home / name) for name in ("lexical", "linking")]

    def _read(self, folder):
        import pandas as pd

        lines = (folder / "generations.jsonl").read_text("utf-8").splitlines()
        return (
            folder,
            [json.loads(line) for line in lines],
            pd.read_parquet(folder / "targets.parquet"),
        )

    def attempt(self, rng):
        folder, lines, targets = rng.choice(self.fresh)
        lines = json.loads(json.dumps(lines))
        line, kind, expected = rng.choice(lines), rng.randrange(9), None
        scores = line["scores"]
        one = rng.choice(scores)
        if kind < 4:
            for score in rng.choices(scores, k=rng.randint(1, 4)):
                score["log_probabilities"] = [rng.choice(VALUES)]
        elif kind == 4:
            one["log_probabilities"] = [rng.choice(INVALID)]
            expected = REJECTED
        elif kind == 5:
            line["scores"] = rng.choice((None, [], scores[:-1], [*scores, one], {}, [one, 1], "x"))
            expected = ANY if line["scores"] is None else REJECTED
        elif kind == 6:
            one[rng.choice((*one, rng.choice(TEXTS)))] = rng.choice((None, 1, [], {}, "x", [None]))
            expected = ANY
        elif kind == 8:
            for score in scores:
                score["log_probabilities"] = [rng.choice((-1.0, float("-inf")))]
            expected = ANY
        if expected is None:
            expected = self.oracle(folder.name, lines, targets)
        content = "\n".join(map(json.dumps, lines)) + "\n"
        if kind == 7:
            content, expected = damaged(content.encode(), rng).decode("utf-8", "replace"), ANY
        shutil.rmtree(self.out, ignore_errors=True)
        shutil.copytree(folder, self.out)
        (self.out / "generations.jsonl").write_text(content, encoding="utf-8")
        return verify(*command(["score", self.out, "--json"]), expected, self.verdicts)

    def oracle(self, study, lines, targets):
        """Return the expected labels: the option with the largest sum is chosen.

        A tie of options has no label. The linking study compares the sums of probabilities.
        """
        values = {
            line["prompt_id"]: [score["log_probabilities"][0] for score in line["scores"]]
            for line in lines
        }
        labels = {}
        for row in targets.to_dict("records"):
            options = values[row["prompt_id"]]
            if study == "lexical":
                if options.count(max(options)) == 1:
                    labels[row["target_id"]] = options.index(max(options)) == int(row["correct"])
            elif row["kind"] == "positive" or row["kind"].endswith("negative"):
                half = len(options) // 2
                odds = _log_sum(options[:half]) - _log_sum(options[half:])
                labels[row["target_id"]] = (odds > 0) == (row["kind"] == "positive")
        return labels


def _log_sum(values):
    """Return the logarithm of a sum of probabilities, which are given as logarithms."""
    top = max(values)
    return top + math.log(math.fsum(math.exp(value - top) for value in values))


class Benchmarks(_Scored):
    """Benchmarks with hostile texts and cells; every row is scored, or the file is rejected."""

    def attempt(self, rng):
        task = rng.choice(list(ROWS))
        rows = [dict(ROWS[task]) for _ in range(3)]
        texts = [name for name in rows[0] if name not in ("label", "answer", "question", "UID")]
        # LAMBADA requires `is_greedy` (the last word is the likeliest), which the runner omits.
        kind, expected = rng.randrange(4), REJECTED if task == "lambada" else len(rows)
        for place, row in enumerate(rows):
            row[texts[0]] = f"{place} {row[texts[0]]}"
        row = rng.choice(rows)
        if kind == 0:
            row[rng.choice(texts)] += f" {rng.choice(TEXTS)}"
            expected = ANY
        elif kind == 1:
            row[rng.choice(list(row))] = rng.choice((None, 1, 7, [], {}, "", -1, True, "x"))
            expected = ANY
        elif kind == 2:
            row[rng.choice(TEXTS)] = rng.choice(TEXTS)
            expected = ANY
        content = "".join(json.dumps(row) + "\n" for row in rows).encode()
        if rng.random() < 0.3:
            content, expected = damaged(content, rng), ANY
        path = self.home / "rows.jsonl"
        path.write_bytes(content)
        shutil.rmtree(self.out, ignore_errors=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ended = self.run(path, self.out, task)
        return verify(*ended, expected, self.found)

    def found(self):
        """Count the pairs."""
        import pandas as pd

        return len(pd.read_parquet(self.out / "outcomes.parquet"))
