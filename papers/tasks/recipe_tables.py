"""The recipes of the papers, made of their tables."""

from keras_momentum_rnn import optimizers
from keras_momentum_rnn.initializers import ForgetGateBias
from papers import initializers
from papers.tasks import sutskever2013
from papers.tasks.paper_results import table
from papers.tasks.recipe import Recipe

# Tasks whose read-out takes h at every step.
SEQUENCES = ("timit", "copying", "words", "characters", "memory5", "memory20")
PIXELS = ("mnist", "pmnist")
RULE_NUMBERS = ("restart_period", "momentum", "step_size", "beta")


def pytorch_rmsprop(rho):
    """Return arguments that make Keras's RMSprop step as PyTorch's, of the released code.

    PyTorch adds 1e-8 to the root of the mean square. Keras adds epsilon below the root, by
    default 1e-7: it hardly moves weights whose gradients stay far below 3e-4, the root of
    that. Input weights of AdamLSTM, RMSPropLSTM and SRLSTM have such gradients. At 1e-16 its
    steps are at most 1.41 times as long as PyTorch's.

    Args:
        rho: float, the decay of the mean.
    """
    return {"rho": rho, "epsilon": 1e-16}


def recipes_of_nguyen():
    """Yield LSTM, DTRIV and their variants of Nguyen et al. (2020)."""
    recipe_of = {"LSTM": lstm_recipe, "DTRIV": dtriv_recipe}
    for row in table("nguyen2020_rules"):
        numbers = {name: row[name] for name in RULE_NUMBERS if name in row}
        for training in table("nguyen2020_training"):
            of_family = row["layer"].endswith(training["family"])
            of_size = row.get("units", training["units"]) == training["units"]
            if of_family and of_size and row["task"] == training["task"]:
                yield recipe_of[training["family"]](row, numbers, training)


def common(row, training):
    """Return the arguments of a recipe of Nguyen et al. (2020) that all layers share."""
    names = ("units", "optimizer_name", "learning_rate", "batch_size", "epochs")
    return {
        "task": row["task"],
        "layer_name": row["layer"],
        **{name: training[name] for name in names},
        "clipnorm": training.get("clipnorm"),
        "model_options": pytorch_read_out(training["units"]) if row["task"] in PIXELS else {},
        "source": ", ".join(dict.fromkeys(["Nguyen et al. (2020)", row["table"], "Table 6"])),
    }


def lstm_recipe(row, numbers, training):
    task, name = row["task"], row["layer"]
    generated = task in ("adding", "copying")
    follows = (
        "the text" if task in PIXELS else "the text, which names clipping for pixels alone"
    )
    if task == "timit":
        follows = "the text: no clipping"
    elif task == "words":
        follows = (
            "the text; clipping and weight decay are those of its baseline, Merity et al. "
            "(2018), whose regularisation and averaging are left out"
        )
    elif generated:
        follows += "; an epoch of Table 6 is read as one update, since sequences are generated"
        if task == "copying":
            follows += "; RMSprop's decay is 0.9, which the text gives for pixels"
    follows += forget_gate(task, name)
    if name == "SRLSTM" and task != "words":
        follows += "; the form of the restart of the code for MNIST and TIMIT"
        if generated:
            follows += ", since there is none for this task"
        numbers = {**numbers, "formulation": "released"}
    elif name in ("AdamLSTM", "RMSPropLSTM"):
        follows += "; the code's epsilon, 1e-16 (text: 1e-8)"
        numbers = {**numbers, "epsilon": 1e-16}
    return Recipe(
        **common(row, training),
        options=task_options(task, row.get("blanks")),
        arguments={
            **numbers,
            **initial_weights(task, name),
            "return_sequences": task in SEQUENCES,
        },
        optimizer_arguments={
            "RMSprop": pytorch_rmsprop(rho=0.9),
            "SGD": {"weight_decay": 1.2e-6},
        },
        updates_per_epoch=1 if generated else None,
        follows=follows,
    )


def task_options(task, blanks):
    """Return the options of the paper's form of a task."""
    if task == "copying":
        return {"variant": "momentumrnn", "blanks": blanks}
    return {"variant": "momentumrnn", "steps": 750} if task == "adding" else {}


def initial_weights(task, name):
    """Return the initializers of an LSTM of Nguyen et al. (2020), and how it has its biases.

    The forget gate starts at 1, on TIMIT at -4, in both biases of the released cells. Keras's
    LSTM has one, which stands for their sum.
    """
    forget = -4.0 if task == "timit" else 1.0
    if name == "LSTM":
        biases = {"unit_forget_bias": False, "bias_initializer": ForgetGateBias(2 * forget)}
    elif task == "timit":
        biases = {
            "unit_forget_bias": False,
            "bias_initializer": ForgetGateBias(forget),
            "use_recurrent_bias": True,
        }
    else:
        biases = {"use_recurrent_bias": True}
    if task == "words":
        return biases
    return {"kernel_initializer": "orthogonal", "recurrent_initializer": "identity", **biases}


def forget_gate(task, name):
    """Return what a recipe says of the biases."""
    value = -4 if task == "timit" else 1
    if name == "LSTM":
        return (
            f"; the released cell has two biases, each with the forget gate at {value}: "
            f"Keras's one has it at {2 * value}"
        )
    return f"; two biases, as in the released cells, each with the forget gate at {value}"


