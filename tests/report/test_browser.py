"""The page in Chromium, opened from files without network."""

import base64
import os
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from surface_consistency.report.colours import DARK, LIGHT
from surface_consistency.report.html import write_page
from surface_consistency.report.page import Dot, ForestPlot, Section
from surface_consistency.tables.numbers import Value
from surface_consistency.tables.table import Column, Table, interval_column
from tests.report.example import page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER),
        reason="no Chromium with its driver; install Debian's chromium and chromium-driver",
    ),
    pytest.mark.allow_hosts(["127.0.0.1", "::1", "localhost"]),
]


EXTRA = 0
"""The page with a chart of differences and a wide table in a folded section."""


def _extra():
    """A chart whose axis has many ticks, and a table with many columns and long words."""
    value = Value(value=0.145, low=-0.3, high=0.42, kind="difference")
    dot = Dot(model=0, value=value, n=200, n_clusters=4)
    plot = ForestPlot(
        name="d", title="Difference", axis="points", rows=[("model", 0, [dot])], clusters="",
        remarks={"model": "+14.5 [−30.0, +42.0] no significant difference"},
    )  # fmt: skip
    shown = ("Interference", "difference", "points")
    rates = [interval_column(f"rate_{place}", *shown) for place in range(6)]
    counts = [Column(key=f"n_{place}", title="Incomplete", kind="count") for place in range(10)]
    labels = [Column(key=name, title=name) for name in ("database", "domain", "topology", "digest")]
    row = {f"n_{place}": 12_228 for place in range(10)} | {"digest": "0123456789abcdef" * 4}
    row |= {"database": "countries/collision", "domain": "countries", "topology": "collision"}
    for place in range(6):
        row |= {f"rate_{place}": -1.0, f"rate_{place}_low": -1.0, f"rate_{place}_high": 1.0}
    columns = [*labels, *counts, *rates]
    table = Table(frame=pd.DataFrame([row]), caption="All", columns=columns, label="tab:all")
    return (
        Section(anchor="differences", title="Differences", blocks=[plot]),
        Section(anchor="wide", title="Wide", blocks=[table], is_folded=True),
    )


class Browser:
    def __init__(self, driver, pages: dict[int, Path]) -> None:
        self.driver = driver
        self.pages = pages

    def open(self, n_models=2, *, width=1280, media="", dark=False, script=True, address=""):
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        for command, options in (
            ("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]}),
            ("Emulation.setScriptExecutionDisabled", {"value": not script}),
            ("Emulation.setDeviceMetricsOverride", screen),
        ):
            self.driver.execute_cdp_cmd(command, options)
        self.driver.get("about:blank")
        self.driver.get(self.pages[n_models].as_uri() + address)
        ready = "return document.readyState === 'complete' && location.protocol === 'file:'"
        has_script = " && document.documentElement.classList.contains('js')"
        self.wait_until(ready + has_script * script)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait_until(self, script):
        """Wait until a function body returns a true value, also on a slow machine."""
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 20, poll_frequency=0.05).until(lambda _: self.run(script))

    def shown(self, css):
        """Count elements that are drawn, regardless of their attributes."""
        drawn = (
            "[...document.querySelectorAll(arguments[0])].filter(e => e.getClientRects().length)"
        )
        return self.run(f"return {drawn}.length", css)

    def style(self, css, name):
        script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
        return self.run(script, css, name)

    def find(self, css):
        from selenium.webdriver.common.by import By

        return self.driver.find_element(By.CSS_SELECTOR, css)

    def choose(self, name, label):
        from selenium.webdriver.support.ui import Select

        Select(self.find(f"select[name={name}]")).select_by_visible_text(label)

    def too_wide(self, css, exception):
        """Return elements wider than the window, except those of a condition."""
        return self.run(
            f"return [...document.querySelectorAll(arguments[0])].filter(e => !({exception})"
            " && e.getBoundingClientRect().right > innerWidth + 1)"
            ".map(e => e.outerHTML.slice(0, 80))",
            css,
        )

    def texts(self, css):
        elements = "[...document.querySelectorAll(arguments[0])]"
        return self.run(f"return {elements}.map(e => e.textContent.trim())", css)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    home = tmp_path_factory.mktemp("pages")
    pages = {n: write_page(page(n, has_noise=n > 1), home / f"{n}.html") for n in (1, 2, 7)}
    pages[EXTRA] = write_page(replace(page(1), sections=_extra()), home / "extra.html")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield Browser(driver, pages)
    driver.quit()


