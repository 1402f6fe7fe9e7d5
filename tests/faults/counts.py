"""Corpora with hostile texts, lines and compression, and known counts."""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import shutil
from collections import Counter

from tests.faults.inputs import ANY, REJECTED, TEXTS, Family, command, damaged, verify

NAMES = ("Ada", "Bob Ray", "Köln", "O'Neil", "naïve", "St. Mary's", "x2", "ΑΒΓ", "Āda")
BETWEEN = (
    " ",
    ", ",
    "\n",
    "; ",
    " — ",
    " \u2028",
    " \x1b[0m ",
    "\t",
    "! ",
    " (",
    " 👩‍👩‍👧 ",
    "\r\n",
)
FILLERS = tuple(text for text in TEXTS if text.strip() and not set(text) & {"x", "\x00"})
PACKED = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
BROKEN = (
    b"{",
    b"[]",
    b'{"text": 1}',
    b'{"text": null}',
    b'{"body": "Ada"}',
    b"\xff\xfe",
    b"nonsense",
)
_WORD = re.compile(r"[\u4e00-\u9fff]|[^\s\u4e00-\u9fff]+")
"""Words between white space; each Chinese character is a word."""


class _Counted(Family):
    """Counts in a corpus that is written for each input."""

    what = ""

    def __init__(self, home):
        super().__init__(home)
        self.out = home / "out"
        names = home / "names.csv"
        names.write_text(
            "".join(
                ["entity_id,surface\n", *(f'E{i % 4},"{name}"\n' for i, name in enumerate(NAMES))]
            ),
            encoding="utf-8",
        )
        self.names = names

    def document(self, rng):
        """Return a random text and the names in it."""
        words = [rng.choice(rng.choice((NAMES, FILLERS))) for _ in range(rng.randint(1, 8))]
        text = rng.choice(BETWEEN).join(f" {word} " for word in words)
        return text, [word for word in words if word in NAMES]

    def corpus(self, rng):
        """Write a corpus; return its path, its documents, and REJECTED, ANY or None.

        None means that all documents must be counted.
        """
        documents = [self.document(rng) for _ in range(rng.randint(1, 6))]
        suffix = rng.choice(("jsonl", "jsonl", "parquet"))
        path = self.home / f"corpus.{suffix}"
        if suffix == "parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table({"text": [text for text, _ in documents]}), path)
            data = path.read_bytes()
        else:
            lines = [
                json.dumps({"text": text}, ensure_ascii=rng.random() < 0.5).encode()
                for text, _ in documents
            ]
            for _ in range(rng.choice((0, 0, 1, 3))):
                lines.insert(rng.randrange(len(lines) + 1), rng.choice(BROKEN))
            packing = rng.choice(list(PACKED))
            path = self.home / f"corpus.jsonl{packing}"
            data = PACKED[packing](b"\n".join(lines) + b"\n")
            if packing and rng.random() < 0.2:
                path.write_bytes(data[: rng.randrange(1, len(data) - 1)])
                return path, documents, REJECTED
        if rng.random() < 0.3:
            path.write_bytes(damaged(data, rng))
            return path, documents, ANY
        path.write_bytes(data)
        return path, documents, None

    def count(self, rng, path, *words):
        """Count in one or several shards; return the exit code, the output and the errors."""
        shutil.rmtree(self.out, ignore_errors=True)
        words = ["count", self.what, "--corpus", path, "--out", self.out, "--json", *words]
        words += ["--workers", 1]
        if rng.random() < 0.3:
            words += ["--shards", rng.randint(1, 3)]
        return command(words)

    def table(self, name):
        """Read a table of counts."""
        import pandas as pd

        return pd.read_parquet(self.out / f"{name}.parquet")


