"""Exports of MediaWiki with a few pages."""

from xml.sax.saxutils import escape, quoteattr

SITE = """
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>{wiki}</dbname>
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
    """Write one page in the format of MediaWiki."""
    element = f"<redirect title={quoteattr(redirect)} />" if redirect else "<redirect />"
    element = "" if redirect is None else element
    return (
        f"<page><title>{escape(title)}</title><ns>{namespace}</ns><id>{page_id}</id>{element}"
        f"<revision><id>99</id><contributor><username>A</username><id>7</id></contributor>"
        f'<model>wikitext</model><text bytes="1" xml:space="preserve">{escape(text)}</text>'
        f"</revision></page>\n"
    )


def export_xml(*pages, version="0.11", wiki="testwiki", case="first-letter", category="Category"):
    """Write an export of some pages."""
    site = SITE.format(wiki=wiki, case=case, category=category)
    return (
        f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" version="{version}" '
        f'xml:lang="en">{site}{"".join(pages)}</mediawiki>\n'
    )
