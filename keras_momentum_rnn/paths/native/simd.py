"""Vectors of 16 float32 for Numba, and what the kernel makes of them.

In order: pointers, vectors, moves between arrays, sigmoid and tanh, products of matrices.

LLVM turns a vector into one AVX-512 register, two of AVX2 or four of NEON. Numba's own loops
over arrays are not enough: LLVM cannot know that arrays do not overlap, and keeps no tile of
a product in registers.
"""

import operator
from itertools import chain, product

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

WIDTH = 16
# The sizes of tiles. The largest fills the registers: 32 of AVX-512, which hold a vector each.
TILE_ROWS, TILE_VECTORS = range(1, 7), (1, 2, 4)
FLOATS = ir.VectorType(ir.FloatType(), WIDTH)
# A sum may be taken in another order and a product joined to it. A quotient or a root may be an
# estimate that is then corrected, which makes NaN of infinity: see `inverse_root`.
FLAGS = ("reassoc", "nsz", "arcp", "contract", "afn")


class Vector(types.Type):
    def __init__(self):
        super().__init__(name="float32x16")


vector = Vector()


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    def __init__(self, manager, fe_type):
        super().__init__(manager, fe_type, FLOATS)


# Pointers: Numba counts references to an array wherever it is used, by atomic operations that
# threads wait for, and of a tuple those to all of its arrays. A pointer is a number.


@intrinsic
def pointers(typing_context, value):
    """Return a flat array as the pointer to its numbers, and so those in tuples of any depth.

    A bool becomes 0 or 1. Something else must keep the arrays alive.
    """

    def code(context, builder, signature, arguments):
        return pointed_value(context, builder, value, arguments[0])

    return pointed_type(value)(value), code


def pointed_type(kind):
    if isinstance(kind, types.Array):
        return types.CPointer(types.uint8 if kind.dtype == types.boolean else kind.dtype)
    if isinstance(kind, types.BaseTuple):
        parts = tuple(map(pointed_type, kind.types))
        return types.BaseTuple.from_types(parts, getattr(kind, "instance_class", None))
    return kind


def pointed_value(context, builder, kind, value):
    if isinstance(kind, types.Array):
        return context.make_array(kind)(context, builder, value=value).data
    if isinstance(kind, types.BaseTuple):
        parts = zip(kind.types, cgutils.unpack_tuple(builder, value))
        parts = [pointed_value(context, builder, *part) for part in parts]
        return context.make_tuple(builder, pointed_type(kind), parts)
    return value


# In and out of memory


def element(builder, pointer, offset):
    return builder.gep(pointer, [offset], inbounds=True)


def loaded(builder, pointer):
    return builder.load(builder.bitcast(pointer, FLOATS.as_pointer()), align=4)


def stored(builder, pointer, value):
    builder.store(value, builder.bitcast(pointer, FLOATS.as_pointer()), align=4)


