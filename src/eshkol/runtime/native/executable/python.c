/* What stands for the bridge to Python (../scheme/python.c) in programs that were built ahead of time: procedures that
 * would call it are there, bear their names, and say what is missing when they are called. */
#include "program.h"
#include "python.h"

static _Noreturn void no_python(Context *context, const char *who) {
    esk_fail(context, ERROR_SYSTEM, who,
             "this needs Python, and the program was built without it; run it with `eshkol run`", 0);
}

static const Procedure python_row = {.name = "python", .signature = "(python argument ...)", .min = 0, .max = -1};
extern const void *const esk_python_entry; /* of what calls esk_python_called */

bool python_is_procedure(Value value) {
    return value.tag == TAG_PROCEDURE && ((Closure *)esk_pointer(value))->procedure == &python_row;
}

/* A procedure that would call the function that is registered under the first name. */
static Value procedure(Context *context, Value function, Value name) {
    Closure *closure = esk_allocate(context, sizeof *closure + 2 * sizeof(Value), TAG_PROCEDURE);
    closure->head.count = 2;
    closure->entry = esk_python_entry;
    closure->procedure = &python_row;
    closure->captured[0] = function;
    closure->captured[1] = name;
    return esk_object(closure);
}

static Value tensor_procedure(Context *context, Value function, Value name) {
    if (!esk_is(function, TAG_SYMBOL)) esk_wrong_type(context, "%tensor-procedure", 1, function, "a symbol");
    if (!esk_is(name, TAG_SYMBOL)) esk_wrong_type(context, "%tensor-procedure", 2, name, "a symbol");
    return procedure(context, function, name);
}

Value esk_library_name(Value procedure) {
    const Closure *closure = esk_pointer(procedure);
    return python_is_procedure(procedure) && closure->head.count > 1 ? closure->captured[1] : ESK_FALSE;
}

Value esk_python_called(Context *context, Closure *closure, const Value *args, int64_t count) {
    (void)args, (void)count;
    Value who = closure->procedure == &python_row ? closure->captured[1] : ESK_FALSE;
    no_python(context, who.tag == TAG_SYMBOL ? ((Symbol *)esk_pointer(who))->name : NULL);
}

Value esk_tensor_call(Context *context, const char *name, const Value *args, int64_t count) {
    (void)args, (void)count;
    no_python(context, name);
}

Value esk_tensor_apply(Context *context, const char *name, const char *who, const Value *args, int64_t count) {
    (void)name, (void)args, (void)count;
    no_python(context, who);
}

Value esk_python_text(Context *context, Value value, bool display) {
    (void)value, (void)display;
    no_python(context, NULL);
}

/* What clocks ask for is done: no tensor waits to be computed where there are none. */
static bool is_done(Value function) {
    const Value *captured = ((Closure *)esk_pointer(function))->captured;
    return !strcmp(((Symbol *)esk_pointer(captured[0]))->name, "pending:settle");
}

static Value python_apply(Context *context, const Value *args, int64_t count) {
    Value who = count > 2 ? args[2] : ESK_FALSE;
    if (!python_is_procedure(args[0])) esk_wrong_type(context, "%python-apply", 1, args[0], "a Python object");
    if (is_done(args[0])) return ESK_UNSPECIFIED;
    if (who.tag != TAG_SYMBOL) who = esk_library_name(args[0]);
    no_python(context, ((Symbol *)esk_pointer(who))->name);
}

static Value python_function(Context *context, Value name) {
    if (!esk_is(name, TAG_SYMBOL)) esk_wrong_type(context, "%python-function", 1, name, "a symbol");
    return procedure(context, name, name);
}

static Value is_python_object(Context *context, Value value) {
    (void)context;
    return esk_boolean(python_is_procedure(value));
}

static Value is_tensor(Context *context, Value value) {
    (void)context, (void)value;
    return ESK_FALSE;
}

static Value set_differentiated_call(Context *context, Value procedure) {
    (void)context, (void)procedure;
    return ESK_UNSPECIFIED;
}

/* The same rows, in the same order. */
const Primitive esk_python_primitives[] = {
    {"%python-procedure", "(%python-procedure argument ...)", 0, -1, CALL_ENTRY, NULL, ""},
    ESK_PRIMITIVE_N("%python-apply", "(%python-apply function arguments [who])", 2, 3, python_apply, ""),
    ESK_PRIMITIVE_1("%python-function", "(%python-function name)", python_function, ""),
    ESK_PRIMITIVE_2("%tensor-procedure", "(%tensor-procedure function name)", tensor_procedure, ""),
    ESK_PRIMITIVE_1("%python-object?", "(%python-object? object)", is_python_object, ""),
    ESK_PRIMITIVE_1("tensor?", "(tensor? object)", is_tensor, ""),
    ESK_PRIMITIVE_1("%set-differentiated-call!", "(%set-differentiated-call! procedure)", set_differentiated_call, ""),
    ESK_PRIMITIVE_2("%run-built", "(%run-built number arrays)", esk_run_built, ""),
    {0},
};
