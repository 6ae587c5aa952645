"""Written by tools/stubs.py from the signatures. Change those, and run it again."""

from typing import Any, Literal

import keras

from keras_momentum_rnn.annotations import Identifier
from keras_momentum_rnn.cells.base import RuleCell
from keras_momentum_rnn.rules import (
    Rule,
    Identity,
    HeavyBall,
    NAG,
    ScheduledRestart,
    Adam,
    RMSProp,
)

__all__ = [
    "RuleLSTMCell",
    "RuleRNNCell",
    "RuleGRUCell",
    "RuleDTRIVCell",
    "MomentumLSTMCell",
    "NAGLSTMCell",
    "SRLSTMCell",
    "AdamLSTMCell",
    "RMSPropLSTMCell",
    "MomentumRNNCell",
    "NAGRNNCell",
    "SRRNNCell",
    "AdamRNNCell",
    "RMSPropRNNCell",
    "MomentumGRUCell",
    "NAGGRUCell",
    "SRGRUCell",
    "AdamGRUCell",
    "RMSPropGRUCell",
    "DTRIVCell",
    "MomentumDTRIVCell",
    "NAGDTRIVCell",
    "SRDTRIVCell",
    "AdamDTRIVCell",
    "RMSPropDTRIVCell",
    "MCRMCell",
    "NestedLSTMCell",
    "ReleasedSRLSTMCell",
]

class RuleLSTMCell(RuleCell, keras.layers.LSTMCell):
    rule: Rule
    units: int
    activation: Any
    recurrent_activation: Any
    use_bias: bool
    kernel_initializer: Any
    recurrent_initializer: Any
    bias_initializer: Any
    unit_forget_bias: bool
    kernel_regularizer: Any
    recurrent_regularizer: Any
    bias_regularizer: Any
    kernel_constraint: Any
    recurrent_constraint: Any
    bias_constraint: Any
    dropout: float
    recurrent_dropout: float
    seed: int | keras.random.SeedGenerator | None
    use_recurrent_bias: bool
    recurrent_bias: keras.Variable | None
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, *, rule: Rule | dict[str, Any],
        use_recurrent_bias: bool = False, activity_regularizer: Identifier = None,
        trainable: bool = True, dtype: Any = None, autocast: bool = True,
        name: str | None = None, input_shape: tuple[int | None, ...] = ...,
        implementation: int = 2
    ) -> None: ...

