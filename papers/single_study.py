"""Studies of a minute or two, which write their results once, at the end."""

import sys

from rich import print

from keras_momentum_rnn.atomic_files import write_json
from papers.command_line import command_of, ending, values_of
from papers.experiments import surroundings
from papers.presentation import save_figures


def run(script, argv, parser, study):
    """Run a study from its command line, and write results.json and its pictures.

    results.json has the command, the settings (options, backend and versions) and what the
    study returns.

    Args:
        script: the study's file.
        argv: list of arguments, or None for those of the process.
        parser: `argparse.ArgumentParser` with an option `--output`, a folder.
        study: function from options to what results.json receives beside command and
            settings, a dict, and the pictures by the names of their files, another.
    """
    argv = sys.argv[1:] if argv is None else argv
    options = parser.parse_args(argv)
    with ending("Interrupted. Nothing was written."):
        results, figures = study(options)
        settings = {**values_of(options), **surroundings()}
        results = {"command": command_of(script, argv), "settings": settings, **results}
        options.output.mkdir(parents=True, exist_ok=True)
        save_figures(options.output, figures)
        write_json(options.output / "results.json", results)
    print(f"{', '.join(['results.json', *figures])} are in {options.output}")
    return results
