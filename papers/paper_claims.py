"""What the papers claim of their layers, by task."""

from papers.experiments import Claim
from papers.tasks import sutskever2013

MOMENTUM_LSTMS = ("MomentumLSTM", "AdamLSTM", "RMSPropLSTM", "SRLSTM")
NESTED_RIVALS = ("SimpleRNN", "GRU", "LSTM", "NestedLSTM")
BY_TASKS = (
    (
        ("mnist", "pmnist", "digits"),
        Claim(
            "Nguyen et al. (2020), Tables 1 and 11, on MNIST: every momentum LSTM classifies "
            "better than LSTM",
            MOMENTUM_LSTMS,
            ("LSTM",),
        ),
    ),
    (
        ("pmnist",),
        Claim(
            "Nguyen et al. (2020), Table 4: MomentumDTRIV classifies better than DTRIV",
            ("MomentumDTRIV",),
            ("DTRIV",),
        ),
    ),
    (
        ("speech",),
        Claim(
            "Nguyen et al. (2020), Tables 2 and 12, on TIMIT: every momentum LSTM predicts "
            "better than LSTM",
            MOMENTUM_LSTMS,
            ("LSTM",),
        ),
    ),
    (
        ("adding", "copying"),
        Claim(
            "Nguyen et al. (2020), Figure 4: AdamLSTM and RMSPropLSTM come to better losses "
            "than LSTM",
            ("AdamLSTM", "RMSPropLSTM"),
            ("LSTM",),
        ),
    ),
    (
        ("mnist", "adding", "copying", "characters"),
        Claim(
            "Mohamed and Claudel (2018), Table 1: MCRM is better than RNN, GRU, LSTM and "
            "Nested LSTM",
            ("MCRM",),
            NESTED_RIVALS,
        ),
    ),
)
# Of a plain network, by the momentum of its optimizer.
NONE, *MOMENTA = (f"SimpleRNN {column}" for column in sutskever2013.COLUMNS[1:])
BEST = "SimpleRNN 0.995N"
ON_LONG_DEPENDENCIES = (
    Claim(
        "Sutskever et al. (2013), Table 5: Nesterov momentum of 0.995 is better than every "
        "other momentum",
        (BEST,),
        (NONE, *(name for name in MOMENTA if name != BEST)),
    ),
    Claim(
        "Sutskever et al. (2013), Table 5: any Nesterov momentum is better than none",
        tuple(name for name in MOMENTA if name.endswith("N")),
        (NONE,),
    ),
)


def claims_on(task):
    """Return what the papers claim of the layers on a task, a tuple of `Claim`s."""
    return tuple(claim for tasks, claim in BY_TASKS if task in tasks)
