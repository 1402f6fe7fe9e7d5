"""Short runs of the fault tests; `make faults` runs them with more inputs."""

import random
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pandas as pd
import pytest
from cyclopts import App

from surface_consistency.cli.main import _COMMANDS, _FURTHER
from surface_consistency.engine.report import report_runs
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.plugins import ANALYSES, STUDIES
from surface_consistency.results.layouts import Layout
from tests.faults.bombs import SHORT
from tests.faults.crashes import COMMANDS, NOT_KILLED
from tests.faults.hostile import FAMILIES
from tests.faults.inputs import TEXTS
from tests.faults.layouts import Layouts
from tests.made_runs import make_manifest, make_outcomes, make_run

__all__ = ["make_run"]

HOME = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
FORKS = sys.platform == "linux"


def harness(module, *words):
    """Run a module of the fault tests in a separate process, because it patches the package."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.faults.{module}", *map(str, words)],
        cwd=HOME,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.skipif(not FORKS, reason="processes are forked and read through /proc")
def test_killed_commands_leave_complete_and_consistent_results():
    """The test interrupts four commands at five operations each."""
    names = ("run redirectqa", "score RUN", "score --predictions", "paired --out, over another")

    output = harness("crashes", "--points", 5, *names)

    for name in names:
        assert f"| {name} | 5 | 0 |" in output


def test_every_command_is_tested_with_kills_or_listed_with_a_reason():
    pytest.importorskip("surface_consistency_build", reason="its commands are included")
    known = {*_COMMANDS, *_FURTHER} - {"run", "analyse", "build", "count"}
    for plugins in (("run", STUDIES), ("analyse", ANALYSES)):
        known |= {f"{plugins[0]} {name}" for name in plugins[1].describe()}
    for name in ("build", "count"):
        group = App(name=name, help_flags=[])
        entry_points(group="surface_consistency.commands")[name].load()(group)
        known |= {f"{name} {command}" for command in group if not command.startswith("-")}
    tested = {
        name
        for command in COMMANDS.values()
        for name in (command.words[0], " ".join(command.words[:2]))
    }

    assert {"build articles", "count pairs", "export", "run slaq"} <= known
    assert sorted(known - tested - set(NOT_KILLED)) == []
    assert sorted(set(NOT_KILLED) - known) == []
    assert not tested & set(NOT_KILLED)


@pytest.mark.skipif(not FORKS, reason="processes are forked and read through /proc")
def test_harness_detects_a_command_that_writes_in_place(tmp_path):
    """Without temporary files, a partial file would be read as a complete one."""
    (tmp_path / "sitecustomize.py").write_text(IN_PLACE)
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.crashes", "--only", IN_SCORING, "score RUN"],
        cwd=HOME,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": f"{tmp_path}:{HOME}", "HF_HUB_OFFLINE": "1", "PATH": ""},
    )

    assert done.returncode == 1, done.stdout + done.stderr
    assert "other numbers" in done.stdout


IN_SCORING = r"kill at replace run/(outcomes|scoring)\."

IN_PLACE = """
import contextlib
from surface_consistency.runs import files, folder


@contextlib.contextmanager
def in_place(home, *, last, first=""):
    yield home


