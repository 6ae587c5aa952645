"""The pictures of states, gradients and time scales."""

import numpy as np
from test_diagnostics import LAYERS, TIME, built, data

from keras_momentum_rnn.diagnostics import memory_map
from papers.diagnostic_plots import plot_gradient_norms, plot_memory_map, plot_time_scales


def test_gradient_norms_are_drawn_where_they_are_not_zero():
    decay = 0.5 ** np.arange(TIME)[::-1]
    (axes,) = plot_gradient_norms({"a": decay, "b": 0 * decay}, "Norms").axes
    first, second = axes.lines
    np.testing.assert_array_equal(first.get_ydata(), decay)
    assert np.isnan(second.get_ydata()).all()


def test_memory_maps_are_drawn(tmp_path):
    x = data()[0][:1]
    layers = {name: built(LAYERS[name]()) for name in ("GRU", "LSTM", "MCRM", "NestedLSTM")}
    states = {name: memory_map(layer, x) for name, layer in layers.items()}
    figure = plot_memory_map(states, "a b c", neurons=1)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()][::2]
    rows = ["GRU, h", "LSTM, c", "MCRM, c", "NestedLSTM, outer c", "NestedLSTM, tanh(inner c)"]
    assert titles == rows
    figure.savefig(tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 5000


def test_slow_neurons_come_first():
    """However far they move: the pace is by their own spread."""
    time = np.arange(40)
    c = np.stack([0.01 * (-1.0) ** time, time / 4, np.sin(time)], axis=1)[None]
    figure = plot_memory_map({"LSTM": {"h": c, "c": c}}, "x" * 40, neurons=1)
    shown = figure.axes[0].images[0].get_array()
    np.testing.assert_array_equal(shown, c[0].T[[1, 2, 0]])


def test_time_scales_are_drawn_from_quick_to_slow():
    start = {"time_scale": np.full((4, 3), 2.5)}
    end = {"time_scale": np.geomspace(1, 100, 12).reshape(4, 3)}
    (axes,) = plot_time_scales({"start": start, "end": end}, "Learned").axes
    _, line = axes.lines
    np.testing.assert_allclose(line.get_ydata(), np.geomspace(1, 100, 12))
