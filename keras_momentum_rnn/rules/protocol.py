"""The base class of rules, and the two kinds that have fast paths."""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Self

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn.annotations import Tensor
from keras_momentum_rnn.second_moment import update_second_moment

register = keras.saving.register_keras_serializable(package="keras_momentum_rnn")


class Rule:
    """Base class of rules, which turn the input terms u_t into the drive of a cell.

    To write your own, implement `slots` (what it remembers) and `update` (one time step).
    Arguments of the constructor that are kept under their names are saved with the model.
    Where the drive is `v_t = mu_t v_{t-1} + s u_t`, subclass `LinearRule`, which is faster.

    `hyperparameters` maps the names of constructor arguments to their
    `keras_momentum_rnn.hyperparameters.Hyperparameter`, for those that a search may choose. A
    search reads those of this package's rules alone.

    Example:

    ```python
    @keras.saving.register_keras_serializable(package="my_project")
    class Averaging(Rule):
        '''g_t = decay g_{t-1} + (1 - decay) u_t.'''

        def __init__(self, decay=0.9):
            self.decay = decay

        def slots(self, width):
            return {"g": width}

        def update(self, u, slots):
            (g,) = slots
            g = self.decay * g + (1 - self.decay) * u
            return g, [g]

    layer = RuleLSTM(32, rule=Averaging(0.8))
    ```
    """

    hyperparameters: ClassVar[dict] = {}

    def slots(self, width: int) -> dict[str, int]:
        """Return the slots of a drive of `width` numbers: a dict from names to widths.

        No slot may be named h or c, as states are.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `slots`")

    def update(self, u: Tensor, slots: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Take one step.

        Args:
            u: tensor `(batch, width)`, the input term of this step.
            slots: list of tensors `(batch, slot size)`, zero at the start of a sequence.

        Returns:
            The drive, `(batch, width)`, and the list of the new slots, each of the shape of
            the old. A layer refuses other shapes with a `ValueError` when it is built.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `update`")

    def update_factored(
        self, u: Tensor, slots: list[Tensor]
    ) -> tuple[Tensor, Any, list[Tensor]]:
        """Take one step, as `update`, but return the drive as `(v, scale, slots)`, v scale.

        A cell that passes v through a matrix of its own scales the product, not v. A rule
        that scales nothing need not override this: its scale is 1.
        """
        drive, slots = self.update(u, slots)
        return drive, 1.0, slots

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as a dict."""
        names = inspect.signature(type(self)).parameters
        if missing := [name for name in names if not hasattr(self, name)]:
            raise NotImplementedError(
                f"{type(self).__name__} must keep its argument `{missing[0]}` as "
                f"`self.{missing[0]}`, or implement `get_config`"
            )
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        copies = {}  # no two cells share a rule, nor one inside it

        def read(value: Any) -> Any:
            if isinstance(value, Rule):
                if id(value) not in copies:
                    copies[id(value)] = type(value).from_config(value.get_config())
                return copies[id(value)]
            if type(value) in (list, tuple):
                return type(value)(map(read, value))
            if isinstance(value, dict) and "class_name" in value:
                return keras.saving.deserialize_keras_object(value)
            if type(value) is dict:
                return {key: read(item) for key, item in value.items()}
            return value

        return cls(**{name: read(value) for name, value in config.items()})

    def build(self, add_weight: Callable[..., Any]) -> None:
        """Create the rule's own weights, if it learns any, with the cell's `add_weight`."""

    def build_for(
        self, add_weight: Callable[..., Any], width: int, gates: int, dtype: str
    ) -> None:
        """Create the rule's own weights, in place of `build`, where they depend on the drive.

        Args:
            add_weight: the cell's.
            width: the width of the drive.
            gates: int, how many gates the drive is made of.
            dtype: of the rule's arithmetic.
        """
        self.build(add_weight)

    @property
    def linear(self) -> bool:
        """Whether it is a `LinearRule`."""
        return isinstance(self, LinearRule)

    @property
    def scaled(self) -> bool:
        """Whether it is a `ScaledRule`."""
        return isinstance(self, ScaledRule)

    @property
    def learns(self) -> bool:
        """Whether its numbers may be learned: it has weights, or a tensor as an attribute."""
        kept = vars(self).values()
        return self.has_weights or any(
            isinstance(n, keras.Variable) or ops.is_tensor(n) for n in kept
        )

    @property
    def has_weights(self) -> bool:
        """Whether the rule may have weights: whether its class has a `build`."""
        cls = type(self)
        return cls.build is not Rule.build or cls.build_for is not Rule.build_for


