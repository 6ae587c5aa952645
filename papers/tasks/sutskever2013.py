"""What Sutskever et al. (2013) published on recurrent networks, as data."""

from papers.tasks.paper_results import published

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
LENGTHS = {"adding": 80, "multiplication": 80, "memory5": 200, "memory20": 80}
# Table 4: fan-in and spectral radius of the recurrent kernel, standard deviation of the
# output kernel.
FAN_IN = 15
SPECTRAL_RADIUS = 1.1
OUTPUT_SCALE = 0.1

# Table 5: the columns, momentum with N for Nesterov's form and M for the classical one.
# "biases" is an output that does not depend on the input.
COLUMNS = ("biases", "0", "0.9N", "0.98N", "0.995N", "0.9M", "0.98M", "0.995M")


def errors_of(task):
    """Return a row of Table 5, a dict by column: zero-one losses, the mean of 4 seeds.

    Errors above 0.04 in adding and multiplication; symbols that are wrong, of 5 and of 10, in
    the memory tasks, where the text speaks of a fraction.
    """
    values = (result.value for result in published(task, "SimpleRNN", "sutskever"))
    return dict(zip(COLUMNS, values, strict=True))
