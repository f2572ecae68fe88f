/* The part of CPython that the front door uses, all of it in the stable ABI, declared here.
 *
 * The library is built without Python's headers, so that one build serves every Python. Functions are rows of a table
 * whose addresses Python fills in (runtime/front.py); structures and numbers below are those that the stable ABI fixes.
 * Everything here is called with Python's lock held.
 */
#ifndef ESHKOL_FRONT_PYTHON_ABI_H
#define ESHKOL_FRONT_PYTHON_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

typedef int64_t Size;
typedef struct Object Object;

struct Object { /* of builds with a lock; others have none of this (runtime/front.py refuses them) */
    union {
        Size whole;
        uint32_t low; /* the count itself, also where 3.12 and later keep flags beside it */
    } references;
    Object *type;
};

typedef int (*Visit)(Object *, void *);

/* X(result, name, parameters) */
#define FRONT_FUNCTIONS(X)                                                                                     \
    X(void, Py_IncRef, (Object *)) X(void, Py_DecRef, (Object *))                                              \
    X(Object *, PyTuple_New, (Size)) X(Size, PyTuple_Size, (Object *))                                         \
    X(Object *, PyTuple_GetItem, (Object *, Size)) X(int, PyTuple_SetItem, (Object *, Size, Object *))         \
    X(Object *, PyDict_GetItemWithError, (Object *, Object *))                                                 \
    X(Object *, PyObject_CallMethodObjArgs, (Object *, Object *, ...))                                         \
    X(int, PyDict_SetItem, (Object *, Object *, Object *)) X(Size, PyDict_Size, (Object *))                    \
    X(Object *, PyDict_New, (void))                                                                            \
    X(Object *, PyList_New, (Size)) X(Size, PyList_Size, (Object *))                                           \
    X(Object *, PyList_GetItem, (Object *, Size)) X(int, PyList_SetItem, (Object *, Size, Object *))           \
    X(int, PyList_Append, (Object *, Object *)) X(Object *, PyList_AsTuple, (Object *))                        \
    X(Object *, PyBytes_FromStringAndSize, (const char *, Size))                                               \
    X(Size, PyObject_Hash, (Object *)) X(int, PyObject_RichCompareBool, (Object *, Object *, int))             \
    X(Object *, PyObject_CallObject, (Object *, Object *))                                                     \
    X(Object *, PyObject_CallFunctionObjArgs, (Object *, ...))                                                 \
    X(Object *, PyObject_GetAttr, (Object *, Object *))                                                        \
    X(int, PyObject_IsTrue, (Object *))                                                                        \
    X(Object *, PyUnicode_InternFromString, (const char *))                                                    \
    X(const char *, PyUnicode_AsUTF8AndSize, (Object *, Size *))                                               \
    X(Object *, PyNumber_Or, (Object *, Object *))                                                             \
    X(int, PySet_Contains, (Object *, Object *)) X(Size, PySet_Size, (Object *))                               \
    X(Object *, PyBool_FromLong, (long)) X(Object *, PyLong_FromLongLong, (long long))                         \
    X(long long, PyLong_AsLongLong, (Object *)) X(double, PyFloat_AsDouble, (Object *))                        \
    X(long long, PyLong_AsLongLongAndOverflow, (Object *, int *))                                              \
    X(Object *, PyEval_GetFrame, (void)) X(Object *, PyFrame_GetCode, (Object *))                              \
    X(Object *, PyType_FromSpec, (void *)) X(Object *, PyType_GenericAlloc, (Object *, Size))                  \
    X(void, PyObject_GC_UnTrack, (void *)) X(void, PyObject_GC_Del, (void *))                                  \
    X(void, PyObject_ClearWeakRefs, (Object *)) X(void, PyObject_Free, (void *))                               \
    X(Object *, PyCFunction_NewEx, (void *, Object *, Object *))                                               \
    X(void *, PyEval_SaveThread, (void)) X(void, PyEval_RestoreThread, (void *))                               \
    X(Object *, PyErr_Occurred, (void)) X(void, PyErr_SetString, (Object *, const char *))                     \
    X(Object *, PyErr_NoMemory, (void)) X(void, PyErr_Clear, (void)) X(void, PyErr_WriteUnraisable, (Object *))   \
    X(void, PyErr_SetObject, (Object *, Object *)) X(int, PyErr_ExceptionMatches, (Object *))                  \
    X(Object *, PyObject_GenericGetAttr, (Object *, Object *)) X(Object *, PyWeakref_NewRef, (Object *, Object *)) \
    X(int, PyDict_Next, (Object *, Size *, Object **, Object **))                                              \
    X(Object *, PyObject_GetItem, (Object *, Object *)) X(int, PyType_IsSubtype, (Object *, Object *))         \
    X(void, PyErr_Fetch, (Object **, Object **, Object **)) X(void, PyErr_Restore, (Object *, Object *, Object *))

typedef struct {
#define X(result, name, parameters) result(*name) parameters;
    FRONT_FUNCTIONS(X)
#undef X
} PythonAbi;

extern PythonAbi python;

/* Structures of the stable ABI. */
typedef struct {
    int slot;
    void *function;
} TypeSlot;
typedef struct {
    const char *name;
    int size, item_size;
    unsigned flags;
    TypeSlot *slots;
} TypeSpec;
typedef struct {
    const char *name;
    int type;
    Size offset;
    int flags;
    const char *doc;
} Member;
typedef struct {
    const char *name;
    Object *(*get)(Object *, void *);
    int (*set)(Object *, Object *, void *);
    const char *doc;
    void *closure;
} Property;
typedef struct {
    const char *name;
    void *function;
    int flags;
    const char *doc;
} Method;

enum { FAST_CALL = 0x80, KEYWORDS = 0x02, ONE_ARGUMENT = 0x08 };               /* how methods are called */
enum { MEMBER_OR_NONE = 6, MEMBER_TRUTH = 14, MEMBER_OBJECT = 16, MEMBER_SIZE = 19, READ_ONLY = 1 }; /* members */
enum { TYPE_DEFAULT = 1 << 18, TYPE_BASE = 1 << 10, TYPE_COLLECTED = 1 << 14 };
enum {
    SLOT_ABSOLUTE = 6, SLOT_ADD = 7, SLOT_FLOOR_DIVIDE = 12, SLOT_MULTIPLY = 29, SLOT_NEGATIVE = 30, SLOT_POWER = 33,
    SLOT_REMAINDER = 34, SLOT_SUBTRACT = 36, SLOT_TRUE_DIVIDE = 37, SLOT_MATRIX_MULTIPLY = 75, SLOT_CALL = 50,
    SLOT_CLEAR = 51, SLOT_DEALLOCATE = 52, SLOT_ATTRIBUTE = 58, SLOT_METHODS = 64, SLOT_TRAVERSE = 71,
    SLOT_MEMBERS = 72, SLOT_PROPERTIES = 73, SLOT_FINALIZE = 80,
};
enum { COMPARE_EQUAL = 2 };

static inline Object *held(Object *object)
{
    python.Py_IncRef(object);
    return object;
}

static inline void dropped(Object *object)
{
    if (object) python.Py_DecRef(object);
}

/* Give a field another value, of which it takes the reference. */
static inline void become(Object **field, Object *value)
{
    Object *before = *field;
    *field = value;
    dropped(before);
}

#pragma GCC visibility pop

#endif