def refuse_another_step(cls, base, instead):
    """Raise a `TypeError` if a class overrides the step that its fast paths rely on."""
    for name in ("update", "update_factored", "slots"):
        if getattr(cls, name) is not getattr(base, name):
            raise TypeError(
                f"{cls.__name__} must not override `{name}`: the fast paths of a "
                f"{base.__name__} would not see it. Override `{instead}`, or subclass `Rule`"
            )


class LinearRule(Rule):
    """A rule whose drive is linear in the inputs: `v_t = mu_t v_{t-1} + s u_t`, `g_t = v_t`.

    A subclass gives `coefficients`, and sets `counts` to True if mu_t depends on t. The rule
    runs step by step if s does, too, or if it defines how its counter advances. Its slots are
    v and, where it counts, t. Where mu_t and s are vectors, one number for each of the drive,
    it sets `shared` to False, and does not count.

    Example:

    ```python
    class Fading(LinearRule):
        '''The momentum falls as 1 / (t + 2).'''

        counts = True

        def coefficients(self, t):
            return 1 / (t + 2), 1.0
    ```
    """

    counts = False
    # Whether all of the drive has the same mu_t and s, so that x can be filtered in its place.
    shared = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_another_step(cls, LinearRule, "coefficients")

    def coefficients(self, t: Any) -> tuple[Any, Any]:
        """Return `(mu_t, s)`.

        Args:
            t: tensor of step numbers in any shape, 0 at the start of a sequence; None where
                the rule does not count.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `coefficients`")

    def advance_counter(self, t: Any, steps: int = 1) -> Any:
        """Return the counter, `steps` steps after it was `t`."""
        return t + steps

    def slots(self, width: int) -> dict[str, int]:
        return {"v": width, "t": 1} if self.counts else {"v": width}

    def update(self, u: Tensor, slots: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        v, *t = slots
        mu, step_size = (  # NumPy cannot multiply PyTorch's tensors
            ops.convert_to_tensor(number, v.dtype) if isinstance(number, np.ndarray) else number
            for number in self.coefficients(*t or [None])
        )
        v = mu * v + step_size * u
        return v, [v, *map(self.advance_counter, t)]


class ScaledRule(Rule):
    """A rule which divides a velocity by the root of a running second moment.

    ```
    v_t = mu v_{t-1} + gain u_t
    m_t = beta m_{t-1} + (1 - beta) u_t^2
    g_t = factor v_t / sqrt(m_t + epsilon)
    ```

    A subclass has the attributes `beta` and `epsilon` and gives `scaling`. Its slots are v
    and m, or m alone where `has_velocity` is False and mu 0.
    """

    has_velocity = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_another_step(cls, ScaledRule, "scaling")

    @property
    def scaling(self) -> tuple[float, float, float]:
        """The numbers (mu, gain, factor)."""
        raise NotImplementedError(f"{type(self).__name__} must implement `scaling`")

    def slots(self, width: int) -> dict[str, int]:
        return {"v": width, "m": width} if self.has_velocity else {"m": width}

    def update(self, u: Tensor, slots: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        v, scale, slots = self.update_factored(u, slots)
        return v * scale, slots

    def update_factored(
        self, u: Tensor, slots: list[Tensor]
    ) -> tuple[Tensor, Any, list[Tensor]]:
        *v, m = slots
        mu, gain, factor = self.scaling
        m, scale = update_second_moment(u, m, self.beta, self.epsilon)
        if not v:
            return u, gain * factor * scale, [m]
        new = mu * v[0] + gain * u
        # jax2onnx writes a broken file for a product with 1.
        return new, scale if factor == 1 else factor * scale, [new, m]
