# The partitions of an OffsetFetch answer: looked up, and written from what was committed, without an
# object for each.

cdef enum:
    COMMITTED_BYTES_MAX = 25  # of a partition without its metadata

cdef object CommittedPartitions = _import("protocol.messages.offset_fetch", "CommittedPartitions")
cdef Py_ssize_t at_indexes = _offset_of(CommittedPartitions, "indexes")
cdef Py_ssize_t at_commits = _offset_of(CommittedPartitions, "commits")


def commits_at(committed, tuple indexes):
    """[*map(committed.get, indexes)], or a sequence that is made of rows."""
    if isinstance(committed, CommitRows): return found_commits(committed, indexes)
    return [committed.get(index) for index in indexes]


cdef inline int put_nothing_committed(Out* o, bint flexible) except -1:
    put_i64(o, -1)
    put_i32(o, -1)
    return put_length(o, 0, flexible, True)


cdef int put_committed(Out* o, object found, bint flexible) except -1:
    """As a list of OffsetFetchResponsePartitions; the class of `found` was compared."""
    if CommittedOffset is None: use_committed_offset()
    indexes, commits = field(found, at_indexes), field(found, at_commits)
    if type(indexes) is not tuple: raise Odd
    cdef Py_ssize_t k, count = len(<tuple>indexes)
    cdef FoundCommits found_here = commits if type(commits) is FoundCommits else None
    cdef CommitRow* row
    if len(commits) != count: raise Odd
    put_length(o, count, flexible, False)
    for k in range(count):
        if o.room - o.n < COMMITTED_BYTES_MAX: grow(o, COMMITTED_BYTES_MAX * (count - k))
        put_i32(o, whole((<tuple>indexes)[k]))
        if found_here is not None:
            row = &found_here.rows[k]
            if row.metadata == NULL:
                put_nothing_committed(o, flexible)
            else:
                put_i64(o, row.offset)
                put_i32(o, row.epoch)
                put_text(o, <object>row.metadata, flexible, True)
        else:
            if type(commits) is not list: raise Odd
            commit = (<list>commits)[k]
            if commit is None:
                put_nothing_committed(o, flexible)
            else:
                if type(commit) is not CommittedOffset: raise Odd
                put_i64(o, whole(field(commit, at_offset)))
                put_i32(o, whole(field(commit, at_epoch)))
                put_text(o, field(commit, at_metadata), flexible, True)
        put_u16(o, 0)
        if flexible: put_8(o, 0)
    return 0
