"""Every layer equals the oracle: outputs, all states, gradients, for every option."""

import keras
import numpy as np
import pytest
import reference
from cases import CASES, EVERY_RULE_AND_CELL
from harness import (
    BACKEND,
    array,
    assert_close,
    normal,
    randomise,
    results_and_gradients,
    weights_of,
)
from keras import ops
from masks import MASKS

BATCH, TIME, FEATURES, UNITS = 3, 7, 3, 4

# name: (options of the layer, how the call is made)
OPTIONS = {
    "plain": ({}, {}),
    "last_output": ({"return_sequences": False}, {}),
    "no_bias": ({"use_bias": False}, {}),
    "recurrent_bias": ({"use_recurrent_bias": True}, {"mask": "holes", "initial": "all"}),
    "recurrent_bias_alone": ({"use_recurrent_bias": True, "use_bias": False}, {}),
    "go_backwards": ({"go_backwards": True}, {}),
    "unroll": ({"unroll": True}, {}),
    "activation": ({"activation": "sigmoid"}, {}),
    "activations": ({"activation": "sigmoid", "recurrent_activation": "tanh"}, {}),
    "implementation_1": ({"implementation": 1}, {}),
    "cell_states": ({}, {"initial": "cell"}),
    "all_states": ({}, {"initial": "all"}),
    "mask_right": ({}, {"mask": "right"}),
    "mask_left": ({}, {"mask": "left"}),
    "mask_holes": ({}, {"mask": "holes"}),
    "mask_dead_row": ({}, {"mask": "dead_row"}),
    "mask_last_output": ({"return_sequences": False}, {"mask": "dead_row"}),
    "mask_zero_output": ({"zero_output_for_mask": True}, {"mask": "holes"}),
    "mask_backwards": ({"go_backwards": True}, {"mask": "left"}),
    "mask_unroll": ({"unroll": True}, {"mask": "holes"}),
    "mask_all_states": ({}, {"mask": "dead_row", "initial": "all"}),
    "dropout": ({"dropout": 0.4, "seed": 3}, {"training": True}),
    "dropout_1": ({"dropout": 0.4, "seed": 3, "implementation": 1}, {"training": True}),
    "dropout_mask": ({"dropout": 0.4, "seed": 3}, {"training": True, "mask": "holes"}),
    "recurrent_dropout": (
        {"dropout": 0.3, "recurrent_dropout": 0.4, "seed": 3},
        {"training": True},
    ),
}

# NAG is a restart that never comes, RMSProp is Adam without its momentum.
EVERY_OPTION = [c for c in EVERY_RULE_AND_CELL if c.id not in ("NAGLSTM", "RMSPropLSTM")]
CONCERN_BOTH = ["plain", "all_states", "mask_all_states", "mask_backwards", "dropout_1"]


def initial_states(layer, rng, which):
    """Random states; counters are whole numbers."""
    count = layer.cell.own_state_count if which == "cell" else None
    states = []
    for size in layer.state_size[:count]:
        state = np.abs(normal(rng, BATCH, size))
        states.append(np.floor(state) if size == 1 else state)
    return states


def dropout_masks(case, options, x):
    """The masks that Keras's own layer draws from the same seed."""
    if not options.get("dropout"):
        return None, None
    names = ("dropout", "recurrent_dropout", "seed", "implementation")
    twin = case.keras_layer(UNITS, **{n: options[n] for n in names if n in options}).cell
    masks = (
        twin.get_dropout_mask(ops.convert_to_tensor(x[:, 0])),
        twin.get_recurrent_dropout_mask(ops.zeros((BATCH, UNITS))),
    )
    return keras.tree.map_structure(
        lambda m: None if m is None else array(m).astype("float64"), masks
    )


