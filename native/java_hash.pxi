# Java's String.hashCode: so short a loop that nobody has to keep what it gave.

cdef extern from "Python.h":
    int PyUnicode_KIND(object)
    unsigned int PyUnicode_READ(int, void*, Py_ssize_t)


def java_hash(str text):
    """As seams.java_hash.java_hash: over UTF-16 code units."""
    cdef unsigned int value = 0, point
    cdef Py_ssize_t k
    cdef int kind = PyUnicode_KIND(text)
    cdef void* characters = PyUnicode_DATA(text)
    for k in range(PyUnicode_GET_LENGTH(text)):
        point = PyUnicode_READ(kind, characters, k)
        if point > 0xFFFF:
            point -= 0x10000
            value = 31 * value + (0xD800 | point >> 10)
            point = 0xDC00 | (point & 0x3FF)
        value = 31 * value + point
    return <int>value
