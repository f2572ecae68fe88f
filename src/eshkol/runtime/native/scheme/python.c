/* Python's side of the runtime: how it is opened, calls of Python, and errors.
 *
 * Comes in: calls of the primitives below and of Python procedures; python_entries.c has those that Python makes. Goes
 * out: what Python gave; an exception of Python's is raised as an error object that has it as its cause. All of it is
 * done on the first thread (threads.h). See python.h for the rules.
 */
#include "python.h"
#include "hostcalls.h"
#include "threads.h"

#include <stdlib.h>

PythonFunctions py;
PythonHelpers helpers;

/* ---- opening ---------------------------------------------------------------------------------------------------- */

const char *const esk_python_functions[] = {
#define X(result, name, parameters) #name,
    PYTHON_FUNCTIONS(X)
#undef X
    NULL,
};
const char *const esk_python_helpers[] = {
#define X(name) #name,
    PYTHON_HELPERS(X)
#undef X
    NULL,
};
const char *const esk_python_kinds[] = {
#define X(name) #name,
    PYTHON_KINDS(X)
#undef X
    NULL,
};

/* Called by Python with the addresses of the functions and the helpers that these tables name. The helpers live for
 * ever. */
void esk_python_open(Context *context, void *const *functions, void *const *objects) {
    memcpy(&py, functions, sizeof py);
    memcpy(&helpers, objects, sizeof helpers);
    context->python = &py;
}

static void open_python(Context *context, const char *who) {
    if (!context->host)
        esk_fail(context, ERROR_SYSTEM, who,
                 "there is no Python in a program that was built ahead of time; run it with `eshkol run`", 0);
    esk_ask_host(context, HOST_PYTHON, NULL, 0);
}

static inline void need_python(Context *context, const char *who) {
    if (!context->heap->first->python) open_python(context, who);
}

/* ---- procedures that call Python -------------------------------------------------------------------------------- */

static const Procedure python_row = {.name = "python", .signature = "(python argument ...)", .min = 0, .max = -1};
extern const Primitive esk_python_primitives[];

bool python_is_procedure(Value value) {
    return value.tag == TAG_PROCEDURE && ((Closure *)esk_pointer(value))->procedure == &python_row;
}

Value python_procedure(Context *context, Value handle) {
    PythonHandle *owner = esk_pointer(handle);
    if (owner->procedure.tag == TAG_PROCEDURE) return owner->procedure;
    const Closure *primitive = esk_pointer(esk_primitive_procedure(context, &esk_python_primitives[0]));
    Closure *closure = esk_allocate(context, sizeof *closure + sizeof(Value), TAG_PROCEDURE);
    closure->head.count = 1;
    closure->entry = primitive->entry;
    closure->procedure = &python_row;
    closure->captured[0] = handle;
    esk_store(context, &owner->procedure, esk_object(closure));
    return owner->procedure;
}

/* ---- errors ----------------------------------------------------------------------------------------------------- */

/* What helper `failure` says of an exception: FAILURE_ERROR, the kind of the error and its message; FAILURE_RAISE, the
 * address of a root with the condition that it stands for; FAILURE_EXIT, an exit code. */
enum { FAILURE_ERROR, FAILURE_RAISE, FAILURE_EXIT };

typedef struct {
    PyObject *exception, *text;
    int how;
    long long number;
    Value who, result;
} Failure;

static PyObject *take_exception(void) {
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    py.PyErr_Fetch(&type, &value, &traceback);
    py.PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback && value) py.PyException_SetTraceback(value, traceback);
    if (type) py.Py_DecRef(type);
    if (traceback) py.Py_DecRef(traceback);
    return value;
}

static Value build_error(Context *context, void *data) {
    Failure *failure = data;
    Size size;
    const char *text = py.PyUnicode_AsUTF8AndSize(failure->text, &size);
    if (!text) {
        py.PyErr_Clear();
        text = "an exception of Python";
        size = (Size)strlen(text);
    }
    Value message = esk_string_utf8(context, text, size);
    Value cause = python_handle(context, failure->exception, TAG_FOREIGN, 0);
    Value error = esk_make_error(context, (enum ErrorKind)failure->number, failure->who, message, ESK_NULL);
    esk_set_cause(context, error, cause);
    return error;
}

