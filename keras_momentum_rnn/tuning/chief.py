"""The chief of a distributed search: it serves the workers, and shows how far they are."""

import contextlib
import os
import signal
import threading
import time
from queue import SimpleQueue

import keras_tuner

from keras_momentum_rnn.tuning.records import back_up
from keras_momentum_rnn.writing import read_json, write_json

POLL = 0.2
# Names of workers that were lost, as the launcher reports them.
LOST = SimpleQueue()


def role():
    """Return what keras-tuner's variables make of this process: single, chief or worker."""
    if "KERASTUNER_ORACLE_IP" not in os.environ:
        return "single"
    return "chief" if "chief" in tuner_id() else "worker"


def tuner_id():
    """Return the name that keras-tuner gives to this process."""
    return os.environ.get("KERASTUNER_TUNER_ID", "tuner0")


@contextlib.contextmanager
def without_chatter():
    """Drop what is printed: keras-tuner prints a line for every condition that it sends."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield


def serve(tuner, update):
    """Serve the workers until all have left, and end the trials of those that were lost.

    keras-tuner's server looks every 20 seconds whether the workers have left, and waits for
    ever for one that died. So it runs in a thread, and this looks on.

    Args:
        tuner: the chief's tuner.
        update: function of no arguments, called often.
    """
    oracle, failure = tuner.oracle, []

    def search():
        try:
            tuner.search(verbose=0)
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=search, daemon=True)
    thread.start()
    seen, lost, backed_up = set(), set(), 0
    while thread.is_alive():
        time.sleep(POLL)
        present = set(oracle.tuner_ids)
        seen |= present
        while not LOST.empty():
            lost.add(LOST.get())
        for name in lost & present:
            end_lost(oracle, name, tuner)
        if len(oracle.end_order) > backed_up:
            backed_up = len(oracle.end_order)
            back_up(oracle, tuner.project_dir)
        update()
        # A worker leaves when it is told that there are no more trials, or is lost.
        if seen - present - lost and idle(oracle):
            break
    if failure:
        raise failure[0]


@keras_tuner.synchronized
def idle(oracle):
    return not oracle.ongoing_trials and not oracle.tuner_ids


@keras_tuner.synchronized
def end_lost(oracle, tuner_id, tuner):
    """Record the trial of a worker that was killed as failed, so that nobody waits for it."""
    oracle.tuner_ids.discard(tuner_id)
    trial = oracle.ongoing_trials.get(tuner_id)
    if trial is not None:
        trial.status = "FAILED"
        trial.message = f"{tuner_id} was killed in this trial"
        path = f"{tuner.get_trial_dir(trial.trial_id)}/record.json"
        write_json(path, {**read_json(path, {}), "error": trial.message, "executions": []})
        oracle.end_trial(trial)


def listen(stream):
    """Follow the launcher, in a thread: note lost workers, and end with it."""

    def follow():
        for line in stream:
            LOST.put(line.strip())
        # The launcher has ended, and this is the leader of a group of its own.
        os.killpg(os.getpgrp(), signal.SIGKILL)

    threading.Thread(target=follow, daemon=True).start()
