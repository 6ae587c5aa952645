"""Write the tables of the pages, and the picture of speed, from data.

python -m docs.tools.pages
"""

import re
from pathlib import Path

from docs.tools import layer_tables, score_tables, speed_tables

ROOT = Path(__file__).parents[2]
# Where a table stands on a page.
PLACE = re.compile(r"(<!-- (\w+): python .*? -->\n).*?(<!-- \2 end -->)", flags=re.DOTALL)
SCORES = ["layer", "units", "parameters", "test accuracy", "range"]
LOSSES = ["layer", "units", "parameters", "test loss", "epochs to LSTM's best", "papers"]
SOON = ["layer", "best on validation", "best on test", "papers"]
SOON += ["until 80%", "until 90%", "until 92%"]


def tables():
    """Return the tables by name."""
    of_report, real = score_tables.of_report, "real_sequences"
    return {
        "quick_look": score_tables.quick_look(),
        "pairs": of_report("pairs", "All sets"),
        "study": of_report(real, "Ranks over"),
        "situations": of_report(real, "What if the sensor changes after training?"),
        "cost": of_report(real, "What does a layer cost?"),
        "long": of_report(real, "On long series of one channel"),
        "levels": of_report(real, "When the level is the answer"),
        "scores": score_tables.all_scores(),
        "mcrm_adding": of_report("mcrm_table1", "Adding", LOSSES),
        "memory20": of_report("sutskever_table5/memory20", "Table 5"),
        "memory5": of_report("sutskever_table5/memory5", "Table 5"),
        "adding": of_report("sutskever_table5/adding", "Table 5"),
        "multiplication": of_report("sutskever_table5/multiplication", "Table 5"),
        "orthogonal_digits": of_report("orthogonal_digits", "8x8 digits", SCORES),
        "permuted_mnist": of_report("permuted_mnist", "How good, and how soon?", SOON),
        **layer_tables.families(),
        **speed_tables.tables(),
    }


def written():
    """Return the text of every page, by its path, with the tables in it."""
    found = tables()
    return {
        page: PLACE.sub(lambda m: f"{m[1]}\n{found[m[2]]}\n\n{m[3]}", page.read_text())
        for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    }


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text)
    speed_tables.draw_models()