/* The exception that is set, as a condition or exit code in failure->result, and how it goes on. */
static void understand(Context *context, Failure *failure) {
    if (!py.PyErr_Occurred()) python_complain("Python says that this failed, and not why");
    failure->exception = take_exception();
    failure->how = FAILURE_ERROR;
    failure->number = ERROR_PYTHON;
    failure->text = NULL;
    PyObject *args = py.PyTuple_New(2), *answer = NULL;
    if (args) {
        py.Py_IncRef(failure->exception);
        py.PyTuple_SetItem(args, 0, py.PyLong_FromVoidPtr(context));
        py.PyTuple_SetItem(args, 1, failure->exception);
        answer = py.PyObject_CallObject(helpers.failure, args);
        py.Py_DecRef(args);
    }
    if (answer) {
        failure->how = (int)py.PyLong_AsLongLong(py.PyTuple_GetItem(answer, 0));
        failure->number = py.PyLong_AsLongLong(py.PyTuple_GetItem(answer, 1));
        failure->text = py.PyTuple_GetItem(answer, 2);
        py.Py_IncRef(failure->text);
        py.Py_DecRef(answer);
    }
    if (py.PyErr_Occurred()) py.PyErr_Clear();
    if (!failure->text) {
        failure->text = helpers.none;
        py.Py_IncRef(failure->text);
    }
    if (failure->how == FAILURE_RAISE) failure->result = *(Value *)(uintptr_t)failure->number;
    else if (failure->how == FAILURE_EXIT) failure->result = esk_fixnum(failure->number);
    else esk_protect(context, build_error, failure, &failure->result); /* without memory, that is the condition */
    py.Py_DecRef(failure->text);
    py.Py_DecRef(failure->exception);
}

PyObject *python_call_1(PyObject *function, PyObject *argument) {
    if (!argument) return NULL;
    PyObject *args = py.PyTuple_New(1);
    if (!args) {
        py.Py_DecRef(argument);
        return NULL;
    }
    py.PyTuple_SetItem(args, 0, argument);
    PyObject *result = py.PyObject_CallObject(function, args);
    py.Py_DecRef(args);
    return result;
}

void python_complain(const char *message) {
    PyObject *text = py.PyUnicode_DecodeUTF8(message, (Size)strlen(message), "replace");
    PyObject *none = python_call_1(helpers.complain, text);
    if (none) py.Py_DecRef(none);
}

/* ---- calls of Python -------------------------------------------------------------------------------------------- */

/* A call: the function, its arguments (an array, or a list where `args` is null), and who it is for. */
typedef struct {
    PyObject *function;
    const Value *args;
    Value list;
    int64_t count;
    Value handle; /* of the function, where arguments may be differentiated; else 0 */
    bool differentiated; /* whether there was such an argument */
} Call;

/* The name of a keyword argument: what Python writes with underscores, Scheme writes with hyphens. */
static PyObject *keyword_name(Value keyword) {
    const Symbol *symbol = esk_pointer(keyword);
    char few[128], *name = symbol->head.count <= sizeof few ? few : malloc(symbol->head.count);
    if (!name) return python_complain("there is no memory for the name of a keyword"), NULL;
    for (uint32_t i = 0; i < symbol->head.count; i++) name[i] = symbol->name[i] == '-' ? '_' : symbol->name[i];
    PyObject *made = py.PyUnicode_DecodeUTF8(name, symbol->head.count, "replace");
    if (name != few) free(name);
    return made;
}

static Value argument(Call *call, int64_t index) {
    if (call->args) return call->args[index];
    Value found = esk_car(call->list);
    call->list = esk_cdr(call->list);
    return found;
}

/* Python code that Scheme called is over. If somebody interrupts it from outside (esk_python_interrupt) and it has not
 * met that, as a function that never looks up, it is raised here: it must not come into other code. */
static PyObject *settled(Context *context, PyObject *result) {
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    context->pressed = 0;
    if (!result) py.PyErr_Fetch(&type, &value, &traceback);
    py.Py_IncRef(helpers.none);
    PyObject *none = python_call_1(helpers.noticed, helpers.none);
    if (none) {
        py.Py_DecRef(none);
        if (!result) py.PyErr_Restore(type, value, traceback);
        return result;
    }
    if (result) py.Py_DecRef(result);
    if (type) py.Py_DecRef(type);
    if (value) py.Py_DecRef(value);
    if (traceback) py.Py_DecRef(traceback);
    return NULL;
}

