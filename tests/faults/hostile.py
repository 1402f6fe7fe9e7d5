"""Run the commands on hostile files, and compare their results with an independent computation.

Every family generates inputs from a seed, each with its expected end: a correct result, which the
family computes independently, or an error in lines that begin with "error:". A failure is a
traceback, a warning of a library, another exit code, raw control characters on the terminal, or a
different result. Pages are not rendered here; the browser tests render them.

    python -m tests.faults.hostile [--inputs N] [--seconds S] [NAME ...]
"""

import argparse
import contextlib
import csv
import gzip
import io
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

from tests.faults.counts import Ngrams, Pairs, Surfaces
from tests.faults.dumps import Entities, Pages, Pageviews, Sql
from tests.faults.folders import Files, Folders
from tests.faults.inputs import (
    ANY,
    CODES,
    REJECTED,
    TEXTS,
    Family,
    command,
    damaged,
    verify,
    violation,
)
from tests.faults.layouts import Layouts, Real
from tests.faults.makers import Articles, Parts, RedirectRows, Topics
from tests.faults.probes import Benchmarks, Scores
from tests.faults.studies import Edits, Questions, Shards, Unlearned
from tests.faults.tables import Tables

QUICK = ("--json", "--wide")


class Verdicts(Family):
    """Correctness labels with hostile facts, groups and cells; a plain loop counts the pairs."""

    good = ("0", "1", "", "true", "False", "1.0", " 1 ")
    bad = ("yes", "1,0", "[[[[", "NA", "right")

    def attempt(self, rng):
        is_bad = rng.random() < 0.2
        rows = []
        for place in range(rng.randint(1, 9)):
            cells = [rng.choice(self.good), rng.choice(self.good)]
            rows.append([f"{rng.choice(TEXTS)}{place}", *cells, rng.choice(TEXTS)])
        if is_bad:
            rng.choice(rows)[rng.randint(1, 2)] = rng.choice(self.bad)
        path = self.home / f"v.{rng.choice(('csv', 'jsonl', 'tsv'))}"
        names = ("item", "a", "b", rng.choice(("g", "=g", "größe")))
        if path.suffix == ".jsonl":
            lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                delimiter = "\t" if path.suffix == ".tsv" else ","
                writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL)
                writer.writerows([names, *rows])
        by = rng.random() < 0.5
        words = ["paired", path, "--first", "a", "--second", "b", *QUICK]
        code, out, err = command([*words, "--by", names[3]] if by else words)
        if err.startswith("error: ") and "\x00" in "".join(map(str, rows)):
            return violation(code, out, err)
        return verify(code, out, err, REJECTED if is_bad else self.count(rows), lambda: total(out))

    def count(self, rows):
        """Count pairs in a plain loop."""
        read = {"0": 0, "1": 1, "": None, "true": 1, "false": 0, "1.0": 1}
        counts = dict.fromkeys(("both", "first_only", "second_only", "neither", "n_missing"), 0)
        names = {(1, 1): "both", (1, 0): "first_only", (0, 1): "second_only", (0, 0): "neither"}
        for _, first, second, _ in rows:
            pair = read[first.strip().lower()], read[second.strip().lower()]
            counts["n_missing" if None in pair else names[pair]] += 1
        return counts


def total(out):
    """Add the counts of the groups that `paired --json --wide` printed."""
    names = ("both", "first_only", "second_only", "neither", "n_missing")
    rows = json.loads(out)["rows"]
    return {name: sum(row[name] for row in rows) for name in names}


class Bytes(Family):
    """Files of correctness labels with damaged bytes; they may be accepted or rejected."""

    def attempt(self, rng):
        rows = [{"item": str(i), "a": i % 2, "b": 1, "g": rng.choice(TEXTS)} for i in range(5)]
        suffix = rng.choice(("csv", "jsonl", "json"))
        if suffix == "csv":
            content = "\r\n".join(["item,a,b", *(f"{i},{i % 2},1" for i in range(5))])
        elif suffix == "jsonl":
            content = "\n".join(map(json.dumps, rows))
        else:
            content = json.dumps(rows)
        path = self.home / f"d.{suffix}"
        path.write_bytes(damaged(content.encode(), rng))
        words = ["paired", path, "--first", "a", "--second", "b", *QUICK]
        return verify(*command(words), ANY, None)