folder.staged = in_place
folder.claim_files = lambda *_: None
folder.RunFolder.check_scores = folder.RunFolder.read_scoring
"""


def test_hostile_files_are_read_correctly_or_rejected():
    output = harness("hostile", "--inputs", 300, "--seconds", 15)

    assert output.count("| 0 |\n") == len(FAMILIES), output
    assert not any(f"| {name} | 0 |" in output for name in FAMILIES), output


@pytest.mark.skipif(not FORKS, reason="the files include named pipes and sockets")
def test_damaged_run_folders_are_read_correctly_or_rejected():
    output = harness("hostile", "--inputs", 24, "run folders", "files of run folders")

    assert output.count("| 12 | ") == output.count("| 0 |\n") == 2, output


def test_harness_detects_a_reader_that_drops_scores(monkeypatch, tmp_path):
    whole = Layout._sample

    def without_scores(self, sample, row):
        flat = whole(self, sample, row)
        return flat._replace(scores=dict(list(flat.scores.items())[1:]))

    monkeypatch.setattr(Layout, "_sample", without_scores)
    family = Layouts(tmp_path)

    assert sum(family.attempt(random.Random(n)) is not None for n in range(20)) > 4


@pytest.mark.skipif(not FORKS, reason="the memory of a process is limited and measured")
def test_small_files_that_unpack_to_gigabytes_need_bounded_memory():
    output = harness("bombs", "--short")

    assert output.endswith("0 over the bounds\n"), output
    for name in SHORT:
        assert f"| {name} |" in output


@pytest.fixture(scope="module")
def driver():
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield made
    made.quit()


ATTACKS = (
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked=1'>",
    "</script><script>window.hacked = 1</script>",
    "</textarea></style></title><svg onload=window.hacked=1>",
    "javascript:window.hacked=1",
    "\" onmouseover='window.hacked=1' x=\"",
    "{{ constructor.constructor('window.hacked=1')() }}",
    "<!--",
    "]]>",
    "&lt;b&gt;&amp;#x3C;",
    "<a href='https://example.org/'>https://example.org</a>",
    "<meta http-equiv=refresh content='0;url=https://example.org/'>",
    "\u202eevil",
    "\u2067evil",
    "W" * 3_000,
    "W " * 3_000,
    "\u0e31" * 40,
)


@pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="no Chromium with its driver; install Debian's chromium and chromium-driver",
)
@pytest.mark.allow_hosts(["127.0.0.1", "::1", "localhost"])
def test_page_displays_hostile_texts_without_executing_them(driver, make_run, tmp_path):
    texts = [*ATTACKS, *(text for text in TEXTS if text.strip())]
    frame = make_outcomes([(place % 3 > 0, place % 2 > 0) for place in range(len(texts))])
    for name in ("pair", "first_prediction", "second_surface"):
        frame[name] = [f"{text}{place}" for place, text in enumerate(texts)]
    frame["relation"] = [text[:300] for text in texts]
    frame["model"] = model = "<script>window.hacked=1</script>\u202e=m"
    floor = pd.DataFrame({"template": ["original"], "note": [ATTACKS[0]]})
    folder = make_run("run", frame, make_manifest(model), checks={"look": floor})
    settings = ReportSettings(resamples=10)

    page = report_runs([folder], tmp_path / "page", settings=settings).page
    driver.get_log("browser")
    driver.get(page.as_uri())
    for block in driver.find_elements("css selector", "summary"):
        driver.execute_script("arguments[0].click()", block)

    def read(script):
        return driver.execute_script(f"return {script}")

    assert read("window.hacked === undefined && location.protocol") == "file:"
    assert read("performance.getEntriesByType('resource').length") == 0
    assert driver.get_log("browser") == []
    assert read("[...document.links].every(a => a.protocol === 'file:' || a.protocol === 'data:')")
    assert read("document.querySelectorAll('script:not([type])').length") == 1
    wide = read(WIDE)
    assert wide == [], wide
    shown = read("document.body.textContent")
    for text in ATTACKS[:13]:
        assert text in shown, text
    loose = read(LOOSE)
    assert loose == [], loose


LOOSE = """(() => {
  const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    if (!/[\\u202a-\\u202e\\u2066-\\u2068]/.test(walk.currentNode.data)) continue;
    let e = walk.currentNode.parentElement;
    if (!e.getClientRects().length) continue;
    while (getComputedStyle(e).display.startsWith('inline')
           && !/isolate|plaintext/.test(getComputedStyle(e).unicodeBidi)) e = e.parentElement;
    const own = e.textContent, text = walk.currentNode.data;
    if (!/isolate|plaintext/.test(getComputedStyle(e).unicodeBidi) && own.trim() !== text.trim())
      found.push(e.tagName + '.' + e.className + ': ' + own.slice(0, 120));
  }
  return found.slice(0, 10);
})()"""
"""Script that returns texts with direction marks that no element isolates from other text."""

WIDE = """(() => {
  const found = [], edge = document.documentElement.clientWidth + 1, range = document.createRange();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    range.selectNodeContents(walk.currentNode);
    if (range.getBoundingClientRect().right <= edge) continue;
    let up = walk.currentNode.parentElement;
    const name = up.tagName + '.' + up.className + ' in ' + up.parentElement.className;
    while (up && getComputedStyle(up).overflowX === 'visible') up = up.parentElement;
    if (!up || up === document.documentElement || up === document.body)
      found.push(name + ': ' + walk.currentNode.data.slice(0, 60));
  }
  const wide = document.documentElement.scrollWidth;
  return wide <= edge ? [] : [`${wide} of ${edge - 1}`, ...found.slice(0, 10)];
})()"""
"""Script that returns the texts that are wider than the window."""
