"""Whether a thread computes with subnormal numbers: float32 below 1.2e-38.

Gradients that vanish over hundreds of steps get there. Intel's processors then take ten times
as long for a product. So the kernel takes them for 0 on x86, and sets nothing elsewhere.
"""

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

# In Intel's control register: subnormal results become 0, and subnormal operands count as 0.
FLUSHING = 0x8040


def on_x86():
    """Return whether this process runs on a processor whose mode is set."""
    return llvmlite.binding.get_process_triple().startswith("x86_64")


def control(builder, instruction, place):
    """Read the register into memory ("stmxcsr"), or write it ("ldmxcsr")."""
    kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer()])
    name = f"llvm.x86.sse.{instruction}"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    builder.call(function, [builder.bitcast(place, ir.IntType(8).as_pointer())])


@intrinsic
def flush_subnormals(typing_context):
    """Take subnormal numbers for 0 in this thread, and return the mode it had, a uint32."""

    def code(context, builder, signature, arguments):
        place = cgutils.alloca_once_value(builder, ir.Constant(ir.IntType(32), 0))
        if on_x86():
            control(builder, "stmxcsr", place)
        mode = builder.load(place)
        if on_x86():
            builder.store(builder.or_(mode, ir.Constant(ir.IntType(32), FLUSHING)), place)
            control(builder, "ldmxcsr", place)
        return mode

    return types.uint32(), code


@intrinsic
def restore(typing_context, mode):
    """Set this thread's mode to what `flush_subnormals` returned."""

    def code(context, builder, signature, arguments):
        if on_x86():
            control(builder, "ldmxcsr", cgutils.alloca_once_value(builder, arguments[0]))
        return context.get_dummy_value()

    return types.void(mode), code
