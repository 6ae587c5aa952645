"""Studies of a minute or two, which write their results once, at the end."""

import sys

from keras_momentum_rnn.atomic_files import write_json
from papers.command_line import command_of, ending, publish
from papers.experiments import surroundings


def run(script, argv, parser, study):
    """Run a study from its command line; write results.json, report.md and the pictures.

    results.json has the command, the settings (options, backend and versions) and what the
    study returns. The report has these too, the command and the versions above the text.

    Args:
        script: the study's file.
        argv: list of arguments, or None for those of the process.
        parser: `argparse.ArgumentParser` with an option `--output`, a folder.
        study: function from options to what results.json receives beside command and
            settings, a dict, to the text of the report, and to the pictures by the names of
            their files, a dict.

    Returns:
        What results.json holds.
    """
    argv = sys.argv[1:] if argv is None else argv
    options = parser.parse_args(argv)
    with ending("Interrupted. Nothing was written."):
        options.output.mkdir(parents=True, exist_ok=True)  # fails before the study, if at all
        results, text, figures = study(options)
        given = {name: value for name, value in vars(options).items() if name != "output"}
        settings = {**given, **surroundings()}
        results = {"command": command_of(script, argv), "settings": settings, **results}
        write_json(options.output / "results.json", results)
        publish(options.output, report_of(parser.description, results, text, figures), figures)
    return results


def report_of(title, results, text, figures):
    """Return a report in Markdown, of the results, what they say, and the pictures."""
    settings = results["settings"]
    versions = ", ".join(
        f"{name} {settings[name]}" for name in ("keras", settings["backend"], "device")
    )
    pictures = [f"![{name.partition('.')[0]}]({name})" for name in figures]
    parts = [
        f"# {title.removesuffix('.')}",
        f"`{results['command']}`",
        f"{versions}.",
        text,
        *pictures,
    ]
    return "\n\n".join(parts) + "\n"
