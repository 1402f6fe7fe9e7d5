import bz2
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings, strategies as st
from surface_consistency_build.wikimedia import pageviews
from surface_consistency_build.wikimedia.pageviews import read_pageviews

from surface_consistency.errors import DataError, SourceNotFoundError

Row = tuple[bytes, int | None, int]


def rows_of(path, project="en.wikipedia", **options):
    """Read all batches."""
    return [
        (row["title"], row["page_id"], row["views"])
        for batch in read_pageviews(path, project=project, **options)
        for row in batch.to_pylist()
    ]


def reference(data, project):
    """Read lines of six fields with a plain parser."""
    found = []
    for line in data.decode("utf-8").splitlines():
        wiki, title, page, _, views, _ = line.split(" ")
        if wiki == project:
            found.append((title.encode(), None if page == "null" else int(page), int(views)))
    return found


@pytest.mark.parametrize("day", [20230320, 20230321, 20230322])
@pytest.mark.parametrize(
    "project", ["de.wikipedia", "en.wikipedia", "rm.wikipedia", "commons.wikimedia", "xx.wikipedia"]
)
def test_pageviews_agree_with_split_lines(data_files, day, project):
    path = data_files / "wikimedia" / f"pageviews-{day}-user.bz2"

    assert rows_of(path, project) == reference(bz2.decompress(path.read_bytes()), project)


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("en.wikipedia 1759 7945 desktop 11 U11", (b"1759", 7945, 11)),
        ("en.wikipedia 1759 desktop 11 U11", (b"1759", None, 11)),
        ("en.wikipedia null null mobile-app 3 A1B2", (b"null", None, 3)),
        ("en.wikipedia A null mobile-web 2 [1]1", (b"A", None, 2)),
        ('en.wikipedia """Heroes""_(album)" 5 desktop 1 A1', (b'"Heroes"_(album)', 5, 1)),
        ('en.wikipedia "Heroes"_(album) 5 desktop 1 A1', (b'"Heroes"_(album)', 5, 1)),
        ('en.wikipedia "Heroes" 5 desktop 1 A1', (b'"Heroes"', 5, 1)),
        ('en.wikipedia """Heroes""" 5 desktop 1 A1', (b'"Heroes"', 5, 1)),
        ('en.wikipedia "" 5 desktop 1 A1', (b'""', 5, 1)),
        ('en.wikipedia " 5 desktop 1 A1', (b'"', 5, 1)),
        ("en.wikipedia Caf%C3%A9 5 desktop 1 A1\r", (b"Caf%C3%A9", 5, 1)),
        ("en.wikipedia caf\udce9\udcff 9 desktop 4 A4", (b"caf\xe9\xff", 9, 4)),
    ],
)
def test_pageview_lines_of_all_formats_are_read(tmp_path, line, row):
    path = tmp_path / "pageviews"
    text = f"en.wikibooks A 1 desktop 1 A1\n{line}\nen.wikipediax B 1 desktop 1 A1\n"
    path.write_bytes(text.encode(errors="surrogateescape"))

    assert rows_of(path) == [row]


@pytest.mark.parametrize(
    "line",
    [
        "en.wikipedia A", "en.wikipedia ", "en.wikipedia A B 5 desktop 1 A1",
        "en.wikipedia A 5 desktop many A1", "en.wikipedia A 5 desktop 1",
        "en.wikipedia A -5 desktop 1 A1", "en.wikipedia A 5 desktop 99999999999999999999 A1",
    ],
)  # fmt: skip
def test_malformed_lines_are_skipped(tmp_path, line):
    path = tmp_path / "pageviews"
    path.write_text(f"en.wikipedia A 5 desktop 1 A1\n{line}\nen.wikipedia B 6 desktop 2 A2\n")

    assert rows_of(path) == [(b"A", 5, 1), (b"B", 6, 2)]
    path.write_text(f"de.wikipedia A 5 desktop 1 A1\n{line}\n")
    with pytest.raises(DataError, match=re.escape(f"the first is {line!r}")):
        rows_of(path)


