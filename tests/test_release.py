"""Requirements of a release: consistent workflows, and the check of the published data."""

import re
import tomllib
from pathlib import Path

import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.data.redirectqa_release import hub_rows
from tests.scripts import load_script

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.fixture(scope="module")
def validate_hub():
    return load_script("validate_hub")


@pytest.fixture
def copy(tmp_path):
    """A folder in the layout of the release."""
    rows = hub_rows(load_redirectqa("sample").questions)
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "test.jsonl").write_text(
        "".join(row.model_dump_json() + "\n" for row in rows), "utf-8"
    )
    return tmp_path / "copy"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_existing_files_and_are_read_only_by_default(path):
    workflow = yaml.safe_load(path.read_text("utf-8"))
    runs = "\n".join(step["run"] for step in steps(workflow) if "run" in step)
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.M)

    assert set(re.findall(r"\bmake (\w+)", runs)) <= set(targets)
    assert all((ROOT / name).is_file() for name in re.findall(r"(?<!\S)scripts/[\w.]+", runs))
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert set(job.get("permissions", {})) <= {"pages", "id-token", "attestations"}


def test_every_python_of_the_classifiers_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8"))

    assert set(named) <= set(workflow["jobs"]["tests"]["strategy"]["matrix"]["python"])


def test_release_is_checked_and_wheels_are_used_before_attestation():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))[
        "jobs"
    ]
    called = [step.get("run", step.get("uses", "")) for step in jobs["build"]["steps"]]
    wanted = ("release --tagged", "-m build", "twine check --strict", "wheel_smoke.py", "upload-")

    places = [next(n for n, text in enumerate(called) if part in text) for part in wanted]

    assert places == sorted(places)
    assert (jobs["attest"]["needs"], jobs["publish"]["needs"]) == ("build", "attest")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_jobs_with_permissions_run_no_commands_and_actions_are_pinned_by_commit(path):
    workflow = yaml.safe_load(path.read_text("utf-8"))

    for job in workflow["jobs"].values():
        if "write" in job.get("permissions", {}).values():
            assert [step for step in job["steps"] if "run" in step] == []
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert [name for name in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name)] == []


def test_tools_of_a_release_are_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    pinned = re.findall(r"^([\w-]+)==[\d.]+$", (ROOT / "constraints.txt").read_text("utf-8"), re.M)
    backend = [re.match(r"[\w-]+", one)[0] for one in project["build-system"]["requires"]]

    assert "PIP_CONSTRAINT: constraints.txt" in workflow
    assert {*backend, "build", "check-wheel-contents", "twine"} <= set(pinned)


def test_hub_report_contains_columns_counts_and_the_loader(validate_hub, copy, capsys):
    assert validate_hub.main(["--only", "redirectqa", "--redirectqa", str(copy)]) == 1

    report = capsys.readouterr().out
    assert "| `subject_surface` | surface | str 584 | 0 | 285 |" in report
    assert "columns that are not read: relation_id" in report
    assert "rows 584, published 61,120" in report
    assert "the loader returns 584 questions, 392 pairs, 0 unpaired" in report


def test_hub_report_lists_a_renamed_column(validate_hub, copy, tmp_path):
    path = copy / "test.jsonl"
    path.write_text(path.read_text("utf-8").replace('"question":', '"prompt_text":'), "utf-8")
    out = tmp_path / "hub.md"

    chosen = ["--only", "redirectqa", "--redirectqa", str(copy), "--out", str(out)]
    assert validate_hub.main(chosen) == 1

    report = out.read_text("utf-8")
    assert "columns that are not read: relation_id, prompt_text" in report
    assert re.search("the loader raises an error: .*question", report)


def test_hub_report_contains_unreachable_data_sets(validate_hub, capsys):
    assert validate_hub.main(["--only", "slaq"]) == 1

    assert "**not read**" in capsys.readouterr().out


def test_citations_of_the_paper_are_in_its_bibliography():
    paper = (ROOT / "docs" / "paper" / "paper.md").read_text("utf-8")
    bibliography = (ROOT / "docs" / "paper" / "paper.bib").read_text("utf-8")
    cited = set(re.findall(r"(?<=@)[\w-]+(?=[];])", paper))

    assert cited == set(re.findall(r"^@\w+\{([\w-]+),", bibliography, re.M))


def test_paper_has_the_sections_required_by_its_journal():
    _, front, text = (ROOT / "docs" / "paper" / "paper.md").read_text("utf-8").split("---\n", 2)
    head = yaml.safe_load(front)

    assert head.keys() >= {"title", "tags", "authors", "affiliations", "date", "bibliography"}
    assert (ROOT / "docs" / "paper" / head["bibliography"]).is_file()
    listed = [str(one["index"]) for one in head["affiliations"] if one["name"]]
    assert listed == [str(number) for number in range(1, len(listed) + 1)]
    for author in head["authors"]:
        assert author["name"]
        assert set(str(author["affiliation"]).replace(" ", "").split(",")) <= set(listed)
    sections = re.findall("^# (.+)$", text, re.M)
    assert sections[:2] == ["Summary", "Statement of need"]
    assert sections[-1] == "References"
    assert 250 <= len(text.split()) <= 1750
