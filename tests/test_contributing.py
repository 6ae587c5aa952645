"""What the files for contributors say is true: paths, commands, workflows, citations."""

import re
import tomllib
from pathlib import Path

import pytest

import keras_momentum_rnn

ROOT = Path(__file__).parent.parent
GITHUB = ROOT / ".github"
PAGES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    GITHUB / "PULL_REQUEST_TEMPLATE.md",
]
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))
# A file or a folder of the checkout, in a command or in a text.
PATH = re.compile(r"(?:\.ci|benchmarks|docs|examples|keras_momentum_rnn|tests|tools)/[\w./]*\w")
NAME = r"[A-Z][A-Za-z-]+"
# "Nguyen et al. (2020)", "Martens, Dahl and Hinton (2013)": the first author and the year.
WORK = re.compile(rf"({NAME})(?:,\s+{NAME})*(?:\s+and\s+{NAME}|\s+et\s+al\.)?\s+\((\d{{4}})\)")


def loaded(path):
    yaml = pytest.importorskip("yaml", reason="the extra `dev` has PyYAML")
    return yaml.safe_load(path.read_text())


def shell_lines(page):
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(), flags=re.DOTALL)
    return [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]


def ci_steps():
    return re.search(r'^STEPS="(.*)"$', (ROOT / ".ci/run").read_text(), re.MULTILINE)[1].split()


def check_command(command):
    """Check a shell command: that its files, its extras and its steps of .ci/run exist."""
    for path in PATH.findall(command):
        assert (ROOT / path).exists(), command
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extras in re.findall(r'"\.\[(.*?)\]"', command):
        assert set(extras.split(",")) <= set(known["optional-dependencies"]), command
    if command.startswith(".ci/run"):
        assert set(command.split()[1:]) <= set(ci_steps()), command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_what_exists(page):
    text = page.read_text()
    for path in PATH.findall(text):
        assert (ROOT / path).exists(), path
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", text):
        assert (page.parent / target).exists(), target


def test_commands_name_what_exists():
    commands = shell_lines(PAGES[0])
    for command in commands:
        check_command(command)
    assert any(command.startswith(".ci/run") for command in commands)
    assert any("pytest" in command for command in commands)


@pytest.mark.parametrize(
    "command", [".ci/run pytorch", "python tests/test_nothing.py", 'pip install ".[develop]"']
)
def test_a_command_that_cannot_run_is_noticed(command):
    with pytest.raises(AssertionError, match=re.escape(command)):
        check_command(command)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_whole(path):
    workflow = loaded(path)
    # YAML reads the word `on` as True.
    assert workflow.keys() >= {"name", True, "permissions", "jobs"}
    for job in workflow["jobs"].values():
        assert set(job.get("needs", "").split()) <= set(workflow["jobs"])
        assert job["runs-on"] == "ubuntu-latest"
        rows = job.get("strategy", {}).get("matrix", {})
        for step in job["steps"]:
            assert len({"run", "uses"} & set(step)) == 1, step
            assert re.fullmatch(r"[\w-]+/[\w-]+@[\w./]+", step.get("uses", "a/b@v1"))
            for name in re.findall(r"\$\{\{ matrix\.(\w+) \}\}", str(step)):
                assert rows[name], step
            backends = rows.get("backend", [""])
            for backend in backends:
                command = step.get("run", "")
                check_command(command.replace("${{ matrix.backend }}", backend))


def test_the_workflow_takes_every_step_and_python():
    jobs = loaded(GITHUB / "workflows/tests.yml")["jobs"]
    rows = jobs["backend"]["strategy"]["matrix"]
    *_, once = jobs["once"]["steps"]
    assert sorted([*rows["backend"], *once["run"].split()[1:]]) == sorted(ci_steps())
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    versions = [line.split(" :: ")[-1] for line in known if ":: Python :: 3." in line]
    assert rows["python"] == versions


def test_forms_and_hooks_are_whole():
    for form in map(loaded, GITHUB.glob("ISSUE_TEMPLATE/*.yml")):
        assert form.keys() >= {"name", "description", "body"}
        assert len({part["id"] for part in form["body"]}) == len(form["body"])
    (repository,) = loaded(ROOT / ".pre-commit-config.yaml")["repos"]
    assert [hook["entry"].split()[0] for hook in repository["hooks"]] == ["ruff", "ruff"]


def test_the_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text()
    found = re.search(r"^version: (.*)$", text, re.MULTILINE)[1]
    assert found == keras_momentum_rnn.__version__
    assert loaded(ROOT / "CITATION.cff").keys() >= {
        "cff-version",
        "message",
        "title",
        "authors",
    }


def test_every_cited_work_has_an_entry():
    entries = re.findall(
        r"author\s*=\s*\{([\w-]+),.*?year\s*=\s*\{(\d+)\}",
        (ROOT / "CITATIONS.bib").read_text(),
        re.DOTALL,
    )
    package = Path(keras_momentum_rnn.__file__).parent
    cited = {work for path in package.rglob("*.py") for work in WORK.findall(path.read_text())}
    assert len(cited) > 10
    assert {work for work in cited if work not in entries} == set()
