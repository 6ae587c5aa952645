"""What a search shows while it runs."""

import sys

from rich import progress as bars
from rich.console import Console
from rich.markup import escape


class Progress:
    """A line for each trial that ends; trial i/N, elapsed, left and best so far below.

    Args:
        total: number of trials, or `None`.
        objective: `keras_tuner.Objective`.
        shown: bool, whether anything is shown.
    """

    def __init__(self, total, objective, shown=True):
        self.total = total
        self.objective = objective
        # The stdout of this moment: keras-tuner's own lines are sent elsewhere later.
        self.console = Console(file=sys.stdout, quiet=not shown)
        self.bar = bars.Progress(
            bars.TextColumn("{task.description}"),
            bars.BarColumn(bar_width=14),
            bars.TextColumn("{task.completed:.0f}" + f"/{total or '?'}"),
            bars.TimeElapsedColumn(),
            bars.TextColumn("left"),
            bars.TimeRemainingColumn(),
            bars.TextColumn("best {task.fields[best]}"),
            speed_estimate_period=3600,
            console=self.console,
            disable=not shown,
        )
        self.task = self.bar.add_task("trial", total=total, best="-")
        self.reported = set()

    def update(self, rows):
        """Show what has ended since the last call.

        Args:
            rows: list of `results.Row`, those that have ended.
        """
        for row in rows:
            if row.trial not in self.reported:
                self.reported.add(row.trial)
                self.bar.print(escape(f"{len(self.reported)}/{self.total or '?'} {row.line()}"))
        scores = [row.score for row in rows if row.completed]
        best = max if self.objective.direction == "max" else min
        text = f"{best(scores):.4g}" if scores else "-"
        self.bar.update(self.task, completed=len(rows), best=text)

    def __enter__(self):
        self.bar.start()
        return self

    def __exit__(self, *error):
        self.bar.stop()
