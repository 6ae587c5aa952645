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
    ) -> None:
        """Cell of `RuleLSTM`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `RuleRNN`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `RuleGRU`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `RuleDTRIV`, which gives equation and arguments."""
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
    ) -> None:
        """Cell of `MomentumLSTM`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `NAGLSTM`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `SRLSTM(formulation="paper")`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `AdamLSTM`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `RMSPropLSTM`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `MomentumRNN`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `NAGRNN`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `SRRNN`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `AdamRNN`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `RMSPropRNN`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `MomentumGRU`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `NAGGRU`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `SRGRU`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `AdamGRU`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `RMSPropGRU`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `DTRIV`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `MomentumDTRIV`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `NAGDTRIV`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `SRDTRIV`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `AdamDTRIV`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `RMSPropDTRIV`, which gives equation and arguments."""

class MCRMCell(RuleLSTMCell):
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
    ) -> None:
        """Cell of `MCRM`, which gives equation and arguments."""

class NestedLSTMCell(RuleLSTMCell):
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
    ) -> None:
        """Cell of `NestedLSTM`, which gives equation and arguments."""

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
    ) -> None:
        """Cell of `SRLSTM(formulation="released")`, which gives equation and arguments."""
