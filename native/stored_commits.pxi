# Reading what a load reads: the sound batches of a piece of a file, the commits of a batch, and the
# offsets of a group in a snapshot. coordinator/stored_commits.py, storage/batch/batch_walk.py and
# coordinator/offsets/plain_offsets.py do the same, are the oracle, and get whatever is unusual.

from sys import intern

cdef enum:
    LENGTH_AT = 8
    MAGIC_AT = 16
    LAST_DELTA_AT = 23
    BASE_TIMESTAMP_AT = 27
    COUNT_AT = 57
    ATTRIBUTES_AT = 21
    KEY_BYTES_MIN = 6  # its type, and a partition
    TOPIC_ID_BYTES = 16
    ROWS_RESERVED_MAX = 64  # a count in a header may lie

cdef object StoredCommits = None


cdef use_stored_commits():
    global StoredCommits
    if CommittedOffset is None: use_committed_offset()
    StoredCommits = _import("coordinator.loaded_record", "StoredCommits")


def leading_batches(bytes chunk):
    """The whole batches that the chunk begins with, as far as their checksums hold."""
    cdef const char* p = PyBytes_AS_STRING(chunk)
    cdef Py_ssize_t left = PyBytes_GET_SIZE(chunk), size
    cdef list found = []
    while left >= BATCH_HEADER_BYTES:
        size = <Py_ssize_t><int>load_32(p + LENGTH_AT) + LOG_OVERHEAD
        if p[MAGIC_AT] != MAGIC or not BATCH_HEADER_BYTES <= size <= left: break
        if <int>load_32(p + LAST_DELTA_AT) < 0: break
        covered = PyBytes_FromStringAndSize(p + COVERED_AT, size - COVERED_AT)
        if <unsigned long long>crc32c(covered) != load_32(p + CRC_AT): break
        found.append(PyBytes_FromStringAndSize(p, size))
        p += size
        left -= size
    return found


cdef inline Py_ssize_t length_of(Cursor* c) noexcept:
    """A length or a delta, zig-zag, in the fewest bytes. A negative one is odd here."""
    cdef Py_ssize_t before = c.pos
    cdef Py_ssize_t value = uvarint(c)
    if value & 1 or (c.pos > before + 1 and c.p[c.pos - 1] == 0): c.odd = True
    return value >> 1


def read_commits(bytes batch):
    """The commits of a plain batch, as StoredCommits; None if it has anything else."""
    try:
        return commits_of(batch)
    except Exception:
        return None


