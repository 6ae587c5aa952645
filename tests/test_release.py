"""A release: one version, one date, one place of the addresses, actions that cannot change."""

import re
import tomllib
from pathlib import Path

import pytest

import keras_momentum_rnn

yaml = pytest.importorskip("yaml", reason="workflows and the recipe are YAML")
ROOT = Path(__file__).parent.parent
if not (ROOT / ".github").exists():
    pytest.skip("an installed package has no workflows", allow_module_level=True)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_version_and_date_are_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    newest = re.search(
        r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    said = citation["version"], str(citation["date-released"])
    assert said == newest.groups() == (keras_momentum_rnn.__version__, newest[2])


def test_the_conda_recipe_builds_metadata_that_are_those_of_the_project():
    rattler_build = pytest.importorskip("rattler_build", reason="it is in the extra dev")
    recipe = rattler_build.Stage0Recipe.from_file(ROOT / "recipe" / "recipe.yaml")
    (variant,) = recipe.render(rattler_build.VariantConfig())
    made, project = variant.recipe.to_dict(), PROJECT["project"]
    name, version = made["package"]["name"], made["package"]["version"]
    assert (name, version) == (project["name"], keras_momentum_rnn.__version__)
    python, *run = [requirement.replace(" ", "") for requirement in made["requirements"]["run"]]
    assert python == f"python{project['requires-python']}" and run == project["dependencies"]
    assert {*PROJECT["build-system"]["requires"]} <= {*made["requirements"]["host"]}
    assert made["about"]["license"] == project["license"]


def test_actions_are_pinned_by_their_commits():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        workflow = yaml.safe_load(path.read_text())
        steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
        used = [step["uses"] for step in steps if "uses" in step]
        assert used and all(re.search(r"@[0-9a-f]{40}$", name) for name in used), used


def test_addresses_stand_in_one_place():
    host = re.compile(re.escape(PROJECT["project"]["urls"]["Repository"]))
    files = [*ROOT.glob("*.*"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("recipe/*")]
    having = [path.name for path in files if path.is_file() and host.search(path.read_text())]
    assert having == ["pyproject.toml"]
