/* Contexts, entries from outside, calls from C, the limits of the stack, and arguments on their way.
 *
 * The host makes a context for a thread, says where that thread's stack ends, and enters procedures. An entry is a
 * barrier: errors that nobody handles and `exit` end it by a jump to it, continuations never leave or enter it (but for
 * those of a form at a prompt, which the next form may go on with: continuation.c).
 * Compiled code compares its frame with context->stack_limit and comes to esk_poll when it is below: the stack is used
 * up, or esk_interrupt has raised the limit above everything.
 */
#define _GNU_SOURCE
#include "heap.h"
#include "fast.h"
#include "threads.h"

#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { STACK_FOR_C = 64 << 10, STACK_FOR_HANDLERS = 256 << 10 };
enum { ENDED_NORMALLY, ENDED_BY_CONDITION, ENDED_BY_EXIT };

void (*esk_invoke)(Context *, Closure *, int64_t count, const Value *args, Value *result);

/* ---- the stack -------------------------------------------------------------------------------------------------- */

/* Whoever interrupts sets the flag and then the limit; here the flag is looked at last, so that none gets lost. */
static void set_limit(Context *context) {
    char *limit = context->stack_end;
    if (limit && !context->overflowing) limit += STACK_FOR_HANDLERS;
    __atomic_store_n(&context->stack_limit, limit, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&context->interrupted, __ATOMIC_SEQ_CST) || esk_is_wanted(context))
        __atomic_store_n(&context->stack_limit, (char *)UINTPTR_MAX, __ATOMIC_SEQ_CST);
}

static void rearm(Context *context) {
    context->overflowing = 0;
    set_limit(context);
}

void esk_set_stack(Context *context, char *lowest) {
    context->stack_end = lowest + STACK_FOR_C;
    rearm(context);
}

void esk_interrupt(Context *context) {
    __atomic_store_n(&context->interrupted, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&context->stack_limit, (char *)UINTPTR_MAX, __ATOMIC_SEQ_CST);
}

/* Handlers run on the reserve; when they use that up too, the entry ends. */
static _Noreturn void overflow(Context *context) {
    if (context->overflowing) esk_uncaught(context, context->stack_error);
    context->overflowing = 1;
    set_limit(context);
    esk_fail(context, ERROR_STACK, NULL, "the stack is used up: recursion is too deep", 0);
}

static bool is_below_limit(Context *context, char *frame) {
    return context->stack_end && frame < context->stack_end + (context->overflowing ? 0 : STACK_FOR_HANDLERS);
}

__attribute__((noinline)) void esk_poll(Context *context) {
    if (is_below_limit(context, __builtin_frame_address(0))) overflow(context);
    if (context->heap->several) esk_attend(context);
    bool interrupted = __atomic_exchange_n(&context->interrupted, 0, __ATOMIC_SEQ_CST);
    set_limit(context);
    if (interrupted)
        esk_fail(context, ERROR_INTERRUPT, NULL, "interrupted", 0);
}

__attribute__((noinline)) void esk_need_stack(Context *context, int64_t bytes) {
    if (is_below_limit(context, (char *)__builtin_frame_address(0) - bytes)) overflow(context);
}