class _Scored(Family):
    """Families that score answers to the bundled sample, without the page."""

    def __init__(self, home):
        super().__init__(home)
        from surface_consistency.data.redirectqa import load_redirectqa

        self.out = home / "run"
        self.questions = load_redirectqa("sample").select(limit=4).questions
        self.ids = [one.id for one in self.questions]
        self.gold = {one.id: one.triple.answers[0] for one in self.questions}
        rows = home / "rows.jsonl"
        if not rows.exists():
            rows.write_text("".join(json.dumps(row) + "\n" for row in rows_of_sample()))

    def scored(self, answers):
        """Return the expected labels: True if the answer is the accepted one."""
        return {name: answers[name] == self.gold[name] for name in answers}

    def found(self):
        """Read the correctness labels of the run."""
        import pandas as pd

        frame = pd.read_parquet(self.out / "verdicts.parquet")
        labelled = frame[frame["reason"].isna()]
        return dict(zip(labelled["target_id"], labelled["correct"].astype(bool), strict=True))


def rows_of_sample():
    """Return rows in the format of a file of the bundled sample."""
    from tests.made_rows import rows_of

    return rows_of()


class Logs(_Scored):
    """Truncated or edited run logs, or with doubled lines; the other answers are scored."""

    def __init__(self, home):
        super().__init__(home)
        from surface_consistency.data.redirectqa import load_redirectqa
        from surface_consistency.engine.score import import_predictions
        from surface_consistency.studies.redirectqa.study import RedirectQAStudy

        answers = {
            name: self.gold[name] if place % 2 else "wrong" for place, name in enumerate(self.ids)
        }
        data = load_redirectqa("sample").select(limit=4)
        options = {"model": "m", "origin": "x"}
        folder, _ = import_predictions(RedirectQAStudy(), data, answers, home / "fresh", **options)
        self.fresh, self.answers = folder.path, answers
        self.lines = folder.log().read_text(encoding="utf-8").splitlines()

    def attempt(self, rng):
        lines, place = list(self.lines), rng.randrange(len(self.lines))
        line = json.loads(lines[place])
        name = line["prompt_id"]
        expected = self.scored(self.answers)
        without = {key: value for key, value in expected.items() if key != name}
        other = json.dumps(line | {"text": rng.choice(TEXTS[:10]) + "?"})
        failed = json.dumps(
            {"prompt_id": name, "text": None, "finish_reason": "error", "error": "x"}
        )
        text = rng.choice(TEXTS)
        kind = rng.randrange(12)
        tail = "\n"
        if kind == 0:
            lines.insert(rng.randrange(len(lines)), lines[place])
        elif kind == 1:
            lines.insert(rng.randrange(len(lines) + 1), other)
            expected = REJECTED
        elif kind == 2:
            del lines[place]
            expected = without
        elif kind == 3:
            lines[place] = failed
            expected = without
        elif kind == 4:
            lines.insert(rng.randrange(len(lines) + 1), failed)
        elif kind == 5:
            rng.shuffle(lines)
        elif kind == 6:
            lines.append(lines.pop(place)[: rng.randrange(1, len(self.lines[place]))])
            tail, expected = "", without
        elif kind == 7:
            lines[place] = lines[place][: rng.randrange(1, len(lines[place]))]
            expected = REJECTED
        elif kind == 8:
            lines[place] = json.dumps(line | {"text": text})
            expected |= {name: text == self.gold[name]}
        elif kind == 9:
            lines[place] = json.dumps(line | {rng.choice(TEXTS): 1})
            expected = REJECTED
        elif kind == 10:
            field = rng.choice(("text", "finish_reason", "prompt_id"))
            lines[place] = json.dumps(line | {field: rng.choice((1, [], {}, True, 1e99))})
            expected = REJECTED
        else:
            lines[place] = damaged(lines[place].encode(), rng).decode("utf-8", "replace")
            expected = ANY
        shutil.rmtree(self.out, ignore_errors=True)
        shutil.copytree(self.fresh, self.out)
        joined = "\n".join(lines) + tail
        (self.out / "generations.jsonl").write_text(joined, encoding="utf-8")
        ended = command(
            ["score", self.out, "--rule", "exact", "--setting", "agreement=false", "--json"]
        )
        return verify(*ended, expected, self.found)


