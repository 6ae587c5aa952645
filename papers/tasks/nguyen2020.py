"""What Nguyen et al. (2020), "MomentumRNN", published: settings and results, as data."""

# Table 6: optimizer, learning rate, batch size, "#Epochs", of LSTM and all of its variants.
LSTM_TRAINING = {
    "mnist": ("RMSprop", 1e-3, 128, 150),
    "pmnist": ("RMSprop", 1e-3, 128, 150),
    "timit": ("Adam", 1e-4, 32, 700),
    "words": ("SGD", 30.0, 20, 500),
    "copying": ("RMSprop", 2e-4, 128, 7000),
    "adding": ("Adam", 2e-4, 50, 1200),
}
# Appendix A: the sizes that were run; of Penn Treebank the three layers.
LSTM_UNITS = {
    "mnist": (256, 128),
    "pmnist": (256, 128),
    "timit": (84, 120, 158),
    "words": ((1150, 1150, 400),),
    "copying": (190,),
    "adding": (128,),
}
# Tables 7 to 10: what the rules add, by layer and task; where that depends on the size or on
# the length of the copying task, a dict by it.
LSTM_NUMBERS = {
    "LSTM": ("Table 6", {task: {} for task in LSTM_TRAINING}),
    "MomentumLSTM": (
        "Table 7",
        {
            "mnist": {"momentum": 0.6, "step_size": 0.6},
            "pmnist": {"momentum": 0.6, "step_size": 1.0},
            "timit": {"momentum": 0.3, "step_size": 0.1},
            "words": {"momentum": 0.0, "step_size": 0.6},
            "copying": {
                1000: {"momentum": 0.6, "step_size": 0.9},
                2000: {"momentum": 0.9, "step_size": 2.0},
            },
            "adding": {"momentum": 0.9, "step_size": 2.0},
        },
    ),
    "AdamLSTM": (
        "Table 8",
        {
            "mnist": {"momentum": 0.6, "step_size": 0.6, "beta": 0.1},
            "pmnist": {"momentum": 0.6, "step_size": 1.0, "beta": 0.01},
            "timit": {"momentum": 0.3, "step_size": 0.1, "beta": 0.999},
            "copying": {"momentum": 0.6, "step_size": 2.0, "beta": 0.999},
            "adding": {"momentum": 0.6, "step_size": 2.0, "beta": 0.999},
        },
    ),
    "RMSPropLSTM": (
        "Table 9",
        {
            "mnist": {
                256: {"step_size": 0.6, "beta": 0.9},
                128: {"step_size": 0.6, "beta": 0.99},
            },
            "pmnist": {"step_size": 1.0, "beta": 0.01},
            "timit": {"step_size": 0.1, "beta": 0.999},
            "copying": {"step_size": 2.0, "beta": 0.999},
            "adding": {"step_size": 2.0, "beta": 0.999},
        },
    ),
    "SRLSTM": (
        "Table 10",
        {
            "mnist": {"restart_period": 2, "step_size": 1.0},
            "pmnist": {
                256: {"restart_period": 40, "step_size": 0.9},
                128: {"restart_period": 6, "step_size": 0.01},
            },
            "timit": {"restart_period": 2, "step_size": 0.1},
            "words": {"restart_period": 2, "step_size": 0.6},
            "copying": {"restart_period": 100, "step_size": 0.9},
            "adding": {"restart_period": 100, "step_size": 0.9},
        },
    ),
}
# Table 6: K, the learning rate, and that of S, by task and units.
DTRIV_TRAINING = {
    ("mnist", 170): (1, 1e-3, 1e-4),
    ("mnist", 360): (None, 5e-4, 1e-4),
    ("mnist", 512): (100, 5e-4, 1e-4),
    ("pmnist", 170): (1, 7e-4, 2e-4),
    ("pmnist", 360): (None, 7e-4, 5e-5),
    ("pmnist", 512): (None, 3e-4, 7e-5),
    ("timit", 224): (None, 1e-3, 2e-4),
    ("timit", 322): (None, 1e-3, 2e-4),
}
# Tables 7 to 10: what the rules add, by task, units and layer.
DTRIV_NUMBERS = {
    ("pmnist", 170, "MomentumDTRIV"): ("Table 7", {"momentum": 0.6, "step_size": 0.9}),
    ("pmnist", 360, "MomentumDTRIV"): ("Table 7", {"momentum": 0.3, "step_size": 0.3}),
    ("pmnist", 512, "MomentumDTRIV"): ("Table 7", {"momentum": 0.3, "step_size": 0.3}),
    ("timit", 224, "MomentumDTRIV"): ("Table 7", {"momentum": 0.3, "step_size": 0.1}),
    ("timit", 322, "MomentumDTRIV"): ("Table 7", {"momentum": 0.3, "step_size": 0.1}),
    ("pmnist", 512, "AdamDTRIV"): (
        "Table 8",
        {"momentum": 0.3, "step_size": 0.3, "beta": 0.8},
    ),
    ("pmnist", 512, "RMSPropDTRIV"): ("Table 9", {"step_size": 0.3, "beta": 0.9}),
    ("pmnist", 512, "SRDTRIV"): ("Table 10", {"restart_period": 2, "step_size": 0.3}),
    **{(task, units, "DTRIV"): ("Table 6", {}) for task, units in DTRIV_TRAINING},
}

