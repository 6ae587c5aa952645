"""Write the tables of the pages from data, and the pages of the reference.

python docs/tools/pages.py
"""

import re
from pathlib import Path

import api_reference
import layer_tables
import score_tables

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def tables():
    """Return the tables by page and name."""
    return {
        ROOT / "README.md": {"quick_look": score_tables.quick_look()},
        DOCS / "choose" / "catalogue.md": layer_tables.families(),
        DOCS / "choose" / "which_layer.md": score_tables.real_sequences(),
        DOCS / "papers" / "index.md": {"scores": score_tables.all_scores()},
        DOCS / "papers" / "mcrm.md": {"adding": score_tables.mcrm_adding()},
        DOCS / "initialisation_and_momentum.md": {
            task: score_tables.table5(task) for task in ("adding", "multiplication")
        },
        DOCS / "guides" / "orthogonal.md": {
            "orthogonal_digits": score_tables.of_report(
                "orthogonal_digits",
                "8x8 digits",
                ["layer", "units", "parameters", "test accuracy", "range"],
            )
        },
    }


def written():
    """Return the text of every page that is written here, by its path."""
    found = {DOCS / "reference" / f"{n}.md": text for n, text in api_reference.pages().items()}
    for path, by_name in tables().items():
        text = path.read_text()
        for name, table in by_name.items():
            place = rf"(<!-- {name}: .*? -->\n).*?(\n<!-- {name} end -->)"
            text, count = re.subn(place, rf"\1\n{table}\n\2", text, flags=re.DOTALL)
            if count != 1:
                raise SystemExit(
                    f"{path} must have the comments of {name} once; it has {count}"
                )
        found[path] = text
    return found


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text)
