"""The recipes for conda-forge have the versions and requirements of both distributions."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parents[1]
HOMES = {"surface-consistency": ROOT, "surface-consistency-build": ROOT / "dataset_builders"}
CONDA = {"duckdb": "python-duckdb", "isal": "python-isal"}
UNDERSCORED = {"huggingface-hub", "lazy-loader", "typing-extensions"}
"""Distributions whose name on conda-forge differs from the one on PyPI."""


def conda_name(name):
    return CONDA.get(name, name.replace("-", "_") if name in UNDERSCORED else name)


def specifiers(text):
    return {one for one in text.replace(" ", "").split(",") if one}


@pytest.fixture(params=HOMES)
def pair(request):
    """Return the recipe and the `pyproject.toml` of a distribution."""
    recipe = yaml.safe_load((ROOT / "packaging" / request.param / "recipe.yaml").read_text("utf-8"))
    return recipe, tomllib.loads((HOMES[request.param] / "pyproject.toml").read_text("utf-8"))


def test_requirements_of_the_recipe_are_those_of_the_project(pair):
    recipe, project = pair
    version = recipe["context"]["version"]
    required = [line.replace("${{ version }}", version) for line in recipe["requirements"]["run"]]
    found = {line.partition(" ")[0]: specifiers(line.partition(" ")[2]) for line in required}
    python = found.pop("python")

    lines = map(Requirement, project["project"]["dependencies"])
    assert found == {conda_name(one.name): specifiers(str(one.specifier)) for one in lines}
    assert python == {">=${{python_min}}"}
    builders = {line.partition(" ")[0] for line in recipe["requirements"]["host"]}
    tools = {Requirement(line).name for line in project["build-system"]["requires"]}
    assert builders == {*tools, "python", "pip"}


def test_name_version_scripts_and_licence_of_the_recipe_are_those_of_the_project(pair):
    recipe, project = pair
    meta = project["project"]
    package = ROOT / "surface_consistency" / "__init__.py"
    version = re.search('^__version__.*"(.+)"$', package.read_text("utf-8"), re.M)[1]

    assert recipe["package"]["name"] == meta["name"]
    assert recipe["context"]["version"] == version
    assert recipe["about"]["license"] == meta["license"]
    assert recipe["about"]["homepage"] == meta["urls"]["Homepage"]
    scripts = [f"{name} = {target}" for name, target in meta.get("scripts", {}).items()]
    assert recipe["build"].get("python", {}).get("entry_points", []) == scripts


def test_recipes_are_rendered(pair, monkeypatch):
    tool = pytest.importorskip("rattler_build")
    monkeypatch.setenv("SDIST_SHA256", "0" * 64)
    recipe = ROOT / "packaging" / pair[0]["package"]["name"] / "recipe.yaml"
    variants = tool.VariantConfig({"python_min": ["3.11"]})

    [rendered] = tool.Stage0Recipe.from_file(recipe).render(variants)

    assert str(rendered.recipe.package.name) == pair[0]["package"]["name"]
    assert len(rendered.recipe.requirements.run) == len(pair[0]["requirements"]["run"])
