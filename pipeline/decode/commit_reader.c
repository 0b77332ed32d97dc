/* Commit reader: the usual offset commits of many batches, in one pass from bytes to columns.
 *
 * It does what lockstep.py and offset_commits.py do with numpy, for what nearly every log consists
 * of: records without headers, keys of type 1, values of versions 3 and 4. Records that are no
 * commits are passed over, as there. Whatever else it meets (damage, an older value, a tag of a
 * later Kafka) it gives up, and numpy reads the same batches: that is the oracle, and the one that
 * says what is wrong. Every read is checked against the end of what it is in, every write against
 * the room of its column. compiled_commits.py calls it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef const unsigned char *Place;

/* The columns, in the order in which they are given. A text or blob has two buffers. */
enum {
    LOG_OFFSET, LOG_TIMESTAMP, GROUP, GROUP_OCTETS, TOPIC, TOPIC_OCTETS, PARTITION,
    COMMITTED_OFFSET, LEADER_EPOCH, METADATA, METADATA_OCTETS, COMMIT_TIMESTAMP,
    TOPIC_ID, TOPIC_ID_OCTETS, VALUE_VERSION, LIVING, PRODUCER_ID, TRANSACTIONAL, COLUMNS
};

/* Bytes of an element; a text has one end more than it has elements. Zero: bytes of texts. */
static const int WIDTH[COLUMNS] = {8, 8, 4, 0, 4, 0, 4, 8, 4, 4, 0, 8, 4, 0, 2, 1, 8, 1};

enum { NO_KEY_TYPE = 2, KEY_TYPE = 1, TOPIC_ID_BYTES = 16, WIDE = 16 };
enum { LOG_APPEND_TIME = 0x08, TRANSACTIONAL_FLAG = 0x10, CONTROL_FLAG = 0x20 };
enum { RECORD_MIN = 7, HEADER_BYTES = 61 };
enum { AT_ATTRIBUTES = 21, AT_BASE_TIMESTAMP = 27, AT_MAX_TIMESTAMP = 35, AT_PRODUCER_ID = 43,
       AT_COUNT = 57 };

typedef struct {
    Py_buffer views[COLUMNS];
    Py_ssize_t room; /* rows */
    Py_ssize_t rows;
    int64_t first, bound; /* offsets that are wanted: from the one up to the other */
    int64_t last;         /* offset of the last record that was seen */
    Place limit;          /* what may be read ends here */
} Output;

/* What a value says. */
typedef struct {
    int64_t offset, committed;
    int32_t epoch;
    int16_t version;
    Place metadata, topic_id; /* topic_id: NULL if there is none */
    Py_ssize_t metadata_bytes;
} Value;

static inline uint64_t be(Place at, int octets)
{
    uint64_t number = 0;
    for (int n = 0; n < octets; n++) number = number << 8 | at[n];
    return number;
}

#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static inline int64_t be64(Place at)
{
    uint64_t number;
    memcpy(&number, at, 8);
    return (int64_t)__builtin_bswap64(number);
}
static inline int32_t be32(Place at)
{
    uint32_t number;
    memcpy(&number, at, 4);
    return (int32_t)__builtin_bswap32(number);
}
#else
static inline int64_t be64(Place at) { return (int64_t)be(at, 8); }
static inline int32_t be32(Place at) { return (int32_t)be(at, 4); }
#endif
static inline int16_t be16(Place at) { return (int16_t)(at[0] << 8 | at[1]); }

/* An unsigned LEB128 number of up to five bytes. 0: there is none. */
static inline int unsigned_varint(Place *at, Place end, int64_t *number)
{
    Place p = *at;
    uint64_t found = 0;
    for (int shift = 0; shift < 35 && p < end; shift += 7) {
        unsigned char octet = *p++;
        found |= (uint64_t)(octet & 0x7F) << shift;
        if (octet < 0x80) {
            *at = p;
            *number = (int64_t)found;
            return 1;
        }
    }
    return 0;
}

static inline int varint(Place *at, Place end, int64_t *number)
{
    if (*at < end && **at < 0x80) {
        int first = *(*at)++;
        *number = (first >> 1) ^ -(first & 1);
        return 1;
    }
    int64_t found;
    if (!unsigned_varint(at, end, &found)) return 0;
    *number = (found >> 1) ^ -(found & 1);
    return 1;
}

#define COLUMN(type, name) ((type *)out->views[name].buf)
#define PUT(type, name, value) \
    do { if (out->views[name].buf != NULL) COLUMN(type, name)[row] = (value); } while (0)

