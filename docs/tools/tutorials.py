"""Pages from the tutorials: scripts in examples/tutorials, whose cells `# %%` begins.

A cell of Markdown is text, any other is code. What a cell prints stands below it on the page.
What follows `# %%` says how the tests treat the cell: `within 0.1` lets numbers differ so much
from what the page shows, `needs MODULES; not on BACKEND` says where it runs.
"""

import contextlib
import io
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "examples" / "tutorials"
PAGES = {
    "first_model.py": ROOT / "docs" / "start" / "first_model.md",
    "from_lstm_to_file.py": ROOT / "docs" / "guides" / "from_lstm_to_file.md",
    "own_rule.py": ROOT / "docs" / "guides" / "own_rule.md",
}
CELL = re.compile(r"^# %% ?(.*)\n", flags=re.MULTILINE)
BLOCK = re.compile(r"```python\n.*?```\n\n(?:```text\n(.*?)```\n)?", flags=re.DOTALL)


def cells(script):
    """Return (what follows `# %%`, text) for each cell of a script."""
    _, *parts = CELL.split(script.read_text())
    return [
        (head, as_text(body) if head == "[markdown]" else body.strip() + "\n")
        for head, body in zip(parts[::2], parts[1::2])
    ]


def as_text(comment):
    lines = comment.strip().splitlines()
    return "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines) + "\n"


def page(script, outputs):
    """Return the page of a script, with what each of its cells of code printed."""
    outputs = iter(outputs)
    told = f"`python examples/tutorials/{script.name}` runs this page."
    parts = []
    for head, text in cells(script):
        if head == "[markdown]":
            parts.append(text)
            if len(parts) == 1:
                parts.append(f"{told}\n")
            continue
        parts.append((f"<!-- {head} -->\n\n" if head else "") + f"```python\n{text}```\n")
        if printed := next(outputs):
            parts.append(f"```text\n{printed}```\n")
    return "\n".join(parts)


def run(script):
    """Return what each cell of code prints, run here."""
    scope, printed = {"__name__": "__main__"}, []
    for head, text in cells(script):
        if head != "[markdown]":
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(text, script.name, "exec"), scope)
            printed.append(output.getvalue())
    return printed


def shown(path):
    """Return what the cells of a page printed when it was written."""
    return [found[1] or "" for found in BLOCK.finditer(path.read_text() + "\n\n")]
