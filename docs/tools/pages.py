"""Write the pages, and the parts of pages, that are made of code and results.

python docs/tools/pages.py          # the reference, the catalogue, tables of scores
python docs/tools/pages.py --run    # the output of the tutorials, too
"""

import argparse
import os
import tempfile
from pathlib import Path

import api_reference
import catalogue
import evidence
import main_job
import study
import tutorials

from papers.presentation import with_tables

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def written(run=False):
    """Return the text of every page that is written here, by its path."""
    found = {DOCS / "reference" / f"{n}.md": text for n, text in api_reference.pages().items()}
    found[DOCS / "choose" / "catalogue.md"] = catalogue.page()
    for name, page in tutorials.PAGES.items():
        script = tutorials.SCRIPTS / name
        outputs = tutorials.run(script) if run else tutorials.shown(page)
        found[page] = tutorials.page(script, outputs)
    for path, tables in parts().items():
        found[path] = with_tables(path.read_text(), tables, path)
    return found


def parts():
    """Return the tables to put into pages, by page and name."""
    studied = study.parts()
    return {
        ROOT / "README.md": {**studied, "main_command": main_job.main_command()},
        DOCS / "choose" / "which_layer.md": {**studied, "evidence": evidence.advice()},
        DOCS / "papers" / "index.md": {"scores": evidence.all_scores("../../papers/results")},
        DOCS / "initialisation_and_momentum.md": {
            task: evidence.table5(task) for task in ("adding", "multiplication")
        },
        DOCS / "papers" / "mcrm.md": {"adding": evidence.mcrm_adding()},
        DOCS / "guides" / "orthogonal.md": {"orthogonal_digits": evidence.orthogonal()},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", action="store_true", help="run the tutorials")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # for the files that tutorials write
        found = written(options.run)
        os.chdir(ROOT)
    for path, text in found.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
