"""What the command lines share: types of arguments, reports, how a command ends."""

import argparse
import ast
import contextlib
import math
import shlex
import sys
from pathlib import Path

from rich import print
from rich.markdown import Markdown

from papers.files import write_text
from papers.presentation import save_figures

RESUMES = "Interrupted. Repeat the command to resume from here."
INSTALL = (
    "Install all that the papers need, in the checkout: "
    "pip install -e '.[examples,tasks,archive,tuner]'"
)


@contextlib.contextmanager
def ending(interrupted=RESUMES):
    """End the process with a message, not a traceback, where a command cannot continue."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(interrupted)
    except ModuleNotFoundError as error:
        sys.exit(f"{error}. {INSTALL}")
    except (ValueError, OSError, ImportError, NotImplementedError, RuntimeError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


def run_example(script, argv, parse, command):
    """Parse the arguments of a command and run it; if it cannot continue, end with a message.

    Args:
        script: its file.
        argv: list of its arguments, or None for those of the process.
        parse: function from the arguments to options.
        command: function from options and the command line to a result.
    """
    argv = sys.argv[1:] if argv is None else argv
    options = parse(argv)
    with ending():
        return command(options, command_of(script, argv))


def documented_parser(doc):
    """Return a parser that shows defaults, and the first line of a docstring."""
    return argparse.ArgumentParser(
        description=doc.partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )


def command_of(script, argv):
    """Return the command line of a study, a file of `papers` or of a folder in it."""
    place = Path(script).resolve().relative_to(Path(__file__).resolve().parents[1])
    return shlex.join(["python", "-m", ".".join(place.with_suffix("").parts), *argv])


def publish(folder, text, figures, until=None):
    """Write a report and its pictures, and show the report, up to a heading if it is given."""
    save_figures(folder, figures)
    write_text(folder / "report.md", text)
    print(Markdown(text.partition(until)[0] if until else text))
    names = ", ".join(["results.json", "report.md", *figures])
    print(f"{names} are in {folder}")


def positive(kind):
    """Return a type of `argparse`: a finite number above 0, `int` or `float`."""

    def parsed(text):
        with contextlib.suppress(ValueError):
            if 0 < kind(text) < math.inf:
                return kind(text)
        raise argparse.ArgumentTypeError(
            f"must be a positive {kind.__name__}. Received: {text}"
        )

    return parsed


def folder(text):
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"must be an existing directory. Received: {text}")
    return Path(text)


def assignment(text):
    """`name=value`, the value a Python literal or else text, as a pair."""
    name, equals, value = text.partition("=")
    if not name.isidentifier() or not equals:
        raise argparse.ArgumentTypeError(f"must be name=value. Received: {text}")
    with contextlib.suppress(ValueError, SyntaxError):
        return name, ast.literal_eval(value)
    return name, value


def comparison_parser(doc, layers, output, default=None, seeds=1, epochs=None):
    """Return a parser with the options of the studies that compare layers on one task.

    Args:
        doc: docstring of the study.
        layers: names to choose from.
        output: str, where results go by default.
        default: the layers that are trained by default; None for all.
        seeds, epochs: ints, their defaults.
    """
    parser = documented_parser(doc)
    add, default = parser.add_argument, list(default or layers)
    add("--layers", nargs="+", choices=layers, default=default, help="what to train")
    add("--seeds", type=positive(int), default=seeds, help="how many runs of each")
    add("--epochs", type=positive(int), default=epochs, help="of each run")
    add("--output", type=Path, default=Path(output), help="for the results")
    return parser


def add_task_options(parser):
    parser.add_argument(
        "--set",
        nargs="+",
        type=assignment,
        default=[],
        metavar="OPTION=VALUE",
        help="options of the task",
    )