void esk_stack_restored(Context *context, char *low) {
    if (context->overflowing && low >= context->stack_end + STACK_FOR_HANDLERS) rearm(context);
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

/* The frames from `dead` on are left for ever: see esk_wipe. */
__attribute__((noinline)) static _Noreturn void jump(Entry *entry, int how, char *dead) {
    esk_wipe(dead, entry->base);
    _longjmp(entry->escape, how);
}

static _Noreturn void leave(Context *context, Value outcome, int how) {
    Entry *entry = context->entry;
    if (!entry) {
        fputs("eshkol: an error outside of any entry into Scheme\n", stderr);
        abort();
    }
    entry->outcome = outcome;
    bool wipe = context->failed;
    context->failed = false;
    jump(entry, how, wipe ? __builtin_frame_address(0) : entry->base);
}

_Noreturn void esk_uncaught(Context *context, Value condition) {
    if (context->entry) esk_note_uncaught(context, condition);
    leave(context, condition, ENDED_BY_CONDITION);
}
_Noreturn void esk_exit_to_host(Context *context, Value code) { leave(context, code, ENDED_BY_EXIT); }
_Noreturn void esk_end_task(Context *context, const char *why) {
    set_limit(context);
    context->handlers = ESK_NULL;
    esk_fail(context, ERROR_CONTROL, NULL, why, 0);
}

typedef Value Call0(Context *);
typedef Value Call1(Context *, Value);
typedef Value Call2(Context *, Value, Value);
typedef Value CallN(Context *, const Value *, int64_t);

static Value call_primitive(Context *context, const Primitive *row, const Value *args, int64_t count) {
    if (count < row->min || (row->max >= 0 && count > row->max)) {
        Procedure procedure = {.name = row->name, .signature = row->signature, .min = row->min, .max = row->max};
        Closure closure = {.procedure = &procedure};
        esk_wrong_arity(context, &closure, count);
    }
    switch (row->convention) {
    case CALL_0: return ((Call0 *)row->function)(context);
    case CALL_1: return ((Call1 *)row->function)(context, args[0]);
    case CALL_2: return ((Call2 *)row->function)(context, args[0], args[1]);
    case CALL_N: return ((CallN *)row->function)(context, args, count);
    default: return esk_call(context, esk_primitive_procedure(context, row), args, count);
    }
}

/* All frames of the entry lie below this one, which stays as it is until the entry ends. */
__attribute__((noinline)) static Value run(Context *context, Entry *entry, const Primitive *row, Value procedure) {
    entry->base = __builtin_frame_address(0);
    context->entry = entry;
    if (entry->form) {
        entry->place = (uint64_t)(uintptr_t)entry->base;
        esk_clear_stack(); /* what an earlier form held there it holds no more */
    }
    Value result = row ? call_primitive(context, row, entry->args, entry->count)
                       : esk_call(context, procedure, entry->args, entry->count);
    __asm__ volatile("" : : "r"(entry) : "memory"); /* no jump instead of the call */
    return result;
}

/* Keeps the registers of the host, which frames of an earlier entry may not know (continuation.c). */
__attribute__((noinline))
static Value run_apart(Context *context, Entry *entry, const Primitive *row, Value procedure) {
    __builtin_unwind_init();
    Value result = run(context, entry, row, procedure);
    __asm__ volatile("" : : : "memory"); /* no jump instead of the call */
    return result;
}

static uint64_t enter(Context *context, const Primitive *row, Value procedure, const Value *args, int64_t count,
                      Value *result, bool unwinds, bool form) {
    Entry entry = {
        .outer = context->entry, .place = ++context->entries << 1 | 1, .args = args, .count = count,
        .handlers = context->handlers, .winders = context->winders, .parameters = context->parameters,
        .outcome = procedure, /* alive while it runs */
        .fast_generation = context->fast_generation, .before = esk_current, .unwinds = unwinds, .form = form,
    };
    esk_current = context;
    context->handlers = ESK_NULL; /* those outside lie beyond frames of the host: it hands on what nobody handles */
    int how = _setjmp(entry.escape);
    if (how == ENDED_NORMALLY) entry.outcome = run_apart(context, &entry, row, procedure);
    *result = entry.outcome;
    context->entry = entry.outer;
    esk_current = entry.before;
    esk_end_fast(context, entry.fast_generation);
    context->handlers = entry.handlers;
    context->winders = entry.winders;
    context->parameters = entry.parameters;
    context->extra_count = 0;
    rearm(context);
    return (uint64_t)how;
}

enum { ROOM_OF_HOST = 1 << 18 /* bytes: so much deeper may the host's stack become from one form to another */ };

uint64_t esk_enter(Context *context, Value procedure, const Value *args, int64_t count, Value *result) {
    return enter(context, NULL, procedure, args, count, result, context->entry != NULL, false);
}

/* Forms begin in one place of a thread's stack, however deep the host's lies above it: continuations of one can then be
 * entered from the next. */
__attribute__((noinline)) static uint64_t enter_in_place(Context *context, Value procedure, Value *result) {
    static __thread char *place;
    char *here = __builtin_frame_address(0);
    if (!place) place = here - ROOM_OF_HOST;
    if (here > place && here - place <= 2 * ROOM_OF_HOST) {
        volatile char *room = alloca((size_t)(here - place));
        *room = 0;
        __asm__ volatile("" : : "r"(room) : "memory");
    }
    return enter(context, NULL, procedure, NULL, 0, result, false, true);
}

uint64_t esk_enter_form(Context *context, Value procedure, Value *result) {
    return context->entry ? esk_enter(context, procedure, NULL, 0, result) : enter_in_place(context, procedure, result);
}

uint64_t esk_enter_unwinding(Context *context, Value procedure, const Value *args, int64_t count, Value *result) {
    return enter(context, NULL, procedure, args, count, result, true, false);
}

char *esk_leave(Context *context, char *frame) {
    char *before = context->entry->left;
    context->entry->left = frame;
    return before;
}

/* What only allocates, or looks up whether somebody interrupts: a condition goes to no handler but comes out here. */
typedef struct { Value (*work)(Context *, void *); void *data; } Protected;

__attribute__((noinline)) static Value run_protected(Context *context, Entry *entry, const Protected *what) {
    entry->base = __builtin_frame_address(0);
    context->entry = entry;
    Value result = what->work(context, what->data);
    __asm__ volatile("" : : "r"(entry) : "memory");
    return result;
}

bool esk_protect(Context *context, Value (*work)(Context *, void *), void *data, Value *result) {
    Entry entry = {
        .outer = context->entry, .place = ++context->entries << 1 | 1, .handlers = context->handlers,
        .winders = context->winders,
        .parameters = context->parameters, .outcome = ESK_FALSE, .raise = context->raise, .before = esk_current,
        .fast_generation = context->fast_generation, .protects = context->entry != NULL,
    };
    Protected what = {work, data};
    esk_current = context;
    context->raise = ESK_NULL; /* kept alive by the entry */
    int how = _setjmp(entry.escape);
    *result = how == ENDED_NORMALLY ? run_protected(context, &entry, &what) : entry.outcome;
    context->raise = entry.raise;
    context->entry = entry.outer;
    esk_current = entry.before;
    esk_end_fast(context, entry.fast_generation);
    return how == ENDED_NORMALLY;
}

uint64_t esk_enter_primitive(Context *context, const Primitive *row, const Value *args, int64_t count, Value *result) {
    return enter(context, row, ESK_FALSE, args, count, result, context->entry != NULL, false);
}

Value esk_call(Context *context, Value procedure, const Value *args, int64_t count) {
    if (!esk_is(procedure, TAG_PROCEDURE)) esk_not_procedure(context, procedure);
    if (count > EXTRA_ARGUMENTS) esk_fail(context, ERROR_RANGE, NULL, "too many arguments", 1, esk_fixnum(count));
    if (!esk_invoke) {
        context->raise = ESK_NULL;
        esk_fail(context, ERROR_SYSTEM, NULL, "no compiled code is loaded that could call a procedure", 0);
    }
    if (is_below_limit(context, __builtin_frame_address(0))) overflow(context); /* handlers that fail and fail again */
    Value result;
    esk_invoke(context, esk_pointer(procedure), count, args, &result);
    return result;
}

/* ---- contexts --------------------------------------------------------------------------------------------------- */

static Value make_emergency(Context *context, enum ErrorKind kind, const char *message) {
    Value text = esk_string_utf8(context, message, (int64_t)strlen(message));
    return esk_make_error(context, kind, ESK_FALSE, text, ESK_NULL);
}

static RecordType *make_error_type(Context *context) {
    static const char *const names[] = {"kind", "message", "irritants", "who", "trace", "cause"};
    Value fields = esk_make_vector(context, FIELD_COUNT, ESK_FALSE);
    for (int i = 0; i < FIELD_COUNT; i++)
        esk_store(context, &((Vector *)esk_pointer(fields))->items[i],
                  esk_symbol(context, names[i], (int64_t)strlen(names[i])));
    Value name = esk_symbol(context, "error-object", 12);
    RecordType *type = esk_allocate(context, sizeof *type, TAG_RECORD_TYPE);
    type->name = name;
    type->fields = fields;
    return type;
}

static void use_heap(Context *context) {
    context->region = context->heap->base;
    context->region_bytes = context->heap->capacity * BLOCK_BYTES;
    context->cards = context->heap->cards - ((uintptr_t)context->region >> CARD_SHIFT);
    context->environment = context->started = ESK_FALSE;
    esk_drop_areas(context);
}

Context *esk_new_context(uint64_t heap_limit) {
    Context *context = calloc(1, sizeof *context);
    if (!context) return NULL;
    context->heap = esk_new_heap(heap_limit);
    context->extra = context->heap ? esk_map(EXTRA_ARGUMENTS * sizeof(Value)) : NULL;
    if (!context->extra) {
        if (context->heap) esk_free_heap(context);
        free(context);
        return NULL;
    }
    use_heap(context);
    esk_set_up_threads(context);
    context->differentiated_call = ESK_FALSE;
    context->error_type = make_error_type(context);
    context->memory_error = make_emergency(context, ERROR_MEMORY, "out of memory");
    context->stack_error = make_emergency(context, ERROR_STACK, "the stack is used up: recursion is too deep");
    return context;
}

void esk_free_context(Context *context) {
    if (!esk_end_threads(context)) return; /* a thread that hears of nothing goes on using it */
    if (context->heap->several) esk_forget_sharing(context->heap);
    esk_fast_free(context);
    esk_free_heap(context);
    munmap(context->extra, EXTRA_ARGUMENTS * sizeof(Value));
    free(context);
}

Context *esk_new_thread_context(Context *from) {
    Context *context = calloc(1, sizeof *context);
    if (!context) return NULL;
    context->extra = esk_map(EXTRA_ARGUMENTS * sizeof(Value));
    if (!context->extra) {
        free(context);
        return NULL;
    }
    context->heap = from->heap;
    use_heap(context);
    context->raise = from->raise;
    context->leave = from->leave;
    context->input = from->input;
    context->output = from->output;
    context->error = from->error;
    context->error_type = from->error_type;
    context->memory_error = from->memory_error;
    context->stack_error = from->stack_error;
    context->differentiated_call = ESK_FALSE; /* these are the first context's */
    context->host = from->host;
    context->inside = INSIDE_SCHEME;
    esk_add_context(from, context);
    return context;
}

void esk_free_thread_context(Context *context) {
    munmap(context->extra, EXTRA_ARGUMENTS * sizeof(Value));
    free(context);
}

/* ---- arguments -------------------------------------------------------------------------------------------------- */

Value esk_rest(Context *context, int64_t count, int64_t from, const Value direct[DIRECT_ARGUMENTS]) {
    context->extra_count = count > DIRECT_ARGUMENTS ? count - DIRECT_ARGUMENTS : 0;
    Value list = ESK_NULL;
    while (count-- > from) {
        const Value *argument = count < DIRECT_ARGUMENTS ? &direct[count] : &context->extra[count - DIRECT_ARGUMENTS];
        list = esk_cons(context, *argument, list);
    }
    context->extra_count = 0;
    return list;
}

int64_t esk_spread(Context *context, const Value *args, int64_t count, Value direct[DIRECT_ARGUMENTS]) {
    int64_t at = count - 1;
    Value first = args[at], rest = first;
    if (at > DIRECT_ARGUMENTS) /* the arguments may themselves lie in extra */
        memmove(context->extra, args + DIRECT_ARGUMENTS, (size_t)(at - DIRECT_ARGUMENTS) * sizeof(Value));
    for (int64_t i = 0; i < at && i < DIRECT_ARGUMENTS; i++) direct[i] = args[i];
    for (; esk_is(rest, TAG_PAIR); rest = esk_cdr(rest), at++) {
        if (at == EXTRA_ARGUMENTS)
            esk_fail(context, ERROR_RANGE, "apply", "too many arguments, more than", 1, esk_fixnum(at));
        if (at < DIRECT_ARGUMENTS) direct[at] = esk_car(rest);
        else context->extra[at - DIRECT_ARGUMENTS] = esk_car(rest);
    }
    if (!esk_is(rest, TAG_NULL)) esk_wrong_type(context, "apply", (int)count + 1, first, "a list");
    return at;
}

/* ---- primitives ------------------------------------------------------------------------------------------------- */

static Value handlers(Context *context) { return context->handlers; }
static Value winders(Context *context) { return context->winders; }
static Value parameters(Context *context) { return context->parameters; }
static Value entry_winders(Context *context) {
    const Entry *entry = context->entry;
    return entry && entry->unwinds ? entry->winders : context->winders;
}
static Value set_handlers(Context *context, Value list) { context->handlers = list; return ESK_UNSPECIFIED; }
static Value set_winders(Context *context, Value list) { context->winders = list; return ESK_UNSPECIFIED; }
static Value set_parameters(Context *context, Value list) { context->parameters = list; return ESK_UNSPECIFIED; }
static Value set_raise(Context *context, Value procedure) {
    if (!esk_is(procedure, TAG_PROCEDURE)) esk_wrong_type(context, "%set-raise!", 1, procedure, "a procedure");
    context->raise = procedure;
    return ESK_UNSPECIFIED;
}
static Value set_leave(Context *context, Value procedure) {
    if (!esk_is(procedure, TAG_PROCEDURE)) esk_wrong_type(context, "%set-leave!", 1, procedure, "a procedure");
    context->leave = procedure;
    return ESK_UNSPECIFIED;
}
static Value uncaught(Context *context, Value condition) { esk_uncaught(context, condition); }
static Value exit_to_host(Context *context, Value code) { esk_exit_to_host(context, code); }

const Primitive esk_control_primitives[] = {
    ESK_PRIMITIVE_0("%handlers", "(%handlers)", handlers, "The exception handlers, innermost first."),
    ESK_PRIMITIVE_1("%set-handlers!", "(%set-handlers! list)", set_handlers, "Installs this list of handlers."),
    ESK_PRIMITIVE_0("%winders", "(%winders)", winders, "The pairs of dynamic-wind that are active, innermost first."),
    ESK_PRIMITIVE_0("%entry-winders", "(%entry-winders)", entry_winders,
                    "Those of them that are left in force when a condition ends the innermost entry."),
    ESK_PRIMITIVE_1("%set-winders!", "(%set-winders! list)", set_winders, "Installs this list of winders."),
    ESK_PRIMITIVE_0("%parameters", "(%parameters)", parameters, "The values of parameterize, innermost first."),
    ESK_PRIMITIVE_1("%set-parameters!", "(%set-parameters! list)", set_parameters, "Installs this list of parameters."),
    ESK_PRIMITIVE_1("%set-raise!", "(%set-raise! procedure)", set_raise,
                    "The procedure that the runtime calls with each error object that it raises."),
    ESK_PRIMITIVE_1("%set-leave!", "(%set-leave! procedure)", set_leave,
                    "The procedure that is called with a continuation and the list of its values, where one cannot go "
                    "on with it at once."),
    ESK_PRIMITIVE_1("%uncaught", "(%uncaught condition)", uncaught,
                    "Ends the innermost entry with a condition that nobody has handled."),
    ESK_PRIMITIVE_1("%exit-to-host", "(%exit-to-host code)", exit_to_host,
                    "Ends the innermost entry with an exit code."),
    {0},
};
