"""The examples of docstrings and pages run, print what is shown, and lead where they say."""

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import pkgutil
import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import keras
import needs
import pytest
from harness import BACKEND

import keras_momentum_rnn
from keras_momentum_rnn.layers.registry import our_layers

MODULES = ["keras_momentum_rnn"] + [
    module.name
    for module in pkgutil.walk_packages(keras_momentum_rnn.__path__, "keras_momentum_rnn.")
    if not module.name.endswith("__main__")
]
ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [page for page in (README, *sorted(ROOT.glob("docs/**/*.md"))) if page.exists()]
# An example in Python, what stands before it for the tests, and what it prints.
EXAMPLE = re.compile(
    r"(?:<!-- ((?:within|needs) .*?) -->\n\n)?```python\n(.*?)```\n(?:\n```text\n(.*?)```)?",
    flags=re.DOTALL,
)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
# An argument in a docstring with its text, and the default that the text tells.
ARGUMENT = re.compile(r"^( +)(\w+(?:, \w+)*): (.*(?:\n\1 +.*)*)", flags=re.MULTILINE)
DEFAULT = re.compile(r"Defaults\s+to\s+(?:`([^`]+)`|(\S+))")
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
# A command: its module or file, and its options, also on lines that go on.
COMMAND = re.compile(
    r"python (?:-m )?((?:papers|examples|benchmarks|docs|tests)[\w./]+\w)((?:[^`\n#&\\]|\\\n)*)"
)
# Where commands stand, and what has options of all programs in a folder.
TOLD = ["*.md", "docs/**/*.md", "papers/*.md", "papers/*.py", "papers/s*/*.py"]
TOLD += ["examples/*.py", "benchmarks/*.py", "tests/f*.py"]
SHARED = {"papers": "papers/command_line.py", "benchmarks": "benchmarks/measure.py"}


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def runs_here(conditions):
    """Return whether what an example needs is here: `needs MODULES; not on BACKEND`."""
    wanted, _, without = conditions.removeprefix("needs ").partition("; not on ")
    return without != BACKEND and all(find_spec(name) for name in wanted.split(", "))


def as_shown(printed, shown, tolerance):
    """Return whether a text is the one on a page, but for numbers within a tolerance."""
    if tolerance is None:
        return printed == shown
    pairs = list(zip(NUMBER.findall(printed), NUMBER.findall(shown)))
    return NUMBER.sub("#", printed) == NUMBER.sub("#", shown) and all(
        abs(float(a) - float(b)) <= tolerance if "." in a and "." in b else a == b
        for a, b in pairs
    )


def mismatch(model):
    """Return why a model's read-out and its loss do not fit, or None."""
    if not isinstance(model.loss, (str, keras.losses.Loss)) or not model.layers:
        return None
    loss = keras.losses.get(model.loss)
    if isinstance(loss, keras.losses.Loss):
        from_logits = loss.get_config().get("from_logits")
    else:
        parameters = inspect.signature(loss).parameters
        from_logits = parameters["from_logits"].default if "from_logits" in parameters else None
    if from_logits is None:
        return None
    activation = getattr(model.layers[-1], "activation", None)
    gives_logits = activation not in (keras.activations.softmax, keras.activations.sigmoid)
    if gives_logits == from_logits:
        return None
    given = "logits" if gives_logits else "probabilities"
    return f"{model.layers[-1].name} gives {given}, the loss has from_logits={from_logits}"


def compiled_models(scope):
    """Return the compiled models among the names of an example."""
    models = [value for value in scope.values() if isinstance(value, keras.Model)]
    return [model for model in models if model.compiled]


