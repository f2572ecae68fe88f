/* Python's calls of Scheme.
 *
 * Comes in: procedures and values in roots, and objects of Python's, on Scheme's first thread with Python's lock held.
 * Goes out: what Scheme gave, as objects of Python's; a condition becomes the exception that helper `raised` makes.
 */
#include "python.h"

#include <stdlib.h>

enum { ENTERED_VALUE, ENTERED_CONDITION, ENTERED_EXIT, FEW = 8 };

/* Sets the exception that a helper makes. */
static PyObject *fail_with(PyObject *exception) {
    if (!exception) return NULL;
    PyObject *type = py.PyObject_Type(exception);
    py.PyErr_SetObject(type, exception);
    py.Py_DecRef(type);
    py.Py_DecRef(exception);
    return NULL;
}

static PyObject *fail_by_condition(Context *context, Value condition) {
    Value *root = esk_try_root(context);
    PyObject *args = root ? py.PyTuple_New(3) : NULL, *exception = NULL;
    if (!root) python_complain("there is no memory for a condition of Scheme that Python raises");
    if (args) {
        Value cause = esk_is_error(context, condition) ? esk_cause(condition) : ESK_FALSE;
        PyObject *known = is_python(cause) ? python_object(cause) : helpers.none;
        py.Py_IncRef(known);
        *root = condition;
        py.PyTuple_SetItem(args, 0, py.PyLong_FromVoidPtr(context));
        py.PyTuple_SetItem(args, 1, py.PyLong_FromVoidPtr(root)); /* which is the exception's from now on */
        py.PyTuple_SetItem(args, 2, known);
        exception = py.PyObject_CallObject(helpers.raised, args);
        py.Py_DecRef(args);
    }
    return fail_with(exception);
}

/* Calls the procedure in a root with the objects of a tuple, on Scheme's thread and with Python's lock held: a new
 * reference, or null with an exception set. */
PyObject *esk_python_enter(Context *context, const Value *procedure, PyObject *args) {
    Value vector, result, few[FEW], *given = few;
    bool condition;
    python_drain();
    if (!python_to_value(context, args, &vector, &condition))
        return condition ? fail_by_condition(context, vector) : NULL;
    int64_t count = ((Vector *)esk_pointer(vector))->length;
    if (count > FEW) {
        given = malloc((size_t)count * sizeof(Value));
        if (!given) return python_complain("there is no memory for so many arguments"), NULL;
    }
    memcpy(given, ((Vector *)esk_pointer(vector))->items, (size_t)count * sizeof(Value));
    uint64_t before = context->inside;
    context->inside = INSIDE_SCHEME;
    void *thread = py.PyEval_SaveThread();
    uint64_t how = esk_enter_unwinding(context, *procedure, given, count, &result);
    py.PyEval_RestoreThread(thread);
    context->inside = before;
    if (given != few) free(given);
    if (how == ENTERED_VALUE) return python_from_value(context, result);
    if (how == ENTERED_CONDITION) return fail_by_condition(context, result);
    return fail_with(python_call_1(helpers.leaving, python_from_value(context, result)));
}

/* Somebody interrupts: if it is Python code that Scheme called, KeyboardInterrupt is raised in that thread, and true is
 * given back. With the lock held, so the thread does not leave that code meanwhile. */
int esk_python_interrupt(Context *context, unsigned long thread) {
    if (context->inside != INSIDE_PYTHON || !context->interrupted) return 0;
    context->interrupted = 0;
    context->pressed = 1;
    py.PyThreadState_SetAsyncExc(thread, helpers.interrupt);
    return 1;
}

/* The value in a root as Python has it, and an object as Scheme has it; on Scheme's thread, with the lock held. */
PyObject *esk_python_take(Context *context, const Value *root) { return python_from_value(context, *root); }

PyObject *esk_python_make(Context *context, Value *root, PyObject *object) {
    Value made;
    bool condition;
    if (!python_to_value(context, object, &made, &condition))
        return condition ? fail_by_condition(context, made) : NULL;
    *root = made;
    py.Py_IncRef(helpers.none);
    return helpers.none;
}
