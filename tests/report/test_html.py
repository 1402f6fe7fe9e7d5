import re
import sys
from html.parser import HTMLParser

import pandas as pd
import pytest

from surface_consistency.errors import DataError
from surface_consistency.report import StudyRun, load_runs, study_tables, write_report

EVIL = "<script>alert(1)</script>"
VOID = {"img", "meta", "wbr"}
VERDICTS = [(True, True), (True, False), (False, True), (False, False), (True, None)]


class _Checker(HTMLParser):
    """Checks that elements nest, and gathers their names, ids, links and text."""

    def __init__(self):
        super().__init__()
        self.open, self.names, self.ids, self.links, self.text = [], set(), [], [], []

    def handle_starttag(self, name, attributes):
        self.names.add(name)
        values = dict(attributes)
        assert len(values) == len(attributes)
        self.ids.extend(filter(None, [values.get("id")]))
        self.links.extend(filter(None, [values.get("href"), values.get("src")]))
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def _read(path):
    """Parse a page; return it and its text with single spaces."""
    page = _Checker()
    page.feed(path.read_text("utf-8"))
    page.close()
    assert page.open == []
    return page, " ".join("".join(page.text).replace("\u00a0", " ").split())


def _run(make_manifest, outcomes, label="organism", **parts):
    return StudyRun(label=label, manifest=make_manifest(label), outcomes=outcomes, **parts)


def test_write_report_is_self_contained(make_manifest, make_outcomes, tmp_path):
    """The page nests properly, links to its own sections only, and holds no script."""
    run = _run(make_manifest, make_outcomes(VERDICTS * 4))

    written = write_report([run], tmp_path / "new" / "page.html", n_resamples=50)

    page, text = _read(written)
    assert written == tmp_path / "new" / "page.html"
    assert not page.names & {"script", "link", "iframe", "object", "form"}
    inner = [link for link in page.links if not link.startswith("data:image/svg+xml;base64,")]
    assert sorted(link.removeprefix("#") for link in inner) == sorted(page.ids)
    assert not re.search(r"@import|url\(", written.read_text("utf-8"))
    assert run.manifest.signature in text
    assert [path.name for path in written.parent.iterdir()] == ["page.html"]


def test_write_report_is_written_into_a_folder(make_manifest, make_outcomes, tmp_path):
    """A name without ".html" is a folder, there or not."""
    run = _run(make_manifest, make_outcomes(VERDICTS))

    assert write_report([run], tmp_path, n_resamples=20) == tmp_path / "report.html"
    assert write_report([run], tmp_path / "v1.0", n_resamples=20).parent == tmp_path / "v1.0"


def test_write_report_is_opened_by_its_highlights(make_manifest, make_outcomes, tmp_path):
    """Highlights come first, then what was run, then the numbers."""
    highlight = pd.DataFrame(
        {"exposure": ["rare"], "n": [7], "consistency": [0.5], "consistency_low": [0.25]}
    )
    run = _run(
        make_manifest, make_outcomes(VERDICTS), highlights={"by planted exposure": highlight}
    )

    page, text = _read(write_report([run], tmp_path, n_resamples=20))

    assert page.ids[:3] == ["highlights", "runs", "numbers"]
    assert text.index("By planted exposure") < text.index("Settings")
    assert "rare" in text


def test_write_report_says_the_numbers_of_the_tables(
    make_manifest, make_outcomes, noise_floor, tmp_path
):
    """The sentence of a run holds its rates in percent and its noise floor."""
    floor = noise_floor("organism", 2, 100)
    verdicts = [(True, True), (True, False), (False, False), (False, True), (True, False)] * 8
    run = _run(make_manifest, make_outcomes(verdicts), checks={"noise_floor": floor})
    tables = study_tables([run], n_resamples=500)

    _, text = _read(write_report([run], tmp_path, tables=tables, n_resamples=500))

    row = tables["overall"].iloc[0]
    low, high = 100 * row["flip_rate_low"], 100 * row["flip_rate_high"]
    assert f"60.0 % [{low:.1f}, {high:.1f}] flip (40.0 % from right to wrong, 20.0 %" in text
    assert "Right answers: 60.0 % under canonical names, 40.0 % under redirect names" in text
    assert "a difference of −20.0 points" in text
    assert "Noise floor: 2.0 % [1.0, 4.0] of 100 verdicts flip" in text
    assert "the flip rate between names lies above it" in text