def spread(builder, number):
    """Return a vector of one number."""
    nothing = ir.Constant(FLOATS, ir.Undefined)
    lane = ir.IntType(32)
    first = builder.insert_element(nothing, number, ir.Constant(lane, 0))
    order = ir.Constant(ir.VectorType(lane, WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(first, nothing, order)


@intrinsic
def load(typing_context, pointer, offset):
    """Return the vector at `pointer[offset]`."""

    def code(context, builder, signature, arguments):
        return loaded(builder, element(builder, *arguments))

    return vector(pointer, types.intp), code


@intrinsic
def store(typing_context, pointer, offset, value):
    """Write a vector to `pointer[offset]`."""

    def code(context, builder, signature, arguments):
        *place, value = arguments
        stored(builder, element(builder, *place), value)
        return context.get_dummy_value()

    return types.void(pointer, types.intp, vector), code


@intrinsic
def splat(typing_context, number):
    """Return a vector of one float32."""

    def code(context, builder, signature, arguments):
        return spread(builder, arguments[0])

    return vector(types.float32), code


# Arithmetic


def of_two(instruction, flags=FLAGS):
    """Return an intrinsic of two vectors, by a method of the builder."""

    @intrinsic
    def operation(typing_context, a, b):
        def code(context, builder, signature, arguments):
            return getattr(builder, instruction)(*arguments, flags=flags)

        return vector(vector, vector), code

    return operation


def llvm_function(builder, name, count):
    function_type = ir.FunctionType(FLOATS, [FLOATS] * count)
    return cgutils.get_or_insert_function(
        builder.module, function_type, f"llvm.{name}.v{WIDTH}f32"
    )


@intrinsic
def multiply_add(typing_context, a, b, c):
    """Return a b + c."""

    def code(context, builder, signature, arguments):
        function = llvm_function(builder, "fma", 3)
        return builder.call(function, arguments, fastmath=FLAGS)

    return vector(vector, vector, vector), code


add, subtract = of_two("fadd"), of_two("fsub")
multiply, divide = of_two("fmul"), of_two("fdiv")
# It stays where it stands in a product of several.
ordered_product = of_two("fmul", flags=())


@intrinsic
def inverse_root(typing_context, x):
    """Return 1 / sqrt(x), of infinity 0.

    The correction of an estimate multiplies x by it: infinity times 0.
    """

    def code(context, builder, signature, arguments):
        (x,) = arguments
        root = llvm_function(builder, "sqrt", 1)
        root = builder.call(root, arguments, fastmath=FLAGS)
        one = spread(builder, ir.Constant(ir.FloatType(), 1))
        inverse = builder.fdiv(one, root, flags=FLAGS)
        infinity = spread(builder, ir.Constant(ir.FloatType(), float("inf")))
        is_infinite = builder.fcmp_ordered("==", x, infinity)
        return builder.select(is_infinite, ir.Constant(FLOATS, None), inverse)

    return vector(vector), code


@intrinsic
def clip(typing_context, x, low, high):
    """Return x between two vectors; NaN stays."""

    def code(context, builder, signature, arguments):
        x, low, high = arguments
        x = builder.select(builder.fcmp_ordered("<", x, low), low, x)
        return builder.select(builder.fcmp_ordered(">", x, high), high, x)

    return vector(vector, vector, vector), code


@intrinsic
def signed(typing_context, x, signs):
    """Return `x * sign(signs)`: NaN stays, and 0 makes 0."""

    def code(context, builder, signature, arguments):
        x, signs = arguments
        zero = ir.Constant(FLOATS, None)
        x = builder.select(builder.fcmp_ordered("<", signs, zero), builder.fneg(x), x)
        return builder.select(builder.fcmp_ordered("==", signs, zero), zero, x)

    return vector(vector, vector), code


def overload_operator(symbol, function):
    @overload(symbol)
    def of_vectors(a, b):
        if a is vector and b is vector:
            return lambda a, b: function(a, b)
        return None


overload_operator(operator.add, add)
overload_operator(operator.sub, subtract)
overload_operator(operator.mul, multiply)
overload_operator(operator.truediv, divide)


# Moves between flat arrays

# The first place of an array. A literal 0 is a type of its own to Numba, for which it would
# compile each function again.
START = np.int64(0)
ZERO, HALF, ONE, TWO = np.float32(0), np.float32(0.5), np.float32(1), np.float32(2)


@njit(forceinline=True)
def copy(target, i, source, j, width):
    """Copy `width` numbers, a multiple of 16."""
    for k in range(0, width, WIDTH):
        store(target, i + k, load(source, j + k))


@njit(forceinline=True)
def copy_ragged(target, i, source, j, width):
    """As `copy`, where the width need not be a multiple of 16."""
    whole = width // WIDTH * WIDTH
    copy(target, i, source, j, whole)
    for k in range(whole, width):
        target[i + k] = source[j + k]


@njit(forceinline=True)
def clear(target, i, width):
    for k in range(0, width, WIDTH):
        store(target, i + k, splat(ZERO))


@njit(forceinline=True)
def add_to(target, i, source, j, width):
    for k in range(0, width, WIDTH):
        store(target, i + k, load(target, i + k) + load(source, j + k))


@njit(forceinline=True)
def scale(target, i, source, j, factors, n, width):
    for k in range(0, width, WIDTH):
        store(target, i + k, load(source, j + k) * load(factors, n + k))


# Sigmoid and tanh, to about 1e-7

# x times the quotient of two polynomials in x^2 that Eigen and XLA use. From BOUND on x^2 stays
# as it is, so that the product passes 1 and is clipped: tanh is exactly 1, and a saturated gate
# of an LSTM neither adds to its memory nor takes from it. In float64 tanh is 1 - 2.3e-7 there.
# x stays at BEYOND: of infinity the quotient would be NaN.
BOUND = np.float32(7.99881172180175781)
BEYOND = np.float32(9)
ABOVE = tuple(
    np.float32(c)
    for c in (
        -2.76076847742355e-16,
        2.00018790482477e-13,
        -8.60467152213735e-11,
        5.12229709037114e-08,
        1.48572235717979e-05,
        6.37261928875436e-04,
        4.89352455891786e-03,
    )
)
BELOW = tuple(
    np.float32(c)
    for c in (
        1.19825839466702e-06,
        1.18534705686654e-04,
        2.26843463243900e-03,
        4.89352518554385e-03,
    )
)


@njit(forceinline=True)
def tanh(x):
    y = clip(x, splat(-BOUND), splat(BOUND))
    y = y * y
    above = splat(ABOVE[0])
    above = multiply_add(above, y, splat(ABOVE[1]))
    above = multiply_add(above, y, splat(ABOVE[2]))
    above = multiply_add(above, y, splat(ABOVE[3]))
    above = multiply_add(above, y, splat(ABOVE[4]))
    above = multiply_add(above, y, splat(ABOVE[5]))
    above = multiply_add(above, y, splat(ABOVE[6]))
    below = splat(BELOW[0])
    below = multiply_add(below, y, splat(BELOW[1]))
    below = multiply_add(below, y, splat(BELOW[2]))
    below = multiply_add(below, y, splat(BELOW[3]))
    x = clip(x, splat(-BEYOND), splat(BEYOND))
    return clip(x * above / below, splat(-ONE), splat(ONE))


@njit(forceinline=True)
def sigmoid(x):
    half = splat(HALF)
    return multiply_add(half, tanh(half * x), half)


# Products


@intrinsic
def tile(typing_context, rows, vectors, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner):
    """Add a product to a tile of C: up to 6 `rows` by 1, 2 or 4 `vectors` times 16 numbers.

    To `C[c + r c_row + n]` it adds the sum over k < inner of `A[a + r a_row + k a_column]
    P[p + k p_row + n]`. The sums stay in registers: each height and width
    is a branch of its own.
    """
    offset = types.intp
    tensors = (C, offset, offset, A, offset, offset, offset, P, offset, offset, offset)

    def code(context, builder, signature, arguments):
        def data(position):
            return element(builder, *arguments[position : position + 2])

        rows, vectors, _, _, c_row, _, _, a_row, a_column, _, _, p_row, inner = arguments
        steps = (data(2), c_row), (data(5), a_row, a_column), (data(9), p_row)
        size = builder.add(builder.mul(rows, ir.Constant(rows.type, 8)), vectors)
        end = builder.append_basic_block("tile.end")
        switch = builder.switch(size, end)
        for height, width in product(TILE_ROWS, TILE_VECTORS):
            block = builder.append_basic_block(f"tile.{height}x{width}")
            switch.add_case(ir.Constant(size.type, 8 * height + width), block)
            builder.position_at_end(block)
            tile_of(builder, height, width, *steps, inner)
            builder.branch(end)
        builder.position_at_end(end)
        return context.get_dummy_value()

    return types.void(offset, offset, *tensors), code


def tile_of(builder, rows, vectors, out, left, right, inner):
    """Write the code of a tile of this size.

    Args:
        out, left, right: pointers, each with how far apart rows are; of `left` columns, too.
        inner: how many products are summed.
    """

    def along(pointer, step, count):
        count = ir.Constant(inner.type, count)
        return builder.gep(pointer, [builder.mul(step, count)], inbounds=True)

    def vector_at(pointer, n):
        return along(pointer, ir.Constant(inner.type, WIDTH), n)

    (out, out_row), (left, left_row, left_column), (right, right_row) = out, left, right
    outs = [[vector_at(along(out, out_row, r), n) for n in range(vectors)] for r in range(rows)]
    # LLVM makes registers of these.
    sums = [[cgutils.alloca_once(builder, FLOATS) for _ in row] for row in outs]
    for total, pointer in zip(chain(*sums), chain(*outs)):
        builder.store(loaded(builder, pointer), total)
    lefts = [along(left, left_row, r) for r in range(rows)]
    fma = llvm_function(builder, "fma", 3)
    with cgutils.for_range(builder, inner) as loop:
        base = builder.gep(right, [builder.mul(loop.index, right_row)], inbounds=True)
        step = builder.mul(loop.index, left_column)
        columns = [loaded(builder, vector_at(base, n)) for n in range(vectors)]
        for row, pointer in zip(sums, lefts):
            number = builder.load(builder.gep(pointer, [step], inbounds=True))
            factor = spread(builder, number)
            for total, column in zip(row, columns):
                value = builder.call(fma, [factor, column, builder.load(total)])
                builder.store(value, total)
    for total, pointer in zip(chain(*sums), chain(*outs)):
        stored(builder, pointer, builder.load(total))


ROWS = TILE_ROWS[-1]
# The widest panel, in vectors: a register of AVX2 holds half of one, of NEON a quarter.
VECTORS = 4 if llvmlite.binding.get_host_cpu_features().get("avx512f") else 1


@njit
def panel_width(columns):
    """Return how many vectors the next panel of so many columns has: a power of 2."""
    vectors = VECTORS
    while vectors * WIDTH > columns:
        vectors //= 2
    return vectors


@njit
def add_tiles(C, c, c_row, A, a, a_row, a_column, P, p, p_row, rows, inner, vectors):
    """Add to a panel of C, `rows` by `vectors`, in tiles of alike height.

    The step that is 1 comes as a literal: compiled for it, products take a tenth less time.
    """
    blocks = -(-rows // ROWS)
    small, larger = rows // blocks, rows % blocks
    row = 0
    for block in range(blocks):
        count = small + 1 if block < larger else small
        tile(
            count, vectors, C, c + row * c_row, c_row,
            A, a + row * a_row, a_row, a_column, P, p, p_row, inner,
        )  # fmt: skip
        row += count


@njit
def add_packed_product(C, c, c_row, A, a, a_row, P, p, rows, columns, inner):
    """C += A P: rows of A and C so far apart, P `packed`, its columns a multiple of 16."""
    column = 0
    while rows and column < columns:
        vectors = panel_width(columns - column)
        add_tiles(
            C, c + column, c_row, A, a, a_row, 1,
            P, p + column * inner, vectors * WIDTH, rows, inner, vectors,
        )  # fmt: skip
        column += vectors * WIDTH


@njit
def add_product(C, c, c_row, A, a_row, P, p, p_row, rows, columns, inner):
    """C += A' P, A' the transpose of A, the columns of P a multiple of 16."""
    column = 0
    while rows and column < columns:
        vectors = panel_width(columns - column)
        add_tiles(
            C, c + column, c_row, A, START, 1, a_row,
            P, p + column, p_row, rows, inner, vectors,
        )  # fmt: skip
        column += vectors * WIDTH


def packed(matrix):
    """Return a matrix, its columns a multiple of 16, as flat panels that are read in order."""
    inner, columns = matrix.shape
    panels, column = [], 0
    while column < columns:
        width = panel_width.py_func(columns - column) * WIDTH
        # As many panels of this width as fit stand side by side.
        count = (columns - column) // width
        part = matrix[:, column : column + count * width].reshape(inner, count, width)
        panels.append(part.swapaxes(0, 1).reshape(-1))
        column += count * width
    return np.concatenate(panels) if panels else np.zeros(0, np.float32)
