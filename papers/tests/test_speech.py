"""Speech tasks: the spectrogram against its definition, speakers kept apart, files refused."""

import keras
import numpy as np
import pytest
import soundfile
from harness import array
from scipy import signal

from papers import tasks


def sine(hertz, rate):
    time = np.arange(rate // 5) / rate
    return 0.5 * np.sin(2 * np.pi * hertz * time)


def noise(seed, samples=1000):
    return 0.1 * np.random.default_rng(seed).standard_normal(samples)


@pytest.fixture
def folder(tmp_path):
    """Three speakers, two utterances each, of different lengths."""
    for number, speaker in enumerate(("ann", "bob", "eve")):
        (tmp_path / speaker).mkdir()
        for i in range(2):
            samples = noise(10 * number + i, 600 + 200 * number + 128 * i)
            soundfile.write(tmp_path / speaker / f"{i}.wav", samples, 8000)
    return tmp_path


def utterances(split):
    """The true frames of each sequence."""
    return [x[w > 0] for x, w in zip(split.x, split.sample_weight)]


def test_spectrogram_is_that_of_scipy(folder):
    task = tasks.load("speech", folder=folder, floor=1e-3)
    transform = signal.ShortTimeFFT(signal.get_window("hann", 256), 128, 8000)
    expected = []
    for path in sorted(folder.rglob("*.wav")):
        samples = soundfile.read(path)[0]
        whole = (len(samples) - 256) // 128 + 1
        # A window is centred on its slice's time there: the first whole one is slice 1.
        spectrum = np.abs(transform.stft(samples, p0=1, p1=1 + whole))
        expected.append(np.log(spectrum + 1e-3).T)
    got = [x for s in (task.train, task.validation, task.test) for x in utterances(s)]
    assert len(got) == len(expected) == 6
    for frames in got:
        assert frames.shape[1] == 129
        errors = [np.abs(frames - e[:-1]).max() for e in expected if len(e) == len(frames) + 1]
        assert min(errors) < 1e-4


@pytest.mark.parametrize("rate", [8000, 16000, 11025])
def test_a_sine_peaks_in_its_bin_at_its_height(tmp_path, rate):
    """1000 Hz is bin 32 of 256 at 8 kHz; a Hann window of 256 has the sum 128."""
    for speaker in "abc":
        path = tmp_path / speaker / "x.WAV"
        path.parent.mkdir()
        soundfile.write(path, sine(1000, rate), rate, format="WAV")
    frames = utterances(tasks.load("speech", folder=tmp_path).test)[0]
    middle = frames[2:-2]
    assert len(frames) == (1600 - 256) // 128 and (middle.argmax(axis=1) == 32).all()
    np.testing.assert_allclose(middle[:, 32], np.log(0.5 * 128 / 2), atol=0.02)
    assert (middle[:, 60:] < middle[:, 32:33] - 5).all()


def test_the_target_is_the_next_frame_and_padding_weighs_nothing(folder):
    task = tasks.load("speech", folder=folder)
    for split in (task.train, task.validation, task.test):
        assert split.x.shape == split.y.shape == (2, *task.input_shape)
        np.testing.assert_array_equal(split.x[:, 1:], split.y[:, :-1])
        lengths = split.sample_weight.sum(axis=1).astype(int)
        for x, y, weight, n in zip(split.x, split.y, split.sample_weight, lengths):
            assert (weight[:n] == 1).all() and (weight[n:] == 0).all()
            assert (x[n + 1 :] == 0).all() and (y[n:] == 0).all() and (y[:n] != 0).any()
    longest = max(s.sample_weight.sum(axis=1).max() for s in (task.train, task.test))
    assert task.input_shape[0] >= longest
    samples = {600 + 200 * n + 128 * i for n in range(3) for i in range(2)}
    found = {
        int(n)
        for s in (task.train, task.validation, task.test)
        for n in s.sample_weight.sum(axis=1)
    }
    assert found == {(n - 256) // 128 for n in samples}


def test_loss_and_score_are_means_over_true_frames_alone(folder):
    task = tasks.load("speech", folder=folder)
    model = task.model(keras.layers.SimpleRNN(3, **task.layer_arguments))
    task.compile(model, "sgd")
    scores = task.evaluate(model, "train", batch_size=1)
    predicted = array(model(task.train.x))
    true = task.train.sample_weight > 0
    expected = np.mean((predicted - task.train.y)[true] ** 2)
    assert scores["mse"] == pytest.approx(expected, rel=1e-4)
    both = task.evaluate(model, "train", batch_size=2)
    assert both["loss"] == pytest.approx(expected, rel=1e-4)
    # Batches of one utterance each: the loss is their mean, the score is that of all frames.
    assert scores["loss"] != pytest.approx(expected, rel=1e-4)


def test_chance_is_the_mean_frame_of_training(folder):
    task = tasks.load("speech", folder=folder)
    true = [s.sample_weight > 0 for s in (task.train, task.test)]
    mean = task.train.y[true[0]].mean(axis=0)
    target, last = task.test.y[true[1]], task.test.x[true[1]]
    assert task.chance["mse"] == pytest.approx(np.mean((target - mean) ** 2), rel=1e-4)
    assert f"scores {np.mean((target - last) ** 2):.3g}" in task.chance_means


@pytest.mark.parametrize("pattern", [None, r"^([a-z]+)/"])
def test_no_speaker_is_in_two_sets(tmp_path, pattern):
    """Each speaker has one pitch, so that the frames tell who speaks."""
    pitches = {name: 500 * (i + 1) for i, name in enumerate("abcdef")}
    for name, pitch in pitches.items():
        (tmp_path / name).mkdir()
        for i in range(3):
            soundfile.write(tmp_path / name / f"{i}.wav", sine(pitch, 8000), 8000)

    def heard(split):
        return {u.mean(axis=0).argmax() * 8000 // 256 for u in utterances(split)}

    held_out = set()
    for seed in range(5):
        task = tasks.load(
            "speech", folder=tmp_path, speaker=pattern, validation_speakers=2, seed=seed
        )
        sets = [heard(s) for s in (task.train, task.validation, task.test)]
        assert [len(s) for s in sets] == [3, 2, 1]
        assert set.union(*sets) == set(pitches.values())
        assert [len(s) for s in (task.train, task.validation, task.test)] == [9, 6, 3]
        held_out |= sets[2]
    assert len(held_out) > 1


def test_subset_and_frames_make_it_smaller(folder):
    task = tasks.load("speech", folder=folder, subset=1, frames=3)
    assert len(task.train) == 1 and len(task.test) == 2 and task.input_shape == (2, 129)
    whole = tasks.load("speech", folder=folder)
    assert any(np.array_equal(task.train.x[0], x[:2]) for x in whole.train.x)


def test_channels_are_averaged_and_other_encodings_read(tmp_path):
    samples = noise(0, 1000)
    for speaker, channels in (("a", [1, 1]), ("b", [2, 0]), ("c", [0.5, 1.5])):
        (tmp_path / speaker).mkdir()
        stereo = samples[:, None] * channels
        soundfile.write(tmp_path / speaker / "x.wav", stereo, 8000, subtype="FLOAT")
    task = tasks.load("speech", folder=tmp_path)
    np.testing.assert_allclose(task.train.x, task.test.x, atol=1e-3)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: p.write_bytes(b""), "0.wav is not a sound file that libsndfile can read"),
        (lambda p: p.write_bytes(p.read_bytes()[:30]), "0.wav is not a sound file that libsnd"),
        (lambda p: soundfile.write(p, noise(0, 383), 8000), "at least 384 samples at 8000 Hz"),
        (lambda p: soundfile.write(p, noise(0, 700), 16000), "ann/0.wav with 350"),
    ],
    ids=["empty", "cut off", "short", "short at 16 kHz"],
)
def test_bad_files_are_named(folder, damage, message):
    damage(folder / "ann" / "0.wav")
    with pytest.raises(ValueError) as error:
        tasks.load("speech", folder=folder)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, FileNotFoundError, "must have wav files in it"),
        ({"folder": "no/such"}, FileNotFoundError, "`folder` must be an existing"),
        ({"validation_speakers": 2}, ValueError, "more speakers than the 3 that are"),
        ({"speaker": r"ann|bob|eve"}, ValueError, "whose first group is found in"),
        ({"frames": 1}, ValueError, "`frames` must be an integer of at least 2."),
    ],
)
def test_what_cannot_be_read_is_refused(folder, tmp_path, options, error, message):
    if not options:
        folder = tmp_path / "empty"
        folder.mkdir()
    with pytest.raises(error) as raised:
        tasks.load("speech", **{"folder": folder, **options})
    assert message in str(raised.value)
