"""What does an RMSProp rule bring? Two minutes on the adding problem, beside plain layers.

    python examples/quick_look.py

Each step of a sequence has a random value and a marker, and the sum of the two marked values
is to be told. Which layer learns that first: LSTM and GRU as they come, the same on inputs
multiplied by 10, or RMSPropLSTM, which sets the scale of its input on its own?

It is examples/how_soon.py with 100 steps, one learning rate and two seeds. The output directory
receives results.json, report.md and how_soon.png. After an interruption the same command goes
on from the last finished run.
"""

from pathlib import Path

import how_soon
from command_line import documented_parser, new_folder, positive, run_example
from rich import print

LAYERS = ("RMSPropLSTM", "GRU", "LSTM", "GRU, inputs x 10", "LSTM, inputs x 10")


def main(argv=None):
    return run_example(__file__, argv, parse, look)


def parse(argv):
    parser = documented_parser(__doc__)
    add = parser.add_argument
    add("--steps", type=positive(int), default=100, help="of a sequence")
    add("--seeds", type=positive(int), default=2, help="how many runs of each layer")
    add("--updates", type=positive(int), default=1000, help="of a run at most")
    add("--output", type=new_folder, default=Path("runs/quick_look"), help="for the results")
    return parser.parse_args(argv)


def look(options, command):
    """Compare the layers, write the report, and return the results."""
    given = [f"--{n}={getattr(options, n)}" for n in ("steps", "seeds", "updates", "output")]
    arguments = how_soon.parse([*given, "--rates=5e-3", "--layers", *LAYERS])
    runs = len(list(how_soon.planned(arguments)))
    print(f"{runs} run{'s' * (runs > 1)}. If you stop it, repeat the command to resume.")
    return how_soon.how_soon(arguments, command)


if __name__ == "__main__":
    main()
