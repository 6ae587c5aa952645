"""Classical momentum and Nesterov's accelerated gradient, exact while momentum changes."""

from typing import Any, Self

import keras
from keras import ops

from keras_momentum_rnn.annotations import LearningRate, Tensor
from keras_momentum_rnn.checks import checked_choice
from keras_momentum_rnn.optimizers.schedules import (
    Schedule,
    checked_momentum,
    is_schedule,
    loaded,
    saved,
)
from keras_momentum_rnn.rules import register


@register
class MomentumSGD(keras.optimizers.Optimizer):
    """Gradient descent with classical momentum, or with Nesterov's.

    ```
    v_{t+1} = mu_t v_t - learning_rate grad f(w_t)               classical, equation 1
    v_{t+1} = mu_t v_t - learning_rate grad f(w_t + mu_t v_t)    nesterov=True, equation 3
    w_{t+1} = w_t + v_{t+1}                                      equations 2 and 4
    ```

    t counts the updates from 0, and `v_0 = 0`. Momentum may change at every update. With
    `nesterov=True` the variables hold, while training, the look-ahead points
    `y_t = w_t + mu_t v_t` at which gradients are taken:

    ```
    y_{t+1} = y_t - learning_rate grad f(y_t) + mu_{t+1} v_{t+1}
    ```

    At its end `fit` calls `finalize_variable_values` of the compiled optimizer, which sets
    them to w; for a second optimizer in your own `train_step`, call it yourself.

    `optimizer.momentum = 0.99` takes effect in a compiled step too, at the next velocity. With
    `nesterov=True` that is one update later than without, since the look-ahead of the next
    gradient has been made. (Half-precision policies wrap the optimizer: there it is
    `optimizer.inner_optimizer`.)

    Checkpoints of a running `fit` hold y: training continues from them exactly. Before you use
    such a model, call `finalize_variable_values(model.trainable_variables)`, which gives w.
    Weights that `EarlyStopping` restores at the end of `fit` are y too.
    Between two calls of `fit` the variables hold w. The second call takes its first gradient
    there, and every variable must have one. To go on from y, call `resume_variable_values`:

    ```python
    keras.callbacks.LambdaCallback(
        on_train_begin=lambda logs: optimizer.resume_variable_values(model.trainable_variables)
    )
    ```

    Weight decay, as in Keras decoupled from the velocity, and the average of `use_ema` are
    those of the variables, so with `nesterov=True` of y. With `use_ema` a training ends, as in
    Keras, on the average. Constraints hold for y and for the w on which it lands.

    Args:
        learning_rate: float, a `LearningRateSchedule`, or a callable that returns a float.
            Defaults to 0.01.
        momentum: number in [0, 1), or a `LearningRateSchedule`, called with t (of updates:
            with `gradient_accumulation_steps` batches are more). Defaults to 0.9.
        nesterov: bool. Defaults to False.
        **options: other arguments of `keras.optimizers.Optimizer`: `weight_decay`,
            `clipnorm`, `clipvalue`, `global_clipnorm`, `use_ema`, `ema_momentum`,
            `ema_overwrite_frequency`, `loss_scale_factor`, `gradient_accumulation_steps`,
            `name`.

    Raises:
        ValueError: if an argument is of another kind, or lies outside its range.

    Example:

    >>> import keras
    >>> from keras_momentum_rnn.optimizers import MomentumSGD
    >>> w = keras.Variable([1.0])
    >>> optimizer = MomentumSGD(0.5, momentum=0.5, nesterov=True)
    >>> optimizer.apply([keras.ops.ones(1)], [w])  # v = -0.5, w = 0.5, y = 0.25
    >>> w.numpy()
    array([0.25], dtype=float32)
    >>> optimizer.finalize_variable_values([w])
    >>> w.numpy()
    array([0.5], dtype=float32)

    References:
        Sutskever, Martens, Dahl and Hinton (2013), "On the importance of initialization and
        momentum in deep learning", equations 1 to 4. `keras.optimizers.SGD(nesterov=True)`
        has one momentum for both mu_t and mu_{t+1}, a Python number that is compiled into the
        step, and ends on y.
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.01,
        momentum: float | Schedule = 0.9,
        nesterov: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        if not is_schedule(momentum):
            momentum = self._scalar(checked_momentum("momentum", momentum), None, "momentum")
        self._momentum = momentum
        self.nesterov = checked_choice("nesterov", nesterov, (False, True))
        if nesterov:
            # The count of updates at which the variables held w. They do at the start.
            self._landed_at = self._scalar(0, "int", "landed_at")

    def _scalar(self, value, dtype, name):
        start = keras.initializers.Constant(value)
        return self.add_variable((), start, dtype, "only_first_replica", name=name)

    @property
    def momentum(self) -> Any:
        """mu_t: a variable that may be set, or the value of the schedule."""
        return self._momentum_at(self.iterations)

    @momentum.setter
    def momentum(self, momentum: float) -> None:
        if is_schedule(self._momentum):
            raise TypeError(
                "`momentum` cannot be set where it is a schedule: create the optimizer with a "
                f"number. Received: momentum={momentum!r}"
            )
        self._momentum.assign(checked_momentum("momentum", momentum))

    def _momentum_at(self, update):
        return self._momentum(update) if is_schedule(self._momentum) else self._momentum

    def build(self, variables: list[keras.Variable]) -> None:
        """Create v for each variable, with `nesterov=True` what it adds to w, `mu_t v_t`."""
        if self.built:
            return
        super().build(variables)
        name = "look_ahead" if self.nesterov else "velocity"
        self._slots = self.add_optimizer_variables(variables, name)

    def update_step(
        self, gradient: Tensor, variable: keras.Variable, learning_rate: Any
    ) -> None:
        """Take one step of one variable."""
        dtype = variable.dtype
        slot = self._slot(variable)
        descent = ops.multiply(ops.cast(learning_rate, dtype), ops.cast(gradient, dtype))
        if self.nesterov:
            velocity = ops.subtract(slot, descent)
            look_ahead = ops.cast(self._momentum_at(self.iterations + 1), dtype) * velocity
            landed = ops.cast(ops.equal(self.iterations, self._landed_at), dtype)
            # From y this is the equation above; from w, where fit landed, v and look-ahead.
            self.assign_add(variable, landed * slot - descent + look_ahead)
            self.assign(slot, look_ahead)
        else:
            velocity = ops.subtract(ops.cast(self.momentum, dtype) * slot, descent)
            self.assign(slot, velocity)
            self.assign_add(variable, velocity)

    def finalize_variable_values(self, var_list: list[keras.Variable]) -> None:
        """Move the variables from y to w, or to their average with `use_ema`; `fit` does this.

        Args:
            var_list: list of the model's trainable variables.
        """
        if self.nesterov and not self._landed():
            self._move(var_list, -1)
            # A copy: JAX could not donate an alias.
            self._landed_at.assign(as_int(self.iterations))
        super().finalize_variable_values(var_list)
        if self.use_ema:
            for variable in var_list:
                variable.assign(ops.copy(variable))  # Keras leaves an alias of the average

    def resume_variable_values(self, var_list: list[keras.Variable]) -> None:
        """Move the variables back from w to y: the inverse of `finalize_variable_values`.

        It is not with `use_ema`, nor where a constraint has changed w.

        Args:
            var_list: list of the model's trainable variables. Where they hold y already, and
                without `nesterov`, nothing moves.
        """
        if self.nesterov and self.built and self._landed():
            self._move(var_list, 1)
            self._landed_at.assign(-1)

    def _landed(self):
        return as_int(self._landed_at) == as_int(self.iterations)

    def _move(self, var_list, direction):
        for variable in var_list:
            try:
                slot = self._slot(variable)
            except KeyError:  # another optimizer trains it
                continue
            if slot is None:  # Keras's for a scale of float8
                continue
            value = variable + direction * slot
            constraint = variable.constraint
            variable.assign(value if constraint is None else constraint(value))

    def _slot(self, variable):
        return self._slots[self._get_variable_index(variable)]

    def get_config(self) -> dict[str, Any]:
        own = {"momentum": saved(self._momentum), "nesterov": self.nesterov}
        return {**super().get_config(), **own}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Self:
        config = loaded(config, "momentum", custom_objects)
        return super().from_config(config, custom_objects=custom_objects)


def as_int(variable):
    """Return the value of a count. `int` alone refuses a variable of several replicas."""
    return int(variable + 0)
