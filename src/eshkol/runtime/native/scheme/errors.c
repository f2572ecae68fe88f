/* Errors: how the runtime makes conditions and raises them, and what a program may ask of them.
 *
 * An error object is a record of context->error_type. It is raised through context->raise, the library's `raise`, which
 * runs the handlers; before the library is loaded, or when that returns, the innermost entry ends with the condition.
 */
#include "differential.h"
#include "heap.h"

#include <stdarg.h>
#include <stdio.h>

enum { MOST_IRRITANTS = 8, MOST_ADDRESSES = 128 };

static Value name_symbol(Context *context, const char *name) {
    return esk_symbol(context, name, (int64_t)strlen(name));
}

static Value kind_symbol(Context *context, enum ErrorKind kind) {
    return name_symbol(context, esk_error_symbols[kind]);
}

/* ---- making them ------------------------------------------------------------------------------------------------ */

/* The return addresses of the frames of this entry, innermost first, and of those outside it, where the host was called
 * from Scheme. Every frame begins with the address of its caller's and the return address; what does not look like that
 * ends the walk. */
__attribute__((noinline, no_sanitize_address)) static int walk_from(const Entry *entry, const uint64_t *frame,
                                                                           uint64_t *addresses) {
    int count = 0;
    for (; entry && count < MOST_ADDRESSES; entry = entry->outer) {
        while (entry->protects) entry = entry->outer;
        const char *end = entry->base;
        const Segment *shared = entry->captured;
        while (count < MOST_ADDRESSES && (const char *)(frame + 2) <= end && !((uintptr_t)frame & 7)) {
            addresses[count++] = frame[1];
            if (shared && frame[1] == (uint64_t)(uintptr_t)esk_underflow) {
                addresses[count - 1] = (uint64_t)(uintptr_t)shared->back;
                shared = shared->parent;
            }
            const uint64_t *outer = (const uint64_t *)(uintptr_t)frame[0];
            if (outer <= frame) break;
            frame = outer;
        }
        if (!entry->outer || !entry->outer->left) break;
        frame = (const uint64_t *)(void *)entry->outer->left;
    }
    return count;
}

__attribute__((noinline)) static int walk_frames(Context *context, uint64_t *addresses) {
    return context->entry ? walk_from(context->entry, __builtin_frame_address(0), addresses) : 0;
}

int esk_frames(Context *context, uint64_t *addresses, int room) {
    return room < MOST_ADDRESSES ? 0 : walk_frames(context, addresses);
}

/* The same for the host while Scheme waits for it: from the frame where Scheme was left. */
int64_t esk_left_trace(Context *context, uint64_t *addresses, int64_t room) {
    const Entry *entry = context->entry;
    while (entry && entry->protects) entry = entry->outer;
    if (!entry || !entry->left || room < MOST_ADDRESSES) return 0;
    return walk_from(entry, (const uint64_t *)(void *)entry->left, addresses);
}

/* Whether a chain of frames leads to the frame that an entry began with. What a register or word on the stack is while
 * code runs that keeps no frame pointer may be anything. */
__attribute__((no_sanitize_address)) static bool leads_to(const char *base, const uint64_t *frame, const char *low) {
    for (int count = 0; count < MOST_ADDRESSES; count++) {
        if ((const char *)frame < low || (const char *)(frame + 2) > base || (uintptr_t)frame & 7) return false;
        const uint64_t *outer = (const uint64_t *)(uintptr_t)frame[0];
        if ((const char *)outer == base) return true;
        if (outer <= frame) return false;
        frame = outer;
    }
    return true; /* so deep that it is looked at no further */
}

enum { WORDS_LOOKED_AT = 1024 };

/* The frames of a thread that a signal has met at any instruction: with this frame pointer and stack pointer. It takes
 * no memory and no locks. */