@pytest.mark.skipif("FONTCONFIG_FILE" not in os.environ, reason="no set of fonts is chosen")
def test_page_uses_the_configured_fonts(browser):
    """Run this module with each file of `fonts` as FONTCONFIG_FILE."""
    browser.open()
    run = browser.driver.execute_cdp_cmd
    run("DOM.enable", {})
    run("CSS.enable", {})
    root = run("DOM.getDocument", {})["root"]["nodeId"]
    node = run("DOM.querySelector", {"nodeId": root, "selector": "h1"})
    used = run("CSS.getPlatformFontsForNode", node)["fonts"]

    family = Path(os.environ["FONTCONFIG_FILE"]).stem
    assert {font["familyName"].split()[0].lower() for font in used} == {family}


@pytest.mark.parametrize("n_models", [1, 2, 7])
def test_page_fetches_no_url_and_logs_nothing(browser, n_models):
    browser.driver.get_log("browser")
    browser.open(n_models)

    assert browser.run("return performance.getEntriesByType('resource').map(e => e.name)") == []
    assert browser.driver.get_log("browser") == []
    assert browser.run("return window.hacked === undefined")
    assert browser.run("return document.documentElement.classList.contains('js')")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [320, 390, 768, 1280, 1920])
@pytest.mark.parametrize("n_models", [2, 7])
def test_page_does_not_overflow(browser, n_models, width, dark):
    browser.open(n_models, width=width, dark=dark)

    assert browser.run("return document.documentElement.scrollWidth") <= width
    in_box = "e.closest('.scroll, .toc, svg, .skip, .defs')"
    assert browser.too_wide("body *", in_box) == []


@pytest.mark.parametrize("width", [320, 390, 1280, 1920])
@pytest.mark.parametrize("n_models", [2, EXTRA])
def test_tables_with_hidden_columns_are_marked(browser, n_models, width):
    """Scroll bars may be hidden, so a note is shown in each box that can be scrolled sideways."""
    browser.open(n_models, width=width, address="#wide" if n_models == EXTRA else "")

    boxes = (
        "[...document.querySelectorAll('.scroll')].filter(e => e.clientWidth)"
        ".map(e => [e.scrollWidth > e.clientWidth + 1,"
        " getComputedStyle(e, '::after').content.includes('scroll sideways')])"
    )
    browser.wait_until(f"return {boxes}.every(([wide, marked]) => wide === marked)")
    is_wide = [wide for wide, _ in browser.run(f"return {boxes}")]
    assert any(is_wide) == (n_models == EXTRA or width < 400)


def test_definition_is_on_the_first_screen(browser):
    browser.open(1, width=1280)

    box = browser.run(
        "return ['h1', '.definition', '.standfirst']"
        ".map(css => document.querySelector(css).getBoundingClientRect())"
        ".map(box => [box.top, box.bottom])"
    )
    assert box[0][1] <= box[1][0] < box[1][1] <= box[2][0]
    assert box[1][1] < 450


@pytest.mark.parametrize("n_models", [1, 2, 7, EXTRA])
def test_tables_and_charts_fit_on_printed_paper(browser, n_models):
    """A4 without margins of 1 cm is 718 pixels wide."""
    browser.open(n_models, media="print", width=718)

    assert browser.too_wide("table, pre, svg", "e.closest('svg svg')") == []


@pytest.mark.parametrize("width", [390, 1024])
def test_ticks_of_an_axis_do_not_overlap(browser, width):
    browser.open(EXTRA, width=width)

    boxes = browser.run(
        "return [...document.querySelectorAll('.axis text')].map(e => e.getBoundingClientRect())"
        ".filter(box => box.width).map(box => [box.left, box.right])"
    )
    assert len(boxes) > 2
    assert all(one[1] < other[0] for one, other in pairwise(boxes))


