"""What files of results hold, and how their settings differ."""

from keras_momentum_rnn.atomic_files import replaced


def write_text(path, text):
    with replaced(path) as new:
        new.write_text(text, encoding="utf-8")


# Entries that only describe a run, or say where its data lies. A run resumes if they change.
DESCRIPTIONS = (
    "source", "chance_means", "deviations from the paper", "updates in the paper", "data_dir",
)  # fmt: skip


def differences(stored, given):
    """Return lines that name the differences between two dicts of settings, if any."""
    stored, given = without_descriptions(stored), without_descriptions(given)
    return [
        f"\n  {name}: {stored.get(name)!r} there, {given.get(name)!r} now"
        for name in {**stored, **given}
        if stored.get(name) != given.get(name)
    ]


def without_descriptions(settings):
    """Return a dict of settings, and those in it, without `DESCRIPTIONS`."""
    return {
        name: without_descriptions(value) if isinstance(value, dict) else value
        for name, value in settings.items()
        if name not in DESCRIPTIONS
    }
