"""Run folders with damaged files: commands return correct numbers or errors that name the file.

A small run is written once. Each input damages one file, with or without corrected digests. If a
command succeeds, its numbers must equal those of a loop over the files. If it fails, its message
must name the file and the field, column, row or count, and all files must be unchanged.
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

from tests.faults.inputs import TEXTS, VALUES, Family, command, damaged, places, violation

QUICK = ("--setting", "resamples=5")
RUN = ("run", "redirectqa", "--source", "sample", "--limit", "3", "--repeat", "2", *QUICK)
RUN += ("--runner", "tests.faults.plugins:Echo", "--setting", "agreement=false", "--json")
SECONDS = 60
WEIGHTS = {"score": 6, "report": 2, "analyse": 1, "export": 1, "compare": 2, "run": 2}
PLANNED = ("targets.parquet", "pairs.parquet", "plan.json", "prompts.jsonl")
FILES = ("manifest.json", "scoring.json", "generations.jsonl", "generations-repeat.jsonl")
FILES += ("verdicts.parquet", "verdicts-repeat.parquet", "outcomes.parquet", *PLANNED[:3])
FILES += ("checks/noise_floor.csv",)
OTHERS = ("prompts.jsonl", "labels.csv", ".surface-consistency-files", "generations.jsonl.lock")
OTHERS += ("checks", "tables", "tables/SOURCES.txt", "report.html", "highlights/a.csv", "notes.txt")
COUNTS = ("both", "first_only", "second_only", "neither", "n_missing")
_PLACE = re.compile(
    r"field '|column |row |line \d|:\d+|\d rows|byte|gone|no |missing|not |leads|digest|symbolic"
)
_WHOLE_FILE = re.compile(r"is not the file|another digest|Invalid JSON: .* at line \d+ column \d+")
_EXEMPT = re.compile("other settings|not listed as written")
"""Messages that name a setting, or a file that would be replaced, instead of a damaged place."""


class Hang(BaseException):
    """A command exceeded the maximum time."""


def stop(*_):
    """Interrupt a command that exceeds the maximum time."""
    raise Hang(f"no end within {SECONDS} s")


def rows(path):
    """Read the rows of a Parquet file."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(path).read().to_pylist()


def by_pair(row):
    """Return the sort key of a row."""
    return str(row["pair"])


def tree(home):
    """Return bytes of files, targets of links and modes of other entries, by relative path."""
    found = {}
    for path in home.rglob("*"):
        state = path.read_bytes if path.is_file() else path.lstat
        content = os.readlink(path) if path.is_symlink() else state()
        found[str(path.relative_to(home))] = getattr(content, "st_mode", content)
    return found


def changed(content, rng):
    """Damage one field; return the content and words, one of which must be in the message."""
    content = copy.deepcopy(content)
    inside, name = rng.choice(places(content))
    kind = rng.randrange(5)
    if kind == 0:
        del inside[name]
    elif kind == 1 and isinstance(inside, dict):
        name = rng.choice((*TEXTS, "_x"))
        inside[name] = 1
    elif kind == 2 and isinstance(inside[name], str):
        inside[name] += rng.choice(TEXTS)
    else:
        inside[name] = copy.deepcopy(rng.choice((*VALUES, [inside[name]])))
    return content, {repr(name)[1:-1]} if isinstance(name, str) else set()


def altered(table, rng):
    """Damage a column or rows; return the table and words, one of which must be in the message."""
    import pyarrow as pa

    name, n = rng.choice(table.column_names), len(table)
    at, column, values = table.column_names.index(name), table[name], table[name].to_pylist()
    kind, place, other = rng.randrange(12), rng.randrange(n), rng.randrange(n)
    changes, new = {name, "rows"}, rng.choice((name, name.upper(), "_x", *TEXTS[:12]))
    if kind == 0:
        return table.drop_columns([name]), changes
    if kind == 1:
        names = [new if one == name else one for one in table.column_names]
        return table.rename_columns(names), changes | {repr(new)[1:-1]}
    if kind == 2:
        return table.take(rng.sample(range(n), n)), changes
    if kind == 3:
        return table.slice(0, rng.randrange(n)), changes | {"target", "no pair"}
    if kind == 4:
        return pa.concat_tables([table, table.slice(place, 1)]), changes | {"more than once"}
    if kind == 5:
        return table.append_column(new, column), changes | {repr(new)[1:-1]}
    if kind == 6:
        values[place], values[other] = values[other], values[place]
    elif kind == 7:
        values[place] = None
    elif kind == 8:
        values = [None] * n
    elif kind == 9 and isinstance(values[place], str):
        values[place] = rng.choice((*TEXTS, values[place] + "x", values[other]))
    else:
        makers = (lambda v: v and str(v), lambda v: v is not None and [v], bool, lambda v: b"x")
        values = list(map(rng.choice((*makers, lambda v: 10**18)), values))
    try:
        values = pa.array(values, type=column.type if kind < 10 else None)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        values = pa.array(list(map(str, values)))
    return table.set_column(at, name, values), changes


