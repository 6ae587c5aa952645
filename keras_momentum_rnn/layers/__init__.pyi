"""Written by tools/stubs.py from the signatures. Change those, and run it again."""

from typing import Any, Literal

import keras

from keras_momentum_rnn.annotations import Identifier
from keras_momentum_rnn.cells import (
    RuleLSTMCell,
    RuleRNNCell,
    RuleGRUCell,
    RuleDTRIVCell,
    MomentumLSTMCell,
    NAGLSTMCell,
    AdamLSTMCell,
    RMSPropLSTMCell,
    MomentumRNNCell,
    NAGRNNCell,
    SRRNNCell,
    AdamRNNCell,
    RMSPropRNNCell,
    MomentumGRUCell,
    NAGGRUCell,
    SRGRUCell,
    AdamGRUCell,
    RMSPropGRUCell,
    DTRIVCell,
    MomentumDTRIVCell,
    NAGDTRIVCell,
    SRDTRIVCell,
    AdamDTRIVCell,
    RMSPropDTRIVCell,
    MCRMCell,
    NestedLSTMCell,
)
from keras_momentum_rnn.recurrent import RuleLayer
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
    "RuleLSTM",
    "MomentumLSTM",
    "NAGLSTM",
    "SRLSTM",
    "AdamLSTM",
    "RMSPropLSTM",
    "RuleRNN",
    "MomentumRNN",
    "NAGRNN",
    "SRRNN",
    "AdamRNN",
    "RMSPropRNN",
    "RuleGRU",
    "MomentumGRU",
    "NAGGRU",
    "SRGRU",
    "AdamGRU",
    "RMSPropGRU",
    "RuleDTRIV",
    "DTRIV",
    "MomentumDTRIV",
    "NAGDTRIV",
    "SRDTRIV",
    "AdamDTRIV",
    "RMSPropDTRIV",
    "MCRM",
    "NestedLSTM",
]

class RuleLSTM(RuleLayer):
    @property
    def cell(self) -> RuleLSTMCell: ...
    @property
    def rule(self) -> Rule: ...
    @property
    def units(self) -> int: ...
    @property
    def activation(self) -> Any: ...
    @property
    def recurrent_activation(self) -> Any: ...
    @property
    def use_bias(self) -> bool: ...
    @property
    def kernel_initializer(self) -> Any: ...
    @property
    def recurrent_initializer(self) -> Any: ...
    @property
    def bias_initializer(self) -> Any: ...
    @property
    def unit_forget_bias(self) -> bool: ...
    @property
    def kernel_regularizer(self) -> Any: ...
    @property
    def recurrent_regularizer(self) -> Any: ...
    @property
    def bias_regularizer(self) -> Any: ...
    @property
    def kernel_constraint(self) -> Any: ...
    @property
    def recurrent_constraint(self) -> Any: ...
    @property
    def bias_constraint(self) -> Any: ...
    @property
    def dropout(self) -> float: ...
    @property
    def recurrent_dropout(self) -> float: ...
    @property
    def seed(self) -> int | keras.random.SeedGenerator | None: ...
    return_sequences: bool
    return_state: bool
    go_backwards: bool
    stateful: bool
    unroll: bool
    use_cudnn: bool | Literal["auto"]
    @property
    def use_recurrent_bias(self) -> bool: ...
    zero_output_for_mask: bool
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None,
        return_sequences: bool = False, return_state: bool = False, go_backwards: bool = False,
        stateful: bool = False, unroll: bool = False,
        use_cudnn: bool | Literal["auto"] = "auto", *, rule: Rule | dict[str, Any],
        use_recurrent_bias: bool = False, zero_output_for_mask: bool = False,
        trainable: bool = True, dtype: Any = None, autocast: bool = True,
        name: str | None = None, input_shape: tuple[int | None, ...] = ...,
        implementation: int = 2
    ) -> None:
        """LSTM whose input drive is turned by any momentum rule."""

