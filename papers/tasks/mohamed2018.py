"""What Mohamed and Claudel (2018), "MCRM", published: settings and results, as data."""

LAYERS = ("SimpleRNN", "GRU", "LSTM", "NestedLSTM", "MCRM")

# Table 2: the units of the five layers, in the order above. On MNIST it prints the last two
# the other way round than its code has them, and its parameter count says the code is right;
# LSTM on characters, too, counts 9 million numbers with 1050 units, and with 1450 as the
# others do 17.1 million.
UNITS = {
    "adding": (308, 177, 153, 77, 85),
    "mnist": (384, 222, 192, 97, 108),
    "copying": (1800, 1050, 900, 448, 500),
    "words": (125, 119, 117, 100, 109),
    "characters": (2900, 1680, 1050, 920, 1000),
}
# Table 2: optimizer, learning rate, gradient clipping. Its code: batch size, epochs, and the
# updates of an epoch where the sequences are generated: 50,000 and 10,000 in batches of 32.
TRAINING = {
    "adding": ("Adam", 1e-3, 0.5, 32, 60, 1563),
    "mnist": ("RMSprop", 1e-3, 1.0, 32, 100, None),
    "copying": ("RMSprop", 5e-4, 1.0, 32, 100, 313),
    "words": ("SGD", 30.0, 0.35, 16, 50, None),
    "characters": ("Adam", 1e-3, 0.15, 32, 100, None),
}
# Table 2, "Note": what differs for one layer.
EXCEPTIONS = {
    ("adding", "NestedLSTM"): {"learning_rate": 0.01, "clipnorm": 0.1},
    ("mnist", "NestedLSTM"): {"clipnorm": 0.25},
    ("mnist", "LSTM"): {"learning_rate": 1e-4},
    ("copying", "NestedLSTM"): {"learning_rate": 1e-4, "clipnorm": 0.25},
}
# Its code: the learning rate is cut tenfold every 30 epochs.
RATE_CUTS = {"mnist": (30, 0.1)}

# Table 1, in the order of LAYERS: test accuracy in percent, test losses, then bits per
# character and perplexity of the validation text of Penn Treebank.
RESULTS = {
    "mnist": (19.57, 98.58, 85.16, 91.02, 98.79),
    "adding": (0.165, 3.2e-4, 0.001, 0.004, 4.0e-6),
    "copying": (0.021, 0.013, 0.004, 7.3e-5, 8.5e-6),
    "characters": (1.683, 1.397, 1.374, 1.365, 1.331),
    "words": (140.58, 110.6, 110.64, 140.1, 120.9),
}
VALIDATION = ("characters", "words")
