
# The machine's clocks, read together for each turn of a connection.

cdef extern from "Python.h":
    object PyType_GenericAlloc(type, Py_ssize_t)

cdef extern from "<time.h>":
    ctypedef long time_t
    struct timespec:
        time_t tv_sec
        long tv_nsec
    enum: CLOCK_MONOTONIC, CLOCK_REALTIME
    int clock_gettime(int, timespec*) noexcept


cdef long long ms_of(int clock) noexcept:
    cdef timespec at
    clock_gettime(clock, &at)
    return <long long>at.tv_sec * 1000 + at.tv_nsec // 1000000


cdef class MachineClock:
    """What SystemClock.now does while nothing stalls. `cls` is Now, or another pair."""
    cdef type cls
    cdef long long stall_ms
    cdef public long long last_read_ms, stalled_ms

    def __init__(self, type cls not None, long long stall_ms):
        self.cls = cls
        self.stall_ms = stall_ms
        self.last_read_ms = ms_of(CLOCK_MONOTONIC)

    def now(self):
        """None if the last reading was too long ago: that is a stall, and left to the caller."""
        cdef long long machine_ms = ms_of(CLOCK_MONOTONIC)
        if machine_ms - self.last_read_ms > self.stall_ms: return None
        self.last_read_ms = machine_ms
        cdef object mono_ms = machine_ms - self.stalled_ms, wall_ms = ms_of(CLOCK_REALTIME)
        cdef object made = PyType_GenericAlloc(self.cls, 2)
        Py_INCREF(mono_ms); PyTuple_SET_ITEM(made, 0, mono_ms)
        Py_INCREF(wall_ms); PyTuple_SET_ITEM(made, 1, wall_ms)
        return made
