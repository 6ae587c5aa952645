"""Hyperparameter search over recurrent layers, with keras-tuner. Needs the extra `tuner`."""

from keras_momentum_rnn.tuning import requirements

requirements.check()

from keras_momentum_rnn.tuning.first_trials import PAPER_SETTINGS, paper_trials  # noqa: E402
from keras_momentum_rnn.tuning.hypermodel import MomentumHyperModel  # noqa: E402
from keras_momentum_rnn.tuning.plots import (  # noqa: E402
    plot_heat_map,
    plot_parallel_coordinates,
)
from keras_momentum_rnn.tuning.results import Results, Row  # noqa: E402
from keras_momentum_rnn.tuning.search import load_results, tune  # noqa: E402
from keras_momentum_rnn.tuning.space import available_layers, suggest_layer  # noqa: E402

__all__ = [
    "MomentumHyperModel",
    "PAPER_SETTINGS",
    "Results",
    "Row",
    "available_layers",
    "load_results",
    "paper_trials",
    "plot_heat_map",
    "plot_parallel_coordinates",
    "suggest_layer",
    "tune",
]
