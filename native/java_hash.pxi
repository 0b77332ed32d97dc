# Java's String.hashCode, a loop too short to be worth a cache, and the order of a java.util.HashMap.

cdef extern from "Python.h":
    int PyUnicode_KIND(object)
    unsigned int PyUnicode_READ(int, void*, Py_ssize_t)


cdef unsigned int hash_of(str text) noexcept:
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
    return value


def java_hash(str text not None):
    """As seams.java_hash.java_hash: over UTF-16 code units."""
    return <int>hash_of(text)


def hash_map_order(list keys not None):
    """As seams.java_hash.hash_map_order."""
    cdef Py_ssize_t count = len(keys), buckets = 16, k
    cdef unsigned int value
    cdef list ordered = [None] * count
    while count * 4 > buckets * 3: buckets *= 2
    # Where the keys of each bucket begin, and behind that the bucket of each key.
    cdef Py_ssize_t* places = <Py_ssize_t*>PyMem_Malloc((buckets + 1 + count) * sizeof(Py_ssize_t))
    if places == NULL: raise MemoryError
    cdef Py_ssize_t* bucket_of = places + buckets + 1
    try:
        for k in range(buckets + 1): places[k] = 0
        for k in range(count):
            if type(keys[k]) is not str: raise TypeError("keys are texts")
            value = hash_of(keys[k])
            bucket_of[k] = (value ^ (value >> 16)) & <unsigned int>(buckets - 1)
            places[bucket_of[k] + 1] += 1
        for k in range(buckets): places[k + 1] += places[k]
        for k in range(count):
            ordered[places[bucket_of[k]]] = keys[k]
            places[bucket_of[k]] += 1
        return ordered
    finally:
        PyMem_Free(places)