__attribute__((no_sanitize_address)) int esk_interrupted_frames(const Context *context, uint64_t pointer, uint64_t low,
                                                                uint64_t *addresses, int room, uint32_t *kind) {
    const Entry *entry = context->entry;
    *kind = ESK_IN_HOST;
    if (!entry || room < MOST_ADDRESSES) return 0;
    const Entry *outside = entry;
    while (outside->protects && outside->outer) outside = outside->outer;
    if (outside->left) {
        if (context->inside == INSIDE_PYTHON) *kind = ESK_IN_PYTHON;
        return walk_from(outside, (const uint64_t *)(void *)outside->left, addresses);
    }
    *kind = context->heap->collecting ? ESK_IN_COLLECTOR : ESK_IN_SCHEME;
    const uint64_t *frame = (const uint64_t *)pointer, *word = (const uint64_t *)((low + 7) & ~(uint64_t)7);
    for (int i = 0; !leads_to(entry->base, frame, (const char *)low); i++, frame = word++)
        if (i == WORDS_LOOKED_AT || (const char *)word > entry->base) {
            *kind = ESK_IN_HOST;
            return 0;
        }
    return walk_from(entry, frame, addresses);
}

int esk_waiting_frames(uint64_t *addresses, int room) {
    return esk_current ? (int)esk_left_trace(esk_current, addresses, room) : 0;
}

Value esk_trace(Context *context, int most) {
    uint64_t addresses[MOST_ADDRESSES];
    int count = walk_frames(context, addresses);
    if (count > most) count = most;
    Value trace = esk_make_bytevector(context, count * 8, 0);
    memcpy(((Bytevector *)esk_pointer(trace))->bytes, addresses, (size_t)count * 8);
    return trace;
}

/* Where this thread last met a condition that nobody handled and that, being no error object, has no trace. */
static _Thread_local struct {
    int count;
    uint64_t addresses[MOST_ADDRESSES];
} uncaught;

void esk_note_uncaught(Context *context, Value condition) {
    uncaught.count = esk_is_error(context, condition) ? 0 : walk_frames(context, uncaught.addresses);
}

const uint64_t *esk_uncaught_addresses(int64_t *count) {
    *count = uncaught.count;
    return uncaught.addresses;
}

int64_t esk_uncaught_trace(uint64_t *addresses, int64_t room) {
    int64_t count = uncaught.count < room ? uncaught.count : room;
    memcpy(addresses, uncaught.addresses, (size_t)count * 8);
    return count;
}

static Value make_error(Context *context, Value kind, Value who, Value message, Value irritants) {
    Value trace = esk_trace(context, MOST_ADDRESSES);
    Record *record = esk_allocate(context, sizeof *record + FIELD_COUNT * sizeof(Value), TAG_RECORD);
    record->head.count = FIELD_COUNT;
    record->type = context->error_type;
    record->fields[FIELD_KIND] = kind;
    record->fields[FIELD_MESSAGE] = message;
    record->fields[FIELD_IRRITANTS] = irritants;
    record->fields[FIELD_WHO] = who;
    record->fields[FIELD_TRACE] = trace;
    record->fields[FIELD_CAUSE] = ESK_FALSE;
    return esk_object(record);
}

Value esk_make_error(Context *context, enum ErrorKind kind, Value who, Value message, Value irritants) {
    return make_error(context, kind_symbol(context, kind), who, message, irritants);
}

void esk_set_cause(Context *context, Value error, Value exception) {
    esk_store(context, &((Record *)esk_pointer(error))->fields[FIELD_CAUSE], exception);
}

Value esk_cause(Value error) { return ((Record *)esk_pointer(error))->fields[FIELD_CAUSE]; }

/* ---- raising them ----------------------------------------------------------------------------------------------- */

_Noreturn void esk_raise(Context *context, Value condition) {
    if (context->held_count) esk_let_go_of_all(context);
    if (context->fast_generation) esk_end_fast(context, context->entry ? context->entry->fast_generation : 0);
    if (esk_is(context->raise, TAG_PROCEDURE)) esk_call(context, context->raise, &condition, 1);
    esk_uncaught(context, condition);
}

static _Noreturn void fail(Context *context, enum ErrorKind kind, const char *who, const char *message,
                           Value irritants) {
    Value name = who ? name_symbol(context, who) : ESK_FALSE;
    Value text = esk_string_utf8(context, message, (int64_t)strlen(message));
    esk_raise(context, esk_make_error(context, kind, name, text, irritants));
}

