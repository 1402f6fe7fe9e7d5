"""Paraphrases from any runner to a data set that `run redirectqa` reads, with a person between."""

import csv
import json

import pytest
from surface_consistency_build.writers.paraphrase_rows import (
    check_paraphrase,
    find_units,
    parse_paraphrases,
)
from surface_consistency_build.writers.paraphrases import (
    ParaphraseReviewSettings,
    ParaphraseSettings,
    apply_paraphrase_review,
    write_paraphrases,
)

from surface_consistency.cli.main import main
from surface_consistency.data.redirectqa import RedirectQA, load_redirectqa, load_sample
from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    RunLogError,
    RunMismatchError,
    SourceNotFoundError,
)
from surface_consistency.models import FakeRunner
from surface_consistency.schemas import (
    Entity,
    FactualTriple,
    QuestionRealization,
    SurfaceForm,
)
from surface_consistency.studies.redirectqa.study import RedirectQASettings, RedirectQAStudy

SAMPLE = load_sample()


def fact(number, name, redirect, *, question="Where was {} built?", answers=("Rome",)):
    """One fact under two names, in the original template."""
    triple = FactualTriple(
        id=f"f{number}",
        subject=Entity(id=f"Q{number}", name=name, aliases=("Other",), pageviews=3),
        relation="built",
        object=Entity(id=None, name="Rome"),
        answers=answers,
    )
    surfaces = (
        SurfaceForm(text=name, is_canonical=True),
        SurfaceForm(
            text=redirect,
            is_canonical=False,
            categories=("Redirects_from_misspellings",),
            types=("typical_errors",),
            redirect_title=redirect,
        ),
    )
    return [
        QuestionRealization(
            id=f"f{number}:original:{surface.text}",
            triple=triple,
            surface=surface,
            template="original",
            question=question.format(surface.text),
        )
        for surface in surfaces
    ]


SMALL = [
    *fact(1, "Ark of {Oz}", "Ark of Os"),
    *fact(2, "Zug", "Zugg", answers=("the place", "Milan")),
]
DATA = RedirectQA.from_questions(SMALL, source="small")
UNIT = find_units(SMALL).units[0]
GOOD = "1. In which city was {name} built?\n2. Which is the place where {name} was built?"


def writer(*answers, asked=None):
    """A runner that gives one answer an attempt, with the name in it."""

    def handle(prompt):
        if asked is not None:
            asked.append(prompt)
        text = answers[min(int(prompt.id[-1]), len(answers)) - 1]
        name = "Zug" if "Zug" in prompt.messages[-1].content else "Ark of {Oz}"
        return text.replace("{name}", name)

    return FakeRunner(handle, name="writer")


def write(out, *answers, asked=None, **settings):
    """Let a writer work on the two facts."""
    settings = ParaphraseSettings(**{"paraphrases": 2} | settings)
    return write_paraphrases(
        DATA, writer(*answers, asked=asked), out, model="fake", settings=settings
    )


def rows_of(folder):
    """Read the questions by template and name."""
    rows = [json.loads(line) for line in (folder / "test.jsonl").read_text("utf-8").splitlines()]
    return {(row["template"], row["subject_surface"]): row["question"] for row in rows}


def test_paraphrases_become_a_data_set_that_redirectqa_reads(tmp_path):
    """Facts, names and answers stay; each pair differs in the name alone, in every wording."""
    requests = []
    # The sample's own paraphrases, as a writer would send them back.
    known = {
        one.triple.id: one.question
        for one in SAMPLE.questions
        if one.surface.is_canonical and one.template == "paraphrase"
    }
    questions = {
        one.question: known[one.triple.id]
        for one in SAMPLE.questions
        if one.surface.is_canonical and one.template == "original"
    }

    def handle(prompt):
        requests.append(prompt)
        asked = prompt.messages[-1].content.rpartition("Question: ")[2].partition("\n")[0]
        return f"Here it is:\n1. {questions[asked]}"

    done = write_paraphrases(SAMPLE, FakeRunner(handle), tmp_path / "out", model="fake")
    read = load_redirectqa(tmp_path / "out")

    assert done.n_wordings == len(requests) == done.n_taken == 16
    assert (done.dropped, done.left_out, done.short) == ({}, {}, ())
    assert {(q.id, q.question, q.triple.answers) for q in read.questions} == {
        (q.id, q.question, q.triple.answers) for q in SAMPLE.questions
    }
    assert len(read.pairs) == len(SAMPLE.pairs)