def test_words_of_tables_are_not_broken(browser):
    browser.open(2, width=320)

    broken = browser.run(
        """
        const found = [];
        for (const cell of document.querySelectorAll('table.data th, table.data td')) {
          const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
          while (walker.nextNode())
          for (const word of walker.currentNode.data.matchAll(/[\\w.]+/g)) {
            const range = document.createRange();
            range.setStart(walker.currentNode, word.index);
            range.setEnd(walker.currentNode, word.index + word[0].length);
            if (new Set([...range.getClientRects()].map(r => Math.round(r.top))).size > 1)
              found.push(word[0]);
          }
        }
        return found;
        """
    )
    assert broken == []


def test_areas_in_mosaic_plots_are_proportions(browser):
    browser.open(2)

    shares = browser.run(
        """
        return [...document.querySelectorAll('.squares .square')].map(square =>
          [...square.querySelectorAll('rect[class^=c-]')].filter(r => r.querySelector('title'))
            .map(r => [r.getAttribute('class').slice(2),
                       r.getBoundingClientRect().width * r.getBoundingClientRect().height
                         / square.getScreenCTM().a ** 2 / 90000]));
        """
    )
    counts = [{"both": 126, "first_only": 34, "neither": 36},
              {"both": 39, "first_only": 15, "second_only": 3, "neither": 139}]  # fmt: skip
    for cells, expected in zip(shares, counts, strict=True):
        assert {name for name, _ in cells} == set(expected)
        for name, area in cells:
            assert area == pytest.approx(expected[name] / 196, abs=0.005)


def test_rows_are_sorted_with_missing_values_last_and_filtered_by_words(browser):
    browser.open(2)
    browser.find("input[name=switch][value='1']").click()
    table = "[...document.querySelectorAll('table.data')][1]"
    values = f"[...{table}.tBodies[0].rows].map(r => r.cells[7].textContent.replace('–', ''))"
    for reverse in (False, True):
        browser.run(f"{table}.tHead.rows[0].cells[7].querySelector('button').click()")
        found = browser.run(f"return {values}")
        known = [float(value.replace("< 0.001", "0")) for value in found if value]
        assert known == sorted(known, reverse=reverse)
        assert "" in found
        assert found[: len(known)] == [value for value in found if value]
    browser.find(".pane-1 input[type=search]").send_keys("names toy_model")
    assert browser.shown(".pane-1 tbody tr") == 6


def test_without_script_tables_are_switched_and_all_answers_are_in_a_box(browser):
    browser.open(2, script=False)
    assert browser.shown("#numbers table.data") == 1
    assert browser.shown("#numbers .pane-0 table") == 1
    assert browser.shown(".ans") == 120
    assert browser.shown(".controls") == browser.shown(".copies") == 0
    assert browser.run("return document.querySelector('.list').clientHeight") < 800

    browser.find("input[name=switch][value='1']").click()

    assert browser.shown("#numbers .pane-0 table") == 0
    assert browser.shown("#numbers .pane-1 table") == 1


def test_print_shows_all_tables_and_repeats_headings(browser):
    browser.open(2, media="print", dark=True)

    assert browser.shown("#numbers table.data") == 2
    assert browser.style("table.data thead", "display") == "table-header-group"
    assert browser.style("body", "backgroundColor") == _rgb(LIGHT["page"])
    assert "gradient" not in browser.run("return document.querySelector('style').textContent")
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")


def test_folded_sections_are_open_only_in_print(browser):
    parts = "['#wide table', '#method p'].map(c => document.querySelector(c).checkVisibility())"
    for media, is_open in (("", False), ("print", True)):
        browser.open(EXTRA, media=media)
        assert browser.run(f"return {parts}") == [is_open] * 2


def test_filters_combine_and_are_stored_in_the_address(browser):
    browser.open(2)
    assert browser.shown(".ans") == 20

    browser.choose("model", "toy_model")
    browser.choose("cell", "title only")
    browser.choose("relation", "capital")
    browser.find("input[name=q]").send_keys("stone")

    assert browser.shown(".ans") == 1
    assert browser.texts(".count") == ["1 of 120 of 1,200 pairs, drawn within cells"]
    assert browser.run("return location.hash") == (
        "#answers?q=stone&cell=first_only&relation=capital&model=toy_model"
    )

    browser.find("[data-clear]").click()

    assert browser.shown(".ans") == 20
    assert browser.run("return location.hash") == "#answers"


