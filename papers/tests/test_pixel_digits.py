"""The examples `pixel_digits.py` and `orthogonal_pixels.py`: what they compare, and refuse."""

import keras
import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the examples need it")
pytest.importorskip("rich", reason="the examples need it")

from papers import orthogonal_pixels, pixel_digits, tasks
from papers.experiments.training import new_model

TINY = ["--subset=96", "--epochs=2", "--seeds=1", "--batch-size=40"]


EXAMPLES = {"pixel_digits": pixel_digits, "orthogonal_pixels": orthogonal_pixels}


@pytest.fixture
def compared(monkeypatch):
    """A function from an example and its arguments to the `Comparison` that it would run."""
    monkeypatch.setattr(pixel_digits, "compare", lambda comparison: comparison)
    return lambda name, *arguments: EXAMPLES[name].main([*TINY, *arguments])


def test_layers_are_treated_alike(compared):
    found = compared("pixel_digits", "--units=4", "--permute", "--layers", "LSTM", "AdamLSTM")
    assert found.task.options == {"subset": 96, "permute": True, "seed": 0}
    assert len(found.task.train) == 80 and len(found.task.validation) == 16
    assert list(found.setups) == ["LSTM", "AdamLSTM"] and found.seeds == 1
    for name, setup in found.setups.items():
        assert (setup.units, setup.batch_size, setup.epochs) == (4, 40, 2)
        (layer,) = setup.new_layers()
        assert type(layer).__name__ == name and layer.units == 4
        optimizer = setup.optimizer
        assert isinstance(optimizer, keras.optimizers.RMSprop)
        assert optimizer.global_clipnorm == 1 and float(optimizer.learning_rate) == (
            pytest.approx(2e-3)
        )
    assert layer.momentum == 0.6 and layer.beta == 0.99  # the library's defaults
    assert found.command.startswith("python -m papers.pixel_digits --subset=96")


@pytest.mark.any_backend
def test_orthogonal_layers_have_a_rate_of_their_own_for_the_rotation(compared):
    arguments = ["--units=5", "--lstm-units=2", "--rebase-every=2"]
    found = compared("orthogonal_pixels", *arguments, "--layers", "LSTM", "MomentumDTRIV")
    permuted = tasks.load("digits", subset=96, permute=True)
    np.testing.assert_array_equal(found.task.train.x, permuted.train.x)
    models = {name: new_model(found.task, setup) for name, setup in found.setups.items()}
    assert models["LSTM"].count_params() == 4 * 2 * (1 + 2 + 1) + 30
    momentum = models["MomentumDTRIV"]
    trained = sum(int(np.prod(w.shape)) for w in momentum.trainable_weights)
    assert trained == 5 * 4 // 2 + 2 * 5 + 60
    layer = momentum.layers[0]
    assert (layer.rebase_every, layer.recurrent_lr_multiplier) == (2, 0.3)
    assert momentum.optimizer.rho == 0.99


def test_recipe_sets_layer_optimizer_and_length():
    example = orthogonal_pixels
    options = example.parse(["--recipe=512", "--layers", "SRDTRIV"])
    assert (options.dataset, options.permute) == ("mnist", True)
    setup = example.setup(options, "SRDTRIV")
    assert (setup.epochs, setup.batch_size, setup.units) == (150, 128, 512)
    (layer,) = setup.new_layers()
    assert (layer.units, layer.restart_period) == (512, 2)
    assert float(setup.optimizer.learning_rate) == pytest.approx(3e-4)
    assert example.parse(["--recipe=170"]).layers == ["DTRIV", "MomentumDTRIV"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("pixel_digits", ["--layers", "FooLSTM"], "--layers: invalid choice: 'FooLSTM'"),
        ("pixel_digits", ["--layers", "RuleLSTM"], "--layers: invalid choice: 'RuleLSTM'"),
        ("pixel_digits", ["--dataset=cifar"], "--dataset: invalid choice: 'cifar'"),
        ("pixel_digits", ["--epochs=-1"], "--epochs: must be a positive int. Received: -1"),
        ("pixel_digits", ["--units=2.5"], "--units: must be a positive int. Received: 2.5"),
        (
            "pixel_digits",
            ["--learning-rate=nan"],
            "--learning-rate: must be a positive float. Received: nan",
        ),
        ("pixel_digits", ["--dataset=mnist", "--data-dir=no/such"], "existing directory"),
        ("pixel_digits", ["--data-dir=."], "--data-dir: is for mnist alone. Received: ."),
        ("pixel_digits", [f"--output={__file__}"], "--output: must be a directory. Received"),
        ("orthogonal_pixels", ["--recipe=170", "--layers", "AdamDTRIV"], "units=170"),
        ("orthogonal_pixels", ["--layers", "GRU"], "--layers: invalid choice: 'GRU'"),
    ],
)
def test_bad_arguments_are_refused(name, arguments, message, capsys):
    with pytest.raises(SystemExit) as error:
        EXAMPLES[name].main(arguments)
    assert error.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("subset", [5, 1438])
def test_a_subset_that_is_not_there_is_refused(subset):
    with pytest.raises(SystemExit, match=f"subset.*{subset}"):
        pixel_digits.main([f"--subset={subset}"])
