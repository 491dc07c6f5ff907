"""A driver of an H200 that is not there: memory is the host's, and nothing is launched."""

from __future__ import annotations

import ctypes
from zlib import crc32

FACTS = {
    "MULTIPROCESSOR_COUNT": 132,
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 227 << 10,
}

COPIES = ("cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyDtoD", "cuMemcpy")
"""Copies of some bytes, each with a form on a stream."""

ROOM = 256
"""Bytes behind each allocation."""


class Word(int):
    """A number of an enumeration, with its name."""

    name: str

    def __new__(cls, name: str) -> Word:
        made = super().__new__(cls, crc32(name.encode()) % 997 + 2)
        made.name = name
        return made


class Anything:
    """An enumeration, a structure, or a part of one."""

    def __getattr__(self, name: str) -> object:
        return Word(name) if name.startswith("CU_") else Anything()

    def __getitem__(self, place: int) -> Anything:
        return Anything()

    def __call__(self) -> Anything:
        return Anything()


class NoGpu:
    """The driver. Every call succeeds, and most return a new number."""

    def __init__(self):
        self.made = 1000
        self.rooms: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.differ = False
        """The answer of comparisons of halos."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("CU_"):
            return Word(name)
        if not name.startswith("cu"):
            return Anything()
        return self.copy if name.removesuffix("Async") in COPIES else self.call

    def call(self, *_: object) -> tuple[int, int]:
        self.made += 1
        return 0, self.made

    def copy(self, target: int, source: int, size: int, *_: object) -> tuple[int]:
        ctypes.memmove(int(target), int(source), int(size))
        return (0,)

    def cuMemAlloc(self, size: int) -> tuple[int, int]:
        room = ctypes.create_string_buffer(int(size) + ROOM)
        place = ctypes.addressof(room)
        self.rooms[place] = room
        return 0, place

    cuMemAllocHost = cuMemAlloc

    def cuMemHostAlloc(self, size: int, flags: int) -> tuple[int, int]:
        return self.cuMemAlloc(size)

    def cuMemFree(self, place: int) -> tuple[int]:
        self.rooms.pop(int(place), None)
        return (0,)

    cuMemFreeHost = cuMemFree

    def cuMemHostGetDevicePointer(self, place: int, flags: int) -> tuple[int, int]:
        return 0, place

    def cuModuleGetGlobal(self, module: object, name: bytes) -> tuple[int, int, int]:
        return 0, self.cuMemAlloc(ROOM)[1], ROOM

    def cuModuleGetFunction(self, module: object, name: bytes) -> tuple[int, str]:
        return 0, name.decode()

    def cuLaunchKernel(self, function: str, *others: int) -> tuple[int]:
        if function.startswith("halos_differ") and self.differ:
            places = (ctypes.c_void_p * 3).from_address(others[8])
            answer = ctypes.c_uint64.from_address(places[2] or 0).value
            ctypes.c_uint32.from_address(answer).value = 1
        return (0,)

    def cuDeviceGetCount(self) -> tuple[int, int]:
        return 0, 1

    def cuDeviceGetName(self, size: int, handle: int) -> tuple[int, bytes]:
        return 0, b"NVIDIA H200\0"

    def cuDeviceGetAttribute(self, attribute: Word, handle: int) -> tuple[int, int]:
        return 0, FACTS.get(attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_"), 1)

    def cuDriverGetVersion(self) -> tuple[int, int]:
        return 0, 13000

    def cuStreamIsCapturing(self, stream: int) -> tuple[int, Word]:
        return 0, Word("CU_STREAM_CAPTURE_STATUS_NONE")

    def cuEventElapsedTime(self, one: int, other: int) -> tuple[int, float]:
        return 0, 1.0

    def cuEventQuery(self, event: int) -> tuple[int]:
        return (0,)

    def cuCtxGetStreamPriorityRange(self) -> tuple[int, int, int]:
        return 0, 0, -1

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, *_: object) -> tuple[int, int]:
        return 0, 1