def test_pageviews_rejects_too_many_malformed_lines(tmp_path):
    path = tmp_path / "pageviews"
    good = "en.wikipedia A 5 desktop 1 A1\n"

    path.write_text(good * 9_000 + "en.wikipedia broken\n" * 100)
    assert len(rows_of(path)) == 9_000

    path.write_text(good * 9_000 + "en.wikipedia broken\n" * 101)
    with pytest.raises(DataError, match=r"101 of 9,101 lines of en\.wikipedia cannot be read"):
        rows_of(path)


TITLES = st.text(
    st.characters(exclude_categories=("Cs", "Zs", "Zl", "Zp", "Cc")), min_size=1, max_size=12
).filter(lambda title: not title.startswith('"'))
LINES = st.lists(
    st.tuples(
        st.sampled_from(["en.wikipedia", "en.wikipedi", "de.wikipedia", "en.wikipedia.x"]),
        TITLES,
        st.none() | st.integers(0, 2**40),
        st.integers(0, 10**15),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(LINES, st.integers(1, 200))
def test_read_pageviews_equal_the_written_ones(lines, chunk_bytes):
    """The result does not depend on the chunks or on the order of the projects."""
    text = "".join(
        f"{wiki} {title} {'null' if page is None else page} mobile-web {views} A1\n"
        for wiki, title, page, views in lines
    )
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(pageviews, "_CHUNK_BYTES", chunk_bytes)
        path = Path(folder, "pageviews")
        path.write_text(text, encoding="utf-8")
        found = rows_of(path)

    wanted = [line for line in lines if line[0] == "en.wikipedia"]
    assert found == [(title.encode(), page, views) for _, title, page, views in wanted]


def test_fast_parser_of_pageviews_agrees_with_the_slow_one(tmp_path, monkeypatch):
    """The fast parser is used for plain lines."""
    kinds = [
        "en.wikipedia {} 12 desktop",
        "en.wikipedia {} null mobile-web",
        "en.wikipedia.m {} 5 desktop",
        "en.wikipedia {} 0 mobile-app",
        "fr.wikipedia {} 7 desktop",
    ]
    lines = [f"{kinds[n % 5].format(f'T_{n}é')} {n + 1} A{n + 1}" for n in range(250)]
    path = tmp_path / "pageviews-202401-user"
    path.write_bytes("\n".join(lines).encode("latin-1") + b"\n")
    parsed = []
    fast = pageviews._plain_batch
    monkeypatch.setattr(pageviews, "_plain_batch", lambda *a: parsed.append(fast(*a)) or parsed[-1])
    at_once = [b.to_pylist() for b in pageviews.read_pageviews(path, project="en.wikipedia")]
    monkeypatch.setattr(pageviews, "_plain_batch", lambda *a: None)

    one_by_one = [b.to_pylist() for b in pageviews.read_pageviews(path, project="en.wikipedia")]

    assert parsed[0] is not None
    assert at_once == one_by_one
    assert len(at_once[0]) == 150


@pytest.mark.parametrize(
    ("text", "project", "error", "message"),
    [
        *(
            (text, "en.wikipedia", DataError, "not a pageview_complete file; it starts with")
            for text in ("<html>\n<body>\n", "[\n{}\n]\n", "en Main_Page 242 47377\n", "x" * 99)
        ),
        *(
            ("", name, ValueError, "project must be a name such as")
            for name in ("", "en wikipedia", ".wikipedia", "en.")
        ),
        (None, "en.wikipedia", SourceNotFoundError, "pageviews"),
    ],
)
def test_pageviews_rejects_other_files_and_projects(tmp_path, text, project, error, message):
    if text is not None:
        (tmp_path / "pageviews").write_text(text)
    with pytest.raises(error, match=message):
        rows_of(tmp_path / "pageviews", project)
