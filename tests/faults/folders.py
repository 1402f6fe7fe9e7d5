"""Run folders whose files are damaged: the numbers of a plain loop, or errors that name the file.

A small run is made once. Each input damages one of its files, with or without corrected digests,
and gives the folder to a command. A command that ends well must have the numbers that a loop over
the files computes; one that fails names the file and the field, column, row or count, and leaves
each file as it was.
"""

import contextlib
import copy
import csv
import hashlib
import json
import os
import re
import shutil
import signal
import socket
from functools import reduce

from tests.faults.inputs import TEXTS, VALUES, Family, command, damaged, disorder

QUICK = ("--setting", "resamples=5")
RUN = ("run", "redirectqa", "--source", "sample", "--limit", "3", "--repeat", "2", *QUICK)
RUN += ("--runner", "tests.faults.plugins:Echo", "--setting", "agreement=false", "--json")
SECONDS = 60
SHARES = {"score": 6, "report": 2, "analyse": 1, "export": 1, "compare": 2, "run": 2}
TABLES = ("targets", "pairs", "verdicts", "verdicts-repeat", "outcomes")
JSON = ("manifest.json", "scoring.json", "plan.json")
LOGS = ("generations.jsonl", "generations-repeat.jsonl")
FILES = (*JSON, *LOGS, *(f"{name}.parquet" for name in TABLES), "checks/noise_floor.csv")
OTHERS = ("prompts.jsonl", "labels.csv", ".surface-consistency-files", "generations.jsonl.lock")
OTHERS += ("checks", "tables", "tables/SOURCES.txt", "report.html", "highlights/a.csv", "notes.txt")
_PLACE = re.compile(
    r"field '|column |row |line \d|:\d+|\d rows|byte|is gone|no |missing|not |leads"
    r"|has changed|other settings"
)

_WHOLE = re.compile(r"is not the file|has changed|Invalid JSON: .* at line \d+ column \d+")


class Hang(BaseException):
    """A command waits for something that does not come."""