class MomentumLSTM(RuleLSTM):
    @property
    def cell(self) -> MomentumLSTMCell: ...
    @property
    def rule(self) -> HeavyBall: ...
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
        bias_regularizer: Identifier = None, activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None,
        return_sequences: bool = False, return_state: bool = False, go_backwards: bool = False,
        stateful: bool = False, unroll: bool = False,
        use_cudnn: bool | Literal["auto"] = "auto", *, use_recurrent_bias: bool = False,
        momentum: float = 0.6, step_size: float = 0.6, zero_output_for_mask: bool = False,
        trainable: bool = True, dtype: Any = None, autocast: bool = True,
        name: str | None = None, input_shape: tuple[int | None, ...] = ...,
        implementation: int = 2
    ) -> None:
        """LSTM whose input drive is a heavy-ball velocity."""

class NAGLSTM(RuleLSTM):
    @property
    def cell(self) -> NAGLSTMCell: ...
    @property
    def rule(self) -> NAG: ...
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None,
        return_sequences: bool = False, return_state: bool = False, go_backwards: bool = False,
        stateful: bool = False, unroll: bool = False,
        use_cudnn: bool | Literal["auto"] = "auto", *, use_recurrent_bias: bool = False,
        step_size: float = 0.9, zero_output_for_mask: bool = False, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None:
        """LSTM whose input drive follows Nesterov's momentum schedule."""

class SRLSTM(RuleLSTM):
    @property
    def rule(self) -> ScheduledRestart: ...
    @property
    def restart_period(self) -> int: ...
    @property
    def step_size(self) -> float: ...
    formulation: Literal["paper", "released"]
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None,
        return_sequences: bool = False, return_state: bool = False, go_backwards: bool = False,
        stateful: bool = False, unroll: bool = False,
        use_cudnn: bool | Literal["auto"] = "auto", *, use_recurrent_bias: bool = False,
        restart_period: int = 40, step_size: float = 0.9,
        formulation: Literal["paper", "released"] = "paper", zero_output_for_mask: bool = False,
        trainable: bool = True, dtype: Any = None, autocast: bool = True,
        name: str | None = None, input_shape: tuple[int | None, ...] = ...,
        implementation: int = 2
    ) -> None:
        """LSTM with Nesterov's momentum schedule, restarted every `restart_period` steps."""

class AdamLSTM(RuleLSTM):
    @property
    def cell(self) -> AdamLSTMCell: ...
    @property
    def rule(self) -> Adam: ...
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
    scale_free: bool
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None,
        return_sequences: bool = False, return_state: bool = False, go_backwards: bool = False,
        stateful: bool = False, unroll: bool = False,
        use_cudnn: bool | Literal["auto"] = "auto", *, use_recurrent_bias: bool = False,
        momentum: float = 0.6, step_size: float = 0.6, beta: float = 0.99,
        epsilon: float = 1e-08, relaxed: bool = True, scale_free: bool = False,
        zero_output_for_mask: bool = False, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None:
        """LSTM whose input drive is accelerated as by Adam."""

