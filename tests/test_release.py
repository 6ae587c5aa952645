"""A release: one version, one date, one place of the addresses, actions that cannot change."""

import re
import tomllib
from pathlib import Path

import pytest

import keras_momentum_rnn

yaml = pytest.importorskip("yaml", reason="workflows are YAML")
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


def test_actions_are_pinned_by_their_commits():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        workflow = yaml.safe_load(path.read_text())
        steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
        used = [step["uses"] for step in steps if "uses" in step]
        assert used and all(re.search(r"@[0-9a-f]{40}$", name) for name in used), used


def test_addresses_stand_in_one_place():
    host = re.compile(re.escape(PROJECT["project"]["urls"]["Repository"]))
    files = [*ROOT.glob("*.*"), *ROOT.glob("docs/**/*.md")]
    having = [path.name for path in files if path.is_file() and host.search(path.read_text())]
    assert having == ["pyproject.toml"]