_Noreturn void esk_fail(Context *context, enum ErrorKind kind, const char *who, const char *message, int count, ...) {
    Value irritants[MOST_IRRITANTS];
    va_list more;
    va_start(more, count);
    if (count > MOST_IRRITANTS) count = MOST_IRRITANTS;
    for (int i = 0; i < count; i++) irritants[i] = va_arg(more, Value);
    va_end(more);
    fail(context, kind, who, message, esk_list(context, irritants, count));
}

_Noreturn void esk_wrong_type(Context *context, const char *who, int position, Value got, const char *expected) {
    char message[640], place[32] = "";
    if (position > 0) snprintf(place, sizeof place, " as argument %d", position);
    static const char hint[] = " a number that is being differentiated; (stop-gradient x) takes the value alone:";
    const char *remedy = is_differentiated(got) ? hint : "";
    snprintf(message, sizeof message, "expected %.400s%s, but got%s", expected, place, remedy);
    esk_fail(context, ERROR_TYPE, who, message, 1, got);
}

_Noreturn void esk_bad_index(Context *context, const char *who, int position, Value index, int64_t length) {
    char message[128];
    if (length > 0)
        snprintf(message, sizeof message, "expected an index from 0 to %lld as argument %d, but got",
                 (long long)(length - 1), position);
    else snprintf(message, sizeof message, "there is nothing that argument %d could be an index of, but got", position);
    esk_fail(context, ERROR_RANGE, who, message, 1, index);
}

static const char *plural(int64_t count) { return count == 1 ? "" : "s"; }

_Noreturn void esk_wrong_arity(Context *context, Closure *closure, int64_t count) {
    const Procedure *procedure = closure->procedure;
    const char *signature = procedure->signature ? procedure->signature : procedure->name;
    if (!signature) signature = "this procedure";
    char wanted[64], message[512];
    if (procedure->max == procedure->min)
        snprintf(wanted, sizeof wanted, "%d argument%s", procedure->min, plural(procedure->min));
    else if (procedure->max < 0)
        snprintf(wanted, sizeof wanted, "at least %d argument%s", procedure->min, plural(procedure->min));
    else snprintf(wanted, sizeof wanted, "%d to %d arguments", procedure->min, procedure->max);
    if (count >= procedure->min && (procedure->max < 0 || count <= procedure->max)) /* between clauses of case-lambda */
        snprintf(wanted, sizeof wanted, "another number of arguments");
    snprintf(message, sizeof message, "%.380s takes %s, but was given %lld", signature, wanted, (long long)count);
    esk_fail(context, ERROR_ARITY, procedure->name, message, 0);
}

/* A procedure of a program was compiled for what its calls give it, which are all known, and here is another one. */
_Noreturn void esk_unforeseen(Context *context, Closure *closure) {
    esk_fail(context, ERROR_TYPE, closure->procedure->name,
             "this procedure was compiled for the calls in its program, and none of them gives it such arguments", 0);
}

_Noreturn void esk_not_procedure(Context *context, Value value) {
    esk_fail(context, ERROR_TYPE, NULL, "this is not a procedure and cannot be called:", 1, value);
}

_Noreturn void esk_unbound(Context *context, const char *name) {
    esk_fail(context, ERROR_UNBOUND, NULL, "this variable has no definition:", 1, name_symbol(context, name));
}

_Noreturn void esk_used_early(Context *context, const char *name) {
    Value symbol = name_symbol(context, name);
    esk_fail(context, ERROR_UNBOUND, NULL, "this variable is used before it has a value:", 1, symbol);
}

_Noreturn void esk_wrong_values(Context *context, int64_t wanted, Value got) {
    int64_t count = esk_is(got, TAG_VALUES) ? ((Values *)esk_pointer(got))->head.count : 1;
    char message[128];
    snprintf(message, sizeof message, "expected %lld value%s, but got %lld%s", (long long)wanted, plural(wanted),
             (long long)count, count ? ":" : "");
    const Value *values = esk_is(got, TAG_VALUES) ? ((Values *)esk_pointer(got))->items : &got;
    fail(context, ERROR_ARITY, NULL, message, esk_list(context, values, count));
}

/* ---- what programs ask ------------------------------------------------------------------------------------------ */