cdef object commits_of(bytes batch):
    cdef Cursor c
    cdef const char* start = PyBytes_AS_STRING(batch)
    cdef const char* prefix = NULL
    cdef const char* id_at = NULL
    cdef Py_ssize_t k, left, end, key_size, value_size, metadata_size, prefix_size = -1
    cdef CommitRow row
    cdef object topic_id = None
    cdef CommitRows commits = None
    cdef list found = []
    if StoredCommits is None: use_stored_commits()
    c.p, c.pos, c.end = <const unsigned char*>start, BATCH_HEADER_BYTES, PyBytes_GET_SIZE(batch)
    c.left, c.odd = 0, False
    if c.end < BATCH_HEADER_BYTES or start[MAGIC_AT] != MAGIC: return None
    if <Py_ssize_t><int>load_32(start + LENGTH_AT) + LOG_OVERHEAD != c.end: return None
    if start[ATTRIBUTES_AT] or start[ATTRIBUTES_AT + 1]: return None
    left = <int>load_32(start + COUNT_AT)
    if left <= 0 or <int>load_32(start + LAST_DELTA_AT) < 0: return None
    timestamp_ms = load_64(start + BASE_TIMESTAMP_AT)
    for k in range(left):
        end = length_of(&c)
        end += c.pos
        if i8(&c) or i8(&c): return None  # attributes, the timestamp's delta
        length_of(&c)  # the offset's delta
        key_size = length_of(&c)
        if c.odd or key_size < KEY_BYTES_MIN or not has(&c, key_size): return None
        key = start + c.pos
        c.pos += key_size
        value_size = length_of(&c)
        if c.odd or end != c.pos + value_size + 1: return None
        if i16(&c) != 4: return None  # the version of the value
        row.offset = i64(&c)
        row.epoch = i32(&c)
        metadata_size = uvarint(&c) - 1
        if metadata_size < 0 or metadata_size > 0x7FFF or not has(&c, metadata_size): return None
        metadata = ""
        if metadata_size:
            metadata = PyUnicode_DecodeUTF8(start + c.pos, metadata_size, "rollcall.java")
        c.pos += metadata_size
        row.committed_ms = i64(&c)
        # One tag, which is the topic id; then no headers.
        if i8(&c) != 1 or i8(&c) or i8(&c) != TOPIC_ID_BYTES: return None
        if not has(&c, TOPIC_ID_BYTES): return None
        if id_at == NULL or memcmp(id_at, start + c.pos, TOPIC_ID_BYTES):
            id_at = start + c.pos
            topic_id = read_uuid(PyBytes_FromStringAndSize(id_at, TOPIC_ID_BYTES))
        c.pos += TOPIC_ID_BYTES
        if i8(&c) or c.odd or c.pos != end: return None
        if prefix_size != key_size - 4 or memcmp(prefix, key, prefix_size):
            if key[0] or key[1] != 1: return None  # the type of the key
            if commits is not None:
                found.append(stored(prefix, prefix_size, commits, timestamp_ms))
            prefix, prefix_size, commits = key, key_size - 4, CommittedOffsets()
            commits.reserve(min(left - k, ROWS_RESERVED_MAX))
        row.partition = <int>load_32(key + prefix_size)
        row.expire_ms = -1
        row.metadata, row.topic_id = <PyObject*>metadata, <PyObject*>topic_id
        commits.put(&row)
    if c.pos != c.end: return None
    found.append(stored(prefix, prefix_size, commits, timestamp_ms))
    return found


cdef object stored(const char* prefix, Py_ssize_t size, CommitRows commits, object timestamp_ms):
    """`prefix` is a key up to its partition."""
    cdef Cursor c
    c.p, c.pos, c.end, c.left, c.odd = <const unsigned char*>prefix, 2, size, 0, False
    group_id, topic = text(&c, False, False), text(&c, False, False)
    if c.odd or c.pos != c.end: raise Odd
    if commits.room > commits.used: commits.reserve(commits.used)
    return StoredCommits(group_id, intern(topic), commits, timestamp_ms)


def offsets_of_columns(list partitions, list offsets, list epochs, list metadata, list committed,
                       list expire, list ids):
    """The commits of a topic, by partition, from the columns of a snapshot. A column of one value
    stands for all. None if the columns have other lengths, or values that fit no row."""
    cdef Py_ssize_t k, count = len(partitions)
    cdef list topic_ids = [read_uuid(raw) for raw in ids]
    cdef CommitRows found = CommittedOffsets()
    cdef CommitRow row
    if len(offsets) != count or not count: return None
    for column in (epochs, metadata, committed, expire, topic_ids):
        if len(<list>column) != 1 and len(<list>column) != count: return None
    found.reserve(count)
    try:
        for k in range(count):
            row.partition = int32_of(partitions[k])
            row.offset = whole(offsets[k])
            row.epoch = int32_of(nth(epochs, k))
            row.committed_ms = whole(nth(committed, k))
            row.expire_ms = whole(nth(expire, k))
            text_of = nth(metadata, k)
            topic_id = nth(topic_ids, k)
            if type(text_of) is not str: return None
            row.metadata, row.topic_id = <PyObject*>text_of, <PyObject*>topic_id
            found.put(&row)
    except (Odd, OverflowError):
        return None
    return found


cdef inline object nth(list column, Py_ssize_t k):
    return column[k] if len(column) > 1 else column[0]