def test_further_paraphrases_are_templates_of_their_own(tmp_path):
    done = write(tmp_path, GOOD)
    rows = rows_of(tmp_path)

    assert (done.n_taken, done.n_rows) == (2, 10)
    assert rows["original", "Ark of Os"] == "Where was Ark of Os built?"
    assert rows["paraphrase", "Ark of {Oz}"] == "In which city was Ark of {Oz} built?"
    assert rows["paraphrase_2", "Ark of Os"] == "Which is the place where Ark of Os was built?"
    # "the place" is an answer of the second fact, so that its second paraphrase is not asked.
    assert ("paraphrase", "Zugg") in rows
    assert ("paraphrase_2", "Zugg") not in rows
    read = load_redirectqa(tmp_path)
    by_name = {q.triple.id: q.triple for q in read.questions}
    assert by_name["f2"].answers == ("the place", "Milan")
    for template, n_pairs in {"original": 2, "paraphrase": 3, "both": 5}.items():
        plan = RedirectQAStudy().plan(read, RedirectQASettings(template=template, shots=0))
        asked = RedirectQAStudy().plan(
            read, RedirectQASettings(template=template, shots=0), runner=FakeRunner(str)
        )
        assert (len(plan.pairs), len(asked.pairs)) == (n_pairs, n_pairs)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("In which city was Ark of {Oz} built?", None),
        ("In which city was Ark of Oz built?", "name"),
        ("In which city was ark of {oz} built?", "name"),
        ("Was Ark of {Oz} built where Ark of {Oz} is?", "name"),
        ("where was Ark of {Oz} built ?", "original"),
        ("In what city was Ark of {Oz} built?", None),
        ("In which CITY was Ark of {Oz} built??", "repeated"),
        ("It was built in a city, Ark of {Oz}.", "no question"),
        ("Was Ark of {Oz} built in Rome or in the place?", "answer"),
        ("Was Ark of {Oz} built in Romeo's town?", None),
    ],
)
def test_paraphrases_are_checked(text, reason):
    taken = ["In which city was Ark of {Oz} built?"] if reason == "repeated" else []

    assert check_paraphrase(text, UNIT, taken=taken)[0] == reason


def test_a_name_within_another_word_is_no_name():
    (unit,) = find_units(SMALL[2:]).units

    assert check_paraphrase("In which city was Zugspitze built?", unit)[0] == "name"
    assert check_paraphrase("In which city was Zug's tower built?", unit)[0] is None


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        # "It" stands in the text as it is within "Italian", and as a word in another case.
        ("It", "In which Italian city was it built?", "name"),
        ("It", "In which city was It built?", None),
        ("C++", "Which city built C++?", None),
        ("!!!", "Which city built !!!?", None),
        ("タワー", "東京タワーズはどの都市にありますか?", "name"),
        ("タワー", "東京タワーはどの都市にありますか?", None),
    ],
)
def test_names_of_few_letters_marks_and_other_scripts_are_found(name, text, reason):
    (unit,) = find_units(fact(1, name, "Other")).units

    assert check_paraphrase(text, unit)[0] == reason


