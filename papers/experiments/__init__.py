"""Layers compared on a task: trained for several seeds, resumed after a kill, reported."""

from keras_momentum_rnn import requirements

requirements.check(
    "papers.experiments",
    "examples",
    {"matplotlib": "matplotlib", "numpy": "numpy", "rich": "rich"},
)

from papers.experiments.claims import Claim  # noqa: E402
from papers.experiments.comparison import Comparison, compare  # noqa: E402
from papers.experiments.results_file import surroundings  # noqa: E402
from papers.experiments.runner import progress_bar  # noqa: E402
from papers.tasks import Recipe  # noqa: E402

__all__ = ["Claim", "Comparison", "Recipe", "compare", "progress_bar", "surroundings"]
