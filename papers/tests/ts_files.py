"""Small `.ts` files, the format of the UCR and UEA archives, and whether aeon reads them."""

from importlib.util import find_spec

import pytest

needs_aeon = pytest.mark.skipif(not find_spec("aeon"), reason="aeon reads .ts files")

HEADER = """@problemName Tiny
@timeStamps false
@missing {missing}
@univariate {univariate}
@dimensions {channels}
@equalLength {equal}
{label}
@data
"""


def write(folder, part, samples, label, name="Tiny"):
    """Write a .ts file of (list of channels, label) pairs."""
    channels = len(samples[0][0])
    lengths = {len(sample[0]) for sample, _ in samples}
    lines = [
        ":".join([",".join(map(str, channel)) for channel in sample] + [str(target)])
        for sample, target in samples
    ]
    text = HEADER.format(
        missing="true" if "?" in "".join(lines) else "false",
        univariate="true" if channels == 1 else "false",
        channels=channels,
        equal="true" if len(lengths) == 1 else "false",
        label=label,
    )
    folder.mkdir(exist_ok=True)
    (folder / f"{name}_{part}.ts").write_text(text + "\n".join(lines) + "\n")
