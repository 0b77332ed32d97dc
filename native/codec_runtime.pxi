# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, embedsignature=False, always_allow_keywords=False
# The part of the compiled codec that is the same for all messages; codec_source.py adds the rest.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.ref cimport Py_INCREF, PyObject
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.string cimport memcmp, memcpy, memmove, memset

from functools import cache
from importlib import import_module

import msgspec

from protocol.primitives import read_uuid

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char*, Py_ssize_t, const char*)
    bint PyUnicode_IS_ASCII(object)
    void* PyUnicode_DATA(object)
    Py_ssize_t PyUnicode_GET_LENGTH(object)

cdef extern from *:
    """
    #include "structmember.h"
    /* Where a struct keeps a field: what its descriptor says. -1: it is no such descriptor. */
    static Py_ssize_t member_offset(PyObject *descriptor) {
        if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) return -1;
        PyMemberDef *member = ((PyMemberDescrObject *)descriptor)->d_member;
        return member->type == T_OBJECT || member->type == T_OBJECT_EX ? member->offset : -1;
    }
    """
    Py_ssize_t member_offset(object)

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    /* Big endian; one store each, of which the compiler makes none of a loop below -O2. */
    #if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    static inline void store_32(char *p, uint32_t n) { n = __builtin_bswap32(n); memcpy(p, &n, 4); }
    static inline void store_64(char *p, uint64_t n) { n = __builtin_bswap64(n); memcpy(p, &n, 8); }
    #else
    static inline void store_32(char *p, uint32_t n)
    { for (int k = 3; k >= 0; k--, n >>= 8) p[k] = (char)n; }
    static inline void store_64(char *p, uint64_t n)
    { for (int k = 7; k >= 0; k--, n >>= 8) p[k] = (char)n; }
    #endif
    static inline uint32_t load_32(const void *p)
    { const unsigned char *q = (const unsigned char *)p;
      return (uint32_t)q[0] << 24 | (uint32_t)q[1] << 16 | (uint32_t)q[2] << 8 | q[3]; }
    static inline int64_t load_64(const void *p)
    { return (int64_t)((uint64_t)load_32(p) << 32 | load_32((const char *)p + 4)); }
    """
    void store_32(char*, unsigned int) noexcept
    void store_64(char*, unsigned long long) noexcept
    unsigned int load_32(const void*) noexcept
    long long load_64(const void*) noexcept


class Odd(Exception):
    """What is left to the oracle."""


def _import(module, name):
    return getattr(import_module(module), name)


@cache
def _fields(cls):
    return {field.name: field for field in msgspec.structs.fields(cls)}


def _default(cls, name):
    field = _fields(cls)[name]
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _members(module, name):
    return {int(member): member for member in _import(module, name)}


def _offset_of(cls, str name):
    """Where the objects of a class of msgspec keep a field: read there, it needs no look-up."""
    for base in cls.__mro__:
        if name in vars(base):
            offset = member_offset(vars(base)[name])
            if offset > 0: return offset
    raise ImportError(f"no place of {cls.__name__}.{name} is known")


cdef inline object field(object struct, Py_ssize_t at):
    """Of an object whose class was looked at."""
    cdef PyObject* found = (<PyObject**>(<char*><PyObject*>struct + at))[0]
    if found == NULL: raise Odd
    return <object>found


cdef bint is_default(object value, object default):
    return value is default or (value is not None and default is not None and value == default)


cdef bint has_items(object value) except *:
    """Whether an array is not the empty one, its default; null is another value."""
    return value is None or len(value) != 0


# Reading. Beyond the end, and of what is odd, a read answers something and sets `odd`.

cdef struct Cursor:
    const unsigned char* p
    Py_ssize_t pos
    Py_ssize_t end
    long long left  # elements that the arrays of the request may still have
    bint odd


cdef inline bint has(Cursor* c, Py_ssize_t size) noexcept:
    if size <= c.end - c.pos:
        return True
    c.odd = True
    return False


cdef inline int i8(Cursor* c) noexcept:
    if not has(c, 1): return 0
    c.pos += 1
    return <signed char>c.p[c.pos - 1]


cdef inline int u16(Cursor* c) noexcept:
    if not has(c, 2): return 0
    cdef const unsigned char* p = c.p + c.pos
    c.pos += 2
    return (p[0] << 8) | p[1]


cdef inline int i16(Cursor* c) noexcept:
    return <short>u16(c)


cdef inline int i32(Cursor* c) noexcept:
    if not has(c, 4): return 0
    c.pos += 4
    return <int>load_32(c.p + c.pos - 4)


cdef inline long long i64(Cursor* c) noexcept:
    cdef unsigned int high = <unsigned int>i32(c)
    cdef unsigned int low = <unsigned int>i32(c)
    return <long long>((<unsigned long long>high << 32) | low)


cdef Py_ssize_t uvarint(Cursor* c) noexcept:
    cdef unsigned long long value = 0
    cdef int shift = 0
    cdef unsigned char byte
    while shift <= 28:
        if not has(c, 1): return 0
        byte = c.p[c.pos]
        c.pos += 1
        value |= <unsigned long long>(byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0x7FFFFFFF: break
            return <Py_ssize_t>value
        shift += 7
    c.odd = True
    return 0


cdef inline Py_ssize_t length(Cursor* c, bint flexible, bint is_short) noexcept:
    """Of a string, bytes or an array; -1 is null."""
    cdef Py_ssize_t n
    if flexible:
        n = uvarint(c) - 1
        if is_short and n > 0x7FFF: c.odd = True
        return n
    n = i16(c) if is_short else i32(c)
    return n if n >= 0 else -1


cdef inline object text(Cursor* c, bint flexible, bint nullable):
    cdef Py_ssize_t n = length(c, flexible, True)
    if n < 0:
        if not nullable: c.odd = True
        return None
    if not has(c, n): return None
    c.pos += n
    return PyUnicode_DecodeUTF8(<const char*>c.p + c.pos - n, n, "rollcall.java")


cdef inline object client_id(Cursor* c):
    cdef Py_ssize_t n = length(c, False, True)
    if n <= 0: return ""
    if not has(c, n): return None
    c.pos += n
    return PyUnicode_DecodeUTF8(<const char*>c.p + c.pos - n, n, "rollcall.java")


cdef inline object data(Cursor* c, bint flexible, bint nullable):
    cdef Py_ssize_t n = length(c, flexible, False)
    if n < 0:
        if not nullable: c.odd = True
        return None
    if not has(c, n): return None
    c.pos += n
    return PyBytes_FromStringAndSize(<const char*>c.p + c.pos - n, n)


cdef inline object uuid(Cursor* c):
    if not has(c, 16): return None
    c.pos += 16
    return read_uuid(PyBytes_FromStringAndSize(<const char*>c.p + c.pos - 16, 16))


cdef inline Py_ssize_t count(Cursor* c, bint flexible, bint nullable, Py_ssize_t at_most) noexcept:
    """How many elements an array has; -1 is null. An element has a byte at least."""
    cdef Py_ssize_t n = length(c, flexible, False)
    if n < 0:
        if not nullable: c.odd = True
        return -1
    c.left -= n
    if c.left < 0 or (at_most and n > at_most) or not has(c, n):
        c.odd = True
        return -1
    return n


cdef inline void no_tags(Cursor* c) noexcept:
    if i8(c) != 0: c.odd = True


# Writing. What does not fit raises, and the oracle says why.

cdef struct Out:
    char* p
    Py_ssize_t n
    Py_ssize_t room


cdef int grow(Out* o, Py_ssize_t size) except -1:
    cdef Py_ssize_t room = 2 * (o.room + size)
    cdef char* p = <char*>PyMem_Realloc(o.p, room)
    if p == NULL: raise MemoryError
    o.p = p
    o.room = room
    return 0


cdef inline long long whole(object value) except? -1:
    """A number; Cython alone would take a float."""
    if not isinstance(value, int): raise Odd
    return value


cdef inline int put_8(Out* o, int value) except -1:
    if o.room - o.n < 1: grow(o, 1)
    o.p[o.n] = <char>value
    o.n += 1
    return 0


cdef inline int put_i8(Out* o, long long value) except -1:
    if not -0x80 <= value <= 0x7F: raise Odd
    return put_8(o, <int>value)


cdef inline int put_u16(Out* o, long long value) except -1:
    if not 0 <= value <= 0xFFFF: raise Odd
    if o.room - o.n < 2: grow(o, 2)
    o.p[o.n] = <char>(value >> 8)
    o.p[o.n + 1] = <char>value
    o.n += 2
    return 0


cdef inline int put_i16(Out* o, long long value) except -1:
    if not -0x8000 <= value <= 0x7FFF: raise Odd
    return put_u16(o, value & 0xFFFF)


cdef inline int put_i32(Out* o, long long value) except -1:
    if not -0x80000000LL <= value <= 0x7FFFFFFF: raise Odd
    if o.room - o.n < 4: grow(o, 4)
    store_32(o.p + o.n, <unsigned int>value)
    o.n += 4
    return 0


cdef inline int put_i64(Out* o, long long value) except -1:
    if o.room - o.n < 8: grow(o, 8)
    store_64(o.p + o.n, <unsigned long long>value)
    o.n += 8
    return 0


cdef inline int put_uvarint(Out* o, Py_ssize_t value) except -1:
    while value >= 0x80:
        put_8(o, <int>((value & 0x7F) | 0x80))
        value >>= 7
    return put_8(o, <int>value)


cdef inline int put_length(Out* o, Py_ssize_t n, bint flexible, bint is_short) except -1:
    """-1 is null."""
    if is_short and n > 0x7FFF: raise Odd
    if flexible: return put_uvarint(o, n + 1)
    return put_i16(o, n) if is_short else put_i32(o, n)


cdef inline Py_ssize_t begin_tag(Out* o, int tag) except -1:
    """Where the field begins, behind a place of one byte for its size."""
    put_uvarint(o, tag)
    put_8(o, 0)
    return o.n


cdef int end_tag(Out* o, Py_ssize_t start) except -1:
    cdef Py_ssize_t size = o.n - start, rest = size >> 7, more = 0
    while rest:
        more += 1
        rest >>= 7
    if more:  # the size takes more than the one byte
        if o.room - o.n < more: grow(o, more)
        memmove(o.p + start + more, o.p + start, size)
    o.n = start - 1
    put_uvarint(o, size)
    o.n += size
    return 0


cdef inline int put_raw(Out* o, bytes value, Py_ssize_t n) except -1:
    if value is None or PyBytes_GET_SIZE(value) != n: raise Odd
    if o.room - o.n < n: grow(o, n)
    memcpy(o.p + o.n, PyBytes_AS_STRING(value), n)
    o.n += n
    return 0


cdef inline int put_text(Out* o, object value, bint flexible, bint nullable) except -1:
    cdef Py_ssize_t n
    cdef bytes raw
    if value is None:
        if not nullable: raise Odd
        return put_length(o, -1, flexible, True)
    if not isinstance(value, str): raise Odd
    if PyUnicode_IS_ASCII(value):
        n = PyUnicode_GET_LENGTH(value)
        put_length(o, n, flexible, True)
        if o.room - o.n < n: grow(o, n)
        memcpy(o.p + o.n, PyUnicode_DATA(value), n)
        o.n += n
        return 0
    raw = (<str>value).encode("utf-8")
    put_length(o, PyBytes_GET_SIZE(raw), flexible, True)
    return put_raw(o, raw, PyBytes_GET_SIZE(raw))


cdef inline int put_bytes(Out* o, object value, bint flexible, bint nullable) except -1:
    if value is None:
        if not nullable: raise Odd
        return put_length(o, -1, flexible, False)
    if not isinstance(value, bytes): raise Odd
    put_length(o, PyBytes_GET_SIZE(value), flexible, False)
    return put_raw(o, value, PyBytes_GET_SIZE(value))


cdef inline int put_count(Out* o, object items, bint flexible, bint nullable) except -1:
    if items is None:
        if not nullable: raise Odd
        return put_length(o, -1, flexible, False)
    return put_length(o, len(items), flexible, False)


cdef inline int put_mark(Out* o, object part, bint nullable) except -1:
    """Before a struct that may be null. Where it may not be, there is no mark in this version."""
    if not nullable: raise Odd
    return put_8(o, 0xFF if part is None else 1)


# What protocol/codec.py uses.

ctypedef object (*r_function)(Cursor*, int, bint)
ctypedef int (*w_function)(Out*, object, int, bint) except -1

cdef object RequestHeader = _import("protocol.headers", "RequestHeader")
cdef dict ApiKeys = _members("protocol.names", "ApiKey")


cdef class RequestReader:
    """Reads the requests of one API in one version; `oracle` makes the reader of what is odd."""

    cdef r_function function
    cdef object api_key
    cdef int version
    cdef bint flexible
    cdef object make_oracle
    cdef object oracle

    def __init__(self, int api_key, int version, make_oracle):
        self.function = readers_function(api_key)
        if self.function == NULL: raise KeyError(api_key)
        self.api_key = ApiKeys[api_key]
        self.version = version
        self.flexible = version >= READERS[api_key]
        self.make_oracle = make_oracle

    def read(self, buf, Py_ssize_t start, Py_ssize_t end):
        """The header and the message of the frame buf[start:end]."""
        cdef Cursor c
        if type(buf) is bytes and 0 <= start <= end <= PyBytes_GET_SIZE(buf):
            c.p = <const unsigned char*>PyBytes_AS_STRING(buf)
            c.pos, c.end, c.left, c.odd = start + 4, end, ELEMENTS_MAX, False
            correlation_id = i32(&c)
            client = client_id(&c)
            if self.flexible: no_tags(&c)
            if not c.odd:
                message = self.function(&c, self.version, self.flexible)
                if not c.odd:
                    return RequestHeader(self.api_key, self.version, correlation_id, client), message
        if self.oracle is None:
            self.oracle = self.make_oracle()
        return self.oracle(buf, start, end)


cdef class ResponseWriter:
    """Writes the responses of one API in one version, as frames."""

    cdef w_function function
    cdef int version
    cdef bint flexible
    cdef object make_oracle
    cdef object oracle

    def __init__(self, int api_key, int version, make_oracle):
        self.function = writers_function(api_key)
        if self.function == NULL: raise KeyError(api_key)
        self.version = version
        self.flexible = version >= WRITERS[api_key]
        self.make_oracle = make_oracle

    def write(self, correlation_id, message):
        """The frame, size included."""
        cdef Out o
        o.room = 256
        o.n = 4
        o.p = <char*>PyMem_Malloc(o.room)
        if o.p == NULL: raise MemoryError
        try:
            put_i32(&o, whole(correlation_id))
            if self.flexible: put_8(&o, 0)
            self.function(&o, message, self.version, self.flexible)
            size = o.n
            o.n = 0
            put_i32(&o, size - 4)
            return PyBytes_FromStringAndSize(o.p, size)
        except Exception:
            pass
        finally:
            PyMem_Free(o.p)
        if self.oracle is None:
            self.oracle = self.make_oracle()
        return self.oracle(correlation_id, message)


cdef class RecordWriter:
    """Writes the records of one class in one version, after `prefix`."""

    cdef w_function function
    cdef int version
    cdef bint flexible
    cdef bytes prefix
    cdef object make_oracle
    cdef object oracle

    def __init__(self, str module, str name, int version, bytes prefix, make_oracle):
        self.function = record_writers_function(name)
        if self.function == NULL: raise KeyError(name)
        use_records()
        self.version = version
        self.flexible = version >= RECORD_WRITERS[f"{module}.{name}"]
        self.prefix = prefix
        self.make_oracle = make_oracle

    def write(self, message):
        cdef Out o
        o.room = 256
        o.n = 0
        o.p = <char*>PyMem_Malloc(o.room)
        if o.p == NULL: raise MemoryError
        try:
            put_raw(&o, self.prefix, PyBytes_GET_SIZE(self.prefix))
            self.function(&o, message, self.version, self.flexible)
            return PyBytes_FromStringAndSize(o.p, o.n)
        except Exception:
            pass
        finally:
            PyMem_Free(o.p)
        if self.oracle is None:
            self.oracle = self.make_oracle()
        return self.oracle(message)
