"""Start the chief and the workers of a distributed search on one machine."""

import argparse
import contextlib
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import time

from keras_momentum_rnn.tuning import chief

POLL = 0.1
# Seconds: how long the workers may take to leave after the chief, and anything to be killed.
GRACE = 10
TIMED_OUT = 124


def main(argv=None):
    options = parse(argv)
    if options.command == "run":
        return run_script(options.script, options.arguments)
    return Launch(options).run()


def parse(argv):
    parser = argparse.ArgumentParser(prog="python -m keras_momentum_rnn.tuning")
    commands = parser.add_subparsers(dest="command", required=True)
    launch = commands.add_parser(
        "launch",
        help="start a chief and workers that run a script",
        description="Run a script that calls `tune`: once as the chief, which serves the "
        "search and writes the results, and as workers, which train. Nothing is left running.",
    )
    launch.add_argument("--workers", type=at_least(1), required=True, help="how many")
    launch.add_argument("--time-limit", type=float, help="seconds after which all are ended")
    launch.add_argument(
        "--devices",
        nargs="*",
        help="GPUs by number or name, dealt out in turn; default: CUDA_VISIBLE_DEVICES, or all",
    )
    launch.add_argument(
        "--restarts",
        type=at_least(0),
        default=3,
        help="how often a worker that was killed is replaced",
    )
    launch.add_argument("--port", type=at_least(1), help="of the chief; default: a free one")
    add_script(launch)
    add_script(commands.add_parser("run", help="run one process of a search, for the launcher"))
    options = parser.parse_args(argv)
    if options.command == "launch" and not os.path.isfile(options.script):
        parser.error(f"argument script: must be a file. Received: {options.script}")
    limit = getattr(options, "time_limit", None)
    if limit is not None and not limit > 0:
        parser.error(f"argument --time-limit: must be above 0. Received: {limit}")
    return options


def add_script(parser):
    parser.add_argument("script", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="for the script")


def at_least(low):
    def parsed(text):
        with contextlib.suppress(ValueError):
            if int(text) >= low:
                return int(text)
        raise argparse.ArgumentTypeError(f"must be an integer from {low} on. Received: {text}")

    return parsed


def run_script(script, arguments):
    """Run a script as if Python had been given it, ending when the launcher ends."""
    chief.listen(sys.stdin)
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    runpy.run_path(script, run_name="__main__")


class Launch:
    """A chief and its workers, from start to end.

    Args:
        options: those of the command line.
    """

    def __init__(self, options):
        self.options = options
        self.devices = devices() if options.devices is None else options.devices
        self.port = options.port or free_port()
        self.processes = {}  # name -> process; the chief's is "chief"
        self.restarts = [options.restarts] * options.workers

    def run(self):
        """Return the exit status: the chief's, or 124 at the time limit."""
        stop = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            self.start("chief", 0)
            for worker in range(self.options.workers):
                self.start(f"worker{worker}", worker)
            return self.watch()
        finally:
            self.end()
            signal.signal(signal.SIGTERM, stop)

    def start(self, name, worker):
        command = [sys.executable, "-m", "keras_momentum_rnn.tuning", "run"]
        self.processes[name] = subprocess.Popen(
            [*command, self.options.script, *self.options.arguments],
            env={**os.environ, **self.environment(name, worker)},
            # A launcher that is killed closes it, and its children end.
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def environment(self, name, worker):
        """Return the variables of a process: keras-tuner's three, its device, its threads."""
        variables = {
            "KERASTUNER_TUNER_ID": name,
            "KERASTUNER_ORACLE_IP": "127.0.0.1",
            "KERASTUNER_ORACLE_PORT": str(self.port),
        }
        if name == "chief":
            # It trains nothing, and would take a GPU's memory from a worker.
            return {**variables, "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
        if self.devices:
            variables["CUDA_VISIBLE_DEVICES"] = self.devices[worker % len(self.devices)]
            if self.options.workers > len(self.devices):
                variables["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
                variables["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
        cores = max((os.cpu_count() or 1) // self.options.workers, 1)
        return {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(cores)), **variables}

    def watch(self):
        limit = self.options.time_limit
        deadline = None if limit is None else time.monotonic() + limit
        while self.processes["chief"].poll() is None:
            time.sleep(POLL)
            if deadline is not None and time.monotonic() > deadline:
                say(f"time limit of {limit:g} s: stopped. The same command goes on from here.")
                return TIMED_OUT
            for name in [name for name in self.processes if name != "chief"]:
                status = self.processes[name].poll()
                if status is not None:
                    del self.processes[name]
                    if status != 0:
                        self.replace(name, status)
            if len(self.processes) == 1 and not any(self.restarts):
                say("no worker is left. The same command goes on from here.")
                return 1
        status = self.processes["chief"].returncode
        leave = time.monotonic() + GRACE
        while status == 0 and len(self.processes) > 1 and time.monotonic() < leave:
            time.sleep(POLL)
            for name in [name for name, p in self.processes.items() if p.poll() is not None]:
                if name != "chief":
                    del self.processes[name]
        return status

    def replace(self, name, status):
        """Tell the chief that a worker was lost, and start another in its place."""
        say(f"{name} ended with status {status}: its trial counts as broken.")
        with contextlib.suppress(BrokenPipeError):
            self.processes["chief"].stdin.write(f"{name}\n".encode())
            self.processes["chief"].stdin.flush()
        worker = int(name.removeprefix("worker").partition("-")[0])
        if self.restarts[worker]:
            self.restarts[worker] -= 1
            number = self.options.restarts - self.restarts[worker]
            self.start(f"worker{worker}-{number}", worker)

    def end(self):
        """End all that is left, with all that they started."""
        for send, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, None)):
            for process in self.processes.values():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, send)
            for process in self.processes.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(patience)


def say(text):
    print(f"launch: {text}", file=sys.stderr, flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def devices():
    """Return the GPUs that this process may use, by name; none where there is none."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip()]
    if shutil.which("nvidia-smi") is None:
        return []
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout
    return [str(i) for i, line in enumerate(listed.splitlines()) if line.startswith("GPU ")]
