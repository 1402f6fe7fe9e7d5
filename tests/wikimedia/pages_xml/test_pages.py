import bz2
import tracemalloc
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surface_consistency.errors import DumpError, SourceNotFoundError, TruncatedDumpWarning
from surface_consistency.wikimedia.pages_xml import WikiPage, read_pages

REAL = (
    "enwiki-slice-pages-articles.xml.bz2",
    "enwiki-sample-pages-articles.xml.bz2",
    "aawiki-20260101-pages-meta-current.xml.bz2",
)
SITE = """<siteinfo><dbname>t</dbname><namespaces><namespace key="0" case="first-letter" />
<namespace key="2" case="first-letter">Benutzer</namespace></namespaces></siteinfo>"""
# Characters that XML 1.0 can hold, without "\r", which every XML reader turns into "\n".
XML_TEXT = st.text(
    st.characters(
        exclude_categories=("Cs",),
        exclude_characters="".join(map(chr, (*range(9), *range(11, 32), 0xFFFE, 0xFFFF))),
    )
)


def write(path: Path, body: str, version: str = "0.11") -> Path:
    path.write_text(
        f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" version="{version}">'
        f"{SITE}{body}</mediawiki>",
        encoding="utf-8",
    )
    return path


def with_element_tree(path: Path) -> list[WikiPage]:
    """Read an export whole, with another XML library."""
    root = ElementTree.fromstring(bz2.decompress(path.read_bytes()))
    uri = root.tag.partition("}")[0] + "}"
    pages = []
    for page in root.findall(f"{uri}page"):
        redirect = page.find(f"{uri}redirect")
        pages.append(
            WikiPage(
                page_id=int(page.findtext(f"{uri}id", "")),
                namespace=int(page.findtext(f"{uri}ns", "")),
                title=page.findtext(f"{uri}title", ""),
                redirect=None if redirect is None else redirect.get("title", ""),
                text=page.findall(f"{uri}revision")[-1].findtext(f"{uri}text") or "",
            )
        )
    return pages


@pytest.mark.parametrize(("name", "n_pages"), [*zip(REAL, (147, 3, 507), strict=True)])
def test_pages_agree_with_element_tree(shared_dir: Path, name: str, n_pages: int) -> None:
    path = shared_dir / "data" / "wikimedia" / name

    pages = list(read_pages(path, namespaces=None))

    assert len(pages) == n_pages
    assert pages == with_element_tree(path)


def test_pages_of_wanted_namespaces_alone(shared_dir: Path) -> None:
    path = shared_dir / "data" / "wikimedia" / REAL[2]
    every = list(read_pages(path, namespaces=None))

    wanted = list(read_pages(path, namespaces={2, 3}))

    assert wanted == [page for page in every if page.namespace in {2, 3}]
    assert 0 < len(wanted) < len(every)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(XML_TEXT.filter(bool), XML_TEXT), max_size=5))
def test_pages_are_those_that_were_written(pages: list[tuple[str, str]]) -> None:
    body = "".join(
        f"<page><title>{escape(title)}</title><ns>0</ns><id>{i}</id>"
        f"<revision><id>5</id><text>{escape(text)}</text></revision></page>"
        for i, (title, text) in enumerate(pages)
    )
    with TemporaryDirectory() as folder:
        read = list(read_pages(write(Path(folder, "x.xml"), body)))

    assert [(page.title, page.text) for page in read] == pages
    assert [page.page_id for page in read] == list(range(len(pages)))


def test_pages_are_read_from_the_last_revision_and_main_slot(tmp_path: Path) -> None:
    path = write(
        tmp_path / "history.xml",
        "<page><title>A</title><ns>0</ns><id>4</id>"
        "<revision><id>1</id><text>old</text></revision>"
        "<revision><id>2</id><contributor><id>3</id></contributor><text>new</text>"
        "<content><role>other</role><text>slot</text></content></revision></page>"
        '<page><title>B</title><ns>0</ns><id>5</id><revision><text deleted="deleted" /></revision>'
        "</page>",
    )

    assert [(p.page_id, p.text) for p in read_pages(path)] == [(4, "new"), (5, "")]


