"""Deep autoencoders: images of curves, layers, errors, momenta, resuming, the report."""

import itertools

import keras
import numpy as np
import pytest
from harness import array

from papers.experiments import runner
from papers.sutskever import autoencoders
from papers.sutskever.autoencoders_report import report_of
from papers.sutskever.curves import (
    cross_entropy,
    curves,
    deep_autoencoder,
    squared_error,
    updates_of,
)


def test_an_image_is_the_distance_to_a_parabola_through_its_points():
    images = curves(6, seed=3).reshape(6, 28, 28)
    points = np.random.default_rng(3).uniform(4, 23, size=(6, 3, 2))
    rows, columns = np.mgrid[:28, :28]
    for image, three in zip(images, points):
        x, y = (
            np.polyval(np.polyfit([0, 0.5, 1], c, 2), np.linspace(0, 1, 3000)) for c in three.T
        )
        squared = (rows[..., None] - y) ** 2 + (columns[..., None] - x) ** 2
        np.testing.assert_allclose(image, np.exp(-squared.min(-1) / (2 * 0.8**2)), atol=0.05)


def test_curves_are_seeded_and_differ():
    images = curves(300, seed=1)
    assert images.min() >= 0 and 0.99 < images.max() <= 1
    np.testing.assert_array_equal(curves(70, seed=1), images[:70])  # across a block
    assert len(np.unique(images, axis=0)) == 300
    assert np.abs(curves(300, seed=2) - images).max() > 0.9


def test_layers_are_mirrored_sparse_and_scaled():
    keras.utils.set_random_seed(4)
    model = deep_autoencoder((30, 20, 20, 8))
    keras.utils.set_random_seed(4)
    louder = deep_autoencoder((30, 20, 20, 8), scale=4)
    widths = [30, 20, 20, 8, 20, 20, 30]
    assert [layer.kernel.shape for layer in model.layers] == list(itertools.pairwise(widths))
    names = [layer.activation.__name__ for layer in model.layers]
    assert names == ["sigmoid"] * 5 + ["linear"]
    for layer, other in zip(model.layers, louder.layers):
        kernel = array(layer.kernel)
        np.testing.assert_array_equal(np.count_nonzero(kernel, axis=0), min(15, len(kernel)))
        np.testing.assert_allclose(array(other.kernel), 4 * kernel, rtol=1e-6)


def test_errors_are_sums_over_pixels():
    rng = np.random.default_rng(5)
    y, p = (rng.uniform(0.1, 0.9, size=(4, 30)).astype("float32") for _ in range(2))
    entropy = -(y * np.log(p) + (1 - y) * np.log(1 - p)).sum(axis=1)
    logits = np.log(p / (1 - p))
    np.testing.assert_allclose(array(cross_entropy(y, logits)), entropy, rtol=1e-5)
    shifted = keras.layers.Rescaling(1, offset=logits[0])  # of images of 0
    model = keras.Sequential([keras.Input((30,)), shifted])
    squared = (p[0] ** 2).sum()
    assert squared_error(model, np.zeros((3, 30), "float32")) == pytest.approx(squared)


def test_batches_of_an_epoch_have_each_image_once():
    images = np.arange(10.0)[:, None]
    passes = updates_of(images, 3, seed=5, first=0, last=9)
    batches = [passes[i][0][:, 0] for i in range(len(passes))]
    for epoch in range(3):
        assert len(np.unique(batches[3 * epoch : 3 * epoch + 3])) == 9
    assert not np.array_equal(batches[:3], batches[3:6])
    later = updates_of(images, 3, seed=5, first=4, last=6)
    np.testing.assert_array_equal([later[i][0][:, 0] for i in range(2)], batches[4:6])


def test_momentum_of_each_method_comes_to_its_largest_before_the_finish():
    options = autoencoders.parse([])
    settings = autoencoders.shared_settings(options)
    found = {}
    for run in autoencoders.combinations(options):
        optimizer = autoencoders.new_model(settings, run).optimizer
        assert optimizer.nesterov == (run["method"] == "NAG")
        for step in (3999, 4000):
            optimizer.iterations.assign(step)
            row = run["method"], run["momentum"]
            found.setdefault(row, []).append(float(optimizer.momentum))
    assert found.pop(("SGD", 0.0)) == [0, 0]
    for (_, largest), momenta in found.items():
        # By equation 5, at the last of the 400 steps before the finish.
        assert momenta == pytest.approx([min(largest, 1 - 0.5 / 400), 0.9])


