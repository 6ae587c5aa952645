"""Linear rules, applied to a whole sequence at once.

v_t = mu_t v_{t-1} + s u_t with scalar coefficients commutes with u_t = W x_t + b: filtering
[x, 1] and projecting the result by [W, b] gives v, and [x, 1] is the narrower of the two.
"""

from keras import ops

CHUNK = 64


def filtered(rule, x):
    """Return the drive of a linear rule that starts at zero, `(batch, time, width)`, for x.

    The sequence is cut into chunks. Within one, v is a triangular matrix of products of
    coefficients times x; between two, the last v is carried. No ratio and no logarithm is
    taken, so a coefficient of 0 is no special case.
    """
    time = x.shape[1]
    outputs, last = [], None
    for start in range(0, time, CHUNK):
        part = x[:, start : start + CHUNK]
        inner, carry = chunk_coefficients(rule, start, part.shape[1], x.dtype)
        v = inner @ part
        if last is not None:
            v = v + carry * last
        last = v[:, -1:]
        outputs.append(v)
    return ops.concatenate(outputs, axis=1)


def chunk_coefficients(rule, start, length, dtype):
    """Return what a chunk's x and the v before it count for in its v.

    Returns:
        The triangle `(length, length)`, s times mu_{j+1} ... mu_i at (i, j), and the column
        `(length, 1)`, mu_start ... mu_i.
    """
    steps = ops.arange(length)
    mu, step_size = rule.coefficients(ops.cast(start + steps, dtype))
    mu = ops.ones((length,), dtype=dtype) * mu
    i, j = ops.expand_dims(steps, 1), ops.expand_dims(steps, 0)
    factors = ops.where(i > j, ops.expand_dims(mu, 1), ops.ones_like(mu))
    # The tensor's own method: `keras.ops.cumprod` takes float64 to float32.
    triangle = factors.cumprod(0) * ops.cast(i >= j, dtype)
    return step_size * triangle, mu[0] * triangle[:, :1]
