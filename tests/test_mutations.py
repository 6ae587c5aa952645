"""The changes that `mutate.py` makes are changes of today's code."""

import mutate


def test_every_change_can_be_made(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["mutate.py", "--check"])
    mutate.main()
    assert "changes can be made" in capsys.readouterr().out