def test_a_fact_of_its_own_has_paraphrases_of_its_own(tmp_path):
    asked = []

    done = write(tmp_path, GOOD, asked=asked, sharing="fact", attempts=1)

    assert [prompt.id for prompt in asked] == ["built/f1/write/1", "built/f2/write/1"]
    assert asked[1].messages[-1].content.endswith("Name: Zug\nWrite 2 wordings.")
    assert (done.n_wordings, done.n_taken) == (2, 3)
    assert done.dropped == {"an accepted answer stands in it": 1}
    assert done.short == ("Where was {} built?",)


def test_questions_that_cannot_be_paraphrased_are_counted(tmp_path):
    odd = [
        *fact(3, "Here", "There", question="Here, was {} built?"),
        *fact(4, "Lone", "Loan")[1:],
        fact(5, "A1", "B1")[0],
        fact(5, "A1", "B1", question="Who built {}?")[1],
    ]

    found = find_units([*SMALL, *odd])

    assert found.left_out == {
        "f3": "its name does not stand in its question exactly once",
        "f4": "it has no canonical question",
        "f5": "its questions differ in more than the name",
    }
    assert [list(unit.facts) for unit in found.units] == [["f1", "f2"]]
    with pytest.raises(DataError, match="no question of odd can be paraphrased: its name does"):
        write_paraphrases(
            RedirectQA.from_questions(odd[:2], source="odd"), writer("x"), tmp_path, model="m"
        )


def test_too_few_are_asked_for_again_and_not_twice(tmp_path):
    """What a log holds is not asked again, and a kill costs what it does not hold."""
    asked, again, after = [], [], []
    first = "In which city was {name} built?\nWhere was {name} built?"
    second = "1) Which is the place where {name} was built?\n2) And what of {name}?"

    done = write(tmp_path, first, second, asked=asked)
    log = (tmp_path / "writer.jsonl").read_text("utf-8")
    rows = (tmp_path / "test.jsonl").read_text("utf-8")
    write(tmp_path, first, second, asked=again)
    (tmp_path / "writer.jsonl").write_text(log.splitlines(keepends=True)[0] + '{"prompt_id": "bu')
    write(tmp_path, first, second, asked=after)

    assert len(asked) == 2
    again_asked = asked[1].messages[-1].content
    assert again_asked.startswith("Taken already: In which city was Ark of {Oz} built? | Where")
    assert again_asked.endswith("Name: Ark of {Oz}\nWrite 1 wording.")
    assert done.dropped == {"it is the original": 1, "there are enough without it": 1}
    assert again == []
    assert [prompt.id for prompt in after] == [asked[1].id]
    assert (tmp_path / "test.jsonl").read_text("utf-8") == rows
    with pytest.raises(RunMismatchError, match="paraphrases"):
        write(tmp_path, first, second, paraphrases=3)


def test_plain_text_goes_on_after_the_first_number():
    assert parse_paraphrases("1. Who wrote X?\n2. Whose is X?\nNote: X") == [
        "Who wrote X?",
        "Whose is X?",
    ]
    assert parse_paraphrases("Who wrote X?\n\n“Whose is X?”") == ["Who wrote X?", "Whose is X?"]


def test_a_writer_of_nothing_is_told(tmp_path):
    with pytest.raises(DataError, match=r"no paraphrase of 1 wordings holds \(2 the name does not"):
        write(tmp_path, "I cannot help with that.", "No.")


@pytest.fixture
def written(tmp_path):
    """What was written on the two facts: two paraphrases that hold, and one that does not."""
    write(tmp_path / "written", f"{GOOD}\n3. Where was it built?")
    return tmp_path / "written"