void (*esk_python_watcher)(void *, bool);

static PyObject *make_call(Context *context, Call *call, int64_t keywords) {
    PyObject *tuple = py.PyTuple_New(call->count - 2 * keywords), *names = keywords ? py.PyDict_New() : NULL;
    bool good = tuple && (!keywords || names);
    for (int64_t i = 0, at = 0; good && i < call->count; i++) {
        Value given = argument(call, i);
        if (given.tag != TAG_KEYWORD) {
            PyObject *made = python_from_value(context, given);
            good = made && py.PyTuple_SetItem(tuple, at++, made) == 0;
            continue;
        }
        PyObject *name = keyword_name(given), *made = name ? python_from_value(context, argument(call, ++i)) : NULL;
        good = made && py.PyDict_SetItem(names, name, made) == 0;
        if (name) py.Py_DecRef(name);
        if (made) py.Py_DecRef(made);
    }
    call->differentiated = !good && python_met_differentiated;
    PyObject *result = NULL;
    if (good) {
        void (*const watcher)(void *, bool) = esk_python_watcher;
        if (watcher) watcher(call->function, false);
        context->inside = INSIDE_PYTHON;
        result = py.PyObject_Call(call->function, tuple, names);
        if (watcher) watcher(call->function, true);
        if (context->pressed) result = settled(context, result);
        context->inside = INSIDE_HOST;
    }
    if (tuple) py.Py_DecRef(tuple);
    if (names) py.Py_DecRef(names);
    return result;
}

enum { MOST_SEEN = 32, VALUELESS = -1, TWICE = -2 };

/* How many keyword arguments there are: a keyword is followed by its value. A keyword as the last argument is
 * VALUELESS, one that stands twice TWICE: Python would keep the last of them without a word. */
static int64_t count_keywords(const Call *call) {
    int64_t found = 0;
    Value seen[MOST_SEEN];
    Value list = call->list;
    for (int64_t i = 0; i < call->count; i++) {
        Value given = call->args ? call->args[i] : esk_car(list);
        if (!call->args) list = esk_cdr(list);
        if (given.tag != TAG_KEYWORD) continue;
        if (++i == call->count) return VALUELESS;
        if (!call->args) list = esk_cdr(list);
        for (int64_t k = 0; k < found && k < MOST_SEEN; k++)
            if (esk_eq(seen[k], given)) return TWICE;
        if (found < MOST_SEEN) seen[found] = given;
        found++;
    }
    return found;
}

/* A call on its way to Python and back. */
typedef struct {
    Call *call;
    int64_t keywords;
    Failure failure;
    Value result;
    bool condition, done, differentiated;
} Crossing;

/* On the first thread: it is the only one that Python knows of. Raises nothing. */
static void cross(Context *context, void *data) {
    Crossing *crossing = data;
    Call *call = crossing->call;
    char *left = esk_leave(context, __builtin_frame_address(0));
    int lock = py.PyGILState_Ensure();
    uint64_t before = context->inside; /* none where a conversion asks, as for the hash of a tensor */
    context->inside = INSIDE_HOST;
    python_drain();
    python_met_differentiated = false;
    PyObject *found = python_results(call->function, make_call(context, call, crossing->keywords));
    crossing->differentiated = call->differentiated && is_python(call->handle) &&
                               context->heap->first->differentiated_call.tag == TAG_PROCEDURE;
    if (crossing->differentiated) py.PyErr_Clear();
    if (found) {
        crossing->done = python_to_value(context, found, &crossing->result, &crossing->condition);
        py.Py_DecRef(found);
    }
    if (!crossing->done && !crossing->condition && !crossing->differentiated) understand(context, &crossing->failure);
    context->inside = before;
    py.PyGILState_Release(lock);
    esk_leave(context, left);
}

