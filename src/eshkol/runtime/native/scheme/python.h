/* The bridge to Python: what python.c (handles, calls), to_python.c and from_python.c (conversions) share.
 *
 * This library is built without Python's headers, so that one build serves every Python: the functions of CPython that
 * it uses, all of the stable ABI, are rows of a table whose addresses Python fills in (runtime/python.py) when the
 * first program asks for Python. Helpers are Python callables and types that C needs; their names are rows, too.
 *
 * Rules. Python's functions are called with its lock held (GIL) alone. While it is held, nothing may leave these C
 * frames by a jump: whatever can raise a Scheme condition runs under esk_protect, and the condition is raised when
 * references and lock are given back. Scheme's collector runs without the lock: a handle that nobody refers to puts
 * its Python object on a list, which is emptied at the next crossing.
 */
#ifndef ESHKOL_SCHEME_PYTHON_H
#define ESHKOL_SCHEME_PYTHON_H

#include "value.h"

/* Told of every call of Python, before it and, with `ended`, after it; with Python's lock held. Null: nobody
 * (profiling/callbacks.c). */
extern void (*esk_python_watcher)(void *function, bool ended);

#pragma GCC visibility push(hidden)

typedef struct PyObject PyObject;
typedef int64_t Size;

/* X(result, name, parameters) */
#define PYTHON_FUNCTIONS(X)                                                                                    \
    X(int, PyGILState_Ensure, (void)) X(void, PyGILState_Release, (int))                                       \
    X(void *, PyEval_SaveThread, (void)) X(void, PyEval_RestoreThread, (void *))                               \
    X(void, Py_IncRef, (PyObject *)) X(void, Py_DecRef, (PyObject *))                                          \
    X(PyObject *, PyObject_Type, (PyObject *)) X(PyObject *, PyObject_Call, (PyObject *, PyObject *, PyObject *)) \
    X(PyObject *, PyObject_CallObject, (PyObject *, PyObject *))                                               \
    X(PyObject *, PyObject_GetAttrString, (PyObject *, const char *))                                          \
    X(PyObject *, PyLong_FromLongLong, (long long)) X(long long, PyLong_AsLongLong, (PyObject *))              \
    X(long long, PyLong_AsLongLongAndOverflow, (PyObject *, int *))                                            \
    X(PyObject *, PyLong_FromVoidPtr, (void *)) X(void *, PyLong_AsVoidPtr, (PyObject *))                      \
    X(PyObject *, PyFloat_FromDouble, (double)) X(double, PyFloat_AsDouble, (PyObject *))                      \
    X(PyObject *, PyComplex_FromDoubles, (double, double)) X(double, PyComplex_RealAsDouble, (PyObject *))     \
    X(double, PyComplex_ImagAsDouble, (PyObject *))                                                            \
    X(Size, PyUnicode_GetLength, (PyObject *)) X(uint32_t *, PyUnicode_AsUCS4, (PyObject *, uint32_t *, Size, int)) \
    X(PyObject *, PyUnicode_DecodeUTF32, (const char *, Size, const char *, int *))                            \
    X(PyObject *, PyUnicode_DecodeUTF8, (const char *, Size, const char *))                                    \
    X(const char *, PyUnicode_AsUTF8AndSize, (PyObject *, Size *))                                             \
    X(PyObject *, PyBytes_FromStringAndSize, (const char *, Size))                                             \
    X(int, PyBytes_AsStringAndSize, (PyObject *, char **, Size *))                                             \
    X(PyObject *, PyList_New, (Size)) X(Size, PyList_Size, (PyObject *))                                       \
    X(PyObject *, PyList_GetItem, (PyObject *, Size)) X(int, PyList_SetItem, (PyObject *, Size, PyObject *))   \
    X(PyObject *, PyTuple_New, (Size)) X(Size, PyTuple_Size, (PyObject *))                                     \
    X(PyObject *, PyTuple_GetItem, (PyObject *, Size)) X(int, PyTuple_SetItem, (PyObject *, Size, PyObject *)) \
    X(PyObject *, PyList_AsTuple, (PyObject *))                                                                \
    X(PyObject *, PyDict_New, (void)) X(int, PyDict_SetItem, (PyObject *, PyObject *, PyObject *))             \
    X(PyObject *, PyDict_Keys, (PyObject *)) X(PyObject *, PyDict_Values, (PyObject *))                        \
    X(Size, PyDict_Size, (PyObject *))                                                                         \
    X(PyObject *, PyErr_Occurred, (void)) X(void, PyErr_SetObject, (PyObject *, PyObject *))                   \
    X(void, PyErr_Fetch, (PyObject **, PyObject **, PyObject **))                                              \
    X(void, PyErr_Restore, (PyObject *, PyObject *, PyObject *))                                               \
    X(int, PyThreadState_SetAsyncExc, (unsigned long, PyObject *))                                             \
    X(void, PyErr_NormalizeException, (PyObject **, PyObject **, PyObject **))                                 \
    X(int, PyException_SetTraceback, (PyObject *, PyObject *)) X(void, PyErr_Clear, (void))                    \
    X(PyObject *, PyNumber_Negative, (PyObject *))

