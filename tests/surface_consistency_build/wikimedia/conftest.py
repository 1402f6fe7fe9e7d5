"""A private MariaDB server for the tests of SQL dumps."""

from xml.sax.saxutils import escape, quoteattr

import pytest

from tests.surface_consistency_build.mini_wiki.mariadb_server import find_programs, running_mariadb

SITE = """
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>testwiki</dbname>
    <base>https://example.org/wiki/Main_Page</base>
    <case>{case}</case>
    <namespaces>
      <namespace key="-1" case="first-letter">Special</namespace>
      <namespace key="0" case="{case}" />
      <namespace key="1" case="first-letter">Talk</namespace>
      <namespace key="2" case="first-letter">User</namespace>
      <namespace key="4" case="first-letter">Wikipedia</namespace>
      <namespace key="10" case="first-letter">Template</namespace>
      <namespace key="14" case="first-letter">{category}</namespace>
    </namespaces>
  </siteinfo>
"""


def page_xml(title, text, *, page_id=1, namespace=0, redirect=None):
    """Write one page as MediaWiki does."""
    element = f"<redirect title={quoteattr(redirect)} />" if redirect else "<redirect />"
    element = "" if redirect is None else element
    return (
        f"<page><title>{escape(title)}</title><ns>{namespace}</ns><id>{page_id}</id>{element}"
        f"<revision><id>99</id><contributor><username>A</username><id>7</id></contributor>"
        f'<model>wikitext</model><text bytes="1" xml:space="preserve">{escape(text)}</text>'
        f"</revision></page>\n"
    )


def export_xml(*pages, version="0.11", case="first-letter", category="Category"):
    """Write an export of some pages."""
    site = SITE.format(case=case, category=category)
    return (
        f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" version="{version}" '
        f'xml:lang="en">{site}{"".join(pages)}</mediawiki>\n'
    )


@pytest.fixture
def write_export(tmp_path):
    """A function that writes pages, given as `page_xml` arguments, to an export."""

    def write(*pages, **options):
        path = tmp_path / "testwiki-pages-articles.xml"
        texts = (page_xml(**page) for page in pages)
        path.write_text(export_xml(*texts, **options), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory):
    """A running server; tests that need it skip where MariaDB is not installed."""
    if find_programs() is None:
        pytest.skip("MariaDB is not installed; on Debian: apt-get install mariadb-server")
    with running_mariadb(tmp_path_factory.mktemp("mariadb")) as server:
        yield server
