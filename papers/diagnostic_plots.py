"""The papers' figures of gradients and states, and learned time scales."""

import numpy as np
from matplotlib.figure import Figure

from papers import presentation
from papers.presentation import tidy

COLORS = ["black", *presentation.COLORS]


def plot_gradient_norms(norms, title):
    """Draw `gradient_norms` over time by label, after the paper's Figure 2.

    Norms of exactly 0 have no logarithm and are left out.
    """
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for i, (label, values) in enumerate(norms.items()):
        values = np.where(values > 0, values, np.nan)
        style = ("-", "--", "-.", ":")[i % 4]  # curves that coincide can be told apart
        axes.semilogy(values, style, color=COLORS[i % len(COLORS)], label=label)
    axes.set(xlabel="time step t", ylabel=r"$\|\partial L/\partial h_t\|_2$", title=title)
    tidy(axes)
    axes.legend(frameon=False)
    return figure


def plot_memory_map(states, text, neurons=3, title="Memory states over the input"):
    """Draw the memory of layers over time as the MCRM paper's Figure 7.

    Each row of the picture is one memory state: c, or h where there is no c; for a nested
    LSTM its outer c and tanh of its inner c. The left panel has all neurons over time, red
    negative and blue positive, sorted from the slowest to the quickest. The right panel has
    the slowest and the quickest few. The pace of a neuron is its mean absolute change in a
    step, divided by its standard deviation. Neurons with less than a tenth of the largest
    standard deviation hardly move, and are not picked for the right panel.

    Args:
        states: dict from the name of a layer to its `memory_map`.
        text: string of `time` characters, or list of as many, the inputs.
        neurons: positive integer, how many slow ones and quick ones to pick.
        title: string.
    """
    panels = {}
    for label, maps in states.items():
        for name, values in memories(maps).items():
            panels[f"{label}, {name}"] = values[0]
    size = (6 + 0.13 * len(text), 0.7 + 2.6 * len(panels))
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title)
    rows = figure.subplots(len(panels), 2, squeeze=False, width_ratios=(1, 1))
    for (left, right), (label, values) in zip(rows, panels.items()):
        paces, spread = pace(values), values.std(axis=0)
        order = np.argsort(paces)
        moving = [n for n in order if spread[n] >= 0.1 * spread.max()]
        count = min(neurons, len(moving) // 2)
        limit = np.abs(values).max() or 1.0
        look = {"cmap": "RdBu", "vmin": -limit, "vmax": limit, "aspect": "auto"}
        image = left.imshow(values.T[order], **look)
        left.set(title=label, ylabel="neurons, slow to quick", yticks=[])
        picked = moving[:count] + moving[len(moving) - count :]
        right.imshow(values.T[picked], **look)
        right.set(title=f"{label}: slowest and quickest", ylabel="neuron (its pace)")
        right.set_yticks(range(len(picked)), [f"{n} ({paces[n]:.2f})" for n in picked])
        right.axhline(count - 0.5, color="black", linewidth=1)
        figure.colorbar(image, ax=right, pad=0.01)
        for axes in (left, right):
            axes.set_xticks(range(len(text)), list(text), family="monospace", fontsize=8)
            axes.tick_params(length=0)
    return figure


def plot_time_scales(scales, title):
    """Draw `time_scales` by label, from the quickest gates and units to the slowest."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for i, (label, maps) in enumerate(scales.items()):
        values = np.sort(maps["time_scale"].ravel())
        shares = (np.arange(len(values)) + 0.5) / len(values)
        if len(values) == 1:
            values, shares = values.repeat(2), np.float32([0, 1])
        style = ("-", "--", "-.", ":")[i % 4]  # curves that coincide can be told apart
        axes.semilogy(shares, values, style, color=COLORS[i % len(COLORS)], label=label)
    axes.set(xlabel="share of gates and units", ylabel="time scale 1 / (1 - momentum), steps")
    axes.set_title(title)
    tidy(axes)
    axes.legend(frameon=False)
    return figure


def memories(maps):
    """Return the states of a `memory_map` that the MCRM paper's Figure 7 shows, by name."""
    if "inner c" in maps:
        return {"outer c": maps["c"], "tanh(inner c)": np.tanh(maps["inner c"])}
    name = "c" if "c" in maps else "h"
    return {name: maps[name]}


def pace(values):
    """Return how quickly each neuron changes: mean absolute step over standard deviation.

    Of values `(time, units)` it is near 0 for a slow drift, 2 for a sign that turns at every
    step, 0 for a neuron that does not move.
    """
    change = np.abs(np.diff(values, axis=0)).sum(axis=0) / max(1, len(values) - 1)
    return change / np.maximum(values.std(axis=0), 1e-12)
