"""Appendix A.6 of Sutskever et al. (2013) as data: their hybrid of HF and momentum on curves.

The printed text has slips, and here is what is made of them:

- The error after the second phase is printed as 0.0094, before 0.087 and 0.058: it must be
  0.094.
- The learning rate of the second phase is 500 / (t - 4000). Where t counts from the start of
  the phase, it is negative. Where it counts all updates, it begins at 0.5: so it is read, and
  bounded by 1, the rate before.
- The length of the second phase is not printed.
- Table 1 calls the column "HF without L2 regularization"; the penalty is lowered to "near zero"
  in the last phase.
- No damping, and no rule for it, is printed.
"""

import dataclasses

from keras_momentum_rnn.optimizers import HessianFree
from papers.presentation import markdown_table

IMAGES = 20_000
# The images in all gradients of NAG's runs, section 3: the budget that Table 1 compares with.
NAG_GRADIENTS = 750_000 * 200


@dataclasses.dataclass(frozen=True)
class Phase:
    """Some updates of the hybrid that share their settings.

    Attributes:
        total_cg_steps: int, how many steps of CG it has in all; None where it is not printed.
        cg_steps: int, of an update.
        decay: float, the paper's mu.
        learning_rate: the paper's epsilon, in words where it changes.
        images: int, in the gradient and the curvature of an update.
        l2: float, the weight decay.
        error: float, the paper's training error after it, or None.
    """

    total_cg_steps: int | None
    cg_steps: int
    decay: float
    learning_rate: str
    images: int
    l2: float
    error: float | None

    @property
    def products(self):
        """How many products with the curvature of one image it has; 0 if that is unknown."""
        return (self.total_cg_steps or 0) * self.images


PHASES = (
    Phase(250_000, 50, 0.95, "1", IMAGES // 16, 2e-5, None),
    Phase(None, 50, 0.999, "min(500 / (t - 4000), 1)", IMAGES // 16, 2e-5, 0.094),
    Phase(100_000, 200, 0.995, "1", IMAGES, 2e-5, 0.087),
    Phase(500_000, 200, 0.995, "1", IMAGES, 0.0, 0.058),
)
FIRST = PHASES[0]


def first_optimizer(learning_rate=1.0):
    """Return the optimizer of the first phase: fixed steps of CG and no line search."""
    return HessianFree(
        learning_rate,
        cg_steps=FIRST.cg_steps,
        tolerance=None,
        decay=FIRST.decay,
        backtracking=False,
        line_search=False,
    )


def report_of(cg_steps):
    """Return the phases as a table, and what share of them a run of the first one made."""
    head = ["phase", "CG steps", "in an update", "decay", "learning rate"]
    head += ["images in an update", "L2", "error in the paper"]
    cells = [
        [
            f"{number}",
            f"{phase.total_cg_steps:,}" if phase.total_cg_steps else "not printed",
            f"{phase.cg_steps}",
            f"{phase.decay:g}",
            phase.learning_rate,
            f"{phase.images:,}",
            f"{phase.l2:g}",
            f"{phase.error:g}" if phase.error else "",
        ]
        for number, phase in enumerate(PHASES, 1)
    ]
    products = sum(phase.products for phase in PHASES)
    return (
        "The recipe of appendix A.6, whose first phase the hybrid has begun:\n\n"
        f"{markdown_table(head, cells)}\n\n"
        f"Its phases of printed length take {products / 1e9:.1f} billion products of one "
        f"image, {products / NAG_GRADIENTS:.0f} times the {NAG_GRADIENTS / 1e6:.0f} million "
        f"gradients of one image in a run of NAG. The run here made {cg_steps:,.0f} CG steps: "
        f"{cg_steps / FIRST.total_cg_steps:.2%} of the first phase, and "
        f"{cg_steps * FIRST.images / products:.4%} of all these products."
    )