@pytest.mark.parametrize(
    ("flips", "n", "said"),
    [
        (30, 100, r"30\.0 % \[15\.0, 60\.0\] of 100 .* does not lie clearly above it"),
        # Wilson's 95 % interval of 0 in 10 is [0, 0.2775] (statsmodels proportion_confint).
        (0, 10, r"0\.0 % \[0\.0, 27\.8\] of 10 .* does not lie clearly above it"),
    ],
)
def test_write_report_is_careful_about_noise(
    flips, n, said, make_manifest, make_outcomes, noise_floor, tmp_path
):
    """A floor as high as the flips, or measured on few prompts, is not called lower."""
    run = _run(
        make_manifest,
        make_outcomes([(True, True)] * 60 + [(True, False)] * 20),
        checks={"noise_floor": noise_floor("organism", flips, n)},
    )

    _, text = _read(write_report([run], tmp_path, n_resamples=200))

    assert re.search(said, text)


def test_write_report_is_complete_without_a_noise_floor(make_manifest, make_outcomes, tmp_path):
    """A missing or empty floor is said, not passed over."""
    empty = pd.DataFrame({"template": [], "model": [], "n_repeated": [], "flip_rate": []})
    runs = [
        _run(make_manifest, make_outcomes(VERDICTS)),
        _run(make_manifest, make_outcomes(VERDICTS), "other", checks={"noise_floor": empty}),
    ]

    _, text = _read(write_report(runs, tmp_path, n_resamples=20))

    assert text.count("Noise floor: not measured") == 2
    assert "The runs hold no checks" in text


def test_write_report_holds_several_runs(
    make_run, make_manifest, make_outcomes, noise_floor, tmp_path
):
    """Runs share the page under distinct labels; differing settings and data are pointed out."""
    short = make_outcomes(VERDICTS[:3])
    other = make_manifest("other", prompts=None, params=None, runner={"runner": "stored"})
    folders = [
        make_run(
            "first",
            make_outcomes(VERDICTS),
            make_manifest(),
            checks={"noise_floor": noise_floor("organism", 1, 100)},
        ),
        make_run("second", short, make_manifest()),
        make_run("third", short.assign(model="other"), other),
    ]

    page, text = _read(write_report(load_runs(folders), tmp_path / "all.html", n_resamples=20))

    assert "organism (first), organism (second), other" in text
    assert "organism (first) and other differ in more than the model: " in text
    assert "prompts.shots (15 and None)" in text
    assert "organism (first) and organism (second) differ" not in text
    assert text.count("Noise floor: 1.0 %") == 1
    assert f"organism (second) = {make_manifest().signature}" in text
    assert "made elsewhere" in text
    checks = text[text.index("Noise floor: the same prompts") : text.index("Right under")]
    assert "organism (first) = study:redirectqa" in checks
    assert "organism (second)" not in checks
    assert len(page.ids) == len(set(page.ids))


def test_write_report_counts_what_was_left_out(make_manifest, make_outcomes, tmp_path):
    """Missing verdicts, questions without a pair and pairs of other runs are counted."""
    verdicts = [(True, True), (None, True), (None, False), (True, None), (None, None)]
    outcomes = make_outcomes(verdicts)
    data = make_manifest().data.model_copy(update={"n_questions": 4})
    runs = [
        _run(make_manifest, outcomes),
        StudyRun(
            label="other",
            manifest=make_manifest("other", data=data),
            outcomes=outcomes.iloc[:3].assign(model="other"),
        ),
    ]

    markup = write_report(runs, tmp_path, n_resamples=20).read_text("utf-8")

    section = markup[markup.index('id="left-out"') :]
    rows = [
        re.findall(r'<td class="count">(.*?)</td>', line)
        for line in re.findall(r"<tr>(.*?)</tr>", section)[2:4]
    ]
    # 5 pairs of 3 facts ask 8 of 40 questions; 3 pairs of 2 facts cannot ask 5 of 4.
    assert rows == [
        ["5", "1", "2", "1", "1", "32", "0"],
        ["3", "1", "2", "0", "0", "–", "2"],
    ]


def test_write_report_is_written_without_any_verdict(make_manifest, make_outcomes, tmp_path):
    """A run whose answers could not be judged says so in place of rates and figure."""
    run = _run(make_manifest, make_outcomes([(None, None)] * 3))

    page, text = _read(write_report([run], tmp_path, n_resamples=20))

    assert "none of its 3 pairs has both verdicts, so that no rate is defined." in text
    assert "No figure: template 'original' has no pair with both verdicts" in text
    assert "nan" not in text.lower()
    assert "img" not in page.names


