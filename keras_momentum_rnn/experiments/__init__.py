"""Layers compared on a task: trained for several seeds, resumed after a kill, reported."""

from keras_momentum_rnn import requirements

requirements.check(
    "keras_momentum_rnn.experiments",
    "examples",
    {"matplotlib": "matplotlib", "numpy": "numpy", "rich": "rich"},
)

from keras_momentum_rnn.experiments.claims import Claim  # noqa: E402
from keras_momentum_rnn.experiments.comparison import Comparison, compare  # noqa: E402
from keras_momentum_rnn.experiments.results_file import surroundings  # noqa: E402
from keras_momentum_rnn.experiments.runner import progress_bar  # noqa: E402
from keras_momentum_rnn.tasks import Recipe  # noqa: E402

__all__ = ["Claim", "Comparison", "Recipe", "compare", "progress_bar", "surroundings"]
