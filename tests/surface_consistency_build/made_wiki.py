"""A wiki whose links are known, and its mention table."""

import gzip
import warnings
from xml.sax.saxutils import escape

import pytest
from surface_consistency_build.counting.engines import FINDERS
from surface_consistency_build.linking.mention_build import MentionSettings, build_mentions

from surface_consistency.errors import SurfaceConsistencyWarning
from tests.replay import ReplayServer
from tests.surface_consistency_build.counting.reference import PythonFinder

FINDERS[PythonFinder.name] = PythonFinder

PLANET, ELEMENT = 12, 4
UNLINKED = 8

ARTICLES = {
    "Mercury (planet)": "A planet of the [[Solar System]].",
    "Mercury (element)": "A metal of [[Chemistry]].",
    "Solar System": "Where [[Mercury (planet)]] is.",
    "Chemistry": "It knows the [[Mercury (element)|element]].",
    "Mercury": "''Mercury'' may be [[Mercury (planet)]] or [[Mercury (element)]].",
    "Orphan": "A page without links, and the word element.",
    **{
        f"Orbit {k}": "[[Mercury (planet)|Mercury]] of the [[Solar System]] {{see|[[Chemistry]]}}."
        for k in range(PLANET)
    },
    **{
        f"Metal {k}": "[[Quicksilver|Mercury]] is an element of [[Chemistry]] and [[Unwritten]]."
        for k in range(ELEMENT)
    },
    **{f"Plain {k}": "Mercury, an element: Mercury again." for k in range(UNLINKED)},
}
REDIRECTS = {"Quicksilver": "Mercury (element)", "Liquid silver": "Quicksilver"}
ITEMS = {"Mercury (planet)": 308, "Mercury (element)": 925, "Solar System": 544, "Chemistry": 2329}


def dump_of(articles, redirects):
    """Write an export; pages are numbered in order."""
    pages = []
    for number, (title, text) in enumerate((*articles.items(), *redirects.items()), start=1):
        element = ""
        if title in redirects:
            element, text = f'<redirect title="{escape(text)}" />', f"#REDIRECT [[{text}]]"
        pages.append(
            f"<page><title>{escape(title)}</title><ns>0</ns><id>{number}</id>{element}<revision>"
            f'<id>9</id><text xml:space="preserve">{escape(text)}</text></revision></page>\n'
        )
    site = (
        '<siteinfo><dbname>testwiki</dbname><namespaces><namespace key="0" />'
        '<namespace key="6">File</namespace><namespace key="14">Category</namespace>'
        "</namespaces></siteinfo>"
    )
    return f'<mediawiki version="0.11" xml:lang="en">{site}{"".join(pages)}</mediawiki>\n'


@pytest.fixture(scope="session")
def wiki(tmp_path_factory):
    """Folder with the dump and its page_props table."""
    folder = tmp_path_factory.mktemp("wiki")
    (folder / "pages.xml").write_text(dump_of(ARTICLES, REDIRECTS))
    numbers = {title: number for number, title in enumerate(ARTICLES, start=1)}
    rows = [f"({numbers[t]},'wikibase_item','Q{item}',NULL)" for t, item in ITEMS.items()]
    rows.append(f"({numbers['Mercury']},'disambiguation','',NULL)")
    with gzip.open(folder / "page_props.sql.gz", "wt") as file:
        file.write(
            "-- MySQL dump\nCREATE TABLE `page_props` (`pp_page` int unsigned NOT NULL, "
            "`pp_propname` varbinary(60) NOT NULL, `pp_value` blob NOT NULL, `pp_sortkey` float "
            f"DEFAULT NULL);\nINSERT INTO `page_props` VALUES {','.join(rows)};\n"
            "-- Dump completed on 2026-01-01\n"
        )
    return folder


@pytest.fixture(scope="session")
def built(wiki, tmp_path_factory):
    """The mention table with Wikidata items."""
    settings = MentionSettings(page_props=wiki / "page_props.sql.gz", workers=1)
    return build_mentions([wiki / "pages.xml"], tmp_path_factory.mktemp("mentions"), settings)


@pytest.fixture(scope="session")
def titled(wiki, tmp_path_factory):
    """The mention table without them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SurfaceConsistencyWarning)
        settings = MentionSettings(workers=1)
        return build_mentions([wiki / "pages.xml"], tmp_path_factory.mktemp("titled"), settings)


@pytest.fixture
def replay():
    """Starts servers: `replay(answer)`; all stop at the end of the test."""
    started = []

    def start(answer):
        started.append(ReplayServer(answer))
        return started[-1]

    yield start
    for server in started:
        server.stop()