# Tables 1, 4, 11, 13: best test accuracy in percent, mean and standard deviation of 5 seeds;
# those of LSTM are quoted there from others.
ACCURACIES = {
    ("mnist", 128, "LSTM"): ("Table 1", 98.70, None),
    ("pmnist", 128, "LSTM"): ("Table 1", 92.00, None),
    ("mnist", 256, "LSTM"): ("Table 1", 98.90, None),
    ("pmnist", 256, "LSTM"): ("Table 1", 92.29, None),
    ("mnist", 128, "MomentumLSTM"): ("Table 1", 99.04, 0.04),
    ("pmnist", 128, "MomentumLSTM"): ("Table 1", 93.40, 0.25),
    ("mnist", 256, "MomentumLSTM"): ("Table 1", 99.08, 0.05),
    ("pmnist", 256, "MomentumLSTM"): ("Table 1", 94.72, 0.16),
    ("mnist", 256, "AdamLSTM"): ("Table 1", 99.09, 0.03),
    ("pmnist", 256, "AdamLSTM"): ("Table 1", 95.05, 0.37),
    ("mnist", 256, "RMSPropLSTM"): ("Table 1", 99.15, 0.06),
    ("pmnist", 256, "RMSPropLSTM"): ("Table 1", 95.38, 0.19),
    ("mnist", 256, "SRLSTM"): ("Table 1", 99.01, 0.07),
    ("pmnist", 256, "SRLSTM"): ("Table 1", 93.82, 1.85),
    ("mnist", 128, "AdamLSTM"): ("Table 11", 98.98, 0.08),
    ("pmnist", 128, "AdamLSTM"): ("Table 11", 93.75, 0.25),
    ("mnist", 128, "RMSPropLSTM"): ("Table 11", 99.09, 0.05),
    ("pmnist", 128, "RMSPropLSTM"): ("Table 11", 94.32, 0.43),
    ("mnist", 128, "SRLSTM"): ("Table 11", 98.89, 0.08),
    ("pmnist", 128, "SRLSTM"): ("Table 11", 93.65, 0.56),
    ("pmnist", 170, "DTRIV"): ("Table 4", 95.21, 0.10),
    ("pmnist", 360, "DTRIV"): ("Table 4", 96.45, 0.10),
    ("pmnist", 512, "DTRIV"): ("Table 4", 96.62, 0.12),
    ("pmnist", 170, "MomentumDTRIV"): ("Table 4", 95.37, 0.09),
    ("pmnist", 360, "MomentumDTRIV"): ("Table 4", 96.73, 0.08),
    ("pmnist", 512, "MomentumDTRIV"): ("Table 4", 96.89, 0.08),
    ("pmnist", 512, "AdamDTRIV"): ("Table 13", 96.77, 0.21),
    ("pmnist", 512, "RMSPropDTRIV"): ("Table 13", 96.75, 0.12),
    ("pmnist", 512, "SRDTRIV"): ("Table 13", 97.02, 0.09),
}
# Tables 2, 5, 12: test MSE on TIMIT at the epoch of the lowest validation MSE, likewise.
SPEECH_ERRORS = {
    (84, "LSTM"): ("Table 2", 14.94, 0.15),
    (120, "LSTM"): ("Table 2", 11.83, 0.12),
    (158, "LSTM"): ("Table 2", 9.37, 0.14),
    (84, "MomentumLSTM"): ("Table 2", 10.98, 0.18),
    (120, "MomentumLSTM"): ("Table 2", 8.04, 0.30),
    (158, "MomentumLSTM"): ("Table 2", 5.87, 0.15),
    (158, "AdamLSTM"): ("Table 2", 8.69, 0.14),
    (158, "RMSPropLSTM"): ("Table 2", 9.17, 0.33),
    (158, "SRLSTM"): ("Table 2", 5.83, 0.10),
    (120, "AdamLSTM"): ("Table 12", 10.96, 0.08),
    (120, "RMSPropLSTM"): ("Table 12", 11.90, 0.19),
    (120, "SRLSTM"): ("Table 12", 8.21, 0.26),
    (224, "DTRIV"): ("Table 5", 4.70, 0.07),
    (322, "DTRIV"): ("Table 5", 1.87, 0.17),
    (224, "MomentumDTRIV"): ("Table 5", 3.06, 0.09),
    (322, "MomentumDTRIV"): ("Table 5", 1.17, 0.05),
}
# Table 3, section 3.5: test perplexity on Penn Treebank at the epoch of the lowest validation
# perplexity.
PERPLEXITIES = {
    "LSTM": ("Table 3", 59.71, 0.99),
    "MomentumLSTM": ("Table 3", 58.62, 0.22),
    "SRLSTM": ("Table 3", 58.83, 0.62),
    "AdamLSTM": ("Section 3.5", 61.11, 0.31),
    "RMSPropLSTM": ("Section 3.5", 64.53, 0.20),
}
# Section 3.3: the training loss at the end, of the adding task and of copying at length 2000.
TRAINING_LOSSES = {
    ("adding", 128, "LSTM"): ("Section 3.3", 0.162, None),
    ("adding", 128, "MomentumLSTM"): ("Section 3.3", 0.162, None),
    ("copying", 190, "LSTM"): ("Section 3.3", 0.010, None),
    ("copying", 190, "MomentumLSTM"): ("Section 3.3", 0.009, None),
}
