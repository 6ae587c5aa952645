"""The examples in docstrings and in the README run, and train on the loss that they mean."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import keras
import needs
import pytest
from speed import COMPILES, slow_unless

import keras_momentum_rnn

MODULES = ["keras_momentum_rnn"] + [
    module.name
    for module in pkgutil.walk_packages(keras_momentum_rnn.__path__, "keras_momentum_rnn.")
    if not module.name.endswith("__main__")
]
ROOT = Path(__file__).parent.parent
PAGES = [page for page in (ROOT / "README.md", *ROOT.glob("docs/*.md")) if page.exists()]


def page_rows():
    for page in PAGES:
        yield slow_unless(not COMPILES or page.name == "README.md", page, id=page.name)


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


@pytest.mark.parametrize(
    ("activation", "loss", "told"),
    [
        (None, "sparse_categorical_crossentropy", "gives logits"),
        (None, "binary_crossentropy", "gives logits"),
        (None, keras.losses.CategoricalCrossentropy(), "gives logits"),
        (
            "softmax",
            keras.losses.CategoricalCrossentropy(from_logits=True),
            "gives probabilities",
        ),
        ("softmax", "categorical_crossentropy", None),
        (None, keras.losses.BinaryCrossentropy(from_logits=True), None),
        (None, "mse", None),
    ],
)
def test_a_loss_that_does_not_fit_the_read_out_is_noticed(activation, loss, told):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, activation)])
    model.compile("sgd", loss)
    found = mismatch(model)
    assert told in found if told else found is None


@pytest.mark.parametrize("name", needs.marked(MODULES))
def test_docstring_examples(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for example in doctest.DocTestFinder().find(module):
        runner.run(example, clear_globs=False)
        assert not any(map(mismatch, compiled_models(example.globs)))
        example.globs.clear()
    assert runner.summarize(verbose=False).failed == 0


def test_public_layers_show_an_example():
    for name, cls in vars(keras_momentum_rnn).items():
        if isinstance(cls, type) and issubclass(cls, keras.layers.RNN):
            assert ">>> " in cls.__doc__, name
            assert "Reference" in cls.__doc__, name


@pytest.mark.parametrize("page", page_rows())
def test_examples_of_the_pages(page, tmp_path, monkeypatch):
    """Those of a checkout: an installed package has none."""
    monkeypatch.chdir(tmp_path)
    scope, models = {}, []
    for example in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        exec(example, scope)
        models += compiled_models(scope)
    assert [told for told in map(mismatch, models) if told] == []
    assert models or page.name != "README.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_of_the_pages_exist(page):
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_readme_shows_examples():
    assert all("```python" in page.read_text() for page in PAGES if page.name == "README.md")
