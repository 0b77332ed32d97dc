# Reading the assignments of consumers: what history/ownership.py does for the usual case. The rest
# is left to it.

cdef extern from "Python.h":
    PyObject* PyDict_SetDefault(object, object, object) except NULL
    object PyUnicode_DecodeASCII(const char*, Py_ssize_t, const char*)
    void PyObject_GC_UnTrack(PyObject*)
    bint PyGC_Disable()
    bint PyGC_Enable()

cdef enum:
    NEWEST_ASSIGNMENT = 3
    TOPICS_AT = 6
    SHORTEST_ASSIGNMENT = 10
    TOPIC_NAME_MAX = 0x7FFF


cdef inline bint is_text(object text, const unsigned char* p, Py_ssize_t size) noexcept:
    """`text` is ASCII, or empty."""
    return PyUnicode_GET_LENGTH(text) == size and not memcmp(PyUnicode_DATA(text), p, size)


cdef bint read_usual(bytes assignment, list found, dict owners, object owner, list topics):
    """False: it is not as most assignors write it. Into `found`, or else into `owners`; `topics` has
    the topic before, which most often is the same."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(assignment), end = size - 4, pos = TOPICS_AT, n, k
    cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(assignment)
    cdef unsigned long long left, count
    if size < SHORTEST_ASSIGNMENT or p[0] or p[1] > NEWEST_ASSIGNMENT: return False
    if load_32(p + end) and load_32(p + end) != 0xFFFFFFFF: return False
    left = load_32(p + 2)
    while left:
        left -= 1
        n = (p[pos] << 8) | p[pos + 1]
        pos += 2
        if n > TOPIC_NAME_MAX or pos + n + 4 > end: return False
        topic = topics[0]
        if not is_text(topic, p + pos, n):
            for k in range(n):
                if p[pos + k] > 0x7F: return False
            topic = topics[0] = PyUnicode_DecodeASCII(<const char*>p + pos, n, NULL)
        count = load_32(p + pos + n)
        pos += n + 4
        if count > <unsigned long long>(end - pos) // 4: return False
        while count:
            count -= 1
            partition = (topic, <int>load_32(p + pos))
            PyObject_GC_UnTrack(<PyObject*>partition)  # as a collection does with what has no cycle
            pos += 4
            if found is not None: found.append(partition)
            else: PyDict_SetDefault(owners, partition, owner)
    return pos == end


def usual_partitions(bytes assignment not None):
    """As ownership._usual_partitions; None where that is None."""
    cdef list found = []
    return found if read_usual(assignment, found, None, None, [""]) else None


def usual_owners(assignments):
    """As ownership._owners, of a dict by owner; None if one of the assignments is not usual."""
    if type(assignments) is not dict: return None
    cdef Py_ssize_t at = 0
    cdef PyObject* owner
    cdef PyObject* assignment
    cdef dict owners = {}
    cdef list topics = [""]
    # A collection for each 700 tuples would walk through what the turn has made so far.
    cdef bint is_on = PyGC_Disable()
    try:
        while PyDict_Next(assignments, &at, &owner, &assignment):
            if type(<object>assignment) is not bytes: return None
            if not PyBytes_GET_SIZE(<object>assignment): continue
            if not read_usual(<bytes>assignment, None, owners, <object>owner, topics): return None
    finally:
        if is_on: PyGC_Enable()
    return owners