/* One more text. 0: the column has no room. */
static inline int put_text(Output *out, int column, Py_ssize_t row, Place at, Py_ssize_t octets)
{
    int32_t *ends = COLUMN(int32_t, column);
    if (ends == NULL) return 1;
    Py_buffer *into = &out->views[column + 1];
    Py_ssize_t begin = ends[row];
    if (octets > into->len - begin) return 0;
    if (octets <= WIDE && begin + WIDE <= into->len && out->limit - at >= WIDE)
        memcpy((char *)into->buf + begin, at, WIDE); /* what is too much is written over */
    else
        memcpy((char *)into->buf + begin, at, octets);
    ends[row + 1] = (int32_t)(begin + octets);
    return 1;
}

/* Versions 3 and 4 of OffsetCommitValue. 0: it is something else. */
static inline int read_value(Place at, Place end, Value *value)
{
    if (end - at < 16) return 0;
    value->version = be16(at);
    value->offset = be64(at + 2);
    value->epoch = be32(at + 10);
    value->topic_id = NULL;
    int64_t octets;
    if (value->version == 3) {
        octets = be16(at + 14);
        at += 16;
    } else if (value->version == 4) {
        at += 14;
        if (!unsigned_varint(&at, end, &octets)) return 0;
        octets--; /* zero is null */
    } else
        return 0;
    if (octets < 0 || octets > end - at - 8) return 0;
    value->metadata = at;
    value->metadata_bytes = octets;
    at += octets;
    value->committed = be64(at);
    at += 8;
    if (value->version == 3) return at == end;
    if (end - at == 1) return *at == 0; /* no tags */
    if (end - at != 3 + TOPIC_ID_BYTES || at[0] != 1 || at[1] != 0 || at[2] != TOPIC_ID_BYTES)
        return 0;
    value->topic_id = at + 3;
    return 1;
}

/* A record that may be a commit, as a row. 0: it is left to the oracle. */
static inline int put_record(Output *out, Place key, int64_t key_bytes, Place value_at,
                             int64_t value_bytes, int64_t offset, int64_t timestamp,
                             int64_t producer_id, int transactional)
{
    if (key_bytes < 2) return 1;
    int type = be16(key);
    if (type == 0) return 0; /* a commit of an old kind */
    if (type != KEY_TYPE || offset < out->first || offset >= out->bound) return 1;
    Place key_end = key + key_bytes;
    if (key_bytes < 10) return 0;
    Py_ssize_t group_bytes = be16(key + 2);
    Place group = key + 4;
    if (group_bytes < 0 || group_bytes > key_end - group - 6) return 0;
    Place topic = group + group_bytes + 2;
    Py_ssize_t topic_bytes = be16(topic - 2);
    if (topic_bytes < 0 || topic_bytes != key_end - topic - 4) return 0;
    int living = value_bytes >= 0;
    Value value = {0, 0, -1, 0, key, NULL, 0}; /* of a tombstone */
    if (living && !read_value(value_at, value_at + value_bytes, &value)) return 0;
    Py_ssize_t row = out->rows;
    if (row >= out->room) return 0;
    out->rows++;
    PUT(int64_t, LOG_OFFSET, offset);
    PUT(int64_t, LOG_TIMESTAMP, timestamp);
    PUT(int32_t, PARTITION, be32(key_end - 4));
    PUT(int64_t, COMMITTED_OFFSET, value.offset);
    PUT(int32_t, LEADER_EPOCH, value.epoch);
    PUT(int64_t, COMMIT_TIMESTAMP, value.committed);
    PUT(int16_t, VALUE_VERSION, value.version);
    PUT(uint8_t, LIVING, (uint8_t)living);
    PUT(int64_t, PRODUCER_ID, producer_id);
    PUT(uint8_t, TRANSACTIONAL, (uint8_t)transactional);
    return put_text(out, GROUP, row, group, group_bytes) &&
           put_text(out, TOPIC, row, topic, topic_bytes) &&
           put_text(out, METADATA, row, value.metadata, value.metadata_bytes) &&
           put_text(out, TOPIC_ID, row, value.topic_id == NULL ? key : value.topic_id,
                    value.topic_id == NULL ? 0 : TOPIC_ID_BYTES);
}

