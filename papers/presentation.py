"""What reports and pictures share: colours that all readers can tell apart, and tables."""

from pathlib import Path

from keras_momentum_rnn.atomic_files import replaced

DPI = 120

# After Okabe and Ito.
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
PURPLE, ORANGE, SKY_BLUE = "#CC79A7", "#E69F00", "#56B4E9"
# Beside theirs.
VIOLET, BROWN = "#7B3F9E", "#7A4A1E"
COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY_BLUE)


def markdown_table(head, rows):
    """Return a table in Markdown, of a list of titles and of lists of cells, all text."""
    first, *others = (f"| {' | '.join(cells)} |" for cells in [head, *rows])
    return "\n".join([first, "|---" * len(head) + "|", *others])


def tidy(axes):
    """Take away the frame of matplotlib's axes at top and right, and draw a faint grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)


def save_figures(folder, figures):
    """Write figures of matplotlib, a dict by the names of their files, to a folder."""
    for name, figure in figures.items():
        with replaced(Path(folder) / name) as path:
            figure.savefig(path, dpi=DPI)
