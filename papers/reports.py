"""Write reports and pictures again, from results that are there.

    python -m papers.reports papers/results/digits papers/results/adding

Nothing is trained. It serves the folders of `papers.reproduce`, `papers.permuted_mnist`,
`papers.mcrm_adding`, `papers.orthogonal_pixels` and `papers.sutskever.long_dependencies`; a
report keeps its title.
"""

import re

from keras_momentum_rnn.atomic_files import locked, read_results, write_json
from papers import ablation, permuted_mnist
from papers.command_line import documented_parser, folder, run_example
from papers.experiments import comparison, report
from papers.paper_claims import ON_LONG_DEPENDENCIES, claims_on
from papers.sutskever.table5 import pilot_table, table5

SERVED = re.compile(
    r"python \S*( papers\.)?(reproduce|permuted_mnist|mcrm_adding|orthogonal_pixels"
    r"|(sutskever\.)?long_dependencies)\b"
)
# Sections by the name of a budget.
OF_SUTSKEVER = {
    "to choose learning rates": pilot_table,
    "Sutskever et al. (2013), Table 5": table5,
}


def main(argv=None):
    return run_example(__file__, argv, parse, lambda options, _: [*map(write, options.folders)])


def parse(argv):
    parser = documented_parser(__doc__)
    parser.add_argument("folders", nargs="+", type=folder, help="each with results.json")
    return parser.parse_args(argv)


def write(path):
    """Write the report of a folder again, and the summary in its results.json."""
    command = (read_results(path / "results.json", {}).get("commands") or ["none"])[0]
    if not SERVED.match(command):  # the report would lack its sections
        raise ValueError(f"{path} holds results of another command: {command}")
    (path / "runs").mkdir(exist_ok=True)
    with locked(path / "runs" / "lock"):  # a process that trains may add a run
        results = comparison.completed(read_results(path / "results.json", {}))
        write_json(path / "results.json", results)
    title = (path / "report.md").read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
    claims = (*claims_on(results["settings"]["task"]), *ON_LONG_DEPENDENCIES)
    return report.write(results, path, title, sections(results), claims)


def sections(results):
    """Return the sections that a report has beside the common ones."""
    if any(ablation.NAME.fullmatch(run["layer"]) for run in results["runs"]):
        return (ablation.heat_maps,)
    budget = results["settings"]["budget"]
    if budget["name"] in OF_SUTSKEVER:
        return (OF_SUTSKEVER[budget["name"]],)
    rows = budget.get("rows in the paper", ())
    return (permuted_mnist.how_good_how_soon,) if "AdamLSTM" in rows else ()


if __name__ == "__main__":
    main()
