"""
Python functions as targets of `jax.ffi.ffi_call`: by ctypes, the structures with which XLA's
foreign function interface (`xla/ffi/api/c_api.h`, version 0) describes a call.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any

HostFunction = Callable[[int, Sequence[int], Sequence[int], int], None]
"""
Does the work of a call, given its attribute `number`, the addresses of operands and results, and
the CUDA stream (0 without one).
"""

METADATA, EXECUTE, INTERNAL = 1, 3, 13
"""Numbers of an extension, a stage and an error."""

HEADER: list[tuple[str, Any]] = [("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p)]


class ApiVersion(ctypes.Structure):
    """XLA_FFI_Api_Version."""

    _fields_ = [*HEADER, ("major", ctypes.c_int), ("minor", ctypes.c_int)]


class Metadata(ctypes.Structure):
    """XLA_FFI_Metadata, as far as all versions have it."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("version", ApiVersion),
        ("traits", ctypes.c_uint32),
    ]


class MetadataExtension(ctypes.Structure):
    """XLA_FFI_Metadata_Extension."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("kind", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(Metadata)),
    ]


class Api(ctypes.Structure):
    """XLA_FFI_Api, up to the functions called here."""

    _fields_ = [
        *HEADER,
        ("version", ApiVersion),
        ("internal", ctypes.c_void_p),
        ("create_error", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)),
        ("error_message", ctypes.c_void_p),
        ("destroy_error", ctypes.c_void_p),
        ("register_handler", ctypes.c_void_p),
        ("get_stream", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)),
    ]


class Buffer(ctypes.Structure):
    """XLA_FFI_Buffer."""

    _fields_ = [
        *HEADER,
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
    ]


class Buffers(ctypes.Structure):
    """XLA_FFI_Args and XLA_FFI_Rets."""

    _fields_ = [
        *HEADER,
        ("count", ctypes.c_int64),
        ("kinds", ctypes.c_void_p),
        ("items", ctypes.POINTER(ctypes.POINTER(Buffer))),
    ]


class NumberAttribute(ctypes.Structure):
    """XLA_FFI_Scalar of 64 bits."""

    _fields_ = [("dtype", ctypes.c_int), ("value", ctypes.POINTER(ctypes.c_int64))]


class Attributes(ctypes.Structure):
    """XLA_FFI_Attrs: of the only attribute, a number."""

    _fields_ = [
        *HEADER,
        ("count", ctypes.c_int64),
        ("kinds", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("items", ctypes.POINTER(ctypes.POINTER(NumberAttribute))),
    ]


class CallFrame(ctypes.Structure):
    """XLA_FFI_CallFrame, as far as all versions have it."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension", ctypes.POINTER(MetadataExtension)),
        ("api", ctypes.POINTER(Api)),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("operands", Buffers),
        ("results", Buffers),
        ("attributes", Attributes),
    ]


class ErrorArguments(ctypes.Structure):
    """XLA_FFI_Error_Create_Args."""

    _fields_ = [*HEADER, ("message", ctypes.c_char_p), ("code", ctypes.c_int)]


class StreamArguments(ctypes.Structure):
    """XLA_FFI_Stream_Get_Args."""

    _fields_ = [*HEADER, ("context", ctypes.c_void_p), ("stream", ctypes.c_void_p)]


Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(CallFrame))

KEPT: list[Any] = []
"""Registered handlers: XLA calls a handler as long as the process lives."""


def register(name: str, platform: str, function: HostFunction) -> None:
    """
    Register a function as the target of a name on a platform of JAX, `"CUDA"` or `"cpu"`. JAX has
    been imported. The exception of a call becomes an error of XLA.
    """
    jax: Any = sys.modules["jax"]
    has_stream = platform == "CUDA"

    def handle(frame: Any) -> int | None:
        call = frame.contents
        if call.extension and call.extension.contents.kind == METADATA:
            answer, known = call.extension.contents.metadata.contents, call.api.contents.version
            answer.version.major, answer.version.minor = known.major, known.minor
            return None
        try:
            if call.stage == EXECUTE:
                stream = stream_of(call) if has_stream else 0
                number = call.attributes.items[0].contents.value[0]
                function(number, addresses(call.operands), addresses(call.results), stream)
            return None
        except BaseException as error:
            return error_of(call, f"{type(error).__name__}: {error}")

    handler = Handler(handle)
    KEPT.append(handler)
    capsule: Any = jax.ffi.pycapsule(ctypes.cast(handler, ctypes.c_void_p))
    jax.ffi.register_ffi_target(name, capsule, platform=platform)


def addresses(buffers: Any) -> list[int]:
    """The addresses of the buffers' cells; 0 for no cells."""
    return [buffers.items[k].contents.data or 0 for k in range(buffers.count)]


def stream_of(call: Any) -> int:
    """The stream of a call on a GPU. Raises RuntimeError where XLA has none."""
    given = StreamArguments(ctypes.sizeof(StreamArguments), None, call.context, None)
    if call.api.contents.get_stream(ctypes.addressof(given)):
        raise RuntimeError("XLA gives no stream of CUDA for the call")
    return given.stream or 0


def error_of(call: Any, text: str) -> int | None:
    """An error of XLA with a text."""
    size = ctypes.sizeof(ErrorArguments)
    given = ErrorArguments(size, None, text.encode(), INTERNAL)
    return call.api.contents.create_error(ctypes.addressof(given))