static Value call_python(Context *context, Call *call, Value who) {
    Crossing crossing = {.call = call, .failure = {.who = who}, .result = ESK_UNSPECIFIED};
    Value whole = call->list;
    esk_need_stack(context, 64 << 10);
    int64_t keywords = count_keywords(call);
    if (keywords < 0) esk_fail(context, ERROR_TYPE, who.tag == TAG_SYMBOL ? ((Symbol *)esk_pointer(who))->name : NULL,
                               keywords == TWICE ? "a keyword is given twice" : "a keyword needs a value behind it", 0);
    crossing.keywords = keywords;
    Held held;
    esk_let_go(context, &held);
    esk_on_first(context, cross, &crossing);
    esk_hold_again(context, &held);
    if (crossing.done) return crossing.result;
    if (crossing.differentiated) { /* such a number lies within a list or a vector */
        Value list = call->args ? esk_list(context, call->args, call->count) : whole;
        Value given[] = {call->handle, list, who};
        return esk_call(context, context->heap->first->differentiated_call, given, 3);
    }
    if (crossing.condition) esk_raise(context, crossing.result);
    if (crossing.failure.how == FAILURE_EXIT) esk_exit_to_host(context, crossing.failure.result);
    esk_raise(context, crossing.failure.result);
}

typedef struct {
    const char *name;
    int64_t size;
    Crossing crossing;
} Search;

static void search(Context *context, void *data) {
    Search *search = data;
    Crossing *crossing = &search->crossing;
    int lock = py.PyGILState_Ensure();
    uint64_t before = context->inside;
    context->inside = INSIDE_HOST;
    PyObject *found = python_call_1(helpers.find, py.PyUnicode_DecodeUTF8(search->name, search->size, "replace"));
    if (found) {
        crossing->done = python_to_value(context, found, &crossing->result, &crossing->condition);
        py.Py_DecRef(found);
    }
    if (!crossing->done && !crossing->condition) understand(context, &crossing->failure);
    context->inside = before;
    py.PyGILState_Release(lock);
}

static Value find_function(Context *context, const char *name, int64_t size, Value who) {
    Search wanted = {name, size, {.failure = {.who = who}, .result = ESK_FALSE}};
    const Crossing *found = &wanted.crossing;
    esk_on_first(context, search, &wanted);
    if (!found->done) esk_raise(context, found->condition ? found->result : found->failure.result);
    return python_is_procedure(found->result) ? ((Closure *)esk_pointer(found->result))->captured[0] : found->result;
}

/* The function of a Python procedure; one of the library finds it now, if it has not been called yet. */
static Value handle_of(Context *context, Closure *closure) {
    Value function = closure->captured[0];
    if (function.tag == TAG_SYMBOL) {
        const Symbol *symbol = esk_pointer(function);
        function = find_function(context, symbol->name, symbol->head.count, closure->captured[1]);
        esk_store(context, &closure->captured[0], function);
    }
    return function;
}

static bool has_differentiated(Value list) {
    for (; list.tag == TAG_PAIR; list = esk_cdr(list)) {
        uint64_t tag = esk_car(list).tag;
        if (tag == TAG_DUAL || tag == TAG_AD_NODE) return true;
    }
    return false;
}

static Value python_apply(Context *context, const Value *args, int64_t count) {
    Value function = args[0], list = args[1], who = count > 2 ? args[2] : ESK_FALSE;
    need_python(context, "%python-apply");
    if (python_is_procedure(function)) function = handle_of(context, esk_pointer(function));
    if (!is_python(function)) esk_wrong_type(context, "%python-apply", 1, function, "a Python object");
    Call call = {.function = python_object(function), .list = list, .handle = function};
    for (; list.tag == TAG_PAIR; list = esk_cdr(list))
        if (++call.count > EXTRA_ARGUMENTS)
            esk_fail(context, ERROR_RANGE, "%python-apply", "too many arguments, more than", 1,
                     esk_fixnum(EXTRA_ARGUMENTS));
    if (list.tag != TAG_NULL) esk_wrong_type(context, "%python-apply", 2, args[1], "a list");
    if (context->heap->first->differentiated_call.tag == TAG_PROCEDURE && has_differentiated(args[1])) {
        Value given[] = {function, args[1], who};
        return esk_call(context, context->heap->first->differentiated_call, given, 3);
    }
    return call_python(context, &call, who);
}

