"""Appendix A.6 of Sutskever et al. (2013) as data: their hybrid of HF and momentum, in phases.

The printed text has slips, and here is what is made of them:

- On curves the error after the second phase is printed as 0.0094, before 0.087 and 0.058: it
  must be 0.094.
- The learning rate of a second phase is 500 / (t - 4000) on curves and 250 / t on MNIST. Where
  t counts from the start of the phase, the first is negative and the second exceeds 1. Where it
  counts all updates, both begin at 0.5: so it is read, and bounded by 1, the rate before.
- The length of the second phase of curves is not printed.
- Table 1 calls the column "HF without L2 regularization"; on curves the penalty is lowered to
  "near zero" in the last phase, and on MNIST it stays at 1e-5 to the end.
- No damping, and no rule for it, is printed.
"""

import dataclasses

import keras
from keras import ops

from keras_momentum_rnn.optimizers import HessianFree

# NAG's runs, section 3: the budget that Table 1 compares with.
NAG_UPDATES, NAG_BATCH = 750_000, 200
SIZES = {"curves": 20_000, "mnist": 60_000}


@keras.saving.register_keras_serializable(package="examples")
class Annealed(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate `min(numerator / (t - start), 1)`, t the updates from the beginning."""

    def __init__(self, numerator, start=0):
        self.numerator, self.start = numerator, start

    def __call__(self, step):
        t = ops.cast(step, "float32") - self.start
        return ops.minimum(self.numerator / ops.maximum(t, self.numerator), 1.0)

    def get_config(self):
        return {"numerator": self.numerator, "start": self.start}


@dataclasses.dataclass(frozen=True)
class Phase:
    """Some updates of the hybrid that share their settings.

    Attributes:
        total_cg_steps: int, how many steps of CG it has in all; None where it is not printed.
        cg_steps: int, of an update.
        decay: float, the paper's mu.
        learning_rate: float or schedule, the paper's epsilon.
        gradient_share: float, the share of the training set in the gradient of an update.
        curvature_share: float, the share of the training set in its curvature.
        l2: float, the weight decay.
        error: float, the paper's training error after it, or None.
    """

    total_cg_steps: int | None
    cg_steps: int
    decay: float
    learning_rate: object
    gradient_share: float
    curvature_share: float
    l2: float
    error: float | None

    @property
    def updates(self):
        return None if self.total_cg_steps is None else self.total_cg_steps // self.cg_steps

    def batch_size(self, images):
        return round(self.gradient_share * images)

    def optimizer(self, damping=1.0):
        """Return the optimizer of a phase: fixed steps of CG and no line search."""
        return HessianFree(
            self.learning_rate,
            cg_steps=self.cg_steps,
            tolerance=None,
            decay=self.decay,
            damping=damping,
            curvature_fraction=self.curvature_share / self.gradient_share,
            backtracking=False,
            line_search=False,
        )


HYBRID = {
    "curves": (
        Phase(250_000, 50, 0.95, 1.0, 1 / 16, 1 / 16, 2e-5, None),
        Phase(None, 50, 0.999, Annealed(500, 4000), 1 / 16, 1 / 16, 2e-5, 0.094),
        Phase(100_000, 200, 0.995, 1.0, 1.0, 1.0, 2e-5, 0.087),
        Phase(500_000, 200, 0.995, 1.0, 1.0, 1.0, 0.0, 0.058),
    ),
    "mnist": (
        Phase(25_000, 50, 0.95, 1.0, 1 / 20, 1 / 20, 1e-5, None),
        Phase(225_000, 50, 0.995, Annealed(250), 1 / 20, 1 / 20, 1e-5, 0.81),
        Phase(125_000, 50, 0.995, 1.0, 1.0, 1 / 20, 1e-5, 0.69),
    ),
}


def row_products(dataset):
    """Return how many products of the curvature of one image the recipe has.

    The phase without a printed length is left out.
    """
    phases = [phase for phase in HYBRID[dataset] if phase.total_cg_steps]
    return sum(p.total_cg_steps * p.curvature_share for p in phases) * SIZES[dataset]


def times_nag(dataset):
    """Return the recipe's products per gradient of one image in a run of NAG."""
    return row_products(dataset) / (NAG_UPDATES * NAG_BATCH)
