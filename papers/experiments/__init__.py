"""Layers compared on a task: trained for several seeds, resumed after a kill, reported."""

from papers.experiments.claims import Claim
from papers.experiments.comparison import Comparison, compare
from papers.experiments.results_file import surroundings
from papers.experiments.runner import progress_bar
from papers.tasks import Recipe

__all__ = ["Claim", "Comparison", "Recipe", "compare", "progress_bar", "surroundings"]