class RMSPropLSTM(RuleLSTM):
    @property
    def cell(self) -> RMSPropLSTMCell: ...
    @property
    def rule(self) -> RMSProp: ...
    @property
    def step_size(self) -> float: ...
    @property
    def beta(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    scale_free: bool
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None,
        return_sequences: bool = False, return_state: bool = False, go_backwards: bool = False,
        stateful: bool = False, unroll: bool = False,
        use_cudnn: bool | Literal["auto"] = "auto", *, use_recurrent_bias: bool = False,
        step_size: float = 0.6, beta: float = 0.9, epsilon: float = 1e-08,
        scale_free: bool = False, zero_output_for_mask: bool = False, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None:
        """LSTM whose input drive is scaled as by RMSProp: `AdamLSTM` at momentum 0."""

class RuleRNN(RuleLayer):
    @property
    def cell(self) -> RuleRNNCell: ...
    @property
    def rule(self) -> Rule: ...
    @property
    def units(self) -> int: ...
    @property
    def activation(self) -> Any: ...
    @property
    def use_bias(self) -> bool: ...
    @property
    def kernel_initializer(self) -> Any: ...
    @property
    def recurrent_initializer(self) -> Any: ...
    @property
    def bias_initializer(self) -> Any: ...
    @property
    def kernel_regularizer(self) -> Any: ...
    @property
    def recurrent_regularizer(self) -> Any: ...
    @property
    def bias_regularizer(self) -> Any: ...
    @property
    def kernel_constraint(self) -> Any: ...
    @property
    def recurrent_constraint(self) -> Any: ...
    @property
    def bias_constraint(self) -> Any: ...
    @property
    def dropout(self) -> float: ...
    @property
    def recurrent_dropout(self) -> float: ...
    return_sequences: bool
    return_state: bool
    go_backwards: bool
    stateful: bool
    unroll: bool
    @property
    def seed(self) -> int | keras.random.SeedGenerator | None: ...
    @property
    def parameterization(self) -> Literal["input", "hidden"]: ...
    zero_output_for_mask: bool
    def __init__(
        self, units: int, activation: Identifier = "tanh", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        activity_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, seed: int | keras.random.SeedGenerator | None = None, *,
        rule: Rule | dict[str, Any], parameterization: Literal["input", "hidden"] = "input",
        zero_output_for_mask: bool = False, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None:
        """Elman layer whose input drive is turned by any momentum rule."""

class MomentumRNN(RuleRNN):
    @property
    def cell(self) -> MomentumRNNCell: ...
    @property
    def rule(self) -> HeavyBall: ...
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
        activity_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, seed: int | keras.random.SeedGenerator | None = None, *,
        parameterization: Literal["input", "hidden"] = "input", momentum: float = 0.6,
        step_size: float = 0.6, zero_output_for_mask: bool = False, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None:
        """Elman layer whose input drive is a heavy-ball velocity."""

class NAGRNN(RuleRNN):
    @property
    def cell(self) -> NAGRNNCell: ...
    @property
    def rule(self) -> NAG: ...
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        activity_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, seed: int | keras.random.SeedGenerator | None = None, *,
        parameterization: Literal["input", "hidden"] = "input", step_size: float = 0.9,
        zero_output_for_mask: bool = False, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None:
        """Elman layer whose input drive follows Nesterov's momentum schedule."""

class SRRNN(RuleRNN):
    @property
    def cell(self) -> SRRNNCell: ...
    @property
    def rule(self) -> ScheduledRestart: ...
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
        activity_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, seed: int | keras.random.SeedGenerator | None = None, *,
        parameterization: Literal["input", "hidden"] = "input", restart_period: int = 40,
        step_size: float = 0.9, zero_output_for_mask: bool = False, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None:
        """Elman layer whose input drive follows Nesterov's schedule with restarts."""

class AdamRNN(RuleRNN):
    @property
    def cell(self) -> AdamRNNCell: ...
    @property
    def rule(self) -> Adam: ...
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
        activity_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, seed: int | keras.random.SeedGenerator | None = None, *,
        parameterization: Literal["input", "hidden"] = "input", momentum: float = 0.6,
        step_size: float = 0.6, beta: float = 0.99, epsilon: float = 1e-08,
        relaxed: bool = True, zero_output_for_mask: bool = False, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None:
        """Elman layer whose input drive is accelerated as by Adam."""

class RMSPropRNN(RuleRNN):
    @property
    def cell(self) -> RMSPropRNNCell: ...
    @property
    def rule(self) -> RMSProp: ...
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
        activity_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, seed: int | keras.random.SeedGenerator | None = None, *,
        parameterization: Literal["input", "hidden"] = "input", step_size: float = 0.6,
        beta: float = 0.9, epsilon: float = 1e-08, zero_output_for_mask: bool = False,
        trainable: bool = True, dtype: Any = None, autocast: bool = True,
        name: str | None = None, input_shape: tuple[int | None, ...] = ...
    ) -> None:
        """Elman layer whose input drive is scaled as by RMSProp."""

class RuleGRU(RuleLayer):
    @property
    def cell(self) -> RuleGRUCell: ...
    @property
    def rule(self) -> Rule: ...
    @property
    def units(self) -> int: ...
    @property
    def activation(self) -> Any: ...
    @property
    def recurrent_activation(self) -> Any: ...
    @property
    def use_bias(self) -> bool: ...
    @property
    def kernel_initializer(self) -> Any: ...
    @property
    def recurrent_initializer(self) -> Any: ...
    @property
    def bias_initializer(self) -> Any: ...
    @property
    def kernel_regularizer(self) -> Any: ...
    @property
    def recurrent_regularizer(self) -> Any: ...
    @property
    def bias_regularizer(self) -> Any: ...
    @property
    def kernel_constraint(self) -> Any: ...
    @property
    def recurrent_constraint(self) -> Any: ...
    @property
    def bias_constraint(self) -> Any: ...
    @property
    def dropout(self) -> float: ...
    @property
    def recurrent_dropout(self) -> float: ...
    @property
    def seed(self) -> int | keras.random.SeedGenerator | None: ...
    return_sequences: bool
    return_state: bool
    go_backwards: bool
    stateful: bool
    unroll: bool
    @property
    def reset_after(self) -> bool: ...
    use_cudnn: bool | Literal["auto"]
    zero_output_for_mask: bool
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        activity_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, reset_after: bool = True,
        use_cudnn: bool | Literal["auto"] = "auto", *, rule: Rule | dict[str, Any],
        zero_output_for_mask: bool = False, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None:
        """GRU whose input drive is turned by any momentum rule."""

class MomentumGRU(RuleGRU):
    @property
    def cell(self) -> MomentumGRUCell: ...
    @property
    def rule(self) -> HeavyBall: ...
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
        activity_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, reset_after: bool = True,
        use_cudnn: bool | Literal["auto"] = "auto", *, momentum: float = 0.6,
        step_size: float = 0.6, zero_output_for_mask: bool = False, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None:
        """GRU whose input drive is a heavy-ball velocity."""

class NAGGRU(RuleGRU):
    @property
    def cell(self) -> NAGGRUCell: ...
    @property
    def rule(self) -> NAG: ...
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", kernel_regularizer: Identifier = None,
        recurrent_regularizer: Identifier = None, bias_regularizer: Identifier = None,
        activity_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, reset_after: bool = True,
        use_cudnn: bool | Literal["auto"] = "auto", *, step_size: float = 0.9,
        zero_output_for_mask: bool = False, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None:
        """GRU whose input drive follows Nesterov's momentum schedule."""

class SRGRU(RuleGRU):
    @property
    def cell(self) -> SRGRUCell: ...
    @property
    def rule(self) -> ScheduledRestart: ...
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
        activity_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, reset_after: bool = True,
        use_cudnn: bool | Literal["auto"] = "auto", *, restart_period: int = 40,
        step_size: float = 0.9, zero_output_for_mask: bool = False, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None:
        """GRU whose input drive follows Nesterov's schedule with restarts."""

class AdamGRU(RuleGRU):
    @property
    def cell(self) -> AdamGRUCell: ...
    @property
    def rule(self) -> Adam: ...
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
        activity_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, reset_after: bool = True,
        use_cudnn: bool | Literal["auto"] = "auto", *, momentum: float = 0.6,
        step_size: float = 0.6, beta: float = 0.99, epsilon: float = 1e-08,
        relaxed: bool = True, zero_output_for_mask: bool = False, trainable: bool = True,
        dtype: Any = None, autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None:
        """GRU whose input drive is accelerated as by Adam."""

class RMSPropGRU(RuleGRU):
    @property
    def cell(self) -> RMSPropGRUCell: ...
    @property
    def rule(self) -> RMSProp: ...
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
        activity_regularizer: Identifier = None, kernel_constraint: Identifier = None,
        recurrent_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0,
        seed: int | keras.random.SeedGenerator | None = None, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, reset_after: bool = True,
        use_cudnn: bool | Literal["auto"] = "auto", *, step_size: float = 0.6,
        beta: float = 0.9, epsilon: float = 1e-08, zero_output_for_mask: bool = False,
        trainable: bool = True, dtype: Any = None, autocast: bool = True,
        name: str | None = None, input_shape: tuple[int | None, ...] = ...,
        implementation: int = 2
    ) -> None:
        """GRU whose input drive is scaled as by RMSProp."""

