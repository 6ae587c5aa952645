"""Hessian-free optimisation: the settings, the state, and one update."""

import itertools
import math
from typing import Any, Self

import keras
import numpy as np
from keras import ops

from keras_momentum_rnn.annotations import LearningRate
from keras_momentum_rnn.checks import checked, checked_choice, checked_count
from keras_momentum_rnn.optimizers import conjugate_gradients as cg
from keras_momentum_rnn.optimizers.schedules import Schedule, is_schedule, loaded, saved
from keras_momentum_rnn.rules import register

# Bounds for the actual fall of the objective over the one that its model promised (Levenberg,
# Marquardt): the damping rises below the first and falls above the second.
POOR, RICH = 0.25, 0.75
# A promise below so many units of rounding cannot be compared, and leaves the damping alone.
ROUNDING = 10
# Without a least damping, rounding would make the quadratic model indefinite.
LEAST_DAMPING, LARGEST_DAMPING = 1e-8, 1e8


@register
class HessianFree(keras.optimizers.Optimizer):
    """Hessian-free optimisation, with the previous update as momentum.

    Each update minimises a damped quadratic model of the objective f around the weights w,

    ```
    q(d) = g'd + d'(G + damping I) d / 2,   g = grad f(w),   G = J'HJ
    ```

    by conjugate gradients (CG), which need G only in products with vectors. J is the Jacobian
    of the model's outputs, H the Hessian of the loss in the outputs; regularizers of weights
    add their own Hessian to G. CG starts from `decay` times the solution of the last update, as
    momentum starts from `mu v`:

    ```
    d_t = CG(q_t, start=decay_t d_{t-1}, cg_steps);   w = w + learning_rate d_t
    ```

    With one step of CG, an update is one of Nesterov's momentum. Without damping its learning
    rate is `r'r / r'Gr`, r being minus the gradient of q at the start. With many steps it is a
    second-order method: `cg_steps` is a dial between the two.

    The rest follows Martens (2010). `backtracking` goes back from the last kept iterate of CG
    while the objective falls. The damping rises if the objective falls by less than 1/4 of
    what the undamped q promises, and drops if it falls by more than 3/4. It stays if rounding
    hides what q promises, as at a minimum. The line search shrinks the rate until the objective
    falls. The next update still starts from the last iterate.

    An update that is not finite leaves the weights alone, raises the damping, and forgets the
    last solution. Gradients are not enough for this optimizer: compile a `HessianFreeModel`
    with it.

    Args:
        learning_rate: float > 0, a `LearningRateSchedule`, or a callable that returns a float.
            The line search tries it first. Defaults to 1.
        cg_steps: positive integer, the most CG steps in an update. Defaults to 100.
        tolerance: number > 0: CG stops once its last steps lowered q by less than this share
            each, on average. None takes all steps. Defaults to 5e-4.
        decay: number in [0, 1], or a `LearningRateSchedule`, called with the number of updates
            so far: the share of the last solution from which CG starts. 0 is no momentum, 1 is
            Martens (2010). Defaults to 0.95.
        damping: number >= 0, the first damping. Defaults to 1.
        damping_factor: number in (0, 1), by which the damping is multiplied or divided. None
            keeps the damping. It changes within 1e-8 and 1e8. Defaults to 2/3.
        curvature_fraction: number in (0, 1]: G is computed on this share of each batch, its
            first samples. Defaults to 1.
        backtracking: bool. It costs some evaluations of the objective, and memory for about 20
            updates. Defaults to True.
        line_search: bool. Defaults to True.
        name: str.

    Other arguments of `keras.optimizers.Optimizer` have no meaning here: the damping bounds an
    update, and a `kernel_regularizer` enters the curvature too.

    Raises:
        ValueError: if an argument lies outside its range.

    Example:

    >>> import keras
    >>> import numpy as np
    >>> from keras_momentum_rnn.optimizers import HessianFree, HessianFreeModel
    >>> inputs = keras.Input((5,))
    >>> model = HessianFreeModel(inputs, keras.layers.Dense(1)(inputs))
    >>> model.compile(HessianFree(cg_steps=20, damping=1e-6), "mse")
    >>> x = np.random.default_rng(0).normal(size=(64, 5)).astype("float32")
    >>> fit = model.fit(x, x.sum(axis=1), batch_size=64, epochs=3, verbose=0)
    >>> fit.history["loss"][-1] < 1e-6
    True

    References:
        Sutskever, Martens, Dahl and Hinton (2013), "On the importance of initialization and
        momentum in deep learning", section 5 and appendix A.6; Martens (2010), "Deep learning
        via Hessian-free optimization". There is no preconditioner and no structural damping.
    """

    def __init__(
        self,
        learning_rate: LearningRate = 1.0,
        cg_steps: int = 100,
        tolerance: float | None = 5e-4,
        decay: float | Schedule = 0.95,
        damping: float = 1.0,
        damping_factor: float | None = 2 / 3,
        curvature_fraction: float = 1.0,
        backtracking: bool = True,
        line_search: bool = True,
        name: str = "hessian_free",
    ) -> None:
        if not callable(learning_rate):
            learning_rate = checked("learning_rate", learning_rate, above=0)
        super().__init__(learning_rate, name=name)
        self.cg_steps = checked_count("cg_steps", cg_steps)
        self.tolerance = _optional("tolerance", tolerance, above=0)
        self.initial_damping = checked("damping", damping, at_least=0)
        self.damping_factor = _optional("damping_factor", damping_factor, above=0, below=1)
        self.curvature_fraction = checked(
            "curvature_fraction", curvature_fraction, above=0, at_most=1
        )
        self.backtracking = checked_choice("backtracking", backtracking, (False, True))
        self.line_search = checked_choice("line_search", line_search, (False, True))
        if not is_schedule(decay):
            decay = self._scalar(checked("decay", decay, at_least=0, at_most=1), "decay")
        self._decay = decay
        self._damping = self._scalar(self.initial_damping, "damping")
        self._total_cg_steps = self._scalar(0, "total_cg_steps", "int")

    def _scalar(self, value, name, dtype=None):
        start = keras.initializers.Constant(value)
        return self.add_variable((), start, dtype, "only_first_replica", name=name)

    @property
    def decay(self) -> Any:
        """The share of the last solution from which CG starts. A number may be set."""
        return self._decay(self.iterations) if is_schedule(self._decay) else self._decay

    @decay.setter
    def decay(self, decay: float) -> None:
        if is_schedule(self._decay):
            raise TypeError(
                "`decay` cannot be set where it is a schedule: create the optimizer with a "
                f"number. Received: decay={decay!r}"
            )
        self._decay.assign(checked("decay", decay, at_least=0, at_most=1))

    @property
    def damping(self) -> Any:
        """The damping of the next update, a variable. It may be set."""
        return self._damping

    @damping.setter
    def damping(self, damping: float) -> None:
        self._damping.assign(checked("damping", damping, at_least=0))

    @property
    def total_cg_steps(self) -> Any:
        """The number of CG steps so far, a variable. The paper counts in these."""
        return self._total_cg_steps

    def build(self, variables: list[keras.Variable]) -> None:
        """Create a variable for the last solution of each weight, zero at first."""
        if self.built:
            if [id(v) for v in variables] != self._built_for:
                own, shapes = (
                    [tuple(v.shape) for v in vs] for vs in (self._directions, variables)
                )
                raise ValueError(
                    "A HessianFree keeps to the variables that it was built for. After "
                    "freezing layers, or for another model, compile with a new one. It was "
                    f"built for shapes {own}. Received: other variables, of shapes {shapes}"
                )
            return
        super().build(variables)
        self._built_for = [id(v) for v in variables]
        self._directions = self.add_optimizer_variables(variables, "direction")

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Raise a `TypeError`: gradients are not enough."""
        raise TypeError(
            "HessianFree needs products with the curvature, which no gradient tells: compile a "
            "`HessianFreeModel(inputs, outputs)` with it, not a plain `keras.Model`"
        )

    def update(self, quadratic: Any) -> Any:
        """Take one update: return the new weights.

        Args:
            quadratic: the `Quadratic` of a batch.
        """
        theta, gradient, before = quadratic.theta, quadratic.gradient, quadratic.value
        product = quadratic.product
        dtype = theta.dtype
        damping, rate = ops.cast(self.damping, dtype), ops.cast(self.learning_rate, dtype)
        start = ops.cast(self.decay, dtype) * flat(self._directions)
        solution, iterates, last, steps, _ = cg.conjugate_gradients(
            lambda v: product(v) + damping * v,
            -gradient,
            start,
            self.cg_steps,
            self.tolerance,
            keep=self.backtracking,
        )

        def moved(step):
            return quadratic.objective(theta + step)

        step, after = cg.backtracked(moved, iterates, last)
        slope = cg.dot(gradient, step)
        promised = slope + cg.dot(step, product(step)) / 2
        ratio = (after - before) / promised
        fine = ops.isfinite(before) & ops.isfinite(cg.dot(solution, solution))
        fine = fine & ops.all(ops.isfinite(gradient))  # CG would give back its start
        if self.line_search:
            first = ops.cond(rate == 1, lambda: after, lambda: moved(rate * step))
            rate = cg.line_search(lambda s: moved(s * step), rate, first, before, slope)
        else:
            fine = fine & ops.isfinite(after)
        if self.damping_factor:
            poor = ops.logical_not((promised < 0) & (ratio >= POOR))
            factor = ops.where(ratio > RICH, self.damping_factor, 1.0)
            factor = ops.where(poor, 1 / self.damping_factor, factor)
            unit = np.finfo(keras.backend.standardize_dtype(dtype)).eps
            hidden = ops.abs(promised) <= ROUNDING * unit * ops.abs(before)
            # At an objective of exactly 0 nothing is left to promise.
            hidden = hidden | (before == 0)
            hidden = hidden & ops.isfinite(before) & ops.isfinite(after)
            factor = ops.where(hidden, 1.0, factor)
            damping = ops.clip(
                damping * ops.cast(factor, dtype), LEAST_DAMPING, LARGEST_DAMPING
            )
            self._damping.assign(damping)
        solution = ops.where(fine, solution, ops.zeros_like(solution))
        for direction, part in zip(self._directions, split(solution, self._directions)):
            direction.assign(part)
        self._total_cg_steps.assign(self._total_cg_steps + steps)
        self.iterations.assign(self.iterations + 1)
        return ops.where(fine, theta + rate * step, theta)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return {
            **{name: config[name] for name in ("name", "learning_rate")},
            "cg_steps": self.cg_steps,
            "tolerance": self.tolerance,
            "decay": saved(self._decay),
            "damping": self.initial_damping,
            "damping_factor": self.damping_factor,
            "curvature_fraction": self.curvature_fraction,
            "backtracking": self.backtracking,
            "line_search": self.line_search,
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Self:
        config = loaded(config, "decay", custom_objects)
        return super().from_config(config, custom_objects=custom_objects)


def flat(tensors):
    """Return one flat tensor of all."""
    return ops.concatenate([ops.reshape(ops.convert_to_tensor(t), (-1,)) for t in tensors])


def split(vector, like):
    """Return tensors of the shapes of others, of a flat one."""
    sizes = [math.prod(tensor.shape) for tensor in like]
    ends = list(itertools.accumulate(sizes))
    return [
        ops.reshape(vector[end - size : end], tensor.shape)
        for size, end, tensor in zip(sizes, ends, like)
    ]


def _optional(name, value, **bounds):
    return None if value is None else checked(name, value, **bounds)