def test_write_report_is_written_without_matplotlib(
    make_manifest, make_outcomes, tmp_path, monkeypatch
):
    """Only the figure is missing, and the page says how to get it."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    run = _run(make_manifest, make_outcomes(VERDICTS))

    page, text = _read(write_report([run], tmp_path, n_resamples=20))

    assert "pip install 'surface-consistency[plot]'" in text
    assert "By redirect type" in text
    assert "img" not in page.names


def test_write_report_escapes_everything(make_manifest, make_outcomes, tmp_path):
    """No text of models, data, settings, checks or highlights becomes markup."""
    columns = ("first_surface", "second_surface", "first_prediction", "second_prediction")
    evil = make_outcomes(VERDICTS, categories=[(EVIL,)], template=EVIL, model=EVIL).assign(
        **dict.fromkeys((*columns, "relation"), EVIL), types=[[EVIL]] * len(VERDICTS)
    )
    table = pd.DataFrame({EVIL: [EVIL], "model": [EVIL], "n": [1]})
    manifest = make_manifest(EVIL, runner={EVIL: EVIL})
    run = StudyRun(
        label=EVIL,
        manifest=manifest,
        outcomes=evil,
        judged_by=EVIL,
        checks={EVIL: table},
        highlights={EVIL: table},
    )

    written = write_report([run], tmp_path, title=EVIL, n_resamples=20)

    page, text = _read(written)
    assert "script" not in page.names
    assert "<script" not in written.read_text("utf-8").lower()
    assert text.count("alert(1)") > 50


def test_write_report_shows_examples_of_each_cell(make_manifest, make_outcomes, tmp_path):
    """Each cell shows its own pairs, not just its first ones, and always the same ones."""
    verdicts = [(True, True)] * 9 + [(True, False)] * 3 + [(False, True)] + [(None, False)]
    run = _run(make_manifest, make_outcomes(verdicts))

    first = write_report([run], tmp_path / "a", examples=4, n_resamples=20)
    second = write_report([run], tmp_path / "b", examples=4, n_resamples=20)
    none = write_report([run], tmp_path / "c", examples=0, n_resamples=20)

    _, text = _read(first)
    assert "Right under both names: 4 of 9 pairs" in text
    assert "Right under the canonical name only: 3 of 3 pairs" in text
    assert "Right under the redirect name only: 1 of 1 pairs" in text
    assert "Right under neither name: no pair." in text
    both = text[text.index("both names: 4") : text.index("Right under neither")]
    assert len(set(re.findall(r"first answer (\d+)", both)) - {"0", "1", "2", "3"}) > 0
    flipped = text[text.index("canonical name only: 3") : text.index("redirect name only: 1")]
    assert sorted(set(re.findall(r"first answer (\d+)", flipped))) == ["10", "11", "9"]
    assert first.read_bytes() == second.read_bytes()
    assert "Examples" not in none.read_text("utf-8")


def test_write_report_explains_labels(make_manifest, make_outcomes, tmp_path):
    """Pairs with several, no or unknown categories are counted once each."""
    categories = [
        ("Redirects_from_birth_names", "Redirects_from_misspellings"),
        (),
        ("Redirects_from_books",),
    ]
    outcomes = make_outcomes([(True, True)] * 6, categories=categories)
    runs = [_run(make_manifest, outcomes, name) for name in ("x", "y")]

    _, text = _read(write_report(runs, tmp_path, n_resamples=20))

    assert "Of 6 pairs, 2 carry several redirect categories" in text
    assert '2 carry none and stand under "none"' in text
    assert '2 have a category outside the 33, of the type "unknown"' in text


def test_write_report_rejects_what_it_cannot_show(make_manifest, make_outcomes, tmp_path):
    run = _run(make_manifest, make_outcomes(VERDICTS))
    empty = _run(make_manifest, make_outcomes(VERDICTS).iloc[:0])

    with pytest.raises(ValueError, match=r"examples must be at least 0, got -1"):
        write_report([run], tmp_path, examples=-1)
    with pytest.raises(ValueError, match=r"runs is empty"):
        write_report([], tmp_path)
    with pytest.raises(DataError, match=r"run 'organism' holds no pair"):
        write_report([empty], tmp_path)
    assert list(tmp_path.iterdir()) == []