class Predictions(_Scored):
    """Predictions in several layouts, with hostile texts and further columns."""

    def attempt(self, rng):
        answers = {
            name: self.gold[name] if rng.random() < 0.5 else f"{rng.choice(TEXTS)} zzq"
            for name in self.ids
        }
        rows = [
            {
                "id": name,
                "prediction": text,
                rng.choice(("extra", "=x", "größe")): rng.choice(TEXTS),
            }
            for name, text in answers.items()
        ]
        rng.shuffle(rows)
        suffix = rng.choice(("csv", "jsonl"))
        path = self.home / f"p.{suffix}"
        if suffix == "jsonl":
            content = "\n".join(json.dumps(row, ensure_ascii=rng.random() < 0.5) for row in rows)
        else:
            sheet = io.StringIO()
            writer = csv.writer(sheet, quoting=csv.QUOTE_ALL)
            writer.writerow(("id", "prediction", "extra"))
            writer.writerows(list(row.values()) for row in rows)
            content = sheet.getvalue()
        data, expected = content.encode(), self.scored(answers)
        if rng.random() < 0.3:
            data, expected = damaged(data, rng), ANY
        path.write_bytes(data)
        shutil.rmtree(self.out, ignore_errors=True)
        words = ["score", "--predictions", path, "--source", "sample", "--out", self.out]
        ended = command(
            [
                *words,
                "--rule",
                "exact",
                "--setting",
                "region=whole",
                "--setting",
                "agreement=false",
                "--json",
            ]
        )
        if ended[0] == 2 and "\\x00" in repr(content):
            expected = ANY
        return verify(*ended, expected, self.found)


class Rows(_Scored):
    """Rows of a data set with hostile cells; all rows are counted, or the file is rejected."""

    def attempt(self, rng):
        rows = rows_of_sample()
        expected = len({(r["triplet_id"], r["subject_surface"], r["template"]) for r in rows})
        row, kind = rng.choice(rows), rng.randrange(5)
        if kind == 0:
            row[rng.choice(list(row))] = rng.choice((None, 1, [], {}, "", [None], -1, 1e300, "x"))
            expected = ANY
        elif kind == 1:
            text = f"{rng.choice(TEXTS)} q"
            row["question"] = f"{text} {row['question']}"
        elif kind == 2:
            for one in rows:
                one[rng.choice(TEXTS[15:]) + "_x"] = rng.choice(TEXTS)
            expected = ANY
        elif kind == 3:
            rng.shuffle(rows)
        path = self.home / "r.jsonl"
        data = "\n".join(map(json.dumps, rows)).encode()
        if kind == 4:
            data, expected = damaged(data, rng), ANY
        path.write_bytes(data)
        answers = self.home / "a.jsonl"
        lines = [{"id": one["question"], "prediction": "x"} for one in rows]
        answers.write_text("\n".join(map(json.dumps, lines)))
        shutil.rmtree(self.out, ignore_errors=True)
        words = ["score", "--predictions", answers, "--source", path, "--template", "both"]
        ended = command([*words, "--out", self.out, "--setting", "agreement=false", "--json"])
        return verify(*ended, expected, lambda: len(self.found()))