class Surfaces(_Counted):
    """Occurrences of names in a corpus, and the number of documents with each name."""

    what = "names"

    def attempt(self, rng):
        path, documents, expected = self.corpus(rng)
        if expected is None:
            seen = Counter(name for _, names in documents for name in names)
            within = Counter(name for _, names in documents for name in set(names))
            expected = {name: (seen[name], seen[name], within[name]) for name in NAMES}
        names = self.names
        if rng.random() < 0.3:
            names, expected = self.hostile_names(rng), ANY
        return verify(*self.count(rng, path, "--names", names), expected, self.found)

    def hostile_names(self, rng):
        """Write a file of names whose cells, columns or bytes are hostile."""
        sheet = io.StringIO()
        writer = csv.writer(sheet, quoting=csv.QUOTE_ALL)
        writer.writerow(("entity_id", "surface", rng.choice(("role", "=x"))))
        for place in range(rng.randint(0, 5)):
            writer.writerow((f"{rng.choice(TEXTS)}{place}", rng.choice(TEXTS), rng.choice(TEXTS)))
        path = self.home / "hostile.csv"
        data = sheet.getvalue().encode()
        path.write_bytes(damaged(data, rng) if rng.random() < 0.5 else data)
        return path

    def found(self):
        """Read the counts."""
        columns = ("surface", "n_bounded", "n_longest", "n_documents")
        frame = self.table("surfaces")
        rows = zip(*(frame[column].tolist() for column in columns), strict=True)
        return {name: tuple(counts) for name, *counts in rows}


class Pairs(_Counted):
    """Numbers of documents that contain names of both entities of a pair."""

    what = "pairs"

    def __init__(self, home):
        super().__init__(home)
        self.pairs = home / "pairs.csv"
        self.pairs.write_text("subject_id,object_id\nE0,E1\nE2,E1\nE0,E3\n")

    def attempt(self, rng):
        path, documents, expected = self.corpus(rng)
        if expected is None:
            entities = [{NAMES.index(name) % 4 for name in names} for _, names in documents]
            expected = {
                (f"E{a}", f"E{b}"): sum({a, b} <= named for named in entities)
                for a, b in ((0, 1), (2, 1), (0, 3))
            }
        pairs = self.pairs
        if rng.random() < 0.2:
            pairs, expected = self.home / "hostile.csv", ANY
            pairs.write_bytes(damaged(self.pairs.read_bytes(), rng))
        ended = self.count(rng, path, "--names", self.names, "--pairs", pairs)
        return verify(*ended, expected, self.found)

    def found(self):
        """Read the counts."""
        frame = self.table("pairs")
        keys = zip(frame["subject_id"], frame["object_id"], strict=True)
        return dict(zip(keys, frame["n_documents_both"].tolist(), strict=True))


class Ngrams(_Counted):
    """Counts of the n-grams of test instances in a corpus."""

    what = "ngrams"

    def attempt(self, rng):
        path, documents, expected = self.corpus(rng)
        texts = [rng.choice(documents)[0][:200], f"{rng.choice(FILLERS)} {rng.choice(NAMES)} q"]
        n = rng.randint(1, 3)
        if expected is None:
            grams = Counter(gram for text, _ in documents for gram in self.grams(text, n))
            expected = {
                str(place): sorted(grams[gram] for gram in set(self.grams(text, n)))
                for place, text in enumerate(texts)
            }
        data = self.home / "instances.jsonl"
        lines = [json.dumps({"id": place, "text": text}) for place, text in enumerate(texts)]
        content = "\n".join(lines).encode()
        if rng.random() < 0.2:
            content, expected = damaged(content, rng), ANY
        data.write_bytes(content)
        return verify(*self.count(rng, path, "--data", data, "--n", n), expected, self.found)

    def grams(self, text, n):
        """Return all sequences of n words."""
        words = _WORD.findall(text)
        return [tuple(words[place : place + n]) for place in range(len(words) - n + 1)]

    def found(self):
        """Read the counts."""
        frame = self.table("ngrams")
        counts = (sorted(map(int, one)) for one in frame["counts"])
        return dict(zip(frame["instance_id"], counts, strict=True))
