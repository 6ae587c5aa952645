"""Write the tables of the pages from data.

python -m docs.tools.pages
"""

from pathlib import Path

from docs.tools import layer_tables, score_tables
from papers.presentation import with_tables

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


SCORES = ["layer", "units", "parameters", "test accuracy", "range"]
LOSSES = ["layer", "units", "parameters", "test loss", "epochs to LSTM's best", "papers"]


def tables():
    """Return the tables by page and name."""
    of_report, real = score_tables.of_report, "real_sequences"
    found = {
        ROOT / "README.md": {"quick_look": score_tables.quick_look()},
        DOCS / "choose" / "evidence.md": {
            "pairs": of_report("pairs", "All sets"),
            "study": of_report(real, "Ranks over"),
            "situations": of_report(real, "What if the sensor changes after training?"),
            "cost": of_report(real, "What does a layer cost?"),
            "long": of_report(real, "On long series of one channel"),
            "levels": of_report(real, "When the level is the answer"),
        },
        DOCS / "papers" / "index.md": {"scores": score_tables.all_scores()},
        DOCS / "papers" / "mcrm.md": {"adding": of_report("mcrm_table1", "Adding", LOSSES)},
        DOCS / "initialisation_and_momentum.md": {
            task: of_report(f"sutskever_table5/{task}", "Table 5")
            for task in ("adding", "multiplication")
        },
    }
    for page, table in layer_tables.families().items():
        found[DOCS / "choose" / f"{page}.md"] = {f"{page}_layers": table}
    digits = of_report("orthogonal_digits", "8x8 digits", SCORES)
    found[DOCS / "choose" / "dtriv.md"]["orthogonal_digits"] = digits
    return found


def written():
    """Return the text of every page with such a table, by its path."""
    found = {}
    for path, by_name in tables().items():
        text = path.read_text()
        for name, table in by_name.items():
            text = with_tables(text, {name: table}, path)
        found[path] = text
    return found


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text)
