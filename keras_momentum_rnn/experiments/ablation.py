"""The score of a layer over momentum and step size: Figure 7 of Nguyen et al. (2020)."""

from keras_momentum_rnn.experiments import plots
from keras_momentum_rnn.experiments.budgets import setup_of
from keras_momentum_rnn.experiments.summary import mean_and_spread
from keras_momentum_rnn.layers.names import ready_layers


def ablation_setups(layer, momenta, step_sizes, arguments, units, budget):
    """Return a `Setup` for each pair, by a name that `heat_map` reads.

    Args:
        layer: name of a layer that has a momentum and a step size.
        momenta, step_sizes: lists of floats.
        arguments: dict of the layer's other numbers.
        units: int.
        budget: `Budget`.
    """
    layer_class = ready_layers()[layer]
    pairs = [(m, s) for s in step_sizes for m in momenta]
    return {
        f"{layer} {momentum:g} {step_size:g}": setup_of(
            layer_class,
            units,
            {**arguments, "momentum": momentum, "step_size": step_size},
            budget,
        )
        for momentum, step_size in pairs
    }


def heat_map(results):
    """Return the section of a report on an ablation, and its picture."""
    settings = results["settings"]
    scores, best = {}, None
    for row in results["summary"]:
        run = next(run for run in results["runs"] if run["layer"] == row["layer"])
        numbers = run["setup"]["arguments"]
        scores[numbers["momentum"], numbers["step_size"]] = row["test"]
        sign = 1 if settings["larger_is_better"] else -1
        if row["test"] is not None and (
            best is None or sign * (row["test"] - best["test"]) > 0
        ):
            best = row
    name = results["runs"][0]["setup"]["class"]
    label = f"test {settings['metric']}"
    figure = plots.heat_map_figure(scores, f"{name} on {settings['task']}", label)
    end = "All diverged."
    if best is not None:
        end = f"Best: {best['layer']}, {label} {mean_and_spread(best)}."
    text = (
        "## Momentum and step size\n\nAs in Figure 7 of Nguyen et al. (2020): "
        f"heat_map.png. {end}"
    )
    return text, {"heat_map.png": figure}