def test_state_is_restored_from_the_address(browser):
    browser.open(2, address="#answers?cell=both&page=2")
    assert browser.shown(".ans") == 4
    assert browser.texts(".where") == ["page 2 of 2"]
    assert browser.run("return document.querySelector('select[name=cell]').value") == "both"

    browser.open(2, address="#answers?cell=nonsense&model=other&page=%")
    assert browser.shown(".ans") == 20

    browser.open(1, address="#method")
    assert browser.shown("[data-method]") == 1
    assert browser.run("return document.querySelectorAll('.toc a[aria-current]').length") == 1


def test_permalink_shows_its_row(browser):
    anchor = "a1-Q37-P106-x"
    browser.open(2, address=f"#{anchor}")

    assert browser.shown(f"[id='{anchor}']") == browser.shown(".ans.here") == 1
    top = browser.run("return document.querySelector('.ans.here').getBoundingClientRect().top")
    assert 0 <= top <= 900


def test_next_page_is_shown_and_a_mosaic_cell_filters_the_answers(browser):
    browser.open(2)
    browser.find("[data-step='1']").click()
    assert browser.texts(".where") == ["page 2 of 6"]
    assert browser.run("return location.hash") == "#answers?page=2"
    assert browser.shown(".ans") == 20

    browser.run(
        "[...document.querySelectorAll('.squares a')]"
        ".find(a => a.dataset.go.startsWith('cell=first_only'))"
        ".dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))"
    )
    browser.wait_until("return document.querySelector('select[name=cell]').value === 'first_only'")
    assert browser.run("return document.querySelector('select[name=model]').value") == "toy_model"
    assert browser.shown(".ans") == 12


def test_keyboard_sorts_switches_and_turns_pages(browser):
    from selenium.webdriver.common.keys import Keys

    browser.open(2)
    browser.find("table.data th button").send_keys(Keys.ENTER)
    assert browser.find("table.data th").get_attribute("aria-sort") == "ascending"
    browser.find("input[name=switch][value='0']").send_keys(Keys.ARROW_RIGHT)
    assert browser.shown("#numbers .pane-1 table") == 1
    browser.find("[data-step='1']").send_keys(Keys.SPACE)
    assert browser.texts(".where") == ["page 2 of 6"]
    browser.find(".squares a").send_keys(Keys.ENTER)
    browser.wait_until("return document.querySelector('select[name=cell]').value === 'both'")


def test_copy_buttons_give_latex_markdown_and_bibtex(browser):
    browser.open(2)

    def copied(css, label):
        buttons = "[...document.querySelectorAll(arguments[0])]"
        chosen = f"{buttons}.find(b => b.textContent === arguments[1])"
        browser.run(f"{chosen}.click()", f"{css} button", label)
        last = f"{css} button[data-copied]:last-of-type, {css} button[data-copied]"
        return browser.run("return document.querySelector(arguments[0]).dataset.copied", last)

    latex = copied("#numbers .pane-0 .copies", "LaTeX").splitlines()
    assert latex[0] == "\\begin{tabular}{llrrlrrr}"
    assert latex[-1] == "\\end{tabular}"
    assert latex[4].startswith(r"Alternative names and abbreviations & toy\_model & ")
    assert "$-$" in latex[4]

    text = copied("#finding .copies", "Markdown")
    assert text.startswith("A redirect in place of the title flips **17.3 %** [12.1, 23.1] of")

    assert copied("#cite .copies", "Copy BibTeX").startswith("@article{a_paper,")

    browser.open(EXTRA, address="#wide")
    latex = copied("#wide .copies", "LaTeX").splitlines()
    assert latex[:4] == [r"\begin{table}", r"\centering", r"\caption{All}", r"\label{tab:all}"]
    assert latex[-1] == r"\end{table}"
    assert latex[-4].count(" & ") == 19


def test_colours_follow_the_colour_scheme(browser):
    for dark, colours in ((False, LIGHT), (True, DARK)):
        browser.open(1, dark=dark)
        assert browser.style("body", "backgroundColor") == _rgb(colours["page"])
        assert browser.style("body", "color") == _rgb(colours["ink"])


def _rgb(colour):
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"
