"""The recurrent layers by name, family and rule: the one list that everything else reads."""

import keras

from keras_momentum_rnn import layers
from keras_momentum_rnn.recurrent import RuleLayer


def available_layers() -> dict[str, type[keras.layers.RNN]]:
    """Return the recurrent layers by name: those of Keras, and ours.

    Each class of ours names the Keras layer that it replaces (`keras_layer`), its cell
    (`cell_class`), its `family`, its rule (`rule_class`, None where it takes any), and the
    `hyperparameters` that a search may choose.

    Example:

    >>> from keras_momentum_rnn.layers.registry import available_layers
    >>> list(available_layers())[:4]
    ['SimpleRNN', 'LSTM', 'GRU', 'RuleLSTM']
    """
    theirs = {name: getattr(keras.layers, name) for name in ("SimpleRNN", "LSTM", "GRU")}
    return {**theirs, **our_layers()}


def our_layers(family: str | None = None) -> dict[str, type[RuleLayer]]:
    """Return our layers with a rule by name.

    Args:
        family: `"LSTM"`, `"RNN"`, `"GRU"`, `"DTRIV"` or `"nested"`, or None for all.

    Example:

    >>> from keras_momentum_rnn.layers.registry import our_layers
    >>> list(our_layers(family="nested"))
    ['MCRM', 'NestedLSTM']
    """
    ours = {name: getattr(layers, name) for name in layers.__all__}
    return {
        name: cls
        for name, cls in ours.items()
        if issubclass(cls, RuleLayer) and family in (None, cls.family)
    }


def ready_layers() -> dict[str, type[keras.layers.RNN]]:
    """Return the layers that need no rule to be given: all but `RuleLSTM` and its like."""
    return {
        name: cls
        for name, cls in available_layers().items()
        if getattr(cls, "needs_rule", False) is False
    }


def layers_with(hyperparameter: str, family: str | None = None) -> dict[str, type[RuleLayer]]:
    """Return our ready layers that take a hyperparameter, such as `"momentum"`, by name."""
    return {
        name: cls
        for name, cls in our_layers(family).items()
        if not cls.needs_rule and hyperparameter in cls.hyperparameters
    }
