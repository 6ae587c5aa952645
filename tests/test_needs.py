"""Each module declares what it needs, and the suite is collected where an extra is missing."""

import ast
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import keras
import needs
import pytest

import keras_momentum_rnn

ROOT = Path(__file__).parent.parent
PACKAGE = Path(keras_momentum_rnn.__file__).parent
# The distributions of the extras, and their modules. The suite itself needs those with None.
MODULES = {
    "absl-py": None,
    "aeon": "aeon",
    "basedpyright": None,  # this one, mypy and pre-commit are run, and not imported
    "ai-edge-litert": "ai_edge_litert",
    "hypothesis": None,
    "importlib-resources": "importlib_resources",
    "jax": "jax",
    "keras-tuner": "keras_tuner",
    "matplotlib": "matplotlib",
    "mkdocs": None,  # builds the site, and nothing of the package imports it
    "mkdocs-material": None,
    "mypy": None,
    "numba": "numba",
    "numpy": None,
    "onnx": "onnx",
    "onnxruntime": "onnxruntime",
    "onnxscript": "onnxscript",
    "openvino": "openvino",
    "pre-commit": None,
    "pytest": None,
    "pytest-xdist": None,
    "pyyaml": "yaml",
    "rich": None,  # Keras needs it too
    "ruff": None,
    "scikit-learn": "sklearn",
    "scipy": "scipy",
    "soundfile": "soundfile",
    "statsmodels": "statsmodels",
    "tensorboard": "tensorboard",
    "tensorflow": "tensorflow",
    "tensorflow-datasets": "tensorflow_datasets",
    "tf2onnx": "tf2onnx",
    "torch": "torch",
}
BACKEND = keras.config.backend()
# JAX itself needs SciPy.
REQUIRED = {BACKEND, "scipy"} if BACKEND == "jax" else {BACKEND}
# Without a module that is not there, the suite is collected by whoever runs it.
HIDDEN = sorted(filter(find_spec, {*MODULES.values()} - {None} - REQUIRED))
# pytest keeps the finder that it begins with, so it is imported first.
COLLECT = """
import sys
from importlib.machinery import PathFinder
import pytest
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *where: None if name in sys.argv[1:] else find(name, *where)
sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]))
"""


def imported(path):
    """Yield what a module imports as soon as it is imported itself."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


IMPORTED = """
import sys
import keras
before = set(sys.modules)
import keras_momentum_rnn
print(*{name.partition(".")[0] for name in set(sys.modules) - before})
print(*(name for name in sys.modules if name.startswith("keras_momentum_rnn.")))
assert keras_momentum_rnn.optimizers.MomentumSGD
"""


@pytest.mark.any_backend
@pytest.mark.slow
def test_what_is_rarely_needed_is_imported_when_asked_for():
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True
    )
    packages, own = (set(line.split()) for line in done.stdout.splitlines())
    assert not packages - {"keras_momentum_rnn", *sys.stdlib_module_names}
    parts = {name.split(".")[1] for name in own}
    assert not parts & {"convert", "diagnostics", "optimizers", "streaming", "tuning"}


def test_modules_import_what_is_declared_and_no_more():
    with_keras = {"keras", "numpy", "keras_momentum_rnn", *sys.stdlib_module_names}
    found = {part: set() for part in needs.PARTS}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(
            ["keras_momentum_rnn", *path.relative_to(PACKAGE).with_suffix("").parts]
        )
        others = set(imported(path)) - with_keras
        part, backend = needs.part_of(name), needs.backend_of(name)
        if part:
            found[part] |= others - {backend}
        else:
            assert others == ({backend} if backend else set()), name
    for part, others in found.items():
        assert others <= set(needs.PARTS[part]), part


def test_each_backend_finds_its_own_modules():
    for backend in needs.BACKENDS:
        name = f"keras_momentum_rnn.paths.{backend}_loop"
        assert needs.missing(name) == (
            None if backend == BACKEND else f"{name} is for {backend}"
        )
    assert needs.missing("keras_momentum_rnn.paths.torches") is None


def test_extras_are_known():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [line for lines in extras["optional-dependencies"].values() for line in lines]
    plain = {line.split(">")[0].replace("_", "-") for line in named if "[" not in line}
    assert plain == set(MODULES)


@pytest.mark.any_backend
@pytest.mark.slow
@pytest.mark.parametrize("hidden", [*([name] for name in HIDDEN), HIDDEN], ids="-".join)
def test_the_suite_is_collected_without(hidden):
    command = [sys.executable, "-c", COLLECT, *hidden]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