@pytest.fixture
def small(monkeypatch):
    """The command on 50 images, 6 updates of a small network."""
    monkeypatch.setitem(autoencoders.WIDTHS, "curves", (784, 6, 2))
    monkeypatch.setitem(autoencoders.IMAGES, "curves", 50)
    for name, value in {"BATCH_SIZE": 20, "FINISH": 2, "EVERY": 3}.items():
        monkeypatch.setattr(autoencoders, name, value)
    return lambda output, *options: autoencoders.main(
        ["--updates=6", "--momenta", "0.9", *options, f"--output={output}"]
    )


def test_a_killed_run_goes_on_and_later_rows_join(small, tmp_path, monkeypatch):
    (nag,) = small(tmp_path / "whole", "--methods", "NAG")["runs"]
    assert [point[0] for point in nag["curve"]] == [0, 3, 4, 6]  # 4: where the finish begins
    assert nag["curve"][2][1] == pytest.approx(nag["before"])  # 50 images: all of them
    assert nag["error"] == nag["curve"][3][1] < nag["before"] < nag["curve"][0][1]

    def killed(path, model, run, *rest):
        write_state(path, model, run, *rest)
        if run["updates"] == 4:
            raise KeyboardInterrupt

    write_state = runner.write_state
    with monkeypatch.context() as patch, pytest.raises(SystemExit, match="Interrupted"):
        patch.setattr(runner, "write_state", killed)
        small(tmp_path / "killed", "--methods", "NAG")
    (again,) = small(tmp_path / "killed", "--methods", "NAG")["runs"]
    np.testing.assert_allclose(again["curve"], nag["curve"], rtol=1e-5)

    monkeypatch.setattr(autoencoders, "EVERY", 1)  # where points stand changes no training
    monkeypatch.setattr(autoencoders, "CURVE_IMAGES", 10)  # nor the images of an error
    (often,) = small(tmp_path / "often", "--methods", "NAG")["runs"]
    ends = [[run["before"], run["error"]] for run in (nag, often)]
    np.testing.assert_allclose(*ends, rtol=1e-5)
    monkeypatch.setattr(autoencoders, "EVERY", 3)
    monkeypatch.setattr(autoencoders, "CURVE_IMAGES", 50)
    rates = ["--learning-rates", "1e38", "0.01"]
    more = small(tmp_path / "killed", "--methods", "SGD", *rates, "--scales", "1", "2")
    rows = [(run["method"], run["diverged"], run["updates"]) for run in more["runs"]]
    assert rows == [("NAG", False, 6)] + [("SGD", True, 3)] * 2 + [("SGD", False, 6)] * 2
    assert more["runs"][0] == again and (tmp_path / "killed" / "curves.png").exists()


def test_the_report_has_the_papers_numbers():
    known = {"method": "NAG", "momentum": 0.999, "learning_rate": 0.01, "before": 0.9}
    known |= {"diverged": False, "curve": [[0, 50.0], [10, 1.0]]}
    lost = {"method": "SGD", "momentum": 0, "before": None, "error": None, "diverged": True}
    runs = [
        {**known, "scale": 1.0, "error": 0.2},
        {**known, "scale": 0.5, "error": 0.25},
        {**known, **lost, "scale": 1.0},
    ]
    settings = autoencoders.shared_settings(autoencoders.parse([]))
    report = report_of({"commands": ["it"], "runs": runs, "settings": settings}, "A note.")
    assert "| NAG | 0.999 | 0.01 | 1 | 0.9 | 0.2 | 0.074 |" in report
    assert "| NAG | 0.999 | 0.01 | 0.5 | 0.9 | 0.25 | 16 (Table 3) |" in report
    assert "| SGD | 0 | 0.01 | 1 | - | - | 0.48 |" in report
    assert "to no more than 0.99875." in report and "A note." in report
