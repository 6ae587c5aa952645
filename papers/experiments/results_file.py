"""results.json: the settings that runs share, and the runs so far."""

import functools
import json
import os
import platform
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import keras

import keras_momentum_rnn
from keras_momentum_rnn.atomic_files import locked, read_results, write_json
from keras_momentum_rnn.paths.devices import current_device
from papers.files import differences


def surroundings() -> dict[str, str]:
    """Return backend, device and versions, a dict."""
    backend = keras.config.backend()
    return {
        "backend": backend,
        "device": str(keras.ops.zeros(1).device),
        "keras_momentum_rnn": keras_momentum_rnn.__version__,
        "keras": keras.__version__,
        backend: sys.modules[backend].__version__,
    }


def gpu_name() -> str:
    """Return the name of the GPU that the backend takes."""
    backend = keras.config.backend()
    if backend == "torch":
        import torch

        return torch.cuda.get_device_name()
    if backend == "jax":
        import jax

        return jax.devices()[0].device_kind
    import tensorflow as tf

    (first, *_) = tf.config.list_physical_devices("GPU")
    return tf.config.experimental.get_device_details(first)["device_name"]


@functools.cache
def processor() -> str:
    """Return the name of the GPU, if it is used, of the processor, its cores and vectors.

    The processor's name alone does not tell: two machines named "AMD EPYC" may differ.
    """
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    named = re.search(r"model name\s*: (.*)", text)
    told = [named[1] if named else platform.machine(), f"{os.cpu_count()} cores"]
    vectors = {"avx512f": "AVX-512", "avx2": "AVX2"}
    told += [name for flag, name in vectors.items() if re.search(rf"\b{flag}\b", text)][:1]
    return ", ".join([gpu_name(), *told] if current_device() == "gpu" else told)


@dataclass
class ResultsFile:
    """The results of runs that can be compared, in a folder that several commands may share.

    Attributes:
        folder: `Path`.
        settings: dict, what must be equal for runs to be compared.
        command: str, the command line.
        key: tuple of the entries by which runs are told apart.
        done: function from a run to how far it has come, an int. A run that has `diverged` is
            at its end.
        complete: function from commands, settings, runs and further entries, a dict, to what
            the file holds, in its order; by default the three.
        check: function from the runs in the file to lines that say what makes them other runs.
    """

    folder: Path
    settings: dict
    command: str
    key: tuple
    done: Callable
    complete: Callable = lambda found: {n: found[n] for n in ("commands", "settings", "runs")}
    check: Callable = lambda runs: []

    def __post_init__(self):
        # As they will be read: for instance, a tuple as a list.
        self.settings = json.loads(json.dumps(self.settings))
        self.content = self.read()

    @property
    def path(self):
        return self.folder / "results.json"

    def read(self):
        """Return what the file holds, or what a new one does, each run once.

        Raises:
            ValueError: if it holds runs with other settings, or is not a results file.
        """
        content = read_results(self.path, None)
        if content is None:
            return {"settings": self.settings, "commands": [], "runs": []}
        try:
            content["runs"] = self.merged(content["runs"])
            different = differences(content["settings"], self.settings)
            different += self.check(content["runs"])
            self.complete(content)
        except Exception as error:  # any, since the file may hold anything
            raise ValueError(
                f"{self.path} lacks the entries of a results file; repair it, remove it or "
                f"choose another output: {error!r}"
            ) from error
        if different:
            raise ValueError(
                f"{self.path} holds runs with other settings; remove it or choose another "
                f"output:{''.join(dict.fromkeys(different))}"
            )
        return {**content, "settings": self.settings}  # the same, perhaps in better words

    def write(self, *runs, **entries):
        """Add runs, and entries that the file lacks, to what it holds by now."""
        with self.locked():
            content = {**entries, **self.read()}
            content["runs"] = self.merged([*content["runs"], *runs])
            content["commands"] = list(dict.fromkeys([*content["commands"], self.command]))
            self.content = self.complete(content)
            write_json(self.path, self.content)

    def locked(self):
        """Let one process at a time write the files that the commands share, as a context."""
        (self.folder / "runs").mkdir(parents=True, exist_ok=True)
        return locked(self.folder / "runs" / "lock")

    def merged(self, runs):
        """Return each run once; of several records, the one that has got furthest."""
        found = {}
        for run in runs:
            known = found.setdefault(self.name(run), run)
            # A run that diverges in its next epoch has come no farther, yet is at its end.
            if (run["diverged"], self.done(run)) > (known["diverged"], self.done(known)):
                found[self.name(run)] = run
        return list(found.values())

    def known(self, run):
        """Return the current record of a run, or None."""
        self.content = self.read()
        known = (k for k in self.content["runs"] if self.name(k) == self.name(run))
        return next(known, None)

    def ended(self, known, until):
        """Return whether a run, as of `known`, has got so far or diverged before."""
        return known is not None and (known["diverged"] or self.done(known) >= until)

    def name(self, run):
        values = (run[name] for name in self.key)
        return "-".join(short(v) if isinstance(v, float) else f"{v}" for v in values)

    def run_folder(self, run):
        """Return where the state of a run and its best model stand."""
        return self.folder / "runs" / self.name(run)


def short(number):
    """Return a float as text, with all its digits where six are not all."""
    text = f"{number:g}"
    return text if float(text) == number else repr(number)
