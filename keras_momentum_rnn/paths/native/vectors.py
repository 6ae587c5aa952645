"""Vectors of 16 float32 for Numba, and the tile of a matrix product made of them.

LLVM turns such a vector into one AVX-512 register, two of AVX2 or four of NEON. Numba's own
loops over arrays are not enough: LLVM cannot know that arrays do not overlap, and keeps no
tile of a product in registers.
"""

import operator
from itertools import chain

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

WIDTH = 16
FLOATS = ir.VectorType(ir.FloatType(), WIDTH)
# A sum may be taken in another order and a product joined to it. NaN and infinity stay.
FLAGS = ("reassoc", "nsz", "arcp", "contract", "afn")


class Vector(types.Type):
    def __init__(self):
        super().__init__(name="float32x16")


vector = Vector()


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    def __init__(self, manager, fe_type):
        super().__init__(manager, fe_type, FLOATS)


# In and out of memory


def element(context, builder, array_type, array, offset):
    """Return the pointer to `array[offset]`, without a check of bounds."""
    data = context.make_array(array_type)(context, builder, value=array).data
    return builder.gep(data, [offset], inbounds=True)


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
def load(typing_context, array, offset):
    """Return the vector at `array[offset]` of a flat array."""

    def code(context, builder, signature, arguments):
        array, offset = arguments
        return loaded(builder, element(context, builder, signature.args[0], array, offset))

    return vector(array, types.intp), code


@intrinsic
def store(typing_context, array, offset, value):
    """Write a vector to `array[offset]` of a flat array."""

    def code(context, builder, signature, arguments):
        array, offset, value = arguments
        stored(builder, element(context, builder, signature.args[0], array, offset), value)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), code


@intrinsic
def splat(typing_context, number):
    """Return a vector of one float32."""

    def code(context, builder, signature, arguments):
        return spread(builder, arguments[0])

    return vector(types.float32), code


# Arithmetic


def of_two(instruction):
    """Return an intrinsic of two vectors, by a method of the builder."""

    @intrinsic
    def operation(typing_context, a, b):
        def code(context, builder, signature, arguments):
            return getattr(builder, instruction)(*arguments, flags=FLAGS)

        return vector(vector, vector), code

    return operation


def llvm_function(builder, name, count):
    function_type = ir.FunctionType(FLOATS, [FLOATS] * count)
    return cgutils.get_or_insert_function(builder.module, function_type, name)


def by_llvm(name, count):
    """Return an intrinsic of so many vectors, by a function of LLVM."""

    def code(context, builder, signature, arguments):
        function = llvm_function(builder, name, count)
        return builder.call(function, arguments, fastmath=FLAGS)

    if count == 1:

        @intrinsic
        def operation(typing_context, a):
            return vector(vector), code

    else:

        @intrinsic
        def operation(typing_context, a, b, c):
            return vector(vector, vector, vector), code

    return operation


add, subtract = of_two("fadd"), of_two("fsub")
multiply, divide = of_two("fmul"), of_two("fdiv")
square_root = by_llvm(f"llvm.sqrt.v{WIDTH}f32", 1)
multiply_add = by_llvm(f"llvm.fma.v{WIDTH}f32", 3)


@intrinsic
def clip(typing_context, x, low, high):
    """Return x between two vectors; NaN stays."""

    def code(context, builder, signature, arguments):
        x, low, high = arguments
        x = builder.select(builder.fcmp_ordered("<", x, low), low, x)
        return builder.select(builder.fcmp_ordered(">", x, high), high, x)

    return vector(vector, vector, vector), code


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


# Products


@intrinsic(prefer_literal=True)
def tile(typing_context, rows, vectors, C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner):
    """Add a product to a tile of C, `rows` by `vectors` times 16; both are literals.

    To `C[c + r c_row + n]` it adds the sum over k < inner of `A[a + r a_row + k a_column]
    P[p + k p_row + n]`. All arrays are flat. The sums stay in registers.
    """
    if not all(isinstance(count, types.IntegerLiteral) for count in (rows, vectors)):
        return None
    offset = types.intp
    tensors = (C, offset, offset, A, offset, offset, offset, P, offset, offset, offset)
    signature = types.void(rows, vectors, *tensors)

    def code(context, builder, signature, arguments):
        C, c, c_row, A, a, a_row, a_column, P, p, p_row, inner = arguments[2:]

        def data(position, array, offset):
            return element(context, builder, signature.args[position], array, offset)

        def along(pointer, step, count):
            return builder.gep(pointer, [builder.mul(step, constant(count))], inbounds=True)

        def constant(count):
            return ir.Constant(inner.type, count)

        def vector_at(pointer, n):
            return along(pointer, constant(WIDTH), n)

        out, left, right = data(2, C, c), data(5, A, a), data(9, P, p)
        outs = [
            [vector_at(along(out, c_row, r), n) for n in range(vectors.literal_value)]
            for r in range(rows.literal_value)
        ]
        # LLVM makes registers of these.
        sums = [[cgutils.alloca_once(builder, FLOATS) for _ in row] for row in outs]
        for total, pointer in zip(chain(*sums), chain(*outs)):
            builder.store(loaded(builder, pointer), total)
        lefts = [along(left, a_row, r) for r in range(len(outs))]
        fma = llvm_function(builder, f"llvm.fma.v{WIDTH}f32", 3)
        with cgutils.for_range(builder, inner) as loop:
            base = builder.gep(right, [builder.mul(loop.index, p_row)], inbounds=True)
            step = builder.mul(loop.index, a_column)
            columns = [loaded(builder, vector_at(base, n)) for n in range(len(outs[0]))]
            for row, left in zip(sums, lefts):
                number = builder.load(builder.gep(left, [step], inbounds=True))
                factor = spread(builder, number)
                for total, column in zip(row, columns):
                    value = builder.call(fma, [factor, column, builder.load(total)])
                    builder.store(value, total)
        for total, pointer in zip(chain(*sums), chain(*outs)):
            stored(builder, pointer, builder.load(total))
        return context.get_dummy_value()

    return signature, code