@contextlib.contextmanager
def limited():
    """Interrupt what waits."""

    def stop(*_):
        raise Hang(f"no end within {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def rows(path):
    """Read the rows of a Parquet file."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(path).read().to_pylist()


def by_pair(row):
    """Order rows."""
    return str(row["pair"])


def tree(home):
    """Describe all files of a folder, links and special files too."""
    found = {}
    for folder, folders, names in os.walk(home):
        for name in [*folders, *names]:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                found[os.path.relpath(path, home)] = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, home)] = file.read()
            else:
                found[os.path.relpath(path, home)] = os.stat(path).st_mode
    return found


def paths(value, before=()):
    """List the places in a value of JSON, each as its keys from the outermost on."""
    names = value if isinstance(value, dict) else range(len(value))
    own = [(*before, name) for name in names]
    inner = [(one, value[one[-1]]) for one in own]
    return own + [p for one, v in inner if isinstance(v, dict | list) for p in paths(v, one)]


def changed(content, rng):
    """Damage one field; return the content, and words of which a message has one."""
    content = copy.deepcopy(content)
    *way, name = rng.choice(paths(content))
    inside, kind = reduce(lambda at, key: at[key], way, content), rng.randrange(6)
    if kind == 0:
        del inside[name]
    elif kind == 1 and isinstance(inside, dict):
        name = rng.choice((*TEXTS, "_x"))
        inside[name] = 1
    elif kind == 2:
        inside[name] = [inside[name]] * rng.choice((1, 2))
    elif kind == 3 and isinstance(inside[name], str):
        inside[name] += rng.choice(TEXTS)
    else:
        inside[name] = copy.deepcopy(rng.choice(VALUES))
    return content, {str(one) for one in (*way, name) if isinstance(one, str)}


def altered(table, rng):
    """Damage a column or rows; return the table, and words of which a message has one."""
    import pyarrow as pa

    name, n = rng.choice(table.column_names), len(table)
    at, column, values = table.column_names.index(name), table[name], table[name].to_pylist()
    kind, place, other = rng.randrange(12), rng.randrange(n), rng.randrange(n)
    told = {name, "rows"}
    if kind == 0:
        return table.drop_columns([name]), told
    if kind == 1:
        new = rng.choice((name.upper(), f"{name}_x", *TEXTS[:12]))
        return table.rename_columns([new if one == name else one for one in table.schema.names]), (
            told | {new[:9]}
        )
    if kind == 2:
        order = rng.sample(range(n), n)
        return table.take(order), told
    if kind == 3:
        return table.slice(0, rng.randrange(n)), told
    if kind == 4:
        return pa.concat_tables([table, table.slice(place, 1)]), told | {"more than once"}
    if kind == 5:
        new = rng.choice((name, "_x", *TEXTS[:12]))
        return table.append_column(new, column), told | {repr(new)[1:-1]}
    if kind == 6:
        values[place], values[other] = values[other], values[place]
    elif kind == 7:
        values[place] = None
    elif kind == 8:
        values = [None] * n
    elif kind == 9 and isinstance(values[place], str):
        values[place] = rng.choice((*TEXTS, values[place] + "x", values[other]))
    elif kind == 10:
        values = [rng.choice((1, 0.5, True, "x", b"x", [], [1], {"a": 1}, 10**18))] * n
    else:
        makers = (lambda v: v and str(v), lambda v: v is not None and [v], bool, lambda v: b"x")
        values = list(map(rng.choice(makers), values))
    try:
        values = pa.array(values, type=column.type if kind < 10 else None)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        values = pa.array(list(map(str, values)))
    return table.set_column(at, name, values), told


class Folders(Family):
    """Fields, columns, rows and lines of a run's files that are changed."""

    def __init__(self, home):
        super().__init__(home)
        self.fresh, self.out = home / "fresh", home / "run"
        # The command line names the folder of the run, which is the same for all inputs.
        ended = command([*RUN, "--out", self.out])
        assert ended[0] == 0, ended
        (self.out / "notes.txt").write_text("mine")
        shutil.copytree(self.out, self.fresh)
        for verb in SHARES:
            told = self.judge(verb, *self.send(verb), {}, "", set())
            assert told is None, told
            self.restore()

    def restore(self):
        """Put a folder there that nothing has damaged."""
        for name in ("run", "page", "set", "else"):
            shutil.rmtree(self.home / name, ignore_errors=True)
        shutil.copytree(self.fresh, self.out)

    def send(self, verb):
        """Give the folder to a command."""
        page, data = self.home / "page", self.home / "set"
        words = {
            "score": ("score", self.out, "--setting", "agreement=false", "--json"),
            "report": ("report", self.out, "--json", "--no-page", "--out", page, *QUICK),
            "analyse": ("analyse", "tests.faults.plugins:Counting", self.out, "--out", page),
            "export": ("export", self.out, "--out", data),
            "compare": ("compare", self.out, "--json"),
            "run": (*RUN, "--out", self.out),
        }
        words["analyse"] += ("--json", "--no-page", *QUICK)
        with limited():
            return command(words[verb])

    def attempt(self, rng):
        self.restore()
        verb = rng.choices(list(SHARES), SHARES.values())[0]
        name, told = self.damage(rng)
        before = tree(self.home)
        return self.judge(verb, *self.send(verb), before, name, told)

    def judge(self, verb, code, out, err, before, name, told):
        """Say what is wrong with an end, or None."""
        where = f"{verb}, {name} ({', '.join(sorted(told))[:80]}): "
        if (wrong := disorder(code, out, err)) is not None:
            return where + wrong
        if code == 2:
            after = tree(self.home)
            # The same command writes the plan anew, from the data.
            own = ("prompts.jsonl", "plan.json", "targets.parquet", "pairs.parquet")
            mine = [one for one in before if verb != "run" or one.removeprefix("run/") not in own]
            if lost := [one for one in mine if after.get(one) != before[one]]:
                return f"{where}lost or changed {lost}: {err[:300]}"
            file = name.split("/")[-1]
            if "other settings" in err or "not listed as written" in err:
                file = ""  # The setting or the file that would be replaced is named instead.
            if file not in err or not _PLACE.search(err):
                return f"{where}names no file or place: {err[:500]}"
            is_named = any(word and word[:14] in err for word in told)
            if told and not is_named and not _WHOLE.search(err):
                return f"{where}does not name it: {err[:500]}"
            return None
        try:
            wanted = self.naive(verb)
        except Exception as error:
            return f"{where}accepted what no loop reads: {error!r}"
        found = self.found(verb, out)
        return None if found == wanted else f"{where}{self.unlike(found, wanted)}: {err[:200]}"

    def unlike(self, found, wanted):
        """Show the first difference."""
        if isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
            pairs = zip(found, wanted, strict=True)
            found, wanted = next((a, b) for a, b in pairs if a != b)
        if isinstance(found, dict) and isinstance(wanted, dict):
            names = [n for n in {**found, **wanted} if found.get(n, n) != wanted.get(n, n)]
            found, wanted = ({n: v.get(n) for n in names} for v in (found, wanted))
        return f"{found!r} rather than {wanted!r}"[:700]

    def found(self, verb, out):
        """Read what a command told."""
        if verb in ("score", "run"):
            scoring = json.loads((self.out / "scoring.json").read_bytes())
            counts = scoring["n_prompts"], scoring["n_unanswered"]
            return [counts, *sorted(rows(self.out / "outcomes.parquet"), key=by_pair)]
        if verb == "export":
            return rows(self.home / "set" / "data" / "outcomes-00000-of-00001.parquet")
        told = json.loads(out)
        if verb == "compare":
            return {"mean": told["rows"][0]["mean"], "n": told["rows"][0]["n"]}
        tables = told["tables"]
        names = ("model", "both", "first_only", "second_only", "neither", "n_missing")
        (overall,) = tables["overall"]
        noise = [
            {key: str(v) for key, v in one.items() if v is not None}
            for one in tables.get("noise_floor", ())
        ]
        return [{n: overall[n] for n in names}, *noise]

    def naive(self, verb):
        """Compute with plain loops what a command must tell of the files that are there."""
        manifest = json.loads((self.out / "manifest.json").read_bytes())
        if verb in ("score", "run"):
            planned = self.out if verb == "score" else self.fresh
            return self.outcomes(manifest["model"], planned)
        if verb == "compare":
            known = [row["correct"] for row in rows(self.out / "verdicts.parquet")]
            known = [one for one in known if one is not None]
            return {"mean": sum(known) / len(known), "n": len(known)}
        outcomes = rows(self.out / "outcomes.parquet")
        if verb == "export":
            return outcomes
        counts = dict.fromkeys(("both", "first_only", "second_only", "neither", "n_missing"), 0)
        names = {(1, 1): "both", (1, 0): "first_only", (0, 1): "second_only", (0, 0): "neither"}
        for row in outcomes:
            pair = row["first_correct"], row["second_correct"]
            counts["n_missing" if None in pair else names[pair]] += 1
        with (self.out / "checks" / "noise_floor.csv").open(encoding="utf-8", newline="") as file:
            noise = [{k: v for k, v in row.items() if v} for row in csv.DictReader(file)]
        return [{"model": manifest["model"], **counts}, *noise]

    def outcomes(self, model, planned):
        """Judge the answers of the log as the rule of PopQA does, and join them in pairs."""
        texts, targets = {}, {row["target_id"]: row for row in rows(planned / "targets.parquet")}
        for folder in (self.out, self.fresh) if planned == self.fresh else (self.out,):
            for line in (folder / LOGS[0]).read_text(encoding="utf-8").split("\n"):
                answer = json.loads(line) if line.strip() else {"finish_reason": "error"}
                if answer["finish_reason"] != "error":
                    texts.setdefault(answer["prompt_key"], answer["text"])
        made, asked = [], {row["prompt_id"]: row["prompt_key"] for row in targets.values()}
        for pair in rows(planned / "pairs.parquet"):
            row = {"study": "redirectqa", "model": model}
            row |= {key: cell for key, cell in pair.items() if not key.endswith("_target")}
            for side in ("first", "second"):
                target = targets[pair[f"{side}_target"]] if pair[f"{side}_target"] else {}
                text = texts.get(target.get("prompt_key"))
                lines = (text or "").lstrip().split("\n")
                forms = [
                    f
                    for one in target.get("references", ())
                    for f in (one, one.lower(), one.capitalize())
                ]
                row[f"{side}_correct"] = None if text is None else any(f in lines[0] for f in forms)
                row[f"{side}_prediction"] = None if text is None else lines[0]
            made.append(row)
        missing = sum(key not in texts for key in asked.values())
        return [(len(asked), missing), *sorted(made, key=by_pair)]

    def damage(self, rng):
        """Damage what a file holds; return its name, and words of which a message has one."""
        name = rng.choice(FILES)
        path = self.out / name
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            table, told = altered(pq.ParquetFile(path).read(), rng)
            pq.write_table(table, path)
        elif path.suffix == ".json":
            content, told = changed(json.loads(path.read_bytes()), rng)
            path.write_text(json.dumps(content))
        else:
            told, lines = set(), path.read_text(encoding="utf-8").splitlines()
            place, kind = rng.randrange(len(lines)), rng.randrange(5)
            if kind == 0:
                del lines[place]
            elif kind == 1:
                lines.insert(rng.randrange(len(lines)), lines[place])
            elif kind == 2:
                rng.shuffle(lines)
            elif path.suffix == ".jsonl":
                content, told = changed(json.loads(lines[place]), rng)
                lines[place] = json.dumps(content)
            else:
                cells = lines[place].split(",")
                cells[rng.randrange(len(cells))] = rng.choice(("", "x", "-1", "1e400", '"', "0.5"))
                lines[place] = ",".join(cells)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        if rng.random() < 0.75:
            self.correct(name)
        return name, told

    def correct(self, name):
        """Write the digest of a file wherever the folder has one."""
        digest = hashlib.sha256((self.out / name).read_bytes()).hexdigest()
        for file in ("plan.json", "scoring.json"):
            content = json.loads((self.out / file).read_bytes()) if name != file else {}
            for digests in (content.get("files", {}), content.get("made_from", {})):
                if name in digests:
                    digests[name] = digest
                    (self.out / file).write_text(json.dumps(content))


class Files(Folders):
    """Files of a run that are missing, empty, doubled, cut off, links or special files."""

    def damage(self, rng):
        name = rng.choice((*FILES, *FILES, *OTHERS))
        path, elsewhere = self.out / name, self.home / "else"
        path.parent.mkdir(exist_ok=True)
        data = path.read_bytes() if path.is_file() else b"[]"
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        elsewhere.mkdir()
        kind = rng.choice(("bytes", "doubled", "missing", "folder", "pipe", "socket", "link"))
        if kind in ("bytes", "doubled"):
            path.write_bytes(damaged(data, rng) if kind == "bytes" else data * 2)
            if rng.random() < 0.75:
                self.correct(name)
        elif kind == "folder":
            path.mkdir()
            if rng.random() < 0.5:
                (path / "mine.txt").write_text("mine")
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "socket":
            with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as server:
                server.bind(path.name)
        elif kind == "link":
            target = rng.choice((elsewhere / "a", self.out / "real", path, self.home / "none"))
            if target.name in ("a", "real"):
                target.write_bytes(data)
            path.symlink_to(target)
        return name, set()
