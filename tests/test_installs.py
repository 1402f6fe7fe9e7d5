"""The metadata of both distributions: names, versions, addresses, extras, bounds, releases."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tests.scripts import load_script

ROOT = Path(__file__).resolve().parents[1]
HOMES = {"surface_consistency": ROOT, "surface_consistency_build": ROOT / "dataset_builders"}
PROJECTS = {
    name: tomllib.loads((home / "pyproject.toml").read_text("utf-8"))["project"]
    for name, home in HOMES.items()
}
LIBRARY, BUILDERS = PROJECTS.values()
EXTRAS = LIBRARY["optional-dependencies"]
FOR_USERS = set(EXTRAS) - {"dev", "docs", "test"}


def distributions(extra):
    """Yield the distributions that an extra installs, with its extras and the builders."""
    for line in map(Requirement, EXTRAS[extra]):
        if line.name == LIBRARY["name"]:
            for other in line.extras:
                yield from distributions(other)
        else:
            yield line.name
    if extra == "build":
        yield from (Requirement(line).name for line in BUILDERS["dependencies"])


def missing_parts():
    """Yield file, library and extra of each such error; None for values of variables."""
    for package, home in HOMES.items():
        for path in sorted((home / package).rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            assigned = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
            targets = [getattr(node, "target", None) or node.targets[0] for node in assigned]
            constants = {
                target.id: value_of(node.value, {})
                for target, node in zip(targets, assigned, strict=True)
                if isinstance(target, ast.Name)
            }
            for node in ast.walk(tree):
                name = getattr(getattr(node, "func", None), "id", None)
                # An error for another version of a library does not contain an extra.
                other_version = any(one.arg == "installed" for one in getattr(node, "keywords", ()))
                if name in ("MissingDependencyError", "check_tool") and not other_version:
                    yield path.name, *(value_of(one, constants) for one in node.args[1:3])


def value_of(node, constants):
    """Return the value of a literal, or of a constant of the module."""
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    return node.value if isinstance(node, ast.Constant) else None


def test_extra_all_contains_all_extras_for_users():
    [all_extra] = map(Requirement, EXTRAS["all"])

    assert all_extra.extras == FOR_USERS - {"all"}
    assert len(FOR_USERS) <= 10


def test_errors_for_missing_libraries_contain_an_extra_that_installs_them():
    found = [one for one in missing_parts() if one[0] != "extras.py"]  # It passes on its arguments.

    assert len(found) > 15
    for file, library, extra in found:
        assert extra in FOR_USERS, file
        core = {Requirement(line).name for line in LIBRARY["dependencies"]}
        assert library in (None, "tokenizers", *core, *distributions(extra)), file


def test_both_distributions_have_the_same_metadata():
    for field in ("authors", "requires-python", "classifiers", "license", "urls"):
        assert LIBRARY[field] == BUILDERS[field], field
    named = {"Homepage", "Documentation", "Source", "Issues", "Changelog", "Citation"}
    assert set(LIBRARY["urls"]) == named


def test_classifiers_list_allowed_versions_of_python():
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(LIBRARY["classifiers"]))
    allowed = SpecifierSet(LIBRARY["requires-python"])

    assert allowed == SpecifierSet(f">={named[0]}")
    assert all(allowed.contains(f"{one}.0") for one in named)


@pytest.mark.parametrize("name", HOMES)
def test_every_requirement_has_a_minimum_version(name):
    lines = [*PROJECTS[name]["dependencies"]]
    lines += [
        line for extra in PROJECTS[name].get("optional-dependencies", {}).values() for line in extra
    ]

    for line in map(Requirement, lines):
        is_internal = line.name in (LIBRARY["name"], BUILDERS["name"])
        assert is_internal or any(one.operator == ">=" for one in line.specifier), line


@pytest.mark.parametrize("name", HOMES)
def test_links_of_the_readme_on_the_index_are_absolute(name, monkeypatch):
    metadata = pytest.importorskip("hatchling.metadata.core")
    pytest.importorskip("hatch_fancy_pypi_readme")
    from hatchling.plugin.manager import PluginManager

    markdown = pytest.importorskip("readme_renderer.markdown")
    monkeypatch.chdir(HOMES[name])  # As in a build.
    text = metadata.ProjectMetadata(str(HOMES[name]), PluginManager()).core.readme
    page = markdown.render(text)

    addresses = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert addresses
    assert [one for one in addresses if not one.startswith(("https://", "#"))] == []
    assert page.count("<h1") == 1


@pytest.fixture(scope="module")
def release():
    return load_script("release")


@pytest.fixture
def copy(release, tmp_path, monkeypatch):
    """A copy of the files that a release reads."""
    names = [f"{home.relative_to(ROOT)}/{name}/__init__.py" for name, home in HOMES.items()]
    for name in (*names, *release.ADDRESSED, "CITATION.cff", "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "git", lambda *words: "")
    return tmp_path


def replace(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_version_authors_and_address_are_the_same_in_all_files(release):
    assert list(release.disagreements()) == []
    assert f"surface-consistency=={release.version()}" in BUILDERS["dependencies"]


def test_only_known_files_contain_the_address_of_the_repository(release):
    names = ("*.md", "*.ipynb", "*.cff", "*.toml", "*.yml", "*.yaml", "*.py", "*.jinja", "*.j2")
    skipped = {".venv", ".git", "tests", "site"}
    found = {
        str(path.relative_to(ROOT))
        for name in names
        for path in ROOT.rglob(name)
        if not skipped & set(path.relative_to(ROOT).parts)
        and release.OWNER.search(path.read_text("utf-8"))
    }

    assert found == {*release.ADDRESSED, "CITATION.cff"}


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("CITATION.cff", "version: 0.1.0", "version: 0.0.9", "CITATION.cff has version 0.0.9"),
        ("pyproject.toml", "-build==0.1", "-build==0.2", "requires version 0.2.0 of the other"),
        ("pyproject.toml", "naist-nlp", "someone", "pyproject.toml has other authors or another"),
        ("SECURITY.md", "naist-nlp", "someone", "SECURITY.md has other authors or another"),
        ("CITATION.cff", "name: The", "name: A", "pyproject.toml has other authors or another"),
    ],
)
def test_differing_files_are_reported(release, copy, name, old, new, message):
    replace(copy / name, old, new)

    assert any(message in line for line in release.disagreements())


def test_fill_copies_authors_and_address_from_the_citation(release, copy):
    replace(copy / "CITATION.cff", "naist-nlp/surface", "lab/surface")
    ada = "  - given-names: Ada\n    family-names: Lovelace\n"
    emmy = "  - { family-names: Noether, given-names: Emmy }"
    replace(copy / "CITATION.cff", "  - name: The surface-consistency authors", ada + emmy)

    release.fill()

    assert list(release.disagreements()) == []
    for name in release.PROJECTS:
        text = (copy / name).read_text("utf-8")
        assert 'authors = [{ name = "Ada Lovelace" }, { name = "Emmy Noether" }]' in text
        assert "naist-nlp" not in text
        assert "https://github.com/lab/surface-consistency/blob/main/CHANGELOG.md" in text
        assert "https://lab.github.io/surface-consistency/" in text
    assert "--owner lab`" in (copy / "SECURITY.md").read_text("utf-8")


def test_confirmed_release_prints_its_steps_in_a_dry_run(release, copy, monkeypatch, capsys):
    confirmed = ["release", "--dry-run", "--confirm", "naist-nlp/surface-consistency"]
    monkeypatch.setattr(sys, "argv", confirmed)

    assert release.main() == 0

    assert capsys.readouterr().out.splitlines() == [
        "would run: git tag --annotate v0.1.0 --message v0.1.0",
        "would run: git push origin v0.1.0",
    ]


@pytest.mark.parametrize("words", [[], ["--confirm", "fork/surface-consistency"], ["--tagged"]])
def test_release_requires_confirmation_of_the_repository(release, copy, monkeypatch, capsys, words):
    monkeypatch.setattr(sys, "argv", ["release", *words])

    assert release.main() == 1

    error = capsys.readouterr().err
    assert "CITATION.cff has naist-nlp/surface-consistency by The surface-consistency" in error


def test_development_version_is_not_released(release, copy, monkeypatch, capsys):
    replace(copy / "surface_consistency/__init__.py", "0.1.0", "0.1.0.dev0")
    monkeypatch.setattr(sys, "argv", ["release"])

    assert release.main() == 1

    error = capsys.readouterr().err
    assert "0.1.0.dev0 is not the version of a release" in error
    assert "CHANGELOG.md has no section `## [0.1.0.dev0]" in error
