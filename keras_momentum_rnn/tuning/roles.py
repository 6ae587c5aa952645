"""Which part this process has in a search: the only one, the chief or a worker."""

import contextlib
import os
import socket


def role():
    """Return what keras-tuner's variables make of this process: single, chief or worker."""
    if "KERASTUNER_ORACLE_IP" not in os.environ:
        return "single"
    return "chief" if "chief" in tuner_id() else "worker"


def tuner_id():
    """Return the name that keras-tuner gives to this process."""
    return os.environ.get("KERASTUNER_TUNER_ID", "tuner0")


def check_address():
    """Refuse an address where a chief listens already.

    gRPC shares ports: a second chief would start without an error, and the trials of one
    search would be reported to the other.

    Raises:
        ValueError: if something answers there.
    """
    ip, port = os.environ["KERASTUNER_ORACLE_IP"], os.environ["KERASTUNER_ORACLE_PORT"]
    if listens(ip, int(port)):
        raise ValueError(
            "Give each search a port of its own in `KERASTUNER_ORACLE_PORT`; another process "
            f"listens on this one. Received: {ip}:{port}"
        )


def listens(ip, port):
    with socket.socket() as attempt:
        attempt.settimeout(1)
        return attempt.connect_ex((ip, port)) == 0


@contextlib.contextmanager
def quiet():
    """Drop what is printed: keras-tuner prints a line for every condition that it sends."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield
