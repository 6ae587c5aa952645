"""Rotations beside LSTM on permuted digits."""

import numpy as np

from papers import orthogonal_pixels, tasks
from papers.experiments.training import new_model


def test_layers_are_treated_alike_and_rotations_have_a_rate_of_their_own():
    found = orthogonal_pixels.comparison(orthogonal_pixels.parse(["--epochs=2"]), "it")
    permuted = tasks.load("digits", permute=True)
    np.testing.assert_array_equal(found.task.train.x, permuted.train.x)
    trained = {}
    for name, setup in found.setups.items():
        model = new_model(found.task, setup)
        trained[name] = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
        assert (setup.batch_size, setup.epochs) == (64, 2)
        assert (model.optimizer.rho, model.optimizer.global_clipnorm) == (0.99, 1)
        if name != "LSTM":
            layer = model.layers[0]
            assert (layer.rebase_every, layer.recurrent_lr_multiplier) == (None, 0.3)
    # A rotation has 86 * 85 / 2 numbers.
    rotation = 86 * 85 // 2 + 2 * 86 + 870
    assert trained == {"LSTM": 4682, "DTRIV": rotation, "MomentumDTRIV": rotation}
