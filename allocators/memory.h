/* What compiled modules have in place of the functions of allocators/memory.py, which says what they promise and what
 * their callers must know. memcpy stands for a load or a store at any alignment, which compilers make one instruction.
 */
#ifndef ALLOCATORS_MEMORY_H
#define ALLOCATORS_MEMORY_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The kinds: places in memory.KINDS. */
enum { MEMORY_U8, MEMORY_I8, MEMORY_U16, MEMORY_I16, MEMORY_U32, MEMORY_I32, MEMORY_I64, MEMORY_U64, MEMORY_F32, MEMORY_F64 };

#define MEMORY_ACCESS(name, machine, wide)                                                                             \
    static inline wide memory_load_##name(int64_t items, int64_t index) {                                              \
        machine item;                                                                                                  \
        memcpy(&item, (const machine *)(intptr_t)items + index, sizeof item);                                          \
        return (wide)item;                                                                                             \
    }                                                                                                                  \
    static inline void memory_store_##name(int64_t items, int64_t index, wide item) {                                  \
        machine narrow = (machine)item;                                                                                \
        memcpy((machine *)(intptr_t)items + index, &narrow, sizeof narrow);                                            \
    }

MEMORY_ACCESS(u8, uint8_t, int64_t)
MEMORY_ACCESS(i8, int8_t, int64_t)
MEMORY_ACCESS(u16, uint16_t, int64_t)
MEMORY_ACCESS(i16, int16_t, int64_t)
MEMORY_ACCESS(u32, uint32_t, int64_t)
MEMORY_ACCESS(i32, int32_t, int64_t)
MEMORY_ACCESS(i64, int64_t, int64_t)
MEMORY_ACCESS(u64, uint64_t, int64_t)
MEMORY_ACCESS(f32, float, double)
MEMORY_ACCESS(f64, double, double)

static inline int64_t memory_load_int(int64_t kind, int64_t items, int64_t index) {
    /* The most frequent ones first. */
    if (kind == MEMORY_U32) return memory_load_u32(items, index);
    if (kind >= MEMORY_I64) return memory_load_i64(items, index);
    if (kind == MEMORY_U8) return memory_load_u8(items, index);
    if (kind == MEMORY_I32) return memory_load_i32(items, index);
    if (kind == MEMORY_U16) return memory_load_u16(items, index);
    if (kind == MEMORY_I16) return memory_load_i16(items, index);
    return memory_load_i8(items, index);
}

static inline void memory_store_int(int64_t kind, int64_t items, int64_t index, int64_t item) {
    if (kind == MEMORY_U32 || kind == MEMORY_I32) memory_store_u32(items, index, item);
    else if (kind >= MEMORY_I64) memory_store_i64(items, index, item);
    else if (kind <= MEMORY_I8) memory_store_u8(items, index, item);
    else memory_store_u16(items, index, item);
}

static inline double memory_load_float(int64_t kind, int64_t items, int64_t index) {
    return kind == MEMORY_F64 ? memory_load_f64(items, index) : memory_load_f32(items, index);
}

static inline void memory_store_float(int64_t kind, int64_t items, int64_t index, double item) {
    if (kind == MEMORY_F64) memory_store_f64(items, index, item);
    else memory_store_f32(items, index, item);
}

/* The value of a Python int that has one or no digit, which is most of them; INT64_MIN for any other. */
static inline int64_t memory_small_int(PyObject *number) {
#if PY_VERSION_HEX >= 0x030C0000
    if (PyUnstable_Long_IsCompact((PyLongObject *)number)) return PyUnstable_Long_CompactValue((PyLongObject *)number);
#else
    if (Py_SIZE(number) == 1) return ((PyLongObject *)number)->ob_digit[0];
    if (Py_SIZE(number) == 0) return 0;
#endif
    return INT64_MIN;
}

static inline int64_t memory_index_in(PyObject *index, int64_t length) {
    if (!PyLong_Check(index)) return -1;
    int64_t place = memory_small_int(index);
    if (place == INT64_MIN) {
        int overflow;
        place = PyLong_AsLongLongAndOverflow(index, &overflow);
        if (overflow) return -1;
    }
    if (place < 0) place += length;
    return 0 <= place && place < length ? place : -1;
}

static inline PyObject *memory_number(int64_t word) {
    return word >= 0 ? PyLong_FromLongLong(word) : PyLong_FromUnsignedLongLong((uint64_t)word);
}

static inline PyObject *memory_load_item(int64_t kind, int64_t items, int64_t index) {
    if (kind >= MEMORY_F32) return PyFloat_FromDouble(memory_load_float(kind, items, index));
    if (kind == MEMORY_U64) return memory_number(memory_load_u64(items, index));
    return PyLong_FromLongLong(memory_load_int(kind, items, index));
}