def expected_results(case, layer, weights, x, mask, states, masks):
    """What the layer should return, in Keras's conventions for masked steps."""
    if states is not None:
        missing = layer.state_size[len(states) :]
        states = [*states, *(np.zeros((BATCH, size)) for size in missing)]
    outputs, finals = reference.run(
        case.cell(
            **{
                name: getattr(layer.cell, name).__name__
                for name in case.takes({"activation": None, "recurrent_activation": None})
            }
        ),
        case.rule,
        case.numbers,
        weights,
        x,
        states=states,
        mask=mask,
        go_backwards=layer.go_backwards,
        masks=masks,
        formulation=case.formulation,
    )
    if mask is not None:
        shown = mask[:, ::-1] if layer.go_backwards else mask
        if not layer.zero_output_for_mask:
            # Keras repeats the last output; before the first, JAX shows h, others 0.
            shown = np.ones_like(mask) if BACKEND == "jax" else np.cumsum(shown, 1) > 0
        outputs = np.where(shown[..., None], outputs, 0)
    return [outputs if layer.return_sequences else outputs[:, -1], *finals]


def crossed():
    """Every kind of rule, and every cell, with every option, on every path that it may take.

    A rule and a cell do not know each other: the layers that add neither a new kind of rule
    nor a new cell meet the options that concern both.
    """
    for case in CASES:
        names = OPTIONS if case in EVERY_OPTION else CONCERN_BOTH
        for name in names:
            options, how = OPTIONS[name]
            if case.takes(options) != options:
                continue
            plan = case.layer(**options).plan(
                mask="mask" in how,
                training=how.get("training", False),
                slots=how.get("initial") == "all",
                features=FEATURES,
            )
            row = f"{case.id}-{name}"
            yield pytest.param(case, name, "auto", id=f"{row}-{plan.path}")
            if plan.path != "step":
                yield pytest.param(case, name, False, id=f"{row}-step")


@pytest.mark.parametrize("case, option, use_cudnn", crossed())
def test_layer_equals_oracle(case, option, use_cudnn):
    options, how = OPTIONS[option]
    options = case.takes({**options, "use_cudnn": use_cudnn})
    rng = np.random.default_rng(1)
    x = normal(rng, BATCH, TIME, FEATURES)
    mask = MASKS[how["mask"]](BATCH, TIME) if "mask" in how else None
    layer = case.layer(UNITS, **{"return_sequences": True, "return_state": True, **options})
    layer.build(x.shape)
    randomise(layer, rng)
    states = initial_states(layer, rng, how["initial"]) if "initial" in how else None
    masks = dropout_masks(case, options, x)
    weights = weights_of(layer)

    expected = expected_results(case, layer, weights, x, mask, states, masks)
    cotangents = [normal(rng, *e.shape) for e in expected]
    actual, actual_gradients = results_and_gradients(
        layer, x, cotangents, states, mask, training=how.get("training", False)
    )
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected):
        assert_close(a, e)

    def loss(arrays):
        some = {name: arrays.get(name, a) for name, a in weights.items()}
        start = [arrays.get(f"state{i}", s) for i, s in enumerate(states)] if states else None
        results = expected_results(case, layer, some, arrays["x"], mask, start, masks)
        return sum(np.sum(r * c) for r, c in zip(results, cotangents))

    arrays = {"x": x.astype("float64")}
    arrays |= {name: w for name, w in weights.items() if name != "base"}
    for i, state in enumerate(states or []):
        if state.shape[1] > 1:
            arrays[f"state{i}"] = state.astype("float64")
    # A wrong gradient shows in any random direction: one stands for all entries.
    directions = {n: [rng.standard_normal(a.shape)] for n, a in arrays.items()}
    for name, slopes in reference.directional(loss, arrays, directions).items():
        gradient = actual_gradients[name]
        products = np.array([np.sum(gradient * d) for d in directions[name]])
        scale = max(1.0, np.sqrt(np.sum(np.square(gradient))))
        assert_close(products / scale, np.array(slopes) / scale, tolerance=1e-4)