class RuleDTRIV(RuleLayer):
    @property
    def cell(self) -> RuleDTRIVCell: ...
    @property
    def rule(self) -> Rule: ...
    @property
    def units(self) -> int: ...
    @property
    def use_bias(self) -> bool: ...
    @property
    def kernel_initializer(self) -> Any: ...
    @property
    def recurrent_initializer(self) -> Any: ...
    @property
    def bias_initializer(self) -> Any: ...
    @property
    def kernel_regularizer(self) -> Any: ...
    @property
    def recurrent_regularizer(self) -> Any: ...
    @property
    def bias_regularizer(self) -> Any: ...
    @property
    def kernel_constraint(self) -> Any: ...
    @property
    def bias_constraint(self) -> Any: ...
    @property
    def dropout(self) -> float: ...
    @property
    def recurrent_dropout(self) -> float: ...
    return_sequences: bool
    return_state: bool
    go_backwards: bool
    stateful: bool
    unroll: bool
    @property
    def seed(self) -> int | keras.random.SeedGenerator | None: ...
    @property
    def parametrization(self) -> Literal["expm", "cayley"]: ...
    @property
    def initial_rotation(self) -> Literal["base", "skew"]: ...
    @property
    def recurrent_lr_multiplier(self) -> float: ...
    @property
    def modrelu_bias_initializer(self) -> Any: ...
    rebase_every: int | None
    zero_output_for_mask: bool
    def __init__(
        self, units: int, use_bias: bool = False, kernel_initializer: Identifier = "he_normal",
        recurrent_initializer: Identifier = ..., bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, seed: int | keras.random.SeedGenerator | None = None, *,
        rule: Rule | dict[str, Any], parametrization: Literal["expm", "cayley"] = "expm",
        initial_rotation: Literal["base", "skew"] = "base",
        recurrent_lr_multiplier: float = 1.0, modrelu_bias_initializer: Identifier = None,
        rebase_every: int | None = None, zero_output_for_mask: bool = False,
        trainable: bool = True, dtype: Any = None, autocast: bool = True,
        name: str | None = None, input_shape: tuple[int | None, ...] = ...
    ) -> None:
        """Orthogonal layer whose input drive is turned by any momentum rule."""

