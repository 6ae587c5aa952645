"""The examples in docstrings and in the README run."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import keras
import pytest

import keras_momentum_rnn

MODULES = ["keras_momentum_rnn"] + [
    module.name
    for module in pkgutil.walk_packages(keras_momentum_rnn.__path__, "keras_momentum_rnn.")
    if not module.name.endswith("__main__")
]
README = Path(__file__).parent.parent / "README.md"


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_public_layers_show_an_example():
    for name, cls in vars(keras_momentum_rnn).items():
        if isinstance(cls, type) and issubclass(cls, keras.layers.RNN):
            assert ">>> " in cls.__doc__, name
            assert "Reference" in cls.__doc__, name


@pytest.mark.skipif(not README.exists(), reason="an installed package has no README")
def test_readme_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert examples
    scope = {}
    for example in examples:
        exec(example, scope)