class Replies(_Scored):
    """Server responses that are damaged, hostile or of another structure."""

    def __init__(self, home):
        super().__init__(home)
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                status, body, headers = owner.reply
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    headers = {"content-length": str(len(body))} | headers
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def attempt(self, rng):
        text = rng.choice(TEXTS)
        message = {"role": "assistant", "content": text}
        response = {"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}
        kind, expected, status, headers = rng.randrange(6), ANY, 200, {}
        body = json.dumps(response).encode()
        if kind == 4:
            label = rng.choice(("gzip", "x-gzip", "deflate", "br", "zstd", "identity, gzip"))
            headers, expected = {"content-encoding": label}, REJECTED
            body = rng.choice((body, gzip.compress(body), gzip.compress(b" " * 50_000_000)))
        elif kind == 5:
            length = rng.choice(("-1", "0", "1", len(body) - 1, len(body) + 1, 10**18, "1, 2", "x"))
            headers = {"content-length": str(length)}
            headers |= rng.choice(({}, {"transfer-encoding": rng.choice(("chunked", "gzip"))}))
            expected = REJECTED
        elif kind == 0:
            expected = {text.encode("utf-8", "replace").decode()}
        elif kind == 1:
            body = damaged(body, rng)
        elif kind == 2:
            part = rng.choice((response, response["choices"][0], message))
            part[rng.choice(list(part))] = rng.choice((None, 1, [], {}, "x", [[]], True))
            body = json.dumps(response).encode()
        else:
            status = rng.choice((400, 401, 404, 413, 422))
            body = rng.choice(
                (body, json.dumps({"error": {"message": text}}).encode(), b"", b"<html>")
            )
        self.reply = status, body, headers
        shutil.rmtree(self.out, ignore_errors=True)
        words = [
            "run",
            "redirectqa",
            "--source",
            "sample",
            "--limit",
            "1",
            "--repeat",
            "0",
            "--chat",
        ]
        words += [
            "--runner",
            "openai",
            "--model",
            "m",
            "--out",
            self.out,
            "--setting",
            "agreement=false",
            "--json",
        ]
        options = {"base_url": f"http://127.0.0.1:{self.server.server_address[1]}/v1"}
        options |= {"max_retries": 0, "first_wait": 0, "timeout": 2}
        for name, value in options.items():
            words += ["--runner-option", f"{name}={value}"]
        return verify(*command(words), expected, self.texts)

    def texts(self):
        """Read the answers of the run log."""
        lines = (self.out / "generations.jsonl").read_text(encoding="utf-8").split("\n")
        return {json.loads(line)["text"] for line in lines if line}


FAMILIES = {
    "verdicts": (Verdicts, 30),
    "bytes of verdicts": (Bytes, 20),
    "run logs": (Logs, 2),
    "predictions": (Predictions, 1),
    "rows": (Rows, 1),
    "replies": (Replies, 0.5),
    "scores": (Scores, 2),
    "benchmarks": (Benchmarks, 0.5),
    "layouts": (Layouts, 30),
    "files of tools": (Real, 10),
    "tables": (Tables, 20),
    "questions in forms": (Questions, 2),
    "edits": (Edits, 2),
    "shards": (Shards, 2),
    "logs of unlearning": (Unlearned, 1),
    "run folders": (Folders, 1),
    "files of run folders": (Files, 1),
    "rows that are built": (RedirectRows, 2),
    "topics that are built": (Topics, 2),
    "articles": (Articles, 3),
    "parts of counts": (Parts, 2),
    "counts of names": (Surfaces, 2),
    "counts of pairs": (Pairs, 1),
    "counts of n-grams": (Ngrams, 1),
    "SQL dumps": (Sql, 15),
    "pageviews": (Pageviews, 10),
    "exports": (Pages, 8),
    "entities": (Entities, 6),
}
"""Families by name, with their weights in the number of inputs."""

OF_MAKERS = ("counts of names", "counts of pairs", "counts of n-grams")
OF_MAKERS += ("SQL dumps", "pageviews", "exports", "entities", "rows that are built")
OF_MAKERS += ("topics that are built", "articles", "parts of counts")
if find_spec("surface_consistency_build") is None:
    FAMILIES = {name: family for name, family in FAMILIES.items() if name not in OF_MAKERS}


def send(name, n, seed, home, *, until=float("inf")):
    """Test inputs of a family, at least one.

    Returns:
        The numbers of inputs, of accepted and of rejected inputs (by the last command of each; the
        readers of dumps have no commands), and the failures as pairs of input number and reason.
    """
    import warnings

    warnings.simplefilter("ignore")
    kind, _ = FAMILIES[name]
    folder = Path(home) / name.replace(" ", "-")
    folder.mkdir()
    family, failures, tries, ends = kind(folder), [], 0, Counter()
    for number in range(n):
        if number and time.monotonic() > until:
            break
        tries += 1
        CODES.clear()
        fault = family.attempt(random.Random(f"{seed}/{name}/{number}"))
        if fault is not None:
            failures.append((number, fault))
        ends.update(CODES[-1:])
    return tries, ends[0] + ends[3], ends[2], failures


def main(argv=None):
    """Test inputs of all families; print a Markdown table of inputs and failures, and examples."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="maximum time in total")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--examples", type=int, default=4)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args(argv)
    names = args.names or list(FAMILIES)
    weights = sum(FAMILIES[name][1] for name in names)
    print("| family | inputs | accepted | rejected | failures |\n|---|---|---|---|---|")
    report, failed = [], 0
    with tempfile.TemporaryDirectory() as home:
        for name in names:
            n = round(args.inputs * FAMILIES[name][1] / weights)
            until = time.monotonic() + args.seconds * FAMILIES[name][1] / weights
            *counts, failures = send(name, n, args.seed, home, until=until)
            cells = " | ".join(map(str, [name, *counts, len(failures)]))
            print(f"| {cells} |", flush=True)
            failed += len(failures)
            report += [f"{name} {number}: {fault}" for number, fault in failures[: args.examples]]
    print("\n".join(["", *report]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
