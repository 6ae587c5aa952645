"""The masks that Keras attaches to outputs, read and attached by layers: its public way to."""

import keras
from keras import tree


class ReadMask(keras.Layer):
    """Return the mask that Keras has attached to its input, or None."""

    def __init__(self):
        super().__init__(autocast=False)
        self.supports_masking = True

    def call(self, inputs, mask=None):
        return mask

    def compute_mask(self, inputs, previous_mask):
        return None


class AttachMask(keras.Layer):
    """Return the first of its inputs, with the second as its mask."""

    def __init__(self):
        super().__init__(autocast=False)
        self.supports_masking = True

    def call(self, inputs):
        return inputs[0]

    def compute_mask(self, inputs, previous_mask):
        return inputs[1]


def mask_of(tensor):
    """Return the mask of a tensor, or None."""
    return ReadMask()(tensor)


def masked(outputs, masks):
    """Return outputs with their masks, which a transform of the backend has taken from them."""
    pairs = zip(tree.flatten(outputs), masks)
    outputs_masked = [t if m is None else AttachMask()([t, m]) for t, m in pairs]
    return tree.pack_sequence_as(outputs, outputs_masked)