/* What runtime/python.py says of itself under these names. */
#define PYTHON_HELPERS(X)                                                                                      \
    X(none) X(true_) X(false_)                                                                                 \
    X(classify)      /* (type) → one of KINDS */                                                               \
    X(adapt)         /* (object) → what takes its place */                                                     \
    X(integer)       /* (bytes of a magnitude, least first) → int */                                           \
    X(magnitude)     /* (int) → such bytes, eight or a multiple of that */                                     \
    X(fraction)      /* (numerator, denominator) */                                                            \
    X(parts)         /* (Fraction or Pair) → its two parts */                                                  \
    X(symbol) X(keyword) X(char_)  /* (str) */                                                                 \
    X(vector)        /* (list) */                                                                              \
    X(several)       /* (tuple) → the same, as several values */                                               \
    X(pair)          /* (car, cdr) */                                                                          \
    X(proxy)         /* (context, tag, address of a root, name, doc) */                                        \
    X(find)          /* (name) → the function that is registered under it */                                   \
    X(failure)       /* (context, exception) → how, number, text: see python.c */                                      \
    X(raised)        /* (context, address of a root with a condition, the exception it stands for) → exception */ \
    X(leaving)       /* (exit code) → exception */                                                             \
    X(interrupt)     /* KeyboardInterrupt */                                                                   \
    X(noticed)       /* (None) → None, or raises what is pending on this thread */                             \
    X(text)          /* (object, is it display) → str */                                                       \
    X(complain)      /* (message): raises */

#define PYTHON_KINDS(X)                                                                                        \
    X(NONE) X(BOOL) X(INT) X(FLOAT) X(COMPLEX) X(FRACTION) X(STR) X(BYTES) X(SYMBOL) X(KEYWORD) X(CHAR) X(LIST)  \
    X(VECTOR) X(TUPLE) X(VALUES) X(DICT) X(PAIR) X(PROXY) X(TENSOR) X(CALLABLE) X(LAYER) X(FOREIGN) X(KEPT) X(ADAPT)
enum PythonKind {
#define X(name) KIND_##name,
    PYTHON_KINDS(X)
#undef X
};

typedef struct {
#define X(result, name, parameters) result (*name) parameters;
    PYTHON_FUNCTIONS(X)
#undef X
} PythonFunctions;

typedef struct {
#define X(name) PyObject *name;
    PYTHON_HELPERS(X)
#undef X
} PythonHelpers;

extern PythonFunctions py; /* all null before Python is open */
extern PythonHelpers helpers;

/* Of type TENSOR, or of type FOREIGN with this flag: a Python object that we own. An object has one handle in a context
 * (handles.c), so it is eq? to itself. */
typedef struct {
    Object head;      /* count 1 */
    Value procedure;  /* that calls the object, or #f */
    PyObject *object;
    Context *context;
    int64_t bytes;    /* that it keeps alive */
} PythonHandle;
enum { FLAG_PYTHON = 32 };

static inline bool is_python(Value v) {
    return v.tag == TAG_TENSOR || (v.tag == TAG_FOREIGN && ((Object *)esk_pointer(v))->flags & FLAG_PYTHON);
}
static inline PyObject *python_object(Value handle) { return ((PythonHandle *)esk_pointer(handle))->object; }

/* Whether the value is a procedure that calls a Python object. It has captured that object's handle or, before the
 * first call of a procedure of the library, the symbol it is registered under; such a procedure its name, too. */
bool python_is_procedure(Value);
PyObject *python_of_procedure(Value); /* a new reference, or null with an exception set */

/* A new reference, or null with an exception set. Nothing is allocated on Scheme's heap. */
PyObject *python_from_value(Context *, Value);
extern _Thread_local bool python_met_differentiated; /* that this is why a conversion failed */
void python_complain(const char *message); /* sets an exception */
PyObject *python_call_1(PyObject *helper, PyObject *argument); /* takes the argument's reference, which may be null */

/* False: an exception is set, or a condition was raised, which is put into *result, and *condition is true. */
bool python_to_value(Context *, PyObject *, Value *result, bool *condition);
PyObject *python_results(PyObject *function, PyObject *found);
/* A handle; to be called under esk_protect. The reference stays the caller's. */
Value python_handle(Context *, PyObject *, int tag, int64_t bytes);
Value python_procedure(Context *, Value handle);

void python_drain(void); /* lets go of objects that no handle has any more */

/* Containers that are open while something nested is converted, so that cycles are found. */
typedef struct {
    const void **slots; /* open addressing; those of the first few are looked at one by one */
    uint64_t mask, used;
    const void *first[8];
    int64_t depth;
} OpenSet;
bool open_add(OpenSet *, const void *); /* false where it is open already, or there is no memory: then used is 0 */
void open_remove(OpenSet *, const void *);
void open_free(OpenSet *);

#pragma GCC visibility pop

/* ---- what other parts of the runtime use ------------------------------------------------------------------------ */

/* Calls the function that Python has registered under a name, a string constant; raises what it raises. */
Value esk_tensor_call(Context *, const char *function, const Value *args, int64_t count);
/* The same for a procedure of the language, which errors name; where arguments are differentiated, the library takes
 * the derivative. */
Value esk_tensor_apply(Context *, const char *function, const char *who, const Value *args, int64_t count);
/* The name of a procedure of the library that calls Python, a symbol; #f for any other value that is a procedure. */
Value esk_library_name(Value procedure);
/* What Python writes for a tensor or a foreign object: repr, or str for display. */
Value esk_python_text(Context *, Value, bool display);

#endif
