"""Start the chief and the workers of a distributed search on one machine."""

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

from keras_momentum_rnn.tuning.roles import listens

ADDRESS = "127.0.0.1"
POLL = 0.1
# Seconds that a process has to end before it is killed.
GRACE = 10
# More than the attempts of two trials that kill their process.
RESTARTS = 10


def main(argv=None):
    """Run the command line, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m keras_momentum_rnn.tuning")
    launch = parser.add_subparsers(dest="command", required=True).add_parser(
        "launch",
        help="start a chief and workers that run a script",
        description="Run a script that calls `tune`: once as the chief, which serves the "
        "search and writes the results, and as workers, which train and share the GPUs of "
        "CUDA_VISIBLE_DEVICES, or all.",
    )
    launch.add_argument("--workers", type=positive, required=True, help="how many")
    launch.add_argument("script", help="a Python file")
    launch.add_argument("arguments", nargs=argparse.REMAINDER, help="for the script")
    options = parser.parse_args(argv)
    if not os.path.isfile(options.script):
        parser.error(f"argument script: must be a file. Received: {options.script}")
    # `timeout` and job schedulers end a command by the first, a closed terminal by the second.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda number, frame: sys.exit(128 + number))
    with free_port() as port, Processes(options, port, devices()) as processes:
        try:
            return run(processes)
        except KeyboardInterrupt:
            return failed("launch", -signal.SIGINT)


def positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a positive integer. Received: {text}")
    return int(text)


def run(processes):
    """Run a search to its end and return the exit status.

    A worker that was killed is started again, and takes up its trial again. One that ended
    with an error would do so again, and ends the launch.
    """
    chief = processes.start("chief")
    while not listens(ADDRESS, processes.port):
        if chief.poll() is not None:
            return failed("chief", chief.poll(), "It served no search: is `tune` called?") or 1
        time.sleep(POLL)
    workers = {f"worker{i}": processes.start(f"worker{i}", i) for i in range(processes.workers)}
    restarts = 0
    while chief.poll() is None:
        time.sleep(POLL)
        for i, (name, worker) in enumerate(workers.items()):
            status = worker.poll()
            if status is None or status == 0:
                continue
            if status > 0 or restarts == RESTARTS:
                return failed(name, status)
            restarts += 1
            say(f"{name} was killed by signal {-status} and takes up its trial again.")
            workers[name] = processes.start(name, i)
    return failed("chief", chief.poll()) if chief.poll() else 0


def failed(name, status, reason="The same command goes on from here."):
    """Say which process failed and return the launch's own status."""
    say(f"{name} ended with status {status}. {reason}")
    return status if status >= 0 else 128 - status


def say(text):
    print(f"launch: {text}", file=sys.stderr, flush=True)


class Processes:
    """Context of a chief and its workers, all ended at its end.

    Args:
        options: those of the command line.
        port: that of the chief.
        devices: list of the names of GPUs, dealt out in turn.
    """

    def __init__(self, options, port, devices):
        self.command = [sys.executable, options.script, *options.arguments]
        self.workers = options.workers
        self.port = port
        self.devices = devices
        self.started = []

    def start(self, name, worker=None):
        environment = {**os.environ, **self.environment(name, worker)}
        # Each leads a group of its own, which ends with all that the script starts.
        process = subprocess.Popen(self.command, env=environment, start_new_session=True)
        self.started.append(process)
        return process

    def environment(self, name, worker=None):
        """Return the variables of a process: keras-tuner's three, its device, its threads."""
        variables = {
            "KERASTUNER_TUNER_ID": name,
            "KERASTUNER_ORACLE_IP": ADDRESS,
            "KERASTUNER_ORACLE_PORT": str(self.port),
        }
        if worker is None:
            # The chief trains nothing, and would take a GPU's memory from a worker.
            return {**variables, "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
        if self.devices:
            variables["CUDA_VISIBLE_DEVICES"] = self.devices[worker % len(self.devices)]
            if self.workers > len(self.devices):
                variables["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
                variables["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
        cores = max((os.cpu_count() or 1) // self.workers, 1)
        return {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(cores)), **variables}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for send, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, None)):
            for process in self.started:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, send)
            for process in self.started:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(patience)


@contextlib.contextmanager
def free_port():
    """Reserve a port, so that no other launch is given it; gRPC shares it with this socket."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind((ADDRESS, 0))
        yield holder.getsockname()[1]


def devices():
    """Return the GPUs that this process may use, by name; none where there is none."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip()]
    if shutil.which("nvidia-smi") is None:
        return []
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout
    return [str(i) for i, line in enumerate(listed.splitlines()) if line.startswith("GPU ")]
