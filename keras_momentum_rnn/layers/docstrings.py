"""Register layers with docstrings that are completed from their rule and their family."""

import inspect
import textwrap
from dataclasses import dataclass, field

from keras_momentum_rnn.rules import register

HEADINGS = ("Args", "Slots", "Raises", "Reference")
TEMPLATE = """\
{summary}

```
u_t = {input_term}
{equation}
```

g_t takes the place of u_t in `{base}`. States: {states}.

{notes}

Args:
    units: positive integer.
{arguments}

Every other argument is that of `keras.layers.{keras_layer}`; call arguments, shapes and errors
are those of `{base}`.

Example:

>>> import numpy as np
>>> from keras_momentum_rnn import {name}
>>> tuple({name}(4)(np.zeros((2, 10, 3), "float32")).shape)
(2, 4)

Reference: {reference}
"""
CALLS = """\
Every other argument is that of `keras.layers.{keras_layer}`, with its meaning, position and
default.{use_cudnn}

Call arguments:
    sequences: tensor `(batch, time, features)`.
    initial_state: {initial_state}, or all states, these and then the rule's slots. Slots that
        you leave out start at zero.
    mask: bool tensor `(batch, time)` or `(batch, time, 1)`. Where it is `False`, every state
        keeps its value.
    training: bool, whether dropout acts{and_counts}.

Returns:
    As `keras.layers.{keras_layer}`, h at the last step `(batch, units)`, or with
    `return_sequences` at every step `(batch, time, units)`; with `return_state` also {names}
    and the rule's slots. The slots are in float32 (in float64 under that policy), since half
    precision would stall a velocity.

Raises:
    ValueError: if an argument is out of its range. The message has the range and the value.
"""
USE_CUDNN = " `use_cudnn=True` raises a `ValueError` where no fused kernel can run the call."


@dataclass
class Docstring:
    """The parts of a docstring; those under a heading without it."""

    summary: str
    equation: str = ""
    notes: list = field(default_factory=list)
    sections: dict = field(default_factory=dict)


def read(docstring):
    """Return a `Docstring`; a block of code below the summary is its equation."""
    summary, *paragraphs = inspect.cleandoc(docstring).split("\n\n")
    parts = Docstring(summary)
    for paragraph in paragraphs:
        heading, _, text = paragraph.partition(":")
        if heading in HEADINGS:
            parts.sections[heading] = text.strip("\n")
        elif paragraph is paragraphs[0] and paragraph.startswith("```\n"):
            parts.equation = paragraph.strip("`\n")
        else:
            parts.notes.append(paragraph)
    return parts


def called_as_keras(cls):
    """Register a family, and put what all share in place of `{calls}`, a decorator."""
    if cls.__doc__ is None:  # as `python -OO` leaves it
        return register(cls)
    is_lstm, is_orthogonal = cls.family == "LSTM", cls.family == "DTRIV"
    calls = CALLS.format(
        keras_layer=cls.keras_layer.__name__,
        use_cudnn=USE_CUDNN if cls.family in ("LSTM", "GRU") else "",
        initial_state="[h, c], each `(batch, units)`" if is_lstm else "h `(batch, units)`",
        and_counts=" and the call counts for `rebase_every`" if is_orthogonal else "",
        names="h, c" if is_lstm else "h",
    )
    cls.__doc__ = inspect.cleandoc(cls.__doc__).replace("{calls}", calls.strip())
    return register(cls)


def documented(cls):
    """Register a named layer and complete its docstring, a decorator.

    A class says in a line what it is. If need be, it adds notes, `Args:` that neither its rule
    nor its family has, and a `Reference:` in place of that of the rule.
    """
    if cls.__doc__ is None:  # as `python -OO` leaves it
        return register(cls)
    family = next(base for base in cls.__mro__ if base.needs_rule)
    own, rule, shared = (read(c.__doc__) for c in (cls, cls.rule_class, family))
    of_family = [a for a in arguments(shared) if not a.startswith(("    units:", "    rule:"))]
    text = TEMPLATE.format(
        summary=own.summary,
        input_term="x_t W [+ b]" if family.family == "DTRIV" else "x_t W + b",
        equation=rule.equation,
        base=family.__name__,
        states=states(cls),
        notes="\n\n".join([*rule.notes, *own.notes]),
        arguments="\n".join([*arguments(rule), *arguments(own), *of_family]),
        keras_layer=cls.keras_layer.__name__,
        name=cls.__name__,
        reference=own.sections.get("Reference", rule.sections["Reference"]).strip(),
    )
    # Without notes there is an empty paragraph.
    cls.__doc__ = text.replace("\n\n\n\n", "\n\n")
    return register(cls)


def arguments(docstring):
    """Return what stands under `Args:`, a text for each argument."""
    section, texts = textwrap.dedent(docstring.sections.get("Args", "")), []
    for line in section.splitlines():
        if line.startswith(" "):
            texts[-1] += f"\n    {line}"
        else:
            texts.append(f"    {line}")
    return texts


def states(cls):
    """Return the states of a layer in words: their names, and the shapes of the slots."""
    own = ["h", "c"] if cls.family == "LSTM" else ["h"]
    gates = cls.cell_class.gates
    width = "units" if gates == 1 else f"{gates} units"
    slots = cls.rule_class().slots(2)
    shapes = [f"{name} `(batch, {1 if size == 1 else width})`" for name, size in slots.items()]
    return ", ".join([f"[{', '.join([*own, *slots])}]", *shapes])