/* The records of a batch, which stand between `at` and `end`. 0: something is not as usual. */
static int read_batch(Output *out, Place header, Place at, Place end)
{
    int64_t base_offset = be64(header), base_timestamp = be64(header + AT_BASE_TIMESTAMP);
    int64_t producer_id = be64(header + AT_PRODUCER_ID), count = be32(header + AT_COUNT);
    int attributes = be16(header + AT_ATTRIBUTES);
    int stamped = attributes & LOG_APPEND_TIME, control = attributes & CONTROL_FLAG;
    int64_t max_timestamp = be64(header + AT_MAX_TIMESTAMP);
    if (count < 0 || count > (end - at) / RECORD_MIN) return 0;
    for (int64_t n = 0; n < count; n++) {
        int64_t size, timestamp, offset, key_bytes, value_bytes;
        if (!varint(&at, end, &size) || size < 1 || size > end - at) return 0;
        Place stop = at + size;
        at++; /* attributes, of which none is defined */
        if (!varint(&at, stop, &timestamp) || !varint(&at, stop, &offset)) return 0;
        if (!varint(&at, stop, &key_bytes) || key_bytes < -1 || key_bytes > stop - at) return 0;
        Place key = at;
        at += key_bytes < 0 ? 0 : key_bytes;
        if (!varint(&at, stop, &value_bytes) || value_bytes < -1 || value_bytes > stop - at)
            return 0;
        Place value = at;
        at += value_bytes < 0 ? 0 : value_bytes;
        if (stop - at != 1 || *at != 0) return 0; /* no headers */
        at = stop;
        out->last = base_offset + offset;
        if (!control &&
            !put_record(out, key, key_bytes, value, value_bytes, out->last,
                        stamped ? max_timestamp : base_timestamp + timestamp, producer_id,
                        attributes & TRANSACTIONAL_FLAG ? 1 : 0))
            return 0;
    }
    return at == end;
}

static void release(Output *out)
{
    for (int n = 0; n < COLUMNS; n++)
        if (out->views[n].obj != NULL) PyBuffer_Release(&out->views[n]);
}

/* Take the columns. 0, and an exception: one is not what it must be. */
static int take_columns(Output *out, PyObject *columns)
{
    memset(out->views, 0, sizeof out->views);
    if (!PyTuple_Check(columns) || PyTuple_GET_SIZE(columns) != COLUMNS) {
        PyErr_Format(PyExc_TypeError, "a tuple of %d columns is needed", COLUMNS);
        return 0;
    }
    for (int n = 0; n < COLUMNS; n++) {
        PyObject *column = PyTuple_GET_ITEM(columns, n);
        if (column == Py_None) continue;
        if (PyObject_GetBuffer(column, &out->views[n], PyBUF_WRITABLE) < 0) {
            release(out);
            return 0;
        }
        int has_octets = WIDTH[n] == 4 && n + 1 < COLUMNS && WIDTH[n + 1] == 0;
        if (out->views[n].len < (out->room + has_octets) * WIDTH[n]) {
            PyErr_Format(PyExc_ValueError, "column %d has no room for %zd rows", n, out->room);
            release(out);
            return 0;
        }
        if (has_octets) *(int32_t *)out->views[n].buf = 0;
    }
    for (int n = 0; n + 1 < COLUMNS; n++)
        if (WIDTH[n + 1] == 0 && (out->views[n].buf == NULL) != (out->views[n + 1].buf == NULL)) {
            PyErr_Format(PyExc_ValueError, "column %d has ends without bytes, or none", n);
            release(out);
            return 0;
        }
    return 1;
}

static PyObject *read_batches(PyObject *self, PyObject *arguments)
{
    Py_buffer octets, positions, begins, ends;
    PyObject *columns;
    long long first, bound;
    Output out = {.rows = 0, .last = -1};
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*LLnO", &octets, &positions, &begins, &ends, &first,
                          &bound, &out.room, &columns))
        return NULL;
    out.first = first;
    out.bound = bound;
    out.limit = (Place)octets.buf + octets.len;
    PyObject *result = NULL;
    Py_ssize_t count = positions.len / 8;
    if (begins.len != positions.len || ends.len != positions.len || octets.len > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "arrays of different lengths, or too many bytes");
    } else if (take_columns(&out, columns)) {
        const int64_t *position = positions.buf, *begin = begins.buf, *end = ends.buf;
        int usual = 1;
        for (Py_ssize_t n = 0; usual && n < count; n++)
            usual = position[n] >= 0 && position[n] <= octets.len - HEADER_BYTES &&
                    begin[n] >= 0 && begin[n] <= end[n] && end[n] <= octets.len &&
                    read_batch(&out, (Place)octets.buf + position[n], (Place)octets.buf + begin[n],
                               (Place)octets.buf + end[n]);
        release(&out);
        if (usual)
            result = Py_BuildValue("nL", out.rows, (long long)out.last);
        else
            result = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&octets);
    PyBuffer_Release(&positions);
    PyBuffer_Release(&begins);
    PyBuffer_Release(&ends);
    return result;
}

static PyMethodDef methods[] = {
    {"read_batches", read_batches, METH_VARARGS,
     "read_batches(octets, positions, begins, ends, first, bound, room, columns): "
     "(rows, offset of the last record), or None if something is not as usual"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rollcall_commit_reader", NULL, -1, methods,
};

PyMODINIT_FUNC PyInit_rollcall_commit_reader(void) { return PyModule_Create(&definition); }