def fill(folder, **cells):
    """Write into the sheet as a reviewer does: `fill(folder, row1={"keep": "yes"})`."""
    with (folder / "review.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for name, changed in cells.items():
        rows[int(name[-1]) - 1].update(changed)
    with (folder / "review.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(row for row in rows if row["id"] != "gone")


def test_the_sheet_shows_what_was_written_and_why_it_was_dropped(written):
    with (written / "review.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    assert [row["n_facts"] for row in rows] == ["2", "1", "2"]
    assert rows[2]["dropped"] == "the name does not stand in it exactly once"
    assert rows[0]["question"] == "Where was Ark of {Oz} built?"
    assert {row["keep"] + row["corrected"] + row["note"] for row in rows} == {""}


def test_a_reviewers_words_take_the_place_of_the_writers(written, tmp_path):
    fill(
        written,
        row1={"keep": "no"},
        row2={"corrected": "Tell me, where was Ark of {Oz} built?", "note": "shorter"},
        row3={"keep": "no", "corrected": "Which town built Ark of {Oz}?"},
    )

    done = apply_paraphrase_review(written / "review.csv", DATA, tmp_path / "done")
    rows = rows_of(tmp_path / "done")

    assert (done.n_taken, done.n_corrected, done.n_rows) == (2, 2, 12)
    assert done.dropped == {"the reviewer refused it": 1}
    assert rows["paraphrase", "Zugg"] == "Tell me, where was Zugg built?"
    assert rows["paraphrase_2", "Ark of Os"] == "Which town built Ark of Os?"
    with pytest.raises(DataError, match="holds the notes of a reviewer"):
        write(written, f"{GOOD}\n3. Where was it built?")


def test_a_sheet_that_was_saved_otherwise_is_not_written_over(written):
    """Some spreadsheets part cells by semicolons, so that no column is found by its name."""
    fill(written, row1={"keep": "yes"})
    sheet = written / "review.csv"
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    with sheet.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    saved = sheet.read_text("utf-8")

    with pytest.raises(DataError, match="holds the notes of a reviewer"):
        write(written, f"{GOOD}\n3. Where was it built?")

    assert sheet.read_text("utf-8") == saved


@pytest.mark.parametrize(("choice", "n_taken"), [("keep", 2), ("drop", 1)])
def test_rows_that_nobody_reviewed_go_as_asked(written, tmp_path, choice, n_taken):
    fill(written, row1={"keep": "Yes"})
    (written / "review.csv").rename(tmp_path / "mine.csv")
    settings = ParaphraseReviewSettings(written=written, unreviewed=choice)

    done = apply_paraphrase_review(tmp_path / "mine.csv", DATA, tmp_path / "d", settings=settings)

    assert done.n_taken == n_taken


@pytest.mark.parametrize(
    ("cells", "error", "says"),
    [
        ({}, DataError, "nobody has filled it in"),
        ({"row1": {"keep": "yes"}}, DataError, r"csv:3: nobody has said anything of '.*/2'"),
        ({"row1": {"keep": "perhaps"}}, RecordError, "'keep' is yes, no or empty, not 'perhaps'"),
        (
            {"row1": {"id": "other"}},
            RecordError,
            r"csv:2: there is no paraphrase 'other'; leave",
        ),
        ({"row1": {"id": "gone"}}, DataError, "1 rows are gone, such as 'built/.*/1'"),
        ({"row1": {"paraphrase": "Where?"}}, RecordError, "column 'paraphrase' of .* was changed"),
        ({"row2": {"n_facts": "3"}}, RecordError, "column 'n_facts' of .* from '1' to '3'"),
        ({"row3": {"dropped": ""}}, RecordError, "column 'dropped' of .* was changed"),
        ({"row3": {"keep": "yes"}}, RecordError, "cannot be taken, since the name does not stand"),
        ({"row1": {"corrected": "In Rome?"}}, RecordError, "another question about 'Ark of {Oz}'"),
    ],
)
def test_damaged_sheets_are_refused(written, tmp_path, cells, error, says):
    others = {} if len(cells) == 0 or "nobody" in says else {"row2": {"keep": "no"}}
    reviewed = {"row1": {"keep": "yes"}} | others | cells if cells else {}
    fill(written, **reviewed)

    with pytest.raises(error, match=says):
        apply_paraphrase_review(written / "review.csv", DATA, tmp_path / "done")
    assert not (tmp_path / "done").exists()


def test_a_sheet_of_other_questions_or_without_a_column_is_refused(written, tmp_path):
    fill(written, row1={"keep": "yes"}, row2={"keep": "no"})
    sheet = written / "review.csv"
    other = RedirectQA.from_questions(SMALL[:2], source="other")

    with pytest.raises(DataError, match=r"not those that .* was written from"):
        apply_paraphrase_review(sheet, other, tmp_path / "done")
    text = sheet.read_text("utf-8")
    sheet.write_text(text + text.splitlines(keepends=True)[1], "utf-8")
    with pytest.raises(RecordError, match="stands twice"):
        apply_paraphrase_review(sheet, DATA, tmp_path / "done")
    sheet.write_text(text.replace("corrected", "mine", 1), "utf-8")
    with pytest.raises(ColumnNotFoundError, match="lacks corrected"):
        apply_paraphrase_review(sheet, DATA, tmp_path / "done")
    settings = ParaphraseReviewSettings(written=tmp_path)
    with pytest.raises(SourceNotFoundError, match=r"holds no writer\.jsonl"):
        apply_paraphrase_review(sheet, DATA, tmp_path / "done", settings=settings)


def test_a_log_of_something_else_is_refused(written, tmp_path):
    fill(written, row1={"keep": "yes"}, row2={"keep": "no"})
    manifest = written / "writer.manifest.json"
    text = manifest.read_text("utf-8")

    for changed, error, says in (
        (text.replace('"paraphrases",', '"slaq-writer",', 1), DataError, "is of slaq-writer, not"),
        ("{}", RunLogError, "not the settings of a run"),
    ):
        manifest.write_text(changed, "utf-8")
        with pytest.raises(error, match=says):
            apply_paraphrase_review(written / "review.csv", DATA, tmp_path / "done")
    manifest.write_text(text, "utf-8")
    log = written / "writer.jsonl"
    log.write_text("", "utf-8")
    with pytest.raises(DataError, match="holds no answers: the build was stopped before its first"):
        apply_paraphrase_review(written / "review.csv", DATA, tmp_path / "done")


def test_no_paraphrase_left_is_refused(written, tmp_path):
    fill(written, row1={"keep": "no"}, row2={"keep": "no"})

    with pytest.raises(DataError, match="no paraphrase is left; every row is refused"):
        apply_paraphrase_review(written / "review.csv", DATA, tmp_path / "done")


def test_the_command_line_writes_and_reads_back(tmp_path, monkeypatch, capsys):
    (tmp_path / "cli_writers.py").write_text(
        "from surface_consistency.models import FakeRunner\n"
        "def make(model=None):\n"
        "    def handle(prompt):\n"
        "        asked = prompt.text.rpartition('Question: ')[2].partition('\\n')[0]\n"
        "        return f' Please tell me: {asked}'\n"
        "    return FakeRunner(handle)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    out, done = str(tmp_path / "out"), str(tmp_path / "done")
    source = ["--source", "sample"]
    words = [*source, "--runner", "cli_writers:make", "--completion", "--limit", "4"]

    assert main(["build", "paraphrases", *words, "--out", out]) == 0
    sheet = f"{out}/review.csv"
    assert main(["build", "paraphrases-reviewed", "--sheet", sheet, *source, "--out", done]) == 2
    fill(tmp_path / "out", row1={"keep": "yes"})
    reviewed = ["build", "paraphrases-reviewed", "--sheet", sheet, *source, "--out", done]
    assert main(reviewed) == 2
    assert main([*reviewed, "--unreviewed", "keep"]) == 0

    printed = capsys.readouterr()
    assert "4 paraphrases of 4 wordings" in printed.out
    assert "to review: " in printed.out
    assert "nobody has filled it in" in printed.err
    assert "what becomes of such rows by --unreviewed: keep or drop" in printed.err
    assert len(load_redirectqa(tmp_path / "done").pairs) >= 8
