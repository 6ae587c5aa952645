"""What Sutskever et al. (2013) published on recurrent networks, as data."""

UNITS = 100
BATCH_SIZE = 100
UPDATES = 50_000
SEEDS = 4
# Section 4.2: each result is that of the best of them, which is not printed.
LEARNING_RATES = (1e-3, 1e-4, 1e-5, 1e-6)
# Section 4.2: momentum in the first updates, for every later momentum.
WARM_UP = (1000, 0.9)
# Table 4: the standard deviation of the input kernel.
INPUT_SCALES = {"adding": 0.001, "multiplication": 0.001, "memory5": 0.1, "memory20": 0.1}
# Of the memory tasks: how many kinds of symbols, and how many are recalled.
SYMBOLS = {"memory5": (2, 5), "memory20": (5, 10)}
LENGTHS = {"adding": 80, "multiplication": 80, "memory5": 200, "memory20": 80}
# Table 4: fan-in and spectral radius of the recurrent kernel, standard deviation of the
# output kernel.
FAN_IN = 15
SPECTRAL_RADIUS = 1.1
OUTPUT_SCALE = 0.1

# Table 5: the columns, momentum with N for Nesterov's form and M for the classical one, and
# zero-one losses, the mean of 4 seeds: errors above 0.04 in adding and multiplication; symbols
# that are wrong, of 5 and of 10, in the memory tasks, where the text speaks of a fraction.
# "biases" is an output that does not depend on the input.
COLUMNS = ("biases", "0", "0.9N", "0.98N", "0.995N", "0.9M", "0.98M", "0.995M")
ERRORS = {
    "adding": (0.82, 0.39, 0.02, 0.21, 0.00025, 0.43, 0.62, 0.036),
    "multiplication": (0.84, 0.48, 0.36, 0.22, 0.0013, 0.029, 0.025, 0.37),
    "memory5": (2.5, 1.27, 1.02, 0.96, 0.63, 1.12, 1.09, 0.92),
    "memory20": (8.0, 5.37, 2.77, 0.0144, 0.00005, 1.75, 0.0017, 0.053),
}
