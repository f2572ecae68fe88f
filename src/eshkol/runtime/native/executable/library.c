/* Scheme procedures called from C: the library's context, and values on their way in and out.
 *
 * In: calls from any thread. Out: what procedures give, or an error as text. The context begins, and the program's top
 * level runs, at the first call; calls come one after the other, each on the stack of the thread that makes it. */
#define _POSIX_C_SOURCE 200809L
#include "library.h"
#include "heap.h"
#include "numbers.h"
#include "ports.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Context *context;
static bool has_begun;
static char *beginning_failed; /* why there are no procedures */

static _Thread_local char *error_text, *result_text;
static _Thread_local uint64_t thread; /* its number, from 1; 0 before its first call */
static uint64_t threads, last_thread; /* how many there were; the one that the context knows the stack of */

/* ---- errors ----------------------------------------------------------------------------------------------------- */

static void set_error(const char *text) {
    free(error_text);
    error_text = text ? strdup(text) : NULL;
}

const char *esk_library_error(void) { return error_text; }

/* What a condition says, in memory that the caller frees. */
static char *told(Value condition) {
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file) return NULL;
    esk_report(context, condition, file);
    fclose(file);
    if (text && size && text[size - 1] == '\n') text[size - 1] = 0;
    return text;
}

static void take_condition(Value condition) {
    char *text = told(condition);
    set_error(text ? text : "an error, and no memory to tell of it");
    free(text);
}

/* ---- entering --------------------------------------------------------------------------------------------------- */

static void begin(void) {
    has_begun = true;
    context = esk_begin_program(0);
    if (!context) {
        beginning_failed = strdup("there is no memory for the heap");
        return;
    }
    Value result = ESK_UNSPECIFIED;
    uint64_t how = esk_run_program(context, &result);
    if (how == 1) beginning_failed = told(result);
    else if (how) beginning_failed = strdup("the program called exit before its procedures were called");
}

