# Writing the batches of a coordinator: what storage/batch/record_batch.py and coordinator/records.py
# do for the usual case, in one pass and without an object for each piece. The rest is left to them.

from cpython.list cimport PyList_SetSlice

cdef enum:
    BATCH_HEADER_BYTES = 61
    LOG_OVERHEAD = 12
    CRC_AT = 17
    COVERED_AT = 21
    MAGIC = 2
    PLAIN_VALUE_BYTES = 23

cdef Py_ssize_t BATCH_BYTES_MAX = 0x7FFFFFFF

cdef object crc32c = _import("google_crc32c", "value")


cdef inline Py_ssize_t varint_bytes(Py_ssize_t number) noexcept:
    """How many bytes a length or a delta takes, zig-zag; -1 is null."""
    cdef Py_ssize_t n = 1
    cdef Py_ssize_t left = 1 if number < 0 else number << 1
    while left >= 0x80:
        left >>= 7
        n += 1
    return n


cdef inline char* varint(char* p, Py_ssize_t number) noexcept:
    cdef Py_ssize_t left = 1 if number < 0 else number << 1
    while left >= 0x80:
        p[0] = <char>((left & 0x7F) | 0x80)
        p += 1
        left >>= 7
    p[0] = <char>left
    return p + 1


cdef inline char* big_endian(char* p, long long number, int size) noexcept:
    """Of 2, 4 or 8 bytes."""
    if size == 8: store_64(p, <unsigned long long>number)
    elif size == 4: store_32(p, <unsigned int>number)
    else:
        p[0] = <char>(number >> 8)
        p[1] = <char>number
    return p + size


cdef inline char* raw(char* p, object content, Py_ssize_t size) noexcept:
    memcpy(p, PyBytes_AS_STRING(content), size)
    return p + size


cdef inline Py_ssize_t record_bytes(Py_ssize_t delta, Py_ssize_t key, Py_ssize_t value) noexcept:
    """Without the length in front: attributes, timestamp delta and headers are a zero each."""
    return 3 + varint_bytes(delta) + varint_bytes(key) + key + varint_bytes(value) + max(value, 0)


cdef inline Py_ssize_t value_bytes(object value) noexcept:
    return -1 if value is None else PyBytes_GET_SIZE(value)


def encode_batch(records, long long base_offset, long long timestamp_ms, int leader_epoch,
                 long long producer_id, short producer_epoch, int base_sequence, short attributes):
    """As record_batch.encode_batch; None where these are no pairs of bytes."""
    if type(records) is not list: return None
    cdef Py_ssize_t count = len(<list>records), k, key_size, size = BATCH_HEADER_BYTES, body
    for k in range(count):
        pair = (<list>records)[k]
        if not isinstance(pair, tuple) or len(<tuple>pair) != 2: return None
        key, value = (<tuple>pair)[0], (<tuple>pair)[1]
        if type(key) is not bytes or (value is not None and type(value) is not bytes): return None
        body = record_bytes(k, PyBytes_GET_SIZE(key), value_bytes(value))
        size += varint_bytes(body) + body
    if not count or size > BATCH_BYTES_MAX: return None
    cdef bytes batch = PyBytes_FromStringAndSize(NULL, size)
    cdef char* start = PyBytes_AS_STRING(batch)
    cdef char* p = big_endian(start, base_offset, 8)
    p = big_endian(p, size - LOG_OVERHEAD, 4)
    p = big_endian(p, leader_epoch, 4)
    p[0] = MAGIC
    p = start + COVERED_AT
    p = big_endian(p, attributes, 2)
    p = big_endian(p, count - 1, 4)
    p = big_endian(p, timestamp_ms, 8)
    p = big_endian(p, timestamp_ms, 8)
    p = big_endian(p, producer_id, 8)
    p = big_endian(p, producer_epoch, 2)
    p = big_endian(p, base_sequence, 4)
    p = big_endian(p, count, 4)
    for k in range(count):
        pair = (<list>records)[k]
        key, value = (<tuple>pair)[0], (<tuple>pair)[1]
        key_size = PyBytes_GET_SIZE(key)
        p = varint(p, record_bytes(k, key_size, value_bytes(value)))
        p[0] = p[1] = 0
        p = varint(p + 2, k)
        p = raw(varint(p, key_size), key, key_size)
        p = varint(p, value_bytes(value))
        if value is not None: p = raw(p, value, PyBytes_GET_SIZE(value))
        p[0] = 0
        p += 1
    covered = PyBytes_FromStringAndSize(start + COVERED_AT, size - COVERED_AT)
    big_endian(start + CRC_AT, <long long>crc32c(covered), 4)
    return batch


def add_offset_commits(list records, bytes prefix, commits, tags_of):
    """As records.add_offset_commits, values of version 4; False if a commit has metadata or an expiry
    of its own, or does not fit. Then nothing is added. `tags_of` makes the end of a value."""
    cdef Py_ssize_t before = len(records), at = 0
    cdef int k
    cdef PyObject* index
    cdef PyObject* found
    cdef CommitRows rows
    cdef CommitRow row
    cdef PyObject* tagged = NULL
    cdef bytes tags = b""
    try:
        if isinstance(commits, CommitRows):
            rows = commits
            for k in range(rows.used):
                row = rows.rows[k]
                if row.metadata == NULL: continue
                if row.topic_id != tagged: tags, tagged = tags_of(<object>row.topic_id), row.topic_id
                records.append(record_of(&row, prefix, tags))
        elif type(commits) is dict:
            while PyDict_Next(<dict>commits, &at, &index, &found):
                row_of(&row, <object>index, <object>found)
                if row.topic_id != tagged: tags, tagged = tags_of(<object>row.topic_id), row.topic_id
                records.append(record_of(&row, prefix, tags))
        else:
            return False
    except Exception:
        PyList_SetSlice(records, before, len(records), [])
        return False
    return True


cdef object record_of(CommitRow* row, bytes prefix, bytes tags):
    """Key and value."""
    cdef Py_ssize_t prefix_size = PyBytes_GET_SIZE(prefix)
    cdef bytes key, value
    cdef char* p
    if PyUnicode_GET_LENGTH(<object>row.metadata) or row.expire_ms != -1: raise Odd
    key = PyBytes_FromStringAndSize(NULL, prefix_size + 4)
    big_endian(raw(PyBytes_AS_STRING(key), prefix, prefix_size), row.partition, 4)
    value = PyBytes_FromStringAndSize(NULL, PLAIN_VALUE_BYTES + PyBytes_GET_SIZE(tags))
    p = big_endian(PyBytes_AS_STRING(value), 4, 2)
    p = big_endian(p, row.offset, 8)
    p = big_endian(p, row.epoch, 4)
    p[0] = 1
    p = big_endian(p + 1, row.committed_ms, 8)
    raw(p, tags, PyBytes_GET_SIZE(tags))
    return key, value
