"""What the command lines share."""

import argparse
from pathlib import Path

import pytest

from papers import single_study
from papers.command_line import (
    INSTALL,
    RESUMES,
    command_of,
    documented_parser,
    ending,
    folder,
    positive,
)

PAPERS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KeyboardInterrupt(), RESUMES),
        (ValueError("`units` must be"), "ValueError: `units` must be"),
        (FileNotFoundError(2, "None there"), "FileNotFoundError: [Errno 2] None there"),
        (ModuleNotFoundError("No module named 'aeon'"), f"No module named 'aeon'. {INSTALL}"),
    ],
)
def test_a_command_that_cannot_go_on_ends_with_a_message(error, message):
    with pytest.raises(SystemExit) as raised, ending():
        raise error
    assert raised.value.code == message


def test_a_mistake_in_the_code_keeps_its_traceback():
    with pytest.raises(KeyError), ending():
        raise KeyError("units")


def test_a_command_is_told_as_a_shell_takes_it():
    command = command_of(PAPERS / "reproduce.py", ["adding", "--set", "folder=my data"])
    assert command == "python -m papers.reproduce adding --set 'folder=my data'"


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "x", ""])
def test_a_number_that_is_not_positive_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="must be a positive float"):
        positive(float)(text)


def test_a_folder_exists(tmp_path):
    assert folder(str(tmp_path)) == tmp_path
    with pytest.raises(argparse.ArgumentTypeError, match="existing directory"):
        folder(str(tmp_path / "none"))


def test_an_output_that_cannot_be_made_ends_a_study_before_it_begins(tmp_path):
    parser = documented_parser("A study.")
    parser.add_argument("--output", type=Path)
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match="FileExistsError"):
        single_study.run(__file__, [f"--output={tmp_path / 'file'}"], parser, None)