class DTRIV(RuleDTRIV):
    @property
    def cell(self) -> DTRIVCell: ...
    @property
    def rule(self) -> Identity: ...
    def __init__(
        self, units: int, use_bias: bool = False, kernel_initializer: Identifier = "he_normal",
        recurrent_initializer: Identifier = ..., bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, seed: int | keras.random.SeedGenerator | None = None, *,
        parametrization: Literal["expm", "cayley"] = "expm",
        initial_rotation: Literal["base", "skew"] = "base",
        recurrent_lr_multiplier: float = 1.0, modrelu_bias_initializer: Identifier = None,
        rebase_every: int | None = None, zero_output_for_mask: bool = False,
        trainable: bool = True, dtype: Any = None, autocast: bool = True,
        name: str | None = None, input_shape: tuple[int | None, ...] = ...
    ) -> None:
        """Orthogonal layer whose recurrent matrix is a rotation, without momentum."""

class MomentumDTRIV(RuleDTRIV):
    @property
    def cell(self) -> MomentumDTRIVCell: ...
    @property
    def rule(self) -> HeavyBall: ...
    @property
    def momentum(self) -> float: ...
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, use_bias: bool = False, kernel_initializer: Identifier = "he_normal",
        recurrent_initializer: Identifier = ..., bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, seed: int | keras.random.SeedGenerator | None = None, *,
        parametrization: Literal["expm", "cayley"] = "expm",
        initial_rotation: Literal["base", "skew"] = "base",
        recurrent_lr_multiplier: float = 1.0, modrelu_bias_initializer: Identifier = None,
        momentum: float = 0.6, step_size: float = 0.6, rebase_every: int | None = None,
        zero_output_for_mask: bool = False, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None:
        """Orthogonal layer whose input drive is a heavy-ball velocity."""

class NAGDTRIV(RuleDTRIV):
    @property
    def cell(self) -> NAGDTRIVCell: ...
    @property
    def rule(self) -> NAG: ...
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, use_bias: bool = False, kernel_initializer: Identifier = "he_normal",
        recurrent_initializer: Identifier = ..., bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, seed: int | keras.random.SeedGenerator | None = None, *,
        parametrization: Literal["expm", "cayley"] = "expm",
        initial_rotation: Literal["base", "skew"] = "base",
        recurrent_lr_multiplier: float = 1.0, modrelu_bias_initializer: Identifier = None,
        step_size: float = 0.9, rebase_every: int | None = None,
        zero_output_for_mask: bool = False, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None:
        """Orthogonal layer whose input drive follows Nesterov's momentum schedule."""

class SRDTRIV(RuleDTRIV):
    @property
    def cell(self) -> SRDTRIVCell: ...
    @property
    def rule(self) -> ScheduledRestart: ...
    @property
    def restart_period(self) -> int: ...
    @property
    def step_size(self) -> float: ...
    def __init__(
        self, units: int, use_bias: bool = False, kernel_initializer: Identifier = "he_normal",
        recurrent_initializer: Identifier = ..., bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, seed: int | keras.random.SeedGenerator | None = None, *,
        parametrization: Literal["expm", "cayley"] = "expm",
        initial_rotation: Literal["base", "skew"] = "base",
        recurrent_lr_multiplier: float = 1.0, modrelu_bias_initializer: Identifier = None,
        restart_period: int = 40, step_size: float = 0.9, rebase_every: int | None = None,
        zero_output_for_mask: bool = False, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None:
        """Orthogonal layer whose input drive follows Nesterov's schedule with restarts."""

class AdamDTRIV(RuleDTRIV):
    @property
    def cell(self) -> AdamDTRIVCell: ...
    @property
    def rule(self) -> Adam: ...
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
        bias_regularizer: Identifier = None, activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, seed: int | keras.random.SeedGenerator | None = None, *,
        parametrization: Literal["expm", "cayley"] = "expm",
        initial_rotation: Literal["base", "skew"] = "base",
        recurrent_lr_multiplier: float = 1.0, modrelu_bias_initializer: Identifier = None,
        momentum: float = 0.6, step_size: float = 0.6, beta: float = 0.99,
        epsilon: float = 1e-08, relaxed: bool = True, rebase_every: int | None = None,
        zero_output_for_mask: bool = False, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ...
    ) -> None:
        """Orthogonal layer whose input drive is accelerated as by Adam."""

class RMSPropDTRIV(RuleDTRIV):
    @property
    def cell(self) -> RMSPropDTRIVCell: ...
    @property
    def rule(self) -> RMSProp: ...
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
        bias_regularizer: Identifier = None, activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, bias_constraint: Identifier = None,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, seed: int | keras.random.SeedGenerator | None = None, *,
        parametrization: Literal["expm", "cayley"] = "expm",
        initial_rotation: Literal["base", "skew"] = "base",
        recurrent_lr_multiplier: float = 1.0, modrelu_bias_initializer: Identifier = None,
        step_size: float = 0.6, beta: float = 0.9, epsilon: float = 1e-08,
        rebase_every: int | None = None, zero_output_for_mask: bool = False,
        trainable: bool = True, dtype: Any = None, autocast: bool = True,
        name: str | None = None, input_shape: tuple[int | None, ...] = ...
    ) -> None:
        """Orthogonal layer whose input drive is scaled as by RMSProp."""

