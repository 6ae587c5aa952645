"""Hyperparameter search over recurrent layers, with keras-tuner. Needs the extra `tuner`."""

from keras_momentum_rnn import requirements

requirements.check("keras_momentum_rnn.tuning", "tuner", requirements.TUNING)

from keras_momentum_rnn.tuning.first_trials import paper_trials  # noqa: E402
from keras_momentum_rnn.tuning.hypermodel import MomentumHyperModel  # noqa: E402
from keras_momentum_rnn.tuning.results import Results, Row, load_results  # noqa: E402
from keras_momentum_rnn.tuning.search import tune  # noqa: E402
from keras_momentum_rnn.tuning.space import available_layers, suggest_layer  # noqa: E402

__all__ = [
    "MomentumHyperModel",
    "Results",
    "Row",
    "available_layers",
    "load_results",
    "paper_trials",
    "suggest_layer",
    "tune",
]