def test_pages_of_old_exports_take_the_namespace_from_the_title(tmp_path: Path) -> None:
    path = write(
        tmp_path / "old.xml",
        "<page><title>Benutzer:A</title><id>1</id><revision><text>x</text></revision></page>"
        "<page><title>User:B</title><id>2</id><revision><text>y</text></revision></page>"
        "<page><title>Film: C</title><id>3</id><redirect /><revision><text>z</text></revision>"
        "</page>",
        version="0.4",
    )

    found = [(p.namespace, p.title, p.redirect) for p in read_pages(path, namespaces=None)]

    assert found == [(2, "Benutzer:A", None), (2, "User:B", None), (0, "Film: C", "")]


def test_pages_rejects_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match=r"none\.xml"):
        next(read_pages(tmp_path / "none.xml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html><body>404</body></html>", "no MediaWiki export, its root is <html>"),
        ('<mediawiki version="0.11"><page><title>A</title></page></mediawiki>', "without title or"),
        ("<mediawiki><page><title>A</title><id>x</id></page></mediawiki>", "id 'x' at plain byte"),
    ],
    ids=["html", "no-id", "id-no-number"],
)
def test_pages_rejects_other_xml(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "pages.xml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(DumpError, match=message):
        list(read_pages(path))


def cut_export(path: Path, *, packed: bool) -> Path:
    """Write three pages and cut the file inside the third."""
    body = "".join(
        f"<page><title>T{i}</title><ns>0</ns><id>{i}</id><revision><text>{'word ' * 120_000}"
        "</text></revision></page>"
        for i in range(3)
    )
    write(path, body)
    data = path.read_bytes()
    if packed:
        data = bz2.compress(data)
        path.write_bytes(data[: len(data) - 40])
    else:
        path.write_bytes(data[: int(len(data) * 0.9)])
    return path


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "bz2"])
def test_pages_rejects_a_cut_export(tmp_path: Path, packed: bool) -> None:
    path = cut_export(tmp_path / "cut.xml", packed=packed)

    with pytest.raises(DumpError, match=r"cut\.xml: the .* byte .* after"):
        list(read_pages(path))


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "bz2"])
def test_pages_before_a_cut_are_kept_where_allowed(tmp_path: Path, packed: bool) -> None:
    path = cut_export(tmp_path / "cut.xml", packed=packed)

    with pytest.warns(TruncatedDumpWarning, match="what came before is kept"):
        pages = list(read_pages(path, allow_truncated=True))

    assert [page.title for page in pages] == ["T0", "T1", "T2"][: len(pages)]
    assert len(pages) == 2 or packed


def test_pages_before_damaged_xml_are_counted(tmp_path: Path) -> None:
    page = "<page><title>A</title><ns>0</ns><id>1</id><revision><text>x</text></revision></page>"
    path = write(tmp_path / "bad.xml", page * 7 + "<page><title>B & C</title></page>")

    with pytest.raises(DumpError, match=r"damaged \(not well-formed.* after 7 pages"):
        list(read_pages(path))
    with pytest.warns(TruncatedDumpWarning, match="after 7 pages"):
        assert len(list(read_pages(path, allow_truncated=True))) == 7


def test_pages_report_progress(tmp_path: Path) -> None:
    path = write(tmp_path / "p.xml", "")
    seen = []

    assert list(read_pages(path, progress=seen.append)) == []

    assert seen[-1].read_bytes == seen[-1].total_bytes == path.stat().st_size


def test_pages_memory_is_flat(tmp_path: Path) -> None:
    text = "some words of an article " * 400
    page = (
        f"<page><title>T</title><ns>0</ns><id>1</id><revision><text>{text}</text></revision></page>"
    )
    path = write(tmp_path / "large.xml", page * 2_000)
    assert path.stat().st_size > 20_000_000

    tracemalloc.start()
    with warnings.catch_warnings():
        n_pages = sum(1 for _ in read_pages(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert n_pages == 2_000
    assert peak < 8_000_000
