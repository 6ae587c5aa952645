"""The model that a Hessian-free optimizer trains."""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
from keras import ops, tree

from keras_momentum_rnn.optimizers.attached_masks import mask_of, masked
from keras_momentum_rnn.optimizers.derivatives import derivatives
from keras_momentum_rnn.optimizers.hessian_free import HessianFree, flat, split
from keras_momentum_rnn.paths.devices import current_device
from keras_momentum_rnn.rebuilding import held_layers
from keras_momentum_rnn.rules import register


@dataclasses.dataclass(frozen=True)
class Quadratic:
    """A quadratic model of an objective, `value + gradient'd + d'Gd / 2`.

    All tensors but scalars are flat: those of the trainable variables, one after another.

    Attributes:
        theta: the weights around which it stands.
        value: the objective there, a scalar.
        gradient: of the objective there.
        product: function from v to Gv, the curvature without damping.
        objective: function from weights to the objective itself.
    """

    theta: object
    value: object
    gradient: object
    product: Callable
    objective: Callable


@register
class HessianFreeModel(keras.Model):
    """A functional model that `HessianFree` trains.

    It is a `keras.Model(inputs, outputs)` whose training step uses products with the
    curvature. Compile it with a `HessianFree`; it takes no other optimizer. Everything else
    works as in Keras: `fit`, callbacks, metrics, sample weights, masks, several outputs,
    saving. To train an existing model, wrap it: `HessianFreeModel(model.inputs,
    model.outputs)` shares its layers.

    - The curvature covers the compiled losses, through the outputs, and the regularizers of
      weights. It is never negative if the loss is convex in the outputs, as the squared error
      and the cross-entropy of logits are. So let the model return logits, and set
      `from_logits=True` in the loss. What layers add by `add_loss`, activity regularizers
      among it, is in the objective and its gradient, but not in the curvature.
    - All evaluations in one update use the same dropout masks, and batch statistics of the
      samples that they see. Layer states change as in one ordinary training step.
    - On JAX and on a GPU, recurrent layers leave their kernels, which have no second
      derivatives: `use_cudnn=False`. Other layers must have second derivatives.

    As in Keras, the metric `loss` is the one before the update.

    Example:

    >>> import keras
    >>> import numpy as np
    >>> from keras_momentum_rnn import MomentumRNN
    >>> from keras_momentum_rnn.optimizers import HessianFree, HessianFreeModel
    >>> inputs = keras.Input((6, 2))
    >>> outputs = keras.layers.Dense(3)(MomentumRNN(4)(inputs))
    >>> model = HessianFreeModel(inputs, outputs)
    >>> loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    >>> model.compile(HessianFree(cg_steps=5), loss, metrics=["accuracy"])
    >>> x = np.random.default_rng(0).normal(size=(12, 6, 2)).astype("float32")
    >>> fit = model.fit(x, np.arange(12) % 3, batch_size=12, epochs=4, verbose=0)
    >>> fit.history["loss"][-1] < fit.history["loss"][0]
    True

    Reference: as of `HessianFree`.
    """

    def compile(
        self,
        optimizer: HessianFree | str | dict[str, Any],
        loss: Any = None,
        *arguments: Any,
        **options: Any,
    ) -> None:
        """Compile as Keras does, with a `HessianFree`.

        Args:
            optimizer: `HessianFree`.
            loss: as of `keras.Model.compile`.
            *arguments: as there.
            **options: as there.

        Raises:
            ValueError: if it is not a `HessianFree`, or was built for other variables; if a
                layer computes in half precision, is quantized or `stateful`, or has a
                `recurrent_lr_multiplier` other than 1; if nothing is trainable; if a loss
                sums over the batch and `curvature_fraction` is below 1; under a strategy of
                TensorFlow with several replicas; on PyTorch, if `jit_compile` is True.
        """
        optimizer = keras.optimizers.get(optimizer)
        if not isinstance(optimizer, HessianFree):
            raise ValueError(
                "A HessianFreeModel is compiled with a `HessianFree`, other optimizers with a "
                f"`keras.Model`. Received: optimizer={optimizer!r}"
            )
        on_jax = keras.config.backend() == "jax"
        has_kernels_without_second_derivatives = on_jax or current_device() == "gpu"
        for layer in held_layers(self):
            if getattr(layer, "compute_dtype", None) in ("float16", "bfloat16"):
                raise ValueError(
                    "HessianFree does not train in half precision, in which conjugate "
                    f"gradients do not converge. Received: a layer {layer.name!r} that "
                    f"computes in {layer.compute_dtype}"
                )
            if getattr(layer, "stateful", False):
                raise ValueError(
                    "A HessianFreeModel evaluates each batch several times, and a `stateful` "
                    "layer would go on from one to the next. Received: the stateful layer "
                    f"{layer.name!r}"
                )
            if getattr(layer, "recurrent_lr_multiplier", 1) != 1:
                raise ValueError(
                    "HessianFree takes no multiple of the learning rate: its steps come from "
                    "the gradient of the objective itself. Received: a layer "
                    f"{layer.name!r} with recurrent_lr_multiplier="
                    f"{layer.recurrent_lr_multiplier}"
                )
            if hasattr(layer, "use_cudnn") and has_kernels_without_second_derivatives:
                layer.use_cudnn = False
        fraction = optimizer.curvature_fraction
        sums = [x for x in tree.flatten(loss) if getattr(x, "reduction", None) == "sum"]
        if sums and fraction != 1:
            raise ValueError(
                "`curvature_fraction` needs losses that are means over the batch: the "
                "curvature of a part of a sum is too small. Received: "
                f"curvature_fraction={fraction} with the loss {sums[0].name!r}, a sum"
            )
        strategy = getattr(self, "distribute_strategy", None)  # TensorFlow alone has it
        if strategy is not None and strategy.num_replicas_in_sync > 1:
            raise ValueError(
                "A HessianFreeModel trains in one replica: several would each take updates of "
                f"their own. Received: {strategy.num_replicas_in_sync} replicas of a "
                f"{type(strategy).__name__}"
            )
        for variable in self.trainable_variables:
            if getattr(variable, "overwrite_with_gradient", False):
                raise ValueError(
                    "HessianFree does not train quantized layers, whose scales no curvature "
                    f"tells. Received: {variable.path}"
                )
        if not self.trainable_variables:
            raise ValueError("A HessianFreeModel needs weights to train. Received: none")
        if options.get("jit_compile") is True and keras.config.backend() == "torch":
            raise ValueError(
                "On PyTorch a HessianFreeModel cannot be compiled: `torch.compile` does not "
                "follow its products with the curvature. Received: jit_compile=True"
            )
        super().compile(optimizer, loss, *arguments, **options)
        optimizer.build(self.trainable_variables)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        self.compile(**keras.saving.deserialize_keras_object(config))

    def fit(self, *arguments: Any, **options: Any) -> keras.callbacks.History:
        self._refuse_other_variables()
        return super().fit(*arguments, **options)

    def train_on_batch(self, *arguments: Any, **options: Any) -> Any:
        self._refuse_other_variables()
        return super().train_on_batch(*arguments, **options)

    def train_step(self, *arguments: Any) -> Any:
        """Take one update; Keras calls this, on JAX with all state, which it wants back."""
        *state, data = arguments
        if not state:
            return self._update(data)
        groups = (
            self.trainable_variables,
            self.non_trainable_variables,
            self.optimizer.variables,
            self.metrics_variables,
        )
        pairs = [pair for group, values in zip(groups, *state) for pair in zip(group, values)]
        with keras.StatelessScope(pairs) as scope:
            logs = self._update(data)
        return logs, tuple([scope.get_current_value(v) for v in group] for group in groups)

    def quadratic(self, x: Any, y: Any, sample_weight: Any = None) -> Quadratic:
        """Return the model of the objective around the weights, for a batch: a `Quadratic`.

        Args:
            x: arrays or tensors, as of `fit`.
            y: as of `fit`.
            sample_weight: as of `fit`.
        """
        self._refuse_other_variables()
        data = tree.map_structure(ops.convert_to_tensor, (x, y))
        if sample_weight is not None:
            sample_weight = tree.map_structure(ops.convert_to_tensor, sample_weight)
        return self._quadratic(*data, sample_weight)[0]

    def _update(self, data):
        x, y, weights = keras.utils.unpack_x_y_sample_weight(data)
        optimizer, variables = self.optimizer, self.trainable_variables
        quadratic, y_pred, states = self._quadratic(x, y, weights)
        with derivatives().untracked():
            new = optimizer.update(quadratic)
            for variable, value in zip(variables, split(new, variables)):
                constraint = variable.constraint
                variable.assign(value if constraint is None else constraint(value))
            for variable, value in zip(self._rest(), states):
                if value is not None:
                    variable.assign(unspoiled(value, quadratic.value, variable))
            (tracker,) = [metric for metric in self.metrics[:1] if metric.name == "loss"]
            samples = ops.shape(tree.flatten(x)[0])[0]
            tracker.update_state(quadratic.value, sample_weight=samples)
            return self.compute_metrics(x, y, y_pred, sample_weight=weights)

    def _quadratic(self, x, y, weights):
        """Return the `Quadratic` of a batch, the outputs, and the values of other variables."""
        variables, theta = self.trainable_variables, values_of(self.trainable_variables)
        rest = list(zip(self._rest(), values_of(self._rest())))
        same_draws = derivatives().repeated_draws()

        def evaluated(theta):
            y_pred, loss, scope = self._evaluate(theta, rest, x, y, weights)
            masks = [mask_of(t) for t in tree.flatten(y_pred)]
            return loss, (y_pred, masks, [scope.get_current_value(v) for v in self._rest()])

        def objective(vector):
            with derivatives().untracked(), same_draws():
                return self._evaluate(split(vector, variables), rest, x, y, weights)[1]

        value, (y_pred, masks, states), gradient = derivatives().value_and_gradient(
            evaluated, theta
        )
        samples = ops.shape(tree.flatten(x)[0])[0]
        part = first_samples(self.optimizer.curvature_fraction, samples)
        curvature = self._curvature(
            theta, rest, *tree.map_structure(part, (x, y, weights, masks)), y_pred, same_draws
        )
        quadratic = Quadratic(
            theta=flat(theta),
            value=value,
            gradient=flat(gradient),
            product=lambda v: flat(curvature(split(v, variables))),
            objective=objective,
        )
        return quadratic, masked(y_pred, masks), states

    def _rest(self):
        """Return all variables but the trained ones and the optimizer's."""
        return [*self.non_trainable_variables, *self.metrics_variables]

    def _evaluate(self, theta, rest, x, y=None, weights=None, loss=True):
        """Return outputs, loss and scope of a training call, which changes no variable."""
        pairs = [*zip(self.trainable_variables, theta), *rest]
        with keras.StatelessScope(pairs, collect_losses=True) as scope:
            y_pred = self(x, training=True)
            if loss:
                loss = self.compute_loss(x, y, y_pred, copied(weights), training=True)
        return y_pred, loss, scope

    def _curvature(self, theta, rest, x, y, weights, masks, like, same_draws):
        """Return the function from v to (J'HJ + the Hessian of regularizers) v, lists all."""
        pairs = [*zip(self.trainable_variables, theta), *rest]

        def outputs_of(theta):
            with same_draws():
                return tree.flatten(self._evaluate(theta, rest, x, loss=False)[0])

        def loss_of(outputs):
            y_pred = masked(tree.pack_sequence_as(like, outputs), masks)
            with keras.StatelessScope(pairs, collect_losses=True):
                return self.compute_loss(x, y, y_pred, copied(weights), training=True)

        def middle(outputs, u):
            return derivatives().hessian_product(loss_of, outputs, u)

        regularizers = [v.regularizer for v in self.trainable_variables]

        def penalty(theta):
            # A regularizer may read other variables than the one that it is given.
            with keras.StatelessScope([*zip(self.trainable_variables, theta), *rest]):
                return sum(r(t) for r, t in zip(regularizers, theta) if r is not None)

        around = derivatives().linearized(outputs_of, theta)
        if not any(regularizers):
            return lambda v: around(v, middle)

        def both(v):
            of_penalty = derivatives().hessian_product(penalty, theta, v)
            return [a + b for a, b in zip(around(v, middle), of_penalty)]

        return both

    def _refuse_other_variables(self):
        # Here, since on JAX an error inside `fit` would lose the weights.
        if self.compiled:
            self.optimizer.build(self.trainable_variables)


def first_samples(fraction, samples):
    """Return a function from a tensor to its first samples, a fraction of all."""
    if fraction == 1:
        return lambda tensor: tensor
    if isinstance(samples, int):
        count = max(1, round(fraction * samples))
    else:
        count = ops.cast(ops.round(fraction * ops.cast(samples, "float32")), "int32")
        count = ops.maximum(count, 1)
    return lambda tensor: None if tensor is None else tensor[:count]


def values_of(variables):
    # `convert_to_tensor` would hand on TensorFlow's variables as they are.
    return [ops.stop_gradient(variable.value) for variable in variables]


def copied(weights):
    # On PyTorch Keras multiplies sample weights by a mask in place.
    return tree.map_structure(lambda w: None if w is None else ops.copy(w), weights)


def unspoiled(value, loss, variable):
    """Return the new value of a state, or the old one where the loss is not finite."""
    if "float" not in variable.dtype:
        return value  # such as that of a seed
    return ops.where(ops.isfinite(loss), value, variable.value)
