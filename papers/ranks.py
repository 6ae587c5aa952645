"""Layers compared over data sets: mean ranks, Wilcoxon's test with Holm's correction."""

import math

import numpy as np
from scipy import stats

LEVEL = 0.05


def mean_ranks(scores):
    """Return the mean rank of each layer over sets, a dict, the best first.

    Args:
        scores: dict from layers to lists of scores, one for each set, larger is better.
    """
    table = np.array(list(scores.values()))
    ranks = stats.rankdata(-table, axis=0).mean(axis=1)
    return dict(sorted(zip(scores, ranks.tolist()), key=lambda pair: pair[1]))


def critical_difference(layers, sets, level=LEVEL):
    """Return by how much two mean ranks must differ, by the test of Nemenyi.

    Reference: Demsar (2006), "Statistical comparisons of classifiers over multiple data sets".
    """
    quantile = stats.studentized_range.ppf(1 - level, layers, math.inf) / math.sqrt(2)
    return float(quantile * math.sqrt(layers * (layers + 1) / (6 * sets)))


def signed_ranks(scores, other):
    """Return the p-value of Wilcoxon's signed-rank test over sets, 1 where all are equal."""
    differences = np.round(np.subtract(scores, other), 10)
    if not differences.any():
        return 1.0
    return float(stats.wilcoxon(differences, zero_method="zsplit").pvalue)


def holm(values):
    """Return p-values corrected for their number by Holm's method, in their order.

    Args:
        values: dict from names to p-values.
    """
    found, largest = {}, 0.0
    for number, name in enumerate(sorted(values, key=values.get)):
        largest = max(largest, min(1.0, (len(values) - number) * values[name]))
        found[name] = largest
    return {name: found[name] for name in values}


def smallest_p(sets):
    """Return the smallest p-value that Wilcoxon's test can give for so many sets."""
    return 2.0 ** (1 - sets)


def against(scores, baseline):
    """Return p-values of each layer against a baseline, Holm-corrected, a dict."""
    others = {name: found for name, found in scores.items() if name != baseline}
    return holm({name: signed_ranks(found, scores[baseline]) for name, found in others.items()})


def pairwise(scores):
    """Return p-values of all pairs, Holm-corrected together, by (better, worse) in mean rank.

    Args:
        scores: as of `mean_ranks`.
    """
    names = list(mean_ranks(scores))
    pairs = [(one, other) for i, one in enumerate(names) for other in names[i + 1 :]]
    return holm({pair: signed_ranks(scores[pair[0]], scores[pair[1]]) for pair in pairs})
