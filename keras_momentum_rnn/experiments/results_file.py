"""results.json: the settings that runs share, and the runs that are finished."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import keras

import keras_momentum_rnn
from keras_momentum_rnn.atomic_files import differences, read_results, write_json


def surroundings():
    """Return backend, device and versions, a dict."""
    backend = keras.config.backend()
    return {
        "backend": backend,
        "device": str(keras.ops.zeros(1).device),
        "keras_momentum_rnn": keras_momentum_rnn.__version__,
        "keras": keras.__version__,
        backend: sys.modules[backend].__version__,
    }


@dataclass
class ResultsFile:
    """The results of runs that can be compared, in a folder.

    Attributes:
        folder: `Path`.
        settings: dict, what must be equal for runs to be compared.
        command: str, the command line.
        key: tuple of the entries by which runs are told apart.
        complete: function from all entries, a dict, to those that are written, in their order.
        check: function from the runs in the file to lines that say what makes them other runs.
    """

    folder: Path
    settings: dict
    command: str
    key: tuple
    complete: Callable
    check: Callable = lambda runs: []

    def __post_init__(self):
        # As they will be read: a tuple as a list, for one.
        self.settings = json.loads(json.dumps(self.settings))
        self.content = self.read()

    @property
    def path(self):
        return self.folder / "results.json"

    def read(self):
        """Return what the file holds, or what a new one does.

        Raises:
            ValueError: if it holds runs with other settings, or is no JSON.
        """
        content = read_results(self.path, {"settings": self.settings, "runs": []})
        different = differences(content["settings"], self.settings)
        if different := [*different, *self.check(content["runs"])]:
            raise ValueError(
                f"{self.folder} holds runs with other settings; remove it or choose another "
                f"output:{''.join(dict.fromkeys(different))}"
            )
        return content

    def write(self, *runs, **entries):
        """Add finished runs, and entries that the file lacks."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {**entries, **self.content}
        content["runs"] = [*content["runs"], *runs]
        content["commands"] = list(dict.fromkeys([*content.get("commands", []), self.command]))
        self.content = self.complete(content)
        write_json(self.path, self.content)

    def holds(self, run):
        return self.name(run) in map(self.name, self.content["runs"])

    def name(self, run):
        values = (run[name] for name in self.key)
        return "-".join(f"{v:g}" if isinstance(v, float) else f"{v}" for v in values)

    def run_folder(self, run):
        """Return where the state of a run and its best model stand."""
        return self.folder / "runs" / self.name(run)