class RuleRNNCell(RuleCell, keras.layers.SimpleRNNCell):
    rule: Rule
    units: int
    activation: Any
    use_bias: bool
    kernel_initializer: Any
    recurrent_initializer: Any
    bias_initializer: Any
    kernel_regularizer: Any
    recurrent_regularizer: Any
    bias_regularizer: Any
    kernel_constraint: Any
    recurrent_constraint: Any
    bias_constraint: Any
    dropout: float
    recurrent_dropout: float
    seed: int | keras.random.SeedGenerator | None
    parameterization: Literal["input", "hidden"]
    def __init__(
        self, units: int, activation: Identifier = "tanh", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None, *,
        rule: Rule | dict[str, Any], parameterization: Literal["input", "hidden"] = "input",
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None: ...

class RuleGRUCell(RuleCell, keras.layers.GRUCell):
    rule: Rule
    units: int
    activation: Any
    recurrent_activation: Any
    use_bias: bool
    kernel_initializer: Any
    recurrent_initializer: Any
    bias_initializer: Any
    kernel_regularizer: Any
    recurrent_regularizer: Any
    bias_regularizer: Any
    kernel_constraint: Any
    recurrent_constraint: Any
    bias_constraint: Any
    dropout: float
    recurrent_dropout: float
    reset_after: bool
    seed: int | keras.random.SeedGenerator | None
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, reset_after: bool = True,
        seed: int | keras.random.SeedGenerator | None = None, *, rule: Rule | dict[str, Any],
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None: ...

class RuleDTRIVCell(RuleCell, keras.layers.SimpleRNNCell):
    rule: Rule
    units: int
    use_bias: bool
    kernel_initializer: Any
    recurrent_initializer: Any
    bias_initializer: Any
    kernel_regularizer: Any
    recurrent_regularizer: Any
    bias_regularizer: Any
    kernel_constraint: Any
    bias_constraint: Any
    dropout: float
    recurrent_dropout: float
    seed: int | keras.random.SeedGenerator | None
    parametrization: Literal["expm", "cayley"]
    initial_rotation: Literal["base", "skew"]
    recurrent_lr_multiplier: float
    modrelu_bias_initializer: Any
    skew: keras.Variable
    modrelu_bias: keras.Variable
    base: keras.Variable
    skew_origin: keras.Variable
    calls_at_base: keras.Variable
    def __init__(
        self, units: int, use_bias: bool = False, kernel_initializer: Identifier = "he_normal",
        recurrent_initializer: Identifier = ..., bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None, *,
        rule: Rule | dict[str, Any], parametrization: Literal["expm", "cayley"] = "expm",
        initial_rotation: Literal["base", "skew"] = "base",
        recurrent_lr_multiplier: float = 1.0, modrelu_bias_initializer: Identifier = None,
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None: ...
    def displacement(self) -> Any: ...
    def recurrent_matrix(self, portable: bool = False) -> Any: ...
    def fix_matrix(self) -> None: ...
    def rebase(self, every: int) -> None: ...

class MomentumLSTMCell(RuleLSTMCell):
    rule: HeavyBall
    @property
    def momentum(self) -> float: ...
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, *,
        use_recurrent_bias: bool = False, momentum: float = 0.6, step_size: float = 0.6,
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None: ...

class NAGLSTMCell(RuleLSTMCell):
    rule: NAG
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, *,
        use_recurrent_bias: bool = False, step_size: float = 0.9,
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None: ...

class SRLSTMCell(RuleLSTMCell):
    rule: ScheduledRestart
    @property
    def restart_period(self) -> int: ...
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, *,
        use_recurrent_bias: bool = False, restart_period: int = 40, step_size: float = 0.9,
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None: ...

class AdamLSTMCell(RuleLSTMCell):
    rule: Adam
    @property
    def momentum(self) -> float: ...
    @property
    def step_size(self) -> float: ...
    @property
    def beta(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def relaxed(self) -> bool: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, *,
        use_recurrent_bias: bool = False, momentum: float = 0.6, step_size: float = 0.6,
        beta: float = 0.99, epsilon: float = 1e-08, relaxed: bool = True,
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None: ...

class RMSPropLSTMCell(RuleLSTMCell):
    rule: RMSProp
    @property
    def step_size(self) -> float: ...
    @property
    def beta(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, *,
        use_recurrent_bias: bool = False, step_size: float = 0.6, beta: float = 0.9,
        epsilon: float = 1e-08, activity_regularizer: Identifier = None, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None: ...

class MomentumRNNCell(RuleRNNCell):
    rule: HeavyBall
    @property
    def momentum(self) -> float: ...
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None, *,
        parameterization: Literal["input", "hidden"] = "input", momentum: float = 0.6,
        step_size: float = 0.6, activity_regularizer: Identifier = None, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None: ...

class NAGRNNCell(RuleRNNCell):
    rule: NAG
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None, *,
        parameterization: Literal["input", "hidden"] = "input", step_size: float = 0.9,
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None: ...

class SRRNNCell(RuleRNNCell):
    rule: ScheduledRestart
    @property
    def restart_period(self) -> int: ...
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None, *,
        parameterization: Literal["input", "hidden"] = "input", restart_period: int = 40,
        step_size: float = 0.9, activity_regularizer: Identifier = None, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None: ...

class AdamRNNCell(RuleRNNCell):
    rule: Adam
    @property
    def momentum(self) -> float: ...
    @property
    def step_size(self) -> float: ...
    @property
    def beta(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def relaxed(self) -> bool: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None, *,
        parameterization: Literal["input", "hidden"] = "input", momentum: float = 0.6,
        step_size: float = 0.6, beta: float = 0.99, epsilon: float = 1e-08,
        relaxed: bool = True, activity_regularizer: Identifier = None, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None: ...

class RMSPropRNNCell(RuleRNNCell):
    rule: RMSProp
    @property
    def step_size(self) -> float: ...
    @property
    def beta(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None, *,
        parameterization: Literal["input", "hidden"] = "input", step_size: float = 0.6,
        beta: float = 0.9, epsilon: float = 1e-08, activity_regularizer: Identifier = None,
        trainable: bool = True, dtype: Any = None, autocast: bool = True,
        name: str | None = None, input_shape: tuple[int | None, ...] = ...
    ) -> None: ...

class MomentumGRUCell(RuleGRUCell):
    rule: HeavyBall
    @property
    def momentum(self) -> float: ...
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, reset_after: bool = True,
        seed: int | keras.random.SeedGenerator | None = None, *, momentum: float = 0.6,
        step_size: float = 0.6, activity_regularizer: Identifier = None, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None: ...

class NAGGRUCell(RuleGRUCell):
    rule: NAG
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, reset_after: bool = True,
        seed: int | keras.random.SeedGenerator | None = None, *, step_size: float = 0.9,
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None: ...

class SRGRUCell(RuleGRUCell):
    rule: ScheduledRestart
    @property
    def restart_period(self) -> int: ...
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, reset_after: bool = True,
        seed: int | keras.random.SeedGenerator | None = None, *, restart_period: int = 40,
        step_size: float = 0.9, activity_regularizer: Identifier = None, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None: ...

class AdamGRUCell(RuleGRUCell):
    rule: Adam
    @property
    def momentum(self) -> float: ...
    @property
    def step_size(self) -> float: ...
    @property
    def beta(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def relaxed(self) -> bool: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, reset_after: bool = True,
        seed: int | keras.random.SeedGenerator | None = None, *, momentum: float = 0.6,
        step_size: float = 0.6, beta: float = 0.99, epsilon: float = 1e-08,
        relaxed: bool = True, activity_regularizer: Identifier = None, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None: ...

class RMSPropGRUCell(RuleGRUCell):
    rule: RMSProp
    @property
    def step_size(self) -> float: ...
    @property
    def beta(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, reset_after: bool = True,
        seed: int | keras.random.SeedGenerator | None = None, *, step_size: float = 0.6,
        beta: float = 0.9, epsilon: float = 1e-08, activity_regularizer: Identifier = None,
        trainable: bool = True, dtype: Any = None, autocast: bool = True,
        name: str | None = None, input_shape: tuple[int | None, ...] = ...,
        implementation: int = 2
    ) -> None: ...

class DTRIVCell(RuleDTRIVCell):
    rule: Identity
    def __init__(
        self, units: int, use_bias: bool = False, kernel_initializer: Identifier = "he_normal",
        recurrent_initializer: Identifier = ..., bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None, *,
        parametrization: Literal["expm", "cayley"] = "expm",
        initial_rotation: Literal["base", "skew"] = "base",
        recurrent_lr_multiplier: float = 1.0, modrelu_bias_initializer: Identifier = None,
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None: ...

class MomentumDTRIVCell(RuleDTRIVCell):
    rule: HeavyBall
    @property
    def momentum(self) -> float: ...
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, use_bias: bool = False, kernel_initializer: Identifier = "he_normal",
        recurrent_initializer: Identifier = ..., bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None, *,
        parametrization: Literal["expm", "cayley"] = "expm",
        initial_rotation: Literal["base", "skew"] = "base",
        recurrent_lr_multiplier: float = 1.0, modrelu_bias_initializer: Identifier = None,
        momentum: float = 0.6, step_size: float = 0.6, activity_regularizer: Identifier = None,
        trainable: bool = True, dtype: Any = None, autocast: bool = True,
        name: str | None = None, input_shape: tuple[int | None, ...] = ...
    ) -> None: ...

class NAGDTRIVCell(RuleDTRIVCell):
    rule: NAG
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, use_bias: bool = False, kernel_initializer: Identifier = "he_normal",
        recurrent_initializer: Identifier = ..., bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None, *,
        parametrization: Literal["expm", "cayley"] = "expm",
        initial_rotation: Literal["base", "skew"] = "base",
        recurrent_lr_multiplier: float = 1.0, modrelu_bias_initializer: Identifier = None,
        step_size: float = 0.9, activity_regularizer: Identifier = None, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None: ...

class SRDTRIVCell(RuleDTRIVCell):
    rule: ScheduledRestart
    @property
    def restart_period(self) -> int: ...
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, use_bias: bool = False, kernel_initializer: Identifier = "he_normal",
        recurrent_initializer: Identifier = ..., bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None, *,
        parametrization: Literal["expm", "cayley"] = "expm",
        initial_rotation: Literal["base", "skew"] = "base",
        recurrent_lr_multiplier: float = 1.0, modrelu_bias_initializer: Identifier = None,
        restart_period: int = 40, step_size: float = 0.9,
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None: ...

class AdamDTRIVCell(RuleDTRIVCell):
    rule: Adam
    @property
    def momentum(self) -> float: ...
    @property
    def step_size(self) -> float: ...
    @property
    def beta(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def relaxed(self) -> bool: ...
    def __init__(
        self, units: int, use_bias: bool = False, kernel_initializer: Identifier = "he_normal",
        recurrent_initializer: Identifier = ..., bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None, *,
        parametrization: Literal["expm", "cayley"] = "expm",
        initial_rotation: Literal["base", "skew"] = "base",
        recurrent_lr_multiplier: float = 1.0, modrelu_bias_initializer: Identifier = None,
        momentum: float = 0.6, step_size: float = 0.6, beta: float = 0.99,
        epsilon: float = 1e-08, relaxed: bool = True, activity_regularizer: Identifier = None,
        trainable: bool = True, dtype: Any = None, autocast: bool = True,
        name: str | None = None, input_shape: tuple[int | None, ...] = ...
    ) -> None: ...

class RMSPropDTRIVCell(RuleDTRIVCell):
    rule: RMSProp
    @property
    def step_size(self) -> float: ...
    @property
    def beta(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    def __init__(
        self, units: int, use_bias: bool = False, kernel_initializer: Identifier = "he_normal",
        recurrent_initializer: Identifier = ..., bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None, *,
        parametrization: Literal["expm", "cayley"] = "expm",
        initial_rotation: Literal["base", "skew"] = "base",
        recurrent_lr_multiplier: float = 1.0, modrelu_bias_initializer: Identifier = None,
        step_size: float = 0.6, beta: float = 0.9, epsilon: float = 1e-08,
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None: ...

class NestedCell(RuleLSTMCell):
    memory: Any
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, *,
        rule: Rule | dict[str, Any] | None = None, use_recurrent_bias: bool = False,
        memory: keras.layers.Layer | dict[str, Any] | None = None,
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None: ...

class MCRMCell(NestedCell):
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, *,
        rule: Rule | dict[str, Any] | None = None, use_recurrent_bias: bool = False,
        memory: keras.layers.Layer | dict[str, Any] | None = None,
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None: ...

class NestedLSTMCell(NestedCell):
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, *,
        rule: Rule | dict[str, Any] | None = None, use_recurrent_bias: bool = False,
        memory: keras.layers.Layer | dict[str, Any] | None = None,
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None: ...

class ReleasedSRLSTMCell(RuleLSTMCell):
    rule: ScheduledRestart
    @property
    def restart_period(self) -> int: ...
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, *,
        use_recurrent_bias: bool = False, restart_period: int = 40, step_size: float = 0.9,
        activity_regularizer: Identifier = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None: ...