class Folders(Family):
    """Run folders in which a field, column, row or line of a file is changed."""

    def __init__(self, home):
        super().__init__(home)
        self.fresh, self.out = home / "fresh", home / "run"
        assert command([*RUN, "--out", self.out])[0] == 0
        (self.out / "notes.txt").write_text("mine")
        shutil.copytree(self.out, self.fresh)
        for verb in WEIGHTS:
            fault = self.check(verb, *self.send(verb), {}, "", set())
            assert fault is None, fault
            self.restore()

    def restore(self):
        """Restore the undamaged folder."""
        for name in ("run", "page", "set", "else"):
            shutil.rmtree(self.home / name, ignore_errors=True)
        shutil.copytree(self.fresh, self.out)

    def send(self, verb):
        """Run a command on the folder."""
        tables = ("--json", "--no-page", "--out", self.home / "page", *QUICK)
        words = {
            "score": ("score", self.out, "--setting", "agreement=false", "--json"),
            "report": ("report", self.out, *tables),
            "analyse": ("analyse", "tests.faults.plugins:Counting", self.out, *tables),
            "export": ("export", self.out, "--out", self.home / "set"),
            "compare": ("compare", self.out, "--json"),
            "run": (*RUN, "--out", self.out),
        }
        before = signal.signal(signal.SIGALRM, stop)
        signal.alarm(SECONDS)
        try:
            return command(words[verb])
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)

    def attempt(self, rng):
        self.restore()
        verb = rng.choices(list(WEIGHTS), WEIGHTS.values())[0]
        name, changes = self.damage(rng)
        before = tree(self.home)
        fault = self.check(verb, *self.send(verb), before, name, changes)
        return fault and f"{verb}, {name} ({', '.join(sorted(changes))[:80]}): {fault}"

    def check(self, verb, code, out, err, before, name, changes):
        """Describe the fault of a result; return None if there is none."""
        if (fault := violation(code, out, err)) is not None:
            return fault
        if code == 2:
            after = tree(self.home)
            # `run` writes the files of the plan again from the data.
            mine = [f for f in before if verb != "run" or f.removeprefix("run/") not in PLANNED]
            if lost := [one for one in mine if after.get(one) != before[one]]:
                return f"lost or changed {lost}: {err[:300]}"
            if not _EXEMPT.search(err) and not (name.split("/")[-1] in err and _PLACE.search(err)):
                return f"does not name the file and the place: {err[:500]}"
            is_named = any(word[:14] in err for word in changes) or _WHOLE_FILE.search(err)
            return None if is_named or not changes else f"does not name the change: {err[:500]}"
        try:
            expected = self.naive(verb)
        except Exception as error:
            return f"accepted files that the loop cannot read: {error!r}"
        found = self.found(verb, out)
        return None if found == expected else f"{found} rather than {expected}: {err[:200]}"

    def found(self, verb, out):
        """Read the output of a command."""
        if verb in ("score", "run"):
            scoring = json.loads((self.out / "scoring.json").read_bytes())
            counts = scoring["n_prompts"], scoring["n_unanswered"]
            return [counts, *sorted(rows(self.out / "outcomes.parquet"), key=by_pair)]
        if verb == "export":
            return rows(self.home / "set" / "data" / "outcomes-00000-of-00001.parquet")
        changes = json.loads(out)
        if verb == "compare":
            return changes["rows"][0]["mean"], changes["rows"][0]["n"]
        (overall,), noise = changes["tables"]["overall"], changes["tables"].get("noise_floor", ())
        noise = [{key: str(v) for key, v in one.items() if v is not None} for one in noise]
        return [{name: overall[name] for name in ("model", *COUNTS)}, *noise]

    def naive(self, verb):
        """Compute the expected result of a command from the files, with plain loops."""
        manifest = json.loads((self.out / "manifest.json").read_bytes())
        if verb in ("score", "run"):
            return self.outcomes(manifest["model"], self.out if verb == "score" else self.fresh)
        if verb == "compare":
            known = [row["correct"] for row in rows(self.out / "verdicts.parquet")]
            known = [one for one in known if one is not None]
            return sum(known) / len(known), len(known)
        outcomes = rows(self.out / "outcomes.parquet")
        if verb == "export":
            return outcomes
        counts = dict.fromkeys(COUNTS, 0)
        names = dict(zip(((1, 1), (1, 0), (0, 1), (0, 0)), COUNTS, strict=False))
        for row in outcomes:
            pair = row["first_correct"], row["second_correct"]
            counts["n_missing" if None in pair else names[pair]] += 1
        with (self.out / "checks" / "noise_floor.csv").open(encoding="utf-8", newline="") as file:
            noise = [{k: v for k, v in row.items() if v} for row in csv.DictReader(file)]
        return [{"model": manifest["model"], **counts}, *noise]

    def outcomes(self, model, planned):
        """Score the answers in the log with the rule of PopQA, and join them in pairs."""
        texts, targets = {}, {row["target_id"]: row for row in rows(planned / "targets.parquet")}
        for folder in dict.fromkeys((self.out, planned)):
            for line in (folder / "generations.jsonl").read_text(encoding="utf-8").split("\n"):
                answer = json.loads(line) if line.strip() else {"finish_reason": "error"}
                if answer["finish_reason"] != "error":
                    texts.setdefault(answer["prompt_key"], answer["text"])
        outcomes, prompts = [], {row["prompt_id"]: row["prompt_key"] for row in targets.values()}
        for pair in rows(planned / "pairs.parquet"):
            row = {"study": "redirectqa", "model": model}
            row |= {key: cell for key, cell in pair.items() if not key.endswith("_target")}
            for side in ("first", "second"):
                target = targets[pair[f"{side}_target"]] if pair[f"{side}_target"] else {}
                text = texts.get(target.get("prompt_key"))
                line = (text or "").lstrip().split("\n")[0]
                accepted = target.get("references", ())
                forms = [f for one in accepted for f in (one, one.lower(), one.capitalize())]
                row[f"{side}_correct"] = None if text is None else any(f in line for f in forms)
                row[f"{side}_prediction"] = None if text is None else line
            outcomes.append(row)
        missing = sum(key not in texts for key in prompts.values())
        return [(len(prompts), missing), *sorted(outcomes, key=by_pair)]

    def damage(self, rng):
        """Damage the content of a file; return its name, and words as in `changed`."""
        name = rng.choice(FILES)
        path, changes = self.out / name, set()
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            table, changes = altered(pq.ParquetFile(path).read(), rng)
            pq.write_table(table, path)
        elif path.suffix == ".json":
            content, changes = changed(json.loads(path.read_bytes()), rng)
            path.write_text(json.dumps(content))
        else:
            lines = path.read_text(encoding="utf-8").splitlines()
            place, kind = rng.randrange(len(lines)), rng.randrange(5)
            if kind == 0:
                del lines[place]
            elif kind == 1:
                lines.insert(rng.randrange(len(lines)), lines[place])
            elif kind == 2:
                rng.shuffle(lines)
            elif path.suffix == ".jsonl":
                content, changes = changed(json.loads(lines[place]), rng)
                lines[place] = json.dumps(content)
            else:
                cells = lines[place].split(",")
                cells[rng.randrange(len(cells))] = rng.choice(("", "x", "-1", "1e400", '"', "0.5"))
                lines[place] = ",".join(cells)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        self.correct(name, rng)
        return name, changes

    def correct(self, name, rng):
        """In most inputs, replace every stored digest of the file by its new digest."""
        digest = hashlib.sha256((self.out / name).read_bytes()).hexdigest()
        for file in ("plan.json", "scoring.json") if rng.random() < 0.75 else ():
            content = json.loads((self.out / file).read_bytes()) if name != file else {}
            for digests in (content.get("files", {}), content.get("made_from", {})):
                if name in digests:
                    digests[name] = digest
                    (self.out / file).write_text(json.dumps(content))


class Files(Folders):
    """Run folders with a file that is missing, damaged, doubled, a folder, link, pipe or socket."""

    def damage(self, rng):
        name = rng.choice((*FILES, *FILES, *OTHERS))
        path, elsewhere = self.out / name, self.home / "else"
        path.parent.mkdir(exist_ok=True)
        elsewhere.mkdir()
        data = path.read_bytes() if path.is_file() else b"[]"
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        kind = rng.choice(("bytes", "doubled", "missing", "folder", "pipe", "socket", "link"))
        if kind in ("bytes", "doubled"):
            path.write_bytes(damaged(data, rng) if kind == "bytes" else data * 2)
            self.correct(name, rng)
        elif kind == "folder":
            path.mkdir()
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