static inline bool memory_invalid(PyObject *kind_of_error, const char *what, int64_t kind) {
    PyErr_Format(kind_of_error, "memoryview: invalid %s for format '%c'", what, "BbHhIiqQfd"[kind]);
    return false;
}

/* False with an exception set where the item does not fit. */
static inline bool memory_store_item(int64_t kind, int64_t items, int64_t index, PyObject *item) {
    if (kind >= MEMORY_F32) {
        double value;
        if (PyFloat_Check(item)) {
            value = PyFloat_AS_DOUBLE(item);
        } else if (PyLong_Check(item)) {
            value = PyLong_AsDouble(item);
            if (value == -1.0 && PyErr_Occurred()) return memory_invalid(PyExc_ValueError, "value", kind);
        } else {
            return memory_invalid(PyExc_TypeError, "type", kind);
        }
        memory_store_float(kind, items, index, value);
        return true;
    }
    if (!PyLong_Check(item)) return memory_invalid(PyExc_TypeError, "type", kind);
    if (kind == MEMORY_U64) {
        uint64_t value = PyLong_AsUnsignedLongLong(item);
        if (value == UINT64_MAX && PyErr_Occurred()) return memory_invalid(PyExc_ValueError, "value", kind);
        memory_store_u64(items, index, (int64_t)value);
        return true;
    }
    int64_t value = memory_small_int(item);
    if (value == INT64_MIN) {
        int overflow;
        value = PyLong_AsLongLongAndOverflow(item, &overflow);
        if (overflow) return memory_invalid(PyExc_ValueError, "value", kind);
    }
    if (kind != MEMORY_I64) {
        /* Formats of 1, 1, 2, 2, 4 and 4 bytes, the unsigned one first. */
        int bits = 8 << (kind >> 1);
        int64_t low = kind & 1 ? -((int64_t)1 << (bits - 1)) : 0;
        if (value < low || ((value - low) >> bits) != 0) return memory_invalid(PyExc_ValueError, "value", kind);
    }
    memory_store_int(kind, items, index, value);
    return true;
}

/* What a compiled function returns for an `i64`, with an exception set. */
#define MEMORY_ERROR ((int64_t)-113)

static inline int64_t memory_pointer(PyObject *view) {
    if (!PyMemoryView_Check(view)) {
        PyErr_SetString(PyExc_TypeError, "a pointer needs a memoryview");
        return MEMORY_ERROR;
    }
    Py_buffer *buffer = PyMemoryView_GET_BUFFER(view);
    if (buffer->readonly) {
        PyErr_SetString(PyExc_TypeError, "cannot modify read-only memory");
        return MEMORY_ERROR;
    }
    return buffer->buf ? (int64_t)(intptr_t)buffer->buf : 16;
}

static inline int64_t memory_word(PyObject *number) {
    if (PyLong_Check(number)) {
        int64_t small = memory_small_int(number);
        if (small >= 0) return small;
    }
    PyObject *plain = PyNumber_Index(number);
    if (plain == NULL) return MEMORY_ERROR;
    uint64_t value = PyLong_AsUnsignedLongLong(plain);
    Py_DECREF(plain);
    if (value == UINT64_MAX && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_SetString(PyExc_ValueError, "a number from 0 to 2**64 - 1 is needed");
        return MEMORY_ERROR;
    }
    return (int64_t)value;
}

static inline void memory_move(
    int64_t size, int64_t target, int64_t to, int64_t source, int64_t start, int64_t count) {
    memmove((char *)(intptr_t)target + to * size, (const char *)(intptr_t)source + start * size, count * size);
}

static inline void memory_repeat(int64_t size, int64_t items, int64_t index, int64_t count) {
    char *first = (char *)(intptr_t)items + index * size;
    if (count <= 1) return;
    if (size == 1) {
        memset(first, *first, count);
        return;
    }
    int64_t bytes = count * size;
    for (int64_t done = size; done < bytes; done *= 2) memcpy(first + done, first, done < bytes - done ? done : bytes - done);
}

static inline PyObject *memory_load_bytes(int64_t items, int64_t index, int64_t count) {
    return PyBytes_FromStringAndSize((const char *)(intptr_t)items + index, count);
}

static inline void memory_store_bytes(int64_t items, int64_t index, PyObject *text) {
    memcpy((char *)(intptr_t)items + index, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text));
}

static inline bool memory_equal_bytes(int64_t items, int64_t index, PyObject *text) {
    return memcmp((const char *)(intptr_t)items + index, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)) == 0;
}

#endif