/* A procedure of the library: it bears a name, and its function is looked up when it is first called. */
static Value tensor_procedure(Context *context, Value function, Value name) {
    if (!esk_is(function, TAG_SYMBOL)) esk_wrong_type(context, "%tensor-procedure", 1, function, "a symbol");
    if (!esk_is(name, TAG_SYMBOL)) esk_wrong_type(context, "%tensor-procedure", 2, name, "a symbol");
    const Closure *primitive = esk_pointer(esk_primitive_procedure(context, &esk_python_primitives[0]));
    Closure *closure = esk_allocate(context, sizeof *closure + 2 * sizeof(Value), TAG_PROCEDURE);
    closure->head.count = 2;
    closure->entry = primitive->entry;
    closure->procedure = &python_row;
    closure->captured[0] = function;
    closure->captured[1] = name;
    return esk_object(closure);
}

Value esk_library_name(Value procedure) {
    const Closure *closure = esk_pointer(procedure);
    return python_is_procedure(procedure) && closure->head.count > 1 ? closure->captured[1] : ESK_FALSE;
}

PyObject *python_of_procedure(Value procedure) {
    Value function = ((Closure *)esk_pointer(procedure))->captured[0];
    if (function.tag != TAG_SYMBOL) {
        py.Py_IncRef(python_object(function));
        return python_object(function);
    }
    const Symbol *symbol = esk_pointer(function);
    return python_call_1(helpers.find, py.PyUnicode_DecodeUTF8(symbol->name, symbol->head.count, "replace"));
}

/* The entry of Python procedures (codegen/entries.ll). */
Value esk_python_called(Context *context, Closure *closure, const Value *args, int64_t count) {
    if (closure->procedure != &python_row)
        esk_fail(context, ERROR_TYPE, "%python-procedure", "this is what Python procedures are made of", 0);
    Value who = closure->head.count > 1 ? closure->captured[1] : ESK_FALSE;
    need_python(context, who.tag == TAG_SYMBOL ? ((Symbol *)esk_pointer(who))->name : NULL);
    Value function = handle_of(context, closure);
    for (int64_t i = 0; i < count; i++)
        if ((args[i].tag | 1) == TAG_AD_NODE && context->heap->first->differentiated_call.tag == TAG_PROCEDURE) {
            Value given[] = {function, esk_list(context, args, count), who};
            return esk_call(context, context->heap->first->differentiated_call, given, 3);
        }
    Call call = {.function = python_object(function), .args = args, .count = count, .handle = function};
    return call_python(context, &call, who);
}

static Value python_function(Context *context, Value name) {
    if (!esk_is(name, TAG_SYMBOL)) esk_wrong_type(context, "%python-function", 1, name, "a symbol");
    need_python(context, "%python-function");
    const Symbol *symbol = esk_pointer(name);
    return find_function(context, symbol->name, symbol->head.count, ESK_FALSE);
}

/* Functions by the addresses of their names, which are constants of the runtime; found once in a process. */
enum { CACHED = 1024 };
static struct { const char *name; PyObject *function; } cached[CACHED];

typedef struct { const char *name; Value handle; unsigned place; } Found;

/* With Python's lock, which also guards the table. */
static void keep_function(Context *context, void *data) {
    (void)context;
    Found *found = data;
    unsigned i = found->place;
    int lock = py.PyGILState_Ensure();
    while (cached[i].name && cached[i].name != found->name) i = (i + 1) % CACHED;
    if (!cached[i].name) {
        py.Py_IncRef(python_object(found->handle));
        cached[i].function = python_object(found->handle);
        __atomic_store_n(&cached[i].name, found->name, __ATOMIC_RELEASE);
    }
    py.PyGILState_Release(lock);
    found->place = i;
}

static PyObject *cached_function(Context *context, const char *name) {
    need_python(context, name);
    unsigned i = (unsigned)((uint64_t)(uintptr_t)name * 0x9E3779B97F4A7C15u >> 54);
    while (cached[i].name && cached[i].name != name) i = (i + 1) % CACHED;
    if (!cached[i].name) {
        Value handle = find_function(context, name, (int64_t)strlen(name), ESK_FALSE);
        if (!is_python(handle)) esk_fail(context, ERROR_SYSTEM, name, "what Python has registered is no function", 0);
        Found found = {name, handle, i};
        esk_on_first(context, keep_function, &found);
        i = found.place;
    }
    return cached[i].function;
}

