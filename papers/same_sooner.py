"""Keras's plain layers as layers of this package, which take less time."""

from keras_momentum_rnn import rules

RULE_LAYERS = {"SimpleRNN": "RuleRNN", "GRU": "RuleGRU", "LSTM": "RuleLSTM"}


def same_sooner(layer):
    """Return the name of a layer with the same equations and initial weights, and its rule.

    Args:
        layer: name of a layer; one that Keras does not have is returned as it is.

    Returns:
        The name, and a dict of further arguments.
    """
    if layer not in RULE_LAYERS:
        return layer, {}
    return RULE_LAYERS[layer], {"rule": rules.Identity()}
