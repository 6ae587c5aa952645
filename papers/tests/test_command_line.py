"""What the command lines of the examples share."""

import argparse
from pathlib import Path

import pytest

from papers.command_line import RESUMES, command_of, documented_parser, ending, folder, positive

EXAMPLES = Path(__file__).parents[2] / "papers"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_with_a_command_line_runs_as_a_script(path):
    text = path.read_text(encoding="utf-8")
    assert ("def main(" in text) == ('if __name__ == "__main__":' in text)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KeyboardInterrupt(), RESUMES),
        (ValueError("`units` must be"), "ValueError: `units` must be"),
        (FileNotFoundError(2, "None there"), "FileNotFoundError: [Errno 2] None there"),
        (ImportError("Install"), "ImportError: Install"),
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
    command = command_of("/a/b/reproduce.py", ["adding", "--set", "folder=my data"])
    assert command == "python -m papers.reproduce adding --set 'folder=my data'"


def test_the_help_begins_with_the_first_line():
    assert documented_parser("What it does.\n\nMore.").description == "What it does."


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "x", ""])
def test_a_number_that_is_not_positive_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="must be a positive float"):
        positive(float)(text)


def test_a_folder_exists(tmp_path):
    assert folder(str(tmp_path)) == tmp_path
    with pytest.raises(argparse.ArgumentTypeError, match="existing directory"):
        folder(str(tmp_path / "none"))