class MCRM(RuleLayer):
    @property
    def cell(self) -> MCRMCell: ...
    @property
    def rule(self) -> Rule: ...
    @property
    def units(self) -> int: ...
    @property
    def activation(self) -> Any: ...
    @property
    def recurrent_activation(self) -> Any: ...
    @property
    def use_bias(self) -> bool: ...
    @property
    def kernel_initializer(self) -> Any: ...
    @property
    def recurrent_initializer(self) -> Any: ...
    @property
    def bias_initializer(self) -> Any: ...
    @property
    def unit_forget_bias(self) -> bool: ...
    @property
    def kernel_regularizer(self) -> Any: ...
    @property
    def recurrent_regularizer(self) -> Any: ...
    @property
    def bias_regularizer(self) -> Any: ...
    @property
    def kernel_constraint(self) -> Any: ...
    @property
    def recurrent_constraint(self) -> Any: ...
    @property
    def bias_constraint(self) -> Any: ...
    @property
    def dropout(self) -> float: ...
    @property
    def recurrent_dropout(self) -> float: ...
    @property
    def seed(self) -> int | keras.random.SeedGenerator | None: ...
    return_sequences: bool
    return_state: bool
    go_backwards: bool
    stateful: bool
    unroll: bool
    use_cudnn: bool | Literal["auto"]
    @property
    def use_recurrent_bias(self) -> bool: ...
    @property
    def memory(self) -> Any: ...
    zero_output_for_mask: bool
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None,
        return_sequences: bool = False, return_state: bool = False, go_backwards: bool = False,
        stateful: bool = False, unroll: bool = False,
        use_cudnn: bool | Literal["auto"] = "auto", *,
        rule: Rule | dict[str, Any] | None = None, use_recurrent_bias: bool = False,
        memory: keras.layers.Layer | dict[str, Any] | None = None,
        zero_output_for_mask: bool = False, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None:
        """Mother compact recurrent memory: an LSTM whose memory c is the state of a GRU."""

class NestedLSTM(RuleLayer):
    @property
    def cell(self) -> NestedLSTMCell: ...
    @property
    def rule(self) -> Rule: ...
    @property
    def units(self) -> int: ...
    @property
    def activation(self) -> Any: ...
    @property
    def recurrent_activation(self) -> Any: ...
    @property
    def use_bias(self) -> bool: ...
    @property
    def kernel_initializer(self) -> Any: ...
    @property
    def recurrent_initializer(self) -> Any: ...
    @property
    def bias_initializer(self) -> Any: ...
    @property
    def unit_forget_bias(self) -> bool: ...
    @property
    def kernel_regularizer(self) -> Any: ...
    @property
    def recurrent_regularizer(self) -> Any: ...
    @property
    def bias_regularizer(self) -> Any: ...
    @property
    def kernel_constraint(self) -> Any: ...
    @property
    def recurrent_constraint(self) -> Any: ...
    @property
    def bias_constraint(self) -> Any: ...
    @property
    def dropout(self) -> float: ...
    @property
    def recurrent_dropout(self) -> float: ...
    @property
    def seed(self) -> int | keras.random.SeedGenerator | None: ...
    return_sequences: bool
    return_state: bool
    go_backwards: bool
    stateful: bool
    unroll: bool
    use_cudnn: bool | Literal["auto"]
    @property
    def use_recurrent_bias(self) -> bool: ...
    @property
    def memory(self) -> Any: ...
    zero_output_for_mask: bool
    def __init__(
        self, units: int, activation: Identifier = "tanh",
        recurrent_activation: Identifier = "sigmoid", use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        recurrent_initializer: Identifier = "orthogonal",
        bias_initializer: Identifier = "zeros", unit_forget_bias: bool = True,
        kernel_regularizer: Identifier = None, recurrent_regularizer: Identifier = None,
        bias_regularizer: Identifier = None, activity_regularizer: Identifier = None,
        kernel_constraint: Identifier = None, recurrent_constraint: Identifier = None,
        bias_constraint: Identifier = None, dropout: float = 0.0,
        recurrent_dropout: float = 0.0, seed: int | keras.random.SeedGenerator | None = None,
        return_sequences: bool = False, return_state: bool = False, go_backwards: bool = False,
        stateful: bool = False, unroll: bool = False,
        use_cudnn: bool | Literal["auto"] = "auto", *,
        rule: Rule | dict[str, Any] | None = None, use_recurrent_bias: bool = False,
        memory: keras.layers.Layer | dict[str, Any] | None = None,
        zero_output_for_mask: bool = False, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: str | None = None,
        input_shape: tuple[int | None, ...] = ..., implementation: int = 2
    ) -> None:
        """Nested LSTM: an LSTM whose memory c is the hidden state of another LSTM."""