bool esk_is_error(Context *context, Value value) {
    return esk_is(value, TAG_RECORD) && ((Record *)esk_pointer(value))->type == context->error_type;
}

static Value field(Context *context, const char *who, Value error, int index) {
    if (!esk_is_error(context, error)) esk_wrong_type(context, who, 1, error, "an error object");
    return ((Record *)esk_pointer(error))->fields[index];
}

static bool has_kind(Context *context, Value value, enum ErrorKind kind) {
    if (!esk_is_error(context, value)) return false;
    return esk_eq(((Record *)esk_pointer(value))->fields[FIELD_KIND], kind_symbol(context, kind));
}

/* (error message irritant ...), and (error who message irritant ...) where the first is a symbol. */
static Value error(Context *context, const Value *args, int64_t count) {
    Value who = ESK_FALSE;
    if (count > 1 && esk_is(args[0], TAG_SYMBOL) && esk_is(args[1], TAG_STRING)) {
        who = *args++;
        count--;
    }
    Value irritants = esk_list(context, args + 1, count - 1);
    esk_raise(context, esk_make_error(context, ERROR_USER, who, args[0], irritants));
}

static Value make_error_object(Context *context, const Value *args, int64_t count) {
    (void)count;
    if (!esk_is(args[0], TAG_SYMBOL)) esk_wrong_type(context, "%make-error", 1, args[0], "a symbol");
    return make_error(context, args[0], args[1], args[2], args[3]);
}

static Value is_error(Context *context, Value value) { return esk_boolean(esk_is_error(context, value)); }
static Value is_file_error(Context *context, Value value) { return esk_boolean(has_kind(context, value, ERROR_FILE)); }
static Value is_read_error(Context *context, Value value) { return esk_boolean(has_kind(context, value, ERROR_READ)); }
static Value error_kind(Context *context, Value error) {
    return field(context, "error-object-kind", error, FIELD_KIND);
}
static Value error_who(Context *context, Value error) { return field(context, "error-object-who", error, FIELD_WHO); }
static Value error_trace(Context *context, Value error) { return field(context, "%error-trace", error, FIELD_TRACE); }
static Value error_cause(Context *context, Value error) { return field(context, "%error-cause", error, FIELD_CAUSE); }
static Value error_message(Context *context, Value error) {
    return field(context, "error-object-message", error, FIELD_MESSAGE);
}
static Value error_irritants(Context *context, Value error) {
    return field(context, "error-object-irritants", error, FIELD_IRRITANTS);
}

const Primitive esk_errors_primitives[] = {
    ESK_PRIMITIVE_N("error", "(error message irritant ...)", 1, -1, error,
                    "Raises an error object with this message and these values. A symbol before the message names who "
                    "complains."),
    ESK_PRIMITIVE_N("%make-error", "(%make-error kind who message irritants)", 4, 4, make_error_object,
                    "An error object of this kind (a symbol), not raised."),
    ESK_PRIMITIVE_1("error-object?", "(error-object? object)", is_error, "Whether the object is an error object."),
    ESK_PRIMITIVE_1("error-object-message", "(error-object-message error)", error_message, "Its message."),
    ESK_PRIMITIVE_1("error-object-irritants", "(error-object-irritants error)", error_irritants,
                    "The values that go with its message, as a list."),
    ESK_PRIMITIVE_1("error-object-kind", "(error-object-kind error)", error_kind,
                    "What kind of error it is, a symbol: error, wrong-type, range, file-error and others."),
    ESK_PRIMITIVE_1("error-object-who", "(error-object-who error)", error_who,
                    "The name of the procedure that complains, or #f."),
    ESK_PRIMITIVE_1("%error-trace", "(%error-trace error)", error_trace,
                    "The return addresses of the frames, innermost first, eight bytes each."),
    ESK_PRIMITIVE_1("%error-cause", "(%error-cause error)", error_cause,
                    "The Python exception that the error object stands for, or #f."),
    ESK_PRIMITIVE_1("file-error?", "(file-error? object)", is_file_error,
                    "Whether the object is an error object about a file that cannot be opened or used."),
    ESK_PRIMITIVE_1("read-error?", "(read-error? object)", is_read_error,
                    "Whether the object is an error object about text that is no datum."),
    {0},
};
