"""Hostile sources of the commands that build data sets, and damaged shards of counts."""

import json
import re
import shutil

from tests.faults.inputs import ANY, TEXTS, Family, command, damaged, mutated, verify
from tests.made_rows import rows_of
from tests.surface_consistency_build.wikimedia.made_exports import export_xml, page_xml


class _Built(Family):
    """Rows of a data set that a command checks and writes without changes."""

    study, texts = "", ()

    def __init__(self, home):
        super().__init__(home)
        self.out = home / "built"
        self.rows = self.source()

    def attempt(self, rng):
        # A text is replaced by the same text in all rows, since a fact has one title.
        texts = {row[name] for row in self.rows for name in self.texts}
        names = {one: f"{one} {rng.choice(TEXTS)} q" for one in texts if rng.random() < 0.5}
        rows = [
            {key: names.get(cell, cell) if key in self.texts else cell for key, cell in row.items()}
            for row in self.rows
        ]
        expected = [[row[name] for name in self.texts] for row in rows]
        if rng.random() < 0.35:
            rows, expected = mutated(rows, rng), ANY
        data = "\n".join(map(json.dumps, rows)).encode()
        if rng.random() < 0.1:
            data, expected = damaged(data, rng), ANY
        path = self.home / "rows.jsonl"
        path.write_bytes(data)
        shutil.rmtree(self.out, ignore_errors=True)
        words = ["build", self.study, "--source", path, "--out", self.out, "--quiet"]
        return verify(*command(words), expected, self.found)

    def found(self):
        """Read the rows that were written."""
        import pandas as pd

        (path,) = self.out.rglob("*.parquet")
        return pd.read_parquet(path)[list(self.texts)].to_numpy().tolist()


class RedirectRows(_Built):
    """Rows of RedirectQA."""

    study, texts = "redirectqa", ("question", "subject_wiki_title")

    def source(self):
        return rows_of()


class Topics(_Built):
    """Rows of SLAQ."""

    study, texts = "slaq", ()

    def source(self):
        from surface_consistency.data.slaq import load_slaq
        from surface_consistency.data.slaq_rows import to_slaq_rows

        rows = [row.model_dump() for row in to_slaq_rows(load_slaq("sample").topics[:3])]
        self.texts = tuple(name for name in rows[0] if re.match("(Long|Short)[QA]\\d?$", name))
        return rows


class Articles(Family):
    """Exports of a wiki; some articles are in the category and have the minimum length."""

    def attempt(self, rng):
        pages, expected = [], {}
        for number in range(rng.randint(1, 6)):
            title = f"Page{number} {rng.choice(('x', 'ß', 'é', '東京都', 'say hi', '😀'))}"
            hostile = rng.choice([one for one in TEXTS if one.isprintable()])
            n_words, has_category = rng.choice(((3, True), (30, True), (30, False)))
            n_words, has_category = (n_words, has_category) if number else (30, True)
            words = " ".join([*("word",) * n_words, hostile])
            category = "[[Category:Planets]]" if has_category else "[[Category:Stars]]"
            pages.append(page_xml(title, f"{words}\n\n{category}", page_id=number + 1))
            if has_category and n_words > 10:
                expected[title] = n_words
        data = export_xml(*pages, wiki="enwiki").encode()
        if rng.random() < 0.35:
            data, expected = damaged(data, rng), ANY
        path, out = self.home / "wiki.xml", self.home / "articles.jsonl"
        path.write_bytes(data)
        out.unlink(missing_ok=True)
        words = ["build", "articles", "--pages", path, "--out", out, "--categories", "Planets"]
        words += ["--min-words", 10, "--min-characters", 10]

        def found():
            rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
            return {row["title"]: row["text"].split().count("word") for row in rows}

        return verify(*command(words), expected, found)


class Parts(Family):
    """Shards of counts with files that are damaged before the shards are merged."""

    def __init__(self, home):
        super().__init__(home)
        corpus, self.parts, self.out = home / "corpus", home / "parts", home / "out"
        corpus.mkdir()
        for number in range(4):
            rows = [{"text": f"Ada met Bob {n} times."} for n in range(number + 1)]
            (corpus / f"{number}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        names, pairs = home / "names.csv", home / "pairs.csv"
        names.write_text("entity_id,surface\nE0,Ada\nE1,Bob\n")
        pairs.write_text("subject_id,object_id\nE0,E1\n")
        words = ["count", "pairs", "--corpus", corpus, "--names", names, "--pairs", pairs]
        words += ["--out", self.parts, "--shards", 2, "--workers", 1]
        for place in (0, 1):
            code, out, err = command([*words, "--shard", place])
            assert code == 0, out + err

    def attempt(self, rng):
        shutil.rmtree(self.out, ignore_errors=True)
        shutil.copytree(self.parts, self.out)
        files = sorted(path for path in self.out.rglob("*") if path.is_file())
        expected = 10
        if rng.random() < 0.5:
            path, expected = rng.choice(files), ANY
            if path.suffix == ".json" and rng.random() < 0.7:
                path.write_text(json.dumps(mutated(json.loads(path.read_text()), rng)))
            else:
                path.write_bytes(damaged(path.read_bytes(), rng))
        elif rng.random() < 0.2:
            (self.out / rng.choice(("notes.txt", ".hidden", "x.json"))).write_text(
                rng.choice(TEXTS)
            )
        return verify(*command(["count", "merge", self.out]), expected, self.found)

    def found(self):
        """Read the number of documents that contain both names."""
        import pandas as pd

        return int(pd.read_parquet(self.out / "pairs.parquet")["n_documents_both"].sum())