def pytorch_read_out(units):
    """Return the arguments of a read-out that starts as PyTorch's `Linear`."""
    bound = units**-0.5
    start = configured("RandomUniform", minval=-bound, maxval=bound)
    return {"kernel_initializer": start, "bias_initializer": start}


def dtriv_recipe(row, numbers, training):
    speech = row["task"] == "timit"
    rate, recurrent_rate = training["learning_rate"], training["recurrent_learning_rate"]
    initializer = "HenaffSkew" if speech else "CayleySkew"
    arguments = {
        **numbers,
        "rebase_every": training.get("rebase_every"),
        "recurrent_initializer": f"keras_momentum_rnn>{initializer}",
        "return_sequences": row["task"] in SEQUENCES,
    }
    if not speech:
        arguments["recurrent_lr_multiplier"] = recurrent_rate / rate
    return Recipe(
        **common(row, training),
        arguments=arguments,
        optimizer_arguments={"RMSprop": pytorch_rmsprop(rho=0.99)},
        recurrent_optimizer_name="RMSprop",
        recurrent_learning_rate=recurrent_rate,
        follows="the text; RMSprop's decay, which it leaves out, is the code's, 0.99",
    )


def nested_recipes():
    """Yield the five layers of Mohamed and Claudel (2018)."""
    for row in table("mohamed2018"):
        task, name = row["task"], row["layer_name"]
        yield Recipe(
            **row,
            options=nested_options(task),
            arguments={"return_sequences": task in SEQUENCES},
            optimizer_arguments={"RMSprop": pytorch_rmsprop(rho=0.99)},
            source="Mohamed and Claudel (2018), Table 2",
            follows=nested_follows(task, name),
        )


def nested_options(task):
    """Return the options of the form that the paper gives a task."""
    if task == "adding":
        return {"variant": "mcrm", "steps": 200}
    return {"variant": "mcrm", "blanks": 1000} if task == "copying" else {}


def nested_follows(task, name):
    follows = (
        "Table 2, and the code for batch size and epochs; weights start as Keras starts them, "
        "and every sequence of a generated task at zero, where in the code RNN, GRU and LSTM "
        "go on with the states of the batch before"
    )
    if task == "mnist":
        follows += (
            "; Table 2 has the units of NLSTM and MCRM the other way round than the code, "
            "and no cut of the rate, tenfold every 30 epochs; the code clips at 0.5"
        )
    if (task, name) == ("adding", "MCRM"):
        follows += "; the code builds 300 units, so Table 1's loss may not be that of 85"
    if task == "copying":
        follows += "; 313 updates an epoch, as the code runs (its option says 100)"
    if task == "characters":
        follows += "; windows of 100 characters, where those of the code, 400, advance by 320"
    if (task, name) == ("characters", "LSTM"):
        follows += "; 1450 units would have as many parameters as the other layers"
    if task in ("words", "characters"):
        follows += "; the code also cuts the rate when validation stalls, which is left out"
    return follows


def plain_recipes():
    """Yield the plain networks of Sutskever et al. (2013)."""
    fan_in, radius = sutskever2013.FAN_IN, sutskever2013.SPECTRAL_RADIUS
    echo_state = {"fan_in": fan_in, "spectral_radius": radius}
    for task, scale in sutskever2013.INPUT_SCALES.items():
        length = sutskever2013.LENGTHS[task]
        options = {"blanks" if task in SEQUENCES else "steps": length, "centered": True}
        if task == "adding":
            options["variant"] = "sutskever"
        yield Recipe(
            task=task,
            options=options,
            layer_name="SimpleRNN",
            units=sutskever2013.UNITS,
            arguments={
                "kernel_initializer": configured("RandomNormal", stddev=scale),
                "recurrent_initializer": configured("EchoState", **echo_state),
                "return_sequences": task in SEQUENCES,
            },
            optimizer_name="MomentumSGD",
            learning_rate=None,
            optimizer_arguments={"MomentumSGD": {"momentum": WARM_MOMENTUM, "nesterov": True}},
            clipnorm=None,
            batch_size=sutskever2013.BATCH_SIZE,
            epochs=sutskever2013.UPDATES,
            updates_per_epoch=1,
            model_options=READ_OUT,
            source="Sutskever et al. (2013), Tables 4 and 5, section 4.2",
            follows=(
                "the text, with Nesterov's form and momentum 0.995, the best of Table 5 (the "
                "others by `dataclasses.replace`); an update is counted as an epoch"
            ),
        )


def configured(name, **config):
    """Return an initializer as Keras deserialises it, so that each layer has one of its own."""
    package = "papers>" if hasattr(initializers, name) else ""
    return {"class_name": f"{package}{name}", "config": config}


# The biases of the read-out stay at zero: the tasks take the mean away from numbers, and all
# symbols are equally frequent.
READ_OUT = {"kernel_initializer": configured("RandomNormal", stddev=sutskever2013.OUTPUT_SCALE)}
WARM_MOMENTUM = optimizers.schedules.WarmConstant(
    0.995, warm_momentum=sutskever2013.WARM_UP[1], warm_steps=sutskever2013.WARM_UP[0]
)
RECIPES = (*recipes_of_nguyen(), *nested_recipes(), *plain_recipes())
