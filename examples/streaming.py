"""Which digit is being said? Running predictions on a stream of sound.

    python examples/streaming.py --data-dir DIR
    python examples/streaming.py --data-dir DIR --onnx --speed 1

DIR holds wav files of spoken digits named {digit}_{speaker}_{index}.wav, such as those of the
Free Spoken Digit Dataset. Trains spectrogram frames -> MomentumLSTM -> Dense on some of the
files, turns the model into one of a single step, and feeds it a file it has not seen, 16 ms
of sound at a time, as a microphone would give it. Prints what the model thinks after each.

With `--onnx` the step runs in onnxruntime (extra `export`). `--speed 1` waits as long as the
sound lasts; 0, the default, does not wait.
"""

import sys
import tempfile
import time
from pathlib import Path

import keras
import numpy as np
from rich import print

from keras_momentum_rnn import MomentumLSTM
from keras_momentum_rnn.streaming import initial_states, step_model
from papers.command_line import documented_parser, folder, positive
from papers.tasks.speech import HOP, RATE, WINDOW

BINS, LONGEST = WINDOW // 2 + 1, 60


def main(argv=None):
    options = parse(sys.argv[1:] if argv is None else argv)
    files = sorted(Path(options.data_dir).rglob("[0-9]_*_*.wav"))
    if len(files) < 2:
        raise SystemExit(f"{options.data_dir} has no files named {{digit}}_{{speaker}}_*.wav")
    order = np.random.default_rng(options.seed).permutation(len(files))
    *training, heard = (files[i] for i in order[: options.files + 1])
    model = trained(training, options)
    step = step_model(model)
    run = in_onnxruntime(step) if options.onnx else in_keras(step)
    states = initial_states(step)
    print(f"{heard.name}: the spoken digit is {heard.name[0]}")
    late = 0
    for n, frame in enumerate(microphone(heard, options.speed)):
        start = time.perf_counter()
        scores, *states = run([frame[None], *states])
        late = max(late, time.perf_counter() - start)
        best = int(np.argmax(scores[0]))
        bar = "#" * round(20 * float(scores[0, best]))
        print(f"{1000 * (n * HOP + WINDOW) / RATE:5.0f} ms  {best}  {bar}")
    print(f"The slowest of {n + 1} steps took {1000 * late:.1f} ms; a frame lasts 16 ms")
    return best


def parse(argv):
    parser = documented_parser(__doc__)
    parser.add_argument("--data-dir", type=folder, required=True, help="wav files")
    parser.add_argument(
        "--files", type=positive(int), default=1000, help="how many to train on"
    )
    parser.add_argument("--epochs", type=positive(int), default=8)
    parser.add_argument("--units", type=positive(int), default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--speed", type=float, default=0, help="1: as fast as the sound")
    parser.add_argument("--onnx", action="store_true", help="run the step in onnxruntime")
    return parser.parse_args(argv)


def trained(files, options):
    """Return a model trained on whole files, its frames padded with zeros at their end."""
    keras.utils.set_random_seed(options.seed)
    x = np.zeros((len(files), LONGEST, BINS), "float32")
    for row, path in zip(x, files):
        frames = [spectrum(window) for window in windows(read(path))][:LONGEST]
        row[: len(frames)] = frames
    y = np.array([int(path.name[0]) for path in files])
    model = keras.Sequential(
        [
            keras.Input((None, BINS)),
            keras.layers.Masking(),
            MomentumLSTM(options.units),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(
        keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    history = model.fit(x, y, batch_size=32, epochs=options.epochs, verbose=0).history
    print(f"Trained on {len(files)} files; training accuracy {history['accuracy'][-1]:.2f}")
    return model


def read(path):
    """Return the samples of a wav file, of full scale 1, at the rate of the task."""
    import soundfile

    samples, rate = soundfile.read(path, dtype="float32")
    if rate != RATE or samples.ndim != 1:
        raise SystemExit(
            f"{path} must have one channel at {RATE} Hz. "
            f"Received: shape {samples.shape} at {rate} Hz"
        )
    if len(samples) < WINDOW:
        raise SystemExit(f"{path} must have {WINDOW} samples or more. Received: {len(samples)}")
    return samples


def windows(samples):
    for start in range(0, len(samples) - WINDOW + 1, HOP):
        yield samples[start : start + WINDOW]


def spectrum(window):
    return np.log(np.abs(np.fft.rfft(np.hanning(WINDOW) * window)) + 1e-2).astype("float32")


def microphone(path, speed):
    """Yield the frames of a file, as late as they would be heard."""
    for window in windows(read(path)):
        if speed:
            time.sleep(HOP / RATE / speed)
        yield spectrum(window)


def in_keras(step):
    return lambda inputs: [keras.ops.convert_to_numpy(y) for y in step(inputs)]


def in_onnxruntime(step):
    import onnxruntime

    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/step.onnx"
        step([np.zeros((1, *x.shape[1:]), x.dtype) for x in step.inputs])
        step.export(path, format="onnx", verbose=False)
        session = onnxruntime.InferenceSession(path)
    names = [x.name for x in session.get_inputs()]
    return lambda inputs: session.run(None, dict(zip(names, inputs, strict=True)))


if __name__ == "__main__":
    main()
