"""Which part this process has in a search: the only one, the chief or a worker."""

import contextlib
import functools
import math
import os
import socket
import sys
import threading
import time
from concurrent import futures

from keras_tuner.errors import FatalError, FatalValueError

from keras_momentum_rnn.tuning import state

IP, PORT, ID = "KERASTUNER_ORACLE_IP", "KERASTUNER_ORACLE_PORT", "KERASTUNER_TUNER_ID"
# Seconds that a worker waits for a chief, as long as keras-tuner lets a call wait.
PATIENCE = 3600
# Seconds that a chief waits for workers after all trials: they call every second.
LATE = 10


class Ended(SystemExit):
    """The search has ended without this worker, so its process ends, too."""


class NoChiefError(FatalError, TimeoutError):
    """No chief has answered for an hour.

    keras-tuner would take a plain `TimeoutError` for the trial's: it would wait for a second
    hour, and then record the trial as failed.
    """


def role():
    """Return what keras-tuner's variables make of this process: single, chief or worker.

    Raises:
        ValueError: if a variable is missing or wrong, or the chief's address is in use.
    """
    if IP not in os.environ:
        return "single"
    ip, port, name = (os.environ.get(variable, "") for variable in (IP, PORT, ID))
    if not name:
        raise ValueError(f"`{IP}` is set, so `{ID}` must be set, too. Received: nothing")
    if not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(f"`{PORT}` must be an integer from 1 to 65535. Received: {port!r}")
    try:
        family = socket.getaddrinfo(*address())[0][0]
    except (OSError, UnicodeError) as error:
        raise ValueError(f"`{IP}` must be the chief's address. Received: {ip!r}") from error
    if "chief" not in name:
        return "worker"
    try:
        # gRPC shares ports: a second chief would start without an error, and get trials of
        # the first one's search: `test_a_port_where_another_chief_listens_is_refused`.
        socket.create_server(address(), family=family).close()
    except OSError as error:
        raise ValueError(
            f"`{IP}` must be an address of the chief's machine and `{PORT}` a port of this "
            f"search alone. Received: {ip}:{port} ({error.strerror})"
        ) from error
    return "chief"


def address():
    return os.environ[IP], int(os.environ[PORT])


@contextlib.contextmanager
def quiet():
    """Drop what is printed: keras-tuner prints a line for every condition that it sends."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield


def serve(tuner):
    """Answer the workers until all trials have ended.

    An error in a call of a worker, such as a full disk, would end that call alone, and leave
    keras-tuner's lock closed for ever. Here it ends the chief:
    `test_an_error_in_the_call_of_a_worker_ends_the_chief`. A chief that is started again after
    the last trial would wait for a worker for ever:
    `test_a_chief_whose_search_has_ended_does_not_wait_for_workers`.
    """
    oracle = tuner.oracle

    def search():
        try:
            tuner.search(verbose=0)
        except BaseException as error:
            oracle.error = error

    with quiet():
        server = threading.Thread(target=search, daemon=True)
        server.start()
        end = time.monotonic() + (LATE if oracle.has_ended else math.inf)
        while server.is_alive() and oracle.error is None:
            if oracle.has_ended and time.monotonic() > end:
                break
            server.join(0.2)
    if oracle.error is not None:
        raise oracle.error


def work(make_tuner, directory, settings, fit, max_trials, overwrite):
    """Train the trials that the chief gives, and end the process.

    Args:
        make_tuner: function that returns a tuner.
        directory, max_trials, overwrite: those of `tune`.
        settings: what the search of the chief must have, too.
        fit: dict of the arguments of `fit`.
    """
    import grpc

    has_ended = functools.partial(state.has_ended, directory, settings, max_trials)
    # With `overwrite` the search that is there is not the one that the chief will begin.
    await_chief((lambda: False) if overwrite else has_ended)
    stored = state.same(directory, settings)
    try:
        with quiet():
            tuner = make_tuner()
            tuner.oracle = Line(tuner.oracle, stored["id"], directory, has_ended)
            tuner.search(**fit)
    except grpc.RpcError as error:
        raise RuntimeError(
            f"{os.environ[ID]} ends: the chief at {':'.join(map(str, address()))} does not "
            "answer or ended with an error. Start the chief again, then this worker."
        ) from error
    sys.exit(0)


def stop_if(has_ended):
    """End the process if no chief will come."""
    if has_ended():
        print(f"{os.environ[ID]} ends: all trials of its search have ended", file=sys.stderr)
        raise Ended(0)


def await_chief(has_ended):
    """Wait until the chief listens, and say so, or end if the search has ended.

    A worker that comes after the last trial would wait for an hour:
    `test_a_worker_that_comes_after_the_last_trial_ends`.
    """
    ip, port = address()
    end, announced = time.monotonic() + PATIENCE, False
    while True:
        with contextlib.suppress(OSError), socket.create_connection((ip, port), timeout=1):
            return
        stop_if(has_ended)
        if not announced:
            print(f"{os.environ[ID]} waits for the chief at {ip}:{port}", file=sys.stderr)
        announced = True
        if time.monotonic() > end:
            raise NoChiefError(f"No chief answered at {ip}:{port} for {PATIENCE} seconds")
        time.sleep(1)


class Line:
    """A worker's line to its chief: a call that the chief's end cut off is made to the next.

    Or the worker would end, and its trial be lost:
    `test_a_call_that_the_end_of_the_chief_cut_off_is_made_again`.

    Args:
        client: `OracleClient` of keras-tuner.
        search: name of the search, from its search.json.
        directory: that of `tune`.
        has_ended: function that tells whether the chief has left after the last trial.
    """

    def __init__(self, client, search, directory, has_ended):
        self.client, self.search, self.directory = client, search, directory
        self.has_ended = has_ended

    def __getattr__(self, name):
        attribute = getattr(self.client, name)
        is_method = callable(attribute)
        return functools.partial(self.call, attribute) if is_method else attribute

    def call(self, function, *args, **kwargs):
        """Wait for the chief, and call a function of the client."""
        import grpc

        while True:
            await_chief(self.has_ended)
            try:
                self.answer(self.check)
                return self.answer(function, *args, **kwargs)
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE:
                    raise

    def answer(self, function, *args, **kwargs):
        """Return what a function of the client returns, or end if the chief has left before it.

        keras-tuner lets a call to a chief that has left wait for an hour:
        `test_a_worker_whose_chief_ends_before_it_answers_ends`.
        """
        called = futures.Future()

        def call():
            try:
                called.set_result(function(*args, **kwargs))
            except Exception as error:
                called.set_exception(error)

        threading.Thread(target=call, daemon=True).start()
        while not futures.wait([called], timeout=1).done:
            stop_if(self.has_ended)
        return called.result()

    def check(self):
        """Refuse a chief that serves another search."""
        space = self.client.get_space().space
        if self.search not in [hp.value for hp in space if hp.name == state.ID]:
            raise FatalValueError(
                f"Give each search a port of its own in `{PORT}`. The chief at this one serves "
                f"another search than directory={str(self.directory)!r}"
            )