/* With the lock held: the library is there, and runs on this thread's stack. */
static bool enter(void) {
    set_error(NULL);
    if (!thread) thread = ++threads;
    if (!has_begun) {
        last_thread = thread;
        begin();
    }
    if (beginning_failed) {
        set_error(beginning_failed);
        return false;
    }
    if (last_thread != thread) esk_use_this_thread(context);
    last_thread = thread;
    return true;
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

static Value value_of(const Argument *argument) {
    switch (argument->kind) {
    case KIND_REAL: return esk_flonum(argument->of.real);
    case KIND_INTEGER: return esk_fixnum(argument->of.integer);
    case KIND_BOOLEAN: return esk_boolean(argument->of.integer != 0);
    case KIND_STRING:
        if (!argument->of.string) return ESK_FALSE;
        return esk_string_utf8(context, argument->of.string, (int64_t)strlen(argument->of.string));
    case KIND_VALUE: return argument->of.value ? *argument->of.value : ESK_FALSE;
    default: return ESK_UNSPECIFIED;
    }
}

/* The rest runs in an entry of its own, so that what fails is an error. */
typedef struct {
    const Export *what; /* or null: a value is given */
    const Argument *arguments;
    Value given;
    int count;
    enum Kind kind; /* of the result */
    Argument *result;
} Call;
static Call *call; /* the one under way */

static _Noreturn void wrong_result(const char *expected, Value got) {
    const char *name = call->what ? call->what->name : NULL;
    esk_fail(context, ERROR_TYPE, name, expected, 1, got);
}

static char *copy_utf8(Value string) {
    const Bytevector *bytes = esk_pointer(esk_utf8_of(context, string));
    free(result_text);
    result_text = malloc((size_t)bytes->length + 1);
    if (!result_text) esk_fail(context, ERROR_MEMORY, NULL, "there is no memory for a text", 0);
    memcpy(result_text, bytes->bytes, (size_t)bytes->length);
    result_text[bytes->length] = 0;
    return result_text;
}

static void give(Value value) {
    Argument *result = call->result;
    result->kind = call->kind;
    switch (call->kind) {
    case KIND_REAL:
        if (value.tag == TAG_BIGNUM || value.tag == TAG_RATIONAL) value = number_inexact(context, value);
        if (value.tag == TAG_FIXNUM) value = esk_flonum((double)esk_integer(value));
        if (value.tag != TAG_FLONUM) wrong_result("its value should be a real number, but is", value);
        result->of.real = esk_double(value);
        return;
    case KIND_INTEGER:
        if (value.tag != TAG_FIXNUM) wrong_result("its value should be an integer of 64 bits, but is", value);
        result->of.integer = esk_integer(value);
        return;
    case KIND_BOOLEAN: result->of.integer = !esk_is_false(value); return;
    case KIND_STRING:
        if (value.tag != TAG_STRING) wrong_result("its value should be a string, but is", value);
        result->of.string = copy_utf8(value);
        return;
    case KIND_VALUE: {
        Value *place = esk_root(context);
        *place = value;
        result->of.value = place;
        return;
    }
    default: return;
    }
}

static Value perform(Context *unused, const Value *args, int64_t count) {
    (void)unused, (void)args, (void)count;
    Value value = call->given;
    if (call->what) {
        Value procedure = esk_program.values[call->what->index];
        Vector *given = esk_pointer(esk_make_vector(context, call->count, ESK_FALSE));
        for (int i = 0; i < call->count; i++) given->items[i] = value_of(&call->arguments[i]);
        value = esk_call(context, procedure, given->items, call->count);
    } else if (call->count) value = value_of(call->arguments);
    give(value);
    return ESK_UNSPECIFIED;
}

static const Primitive perform_row = {"%perform", "(%perform)", 0, 0, CALL_N, (const void *)perform, ""};

static bool performed(Call *what) {
    pthread_mutex_lock(&lock);
    bool good = enter();
    if (good) {
        Value outcome = ESK_UNSPECIFIED;
        call = what;
        context->inside = INSIDE_SCHEME;
        uint64_t how = esk_enter_primitive(context, &perform_row, NULL, 0, &outcome);
        if (how == 1) take_condition(outcome);
        else if (how) set_error("the procedure called exit");
        esk_flush_standard_ports(context);
        good = !how;
    }
    pthread_mutex_unlock(&lock);
    return good;
}

bool esk_library_call(const Export *what, const Argument *arguments, int count, enum Kind kind, Argument *result) {
    Call made = {.what = what, .arguments = arguments, .count = count, .kind = kind, .result = result};
    return what && performed(&made);
}

const Export *esk_library_find(const char *name) {
    for (const Export *row = esk_exports; row->name; row++)
        if (!strcmp(row->name, name)) return row;
    set_error("there is no such procedure in this library");
    return NULL;
}

Value *esk_library_value(const Argument *argument) {
    Argument result = {.kind = KIND_VALUE};
    Call made = {.arguments = argument, .given = ESK_FALSE, .count = 1, .kind = KIND_VALUE, .result = &result};
    return performed(&made) ? (Value *)(uintptr_t)result.of.value : NULL;
}

bool esk_library_as(const Value *value, enum Kind kind, Argument *result) {
    Call made = {.given = value ? *value : ESK_FALSE, .kind = kind, .result = result};
    return performed(&made);
}

static Value written(Context *unused, const Value *args, int64_t count) {
    (void)unused, (void)count;
    copy_utf8(esk_write_text(context, args[0], 1));
    return ESK_UNSPECIFIED;
}

static const Primitive written_row = {"%written", "(%written value)", 1, 1, CALL_N, (const void *)written, ""};

const char *esk_library_text(const Value *value) {
    pthread_mutex_lock(&lock);
    bool good = value && enter();
    if (good) {
        Value outcome = ESK_UNSPECIFIED;
        good = !esk_enter_primitive(context, &written_row, value, 1, &outcome);
        if (!good) take_condition(outcome);
    }
    pthread_mutex_unlock(&lock);
    return good ? result_text : NULL;
}

void esk_library_release(Value *value) {
    pthread_mutex_lock(&lock);
    if (value && context) esk_unroot(context, value);
    pthread_mutex_unlock(&lock);
}