@pytest.mark.parametrize("name", needs.marked(MODULES))
def test_docstring_examples(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for example in doctest.DocTestFinder().find(module):
        runner.run(example, clear_globs=False)
        assert not any(map(mismatch, compiled_models(example.globs)))
        example.globs.clear()
    assert runner.summarize(verbose=False).failed == 0


def told_defaults(member):
    """Yield the arguments of a class or a function that its docstring gives a default."""
    for _, names, text in ARGUMENT.findall(member.__doc__ or ""):
        for quoted, bare in DEFAULT.findall(text):
            # Some are told in words.
            with contextlib.suppress(ValueError, SyntaxError):
                value = ast.literal_eval(quoted or bare.rstrip(".,;:"))
                yield from ((name, value) for name in names.split(", "))


@pytest.mark.parametrize("name", needs.marked(MODULES))
def test_defaults_are_those_that_docstrings_tell(name):
    members = vars(importlib.import_module(name)).values()
    own = [m for m in members if callable(m) and getattr(m, "__module__", "") == name]
    methods = [m for cls in own for m in vars(cls).values() if inspect.isfunction(m)]
    for member in own + methods:
        for argument, told in told_defaults(member):
            default = inspect.signature(member).parameters[argument].default
            # None may stand for a value that the function makes.
            assert default == told or default is None, f"{member.__name__}: {argument}"
    if name == "keras_momentum_rnn.rules.named":  # so that none passes because none is read
        assert list(told_defaults(keras_momentum_rnn.rules.HeavyBall)) == [
            ("momentum", 0.6),
            ("step_size", 0.6),
        ]


def test_public_layers_show_an_example():
    for name, cls in vars(keras_momentum_rnn).items():
        if isinstance(cls, type) and issubclass(cls, keras.layers.RNN):
            assert ">>> " in cls.__doc__, name
            assert "Reference" in cls.__doc__, name


def test_public_layers_document_the_arguments_that_keras_lacks():
    for name, cls in our_layers().items():
        theirs = inspect.signature(cls.keras_layer).parameters
        text = inspect.getdoc(cls)
        if name != "DTRIV":  # whose other arguments are those of `RuleDTRIV`
            assert "Every other argument is that of `keras." in text.replace("\n", " "), name
            own = [n for n in inspect.signature(cls).parameters if n not in theirs]
            assert own and not [n for n in own if f"\n    {n}: " not in text], name


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in page.read_text()], ids=name_of
)
def test_examples_of_the_pages(page, tmp_path, monkeypatch):
    """Those of a checkout: an installed package has none."""
    monkeypatch.chdir(tmp_path)
    scope, models = {"__name__": "__main__"}, []
    for conditions, example, shown in EXAMPLE.findall(page.read_text()):
        if conditions.startswith("needs") and not runs_here(conditions):
            continue
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(example, scope)
        if shown:
            within = conditions.removeprefix("within ") if "within" in conditions else None
            tolerance = None if within is None else float(within)
            assert as_shown(output.getvalue(), shown, tolerance), output.getvalue()
        models += compiled_models(scope)
    assert [told for told in map(mismatch, models) if told] == []
    assert models or page != README


@pytest.mark.parametrize(
    "page", sorted({*PAGES, *ROOT.glob("*.md"), *ROOT.glob("papers/*.md")}), ids=name_of
)
def test_links_anchors_and_pictures_of_the_pages_exist(page):
    for target, anchor in LINK.findall(page.read_text()):
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), target
        if anchor:
            assert anchor in anchors(found), f"{target}#{anchor}"


def anchors(page):
    """Return the names by which headings of a page are linked to."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    kept = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"[-\s]+", "-", heading) for heading in kept}


@pytest.mark.parametrize(
    "page", [page for told in TOLD for page in sorted(ROOT.glob(told))], ids=name_of
)
def test_commands_of_the_pages_exist(page):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    text = page.read_text()
    for name, arguments in COMMAND.findall(text):
        path = name if name.endswith(".py") else f"{name.replace('.', '/')}.py"
        files = {path, SHARED.get(path.partition("/")[0], path)}
        known = "".join((ROOT / file).read_text() for file in files)
        for option in re.findall(r"(--[\w-]+)", arguments):
            assert f'"{option}"' in known, f"{name} {option}"
    for names in re.findall(r'pip install -e "\.\[(.+?)\]"', text):
        assert {*names.split(",")} <= {*extras, "$B"}, names
    for extra in re.findall(r"extra `(\w+)`", text):
        assert extra in extras, extra


@pytest.mark.skipif(not README.exists(), reason="an installed package has no README")
def test_the_readme_reads_well_on_a_package_index():
    """Its links lead into the checkout; a build puts the address of the repository first."""
    text = README.read_text()
    assert len(text.splitlines()) <= 150
    assert len(re.findall(r"!\[", text)) == 2
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]
    for change in tool["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    assert LINK.findall(text) == []