Value esk_tensor_call(Context *context, const char *name, const Value *args, int64_t count) {
    Call call = {.function = cached_function(context, name), .args = args, .count = count};
    return call_python(context, &call, ESK_FALSE);
}

Value esk_tensor_apply(Context *context, const char *name, const char *who, const Value *args, int64_t count) {
    Call call = {.function = cached_function(context, name), .args = args, .count = count};
    Value symbol = esk_symbol(context, who, (int64_t)strlen(who));
    bool differentiated = false;
    for (int64_t i = 0; i < count; i++) differentiated |= args[i].tag == TAG_DUAL || args[i].tag == TAG_AD_NODE;
    if (!differentiated) return call_python(context, &call, symbol);
    if (context->heap->first->differentiated_call.tag != TAG_PROCEDURE)
        esk_fail(context, ERROR_TYPE, who,
                 "derivatives of numbers and tensors together are told by (eshkol tensors), which is not there", 0);
    Value function = find_function(context, name, (int64_t)strlen(name), symbol);
    Value given[] = {function, esk_list(context, args, count), symbol};
    return esk_call(context, context->heap->first->differentiated_call, given, 3);
}

Value esk_python_text(Context *context, Value value, bool display) {
    Value args[] = {value, esk_boolean(display)};
    need_python(context, NULL);
    Call call = {.function = helpers.text, .args = args, .count = 2};
    return call_python(context, &call, ESK_FALSE);
}

/* ---- primitives ------------------------------------------------------------------------------------------------- */

static Value is_python_object(Context *context, Value value) {
    (void)context;
    return esk_boolean((value.tag == TAG_FOREIGN && is_python(value)) || python_is_procedure(value));
}

static Value is_tensor(Context *context, Value value) {
    (void)context;
    return esk_boolean(value.tag == TAG_TENSOR);
}

static Value set_differentiated_call(Context *context, Value procedure) {
    if (!esk_is(procedure, TAG_PROCEDURE))
        esk_wrong_type(context, "%set-differentiated-call!", 1, procedure, "a procedure");
    context->heap->first->differentiated_call = procedure;
    return ESK_UNSPECIFIED;
}

/* Executables have this, where Python computes otherwise (../executable/models.c). */
static Value run_built(Context *context, Value number, Value arrays) {
    (void)number, (void)arrays;
    esk_fail(context, ERROR_SYSTEM, "%run-built", "only what `eshkol build` makes has such procedures", 0);
}

const Primitive esk_python_primitives[] = {
    {"%python-procedure", "(%python-procedure argument ...)", 0, -1, CALL_ENTRY, NULL,
     "What procedures that call Python are made of."}, /* the first row: see python_procedure */
    ESK_PRIMITIVE_N("%python-apply", "(%python-apply function arguments [who])", 2, 3, python_apply,
                    "Calls a Python object with the elements of a list; keywords in it are followed by their values. "
                    "Errors name who, a symbol."),
    ESK_PRIMITIVE_1("%python-function", "(%python-function name)", python_function,
                    "The Python function that is registered under the name, a symbol."),
    ESK_PRIMITIVE_2("%tensor-procedure", "(%tensor-procedure function name)", tensor_procedure,
                    "A procedure of that name that calls the Python function that is registered under the first; both "
                    "are symbols."),
    ESK_PRIMITIVE_1("%python-object?", "(%python-object? object)", is_python_object,
                    "Whether the object is one of Python's, a procedure among them, and no tensor."),
    ESK_PRIMITIVE_1("tensor?", "(tensor? object)", is_tensor, "Whether the object is a tensor."),
    ESK_PRIMITIVE_1("%set-differentiated-call!", "(%set-differentiated-call! procedure)", set_differentiated_call,
                    "The procedure that is called with a Python object, a list of arguments of which some are "
                    "differentiated numbers, and who or #f."),
    ESK_PRIMITIVE_2("%run-built", "(%run-built number arrays)", run_built,
                    "Calls what was compiled when the program was built: vectors of numbers to vectors of numbers."),
    {0},
};
