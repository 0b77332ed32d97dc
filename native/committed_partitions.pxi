# The partitions of an OffsetFetch answer: looked up, and written from what was committed, without an
# object for each.

from cpython.dict cimport PyDict_GetItemWithError
from cpython.list cimport PyList_New, PyList_SET_ITEM

cdef enum:
    COMMITTED_BYTES_MAX = 25  # of a partition without its metadata

cdef object CommittedPartitions = _import("protocol.messages.offset_fetch", "CommittedPartitions")
cdef Py_ssize_t at_indexes = _offset_of(CommittedPartitions, "indexes")
cdef Py_ssize_t at_commits = _offset_of(CommittedPartitions, "commits")


def commits_at(dict committed, tuple indexes):
    """[*map(committed.get, indexes)]"""
    cdef Py_ssize_t k, count = len(indexes)
    cdef list commits = PyList_New(count)
    cdef PyObject* found
    for k in range(count):
        found = PyDict_GetItemWithError(committed, indexes[k])
        commit = None if found == NULL else <object>found
        Py_INCREF(commit)  # PyList_SET_ITEM takes one
        PyList_SET_ITEM(commits, k, commit)
    return commits


cdef int put_committed(Out* o, object found, bint flexible) except -1:
    """As a list of OffsetFetchResponsePartitions; the class of `found` was compared."""
    if CommittedOffset is None: use_committed_offset()
    indexes, commits = field(found, at_indexes), field(found, at_commits)
    if type(indexes) is not tuple or type(commits) is not list: raise Odd
    cdef Py_ssize_t k, count = len(<tuple>indexes)
    if len(<list>commits) != count: raise Odd
    put_length(o, count, flexible, False)
    for k in range(count):
        if o.room - o.n < COMMITTED_BYTES_MAX: grow(o, COMMITTED_BYTES_MAX * (count - k))
        put_i32(o, whole((<tuple>indexes)[k]))
        commit = (<list>commits)[k]
        if commit is None:
            put_i64(o, -1)
            put_i32(o, -1)
            put_length(o, 0, flexible, True)
        else:
            if type(commit) is not CommittedOffset: raise Odd
            put_i64(o, whole(field(commit, at_offset)))
            put_i32(o, whole(field(commit, at_epoch)))
            put_text(o, field(commit, at_metadata), flexible, True)
        put_u16(o, 0)
        if flexible: put_8(o, 0)
    return 0
