/* Scheme's side of the host: primitives that the expander answers, and objects that it knows by a number.
 *
 * Comes in: calls of the primitives in hostcalls.h. Goes out: context->host is asked, and its answer returned or its
 * error raised. Syntax objects and environments are handles here; when the collector finds that nobody refers to one,
 * its number is put on a list that the host fetches with esk_released. */
#include "hostcalls.h"
#include "threads.h"

#include <pthread.h>
#include <stdlib.h>

const char *const esk_host_operations[] = {
#define X(name, scheme, signature, min, max, doc) scheme,
    ESK_HOST_OPERATIONS(X)
#undef X
    NULL,
};

/* ---- handles ---------------------------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    uint64_t *numbers;
    int64_t count, room;
} released = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0};

static void release(Object *object) {
    uint64_t number = ((Handle *)object)->number;
    pthread_mutex_lock(&released.lock);
    if (released.count == released.room) {
        int64_t room = released.room ? 2 * released.room : 256;
        uint64_t *numbers = realloc(released.numbers, (size_t)room * sizeof *numbers);
        if (numbers) {
            released.numbers = numbers;
            released.room = room;
        }
    }
    if (released.count < released.room) { /* else the host keeps one object for ever, which does no harm */
        released.numbers[released.count++] = number;
    }
    pthread_mutex_unlock(&released.lock);
}

Value esk_handle(Context *context, int tag, uint64_t number) {
    Handle *handle = esk_allocate(context, sizeof *handle, tag);
    handle->number = number;
    esk_finalize(context, &handle->head, release);
    return esk_object(handle);
}

uint64_t esk_handle_number(Value value) { return ((Handle *)esk_pointer(value))->number; }

int64_t esk_released(uint64_t *numbers, int64_t room) {
    pthread_mutex_lock(&released.lock);
    int64_t count = released.count < room ? released.count : room;
    released.count -= count;
    if (count > 0) {
        memcpy(numbers, released.numbers + released.count, (size_t)count * sizeof *numbers);
    }
    pthread_mutex_unlock(&released.lock);
    return count;
}

/* ---- asking the host -------------------------------------------------------------------------------------------- */

/* The text of a message in UTF-8 with a zero behind it, in memory that the collector sees to. */
static const char *message_bytes(Context *context, Value message) {
    String *string = esk_pointer(message);
    int64_t length = string->length < 4096 ? string->length : 4096, size = 0;
    Value buffer = esk_make_bytevector(context, 4 * length + 1, 0);
    uint8_t *bytes = ((Bytevector *)esk_pointer(buffer))->bytes;
    for (int64_t i = 0; i < length; i++) {
        uint32_t code = string->chars[i];
        if (code < 0x80) {
            bytes[size++] = (uint8_t)code;
        } else if (code < 0x800) {
            bytes[size++] = (uint8_t)(0xC0 | code >> 6);
            bytes[size++] = (uint8_t)(0x80 | (code & 63));
        } else if (code < 0x10000) {
            bytes[size++] = (uint8_t)(0xE0 | code >> 12);
            bytes[size++] = (uint8_t)(0x80 | (code >> 6 & 63));
            bytes[size++] = (uint8_t)(0x80 | (code & 63));
        } else {
            bytes[size++] = (uint8_t)(0xF0 | code >> 18);
            bytes[size++] = (uint8_t)(0x80 | (code >> 12 & 63));
            bytes[size++] = (uint8_t)(0x80 | (code >> 6 & 63));
            bytes[size++] = (uint8_t)(0x80 | (code & 63));
        }
    }
    return (const char *)bytes;
}

/* The procedure that a person has called, for errors; null where it is a macro, which the message names. */
static const char *caller(enum HostOperation operation) {
    switch (operation) {
    case HOST_COMPILE: return "eval";
    case HOST_EXPAND: return "expand";
    case HOST_ENVIRONMENT: return "environment";
    case HOST_LOAD_OPEN: case HOST_LOAD_NEXT: return "load";
    case HOST_MATCH: case HOST_TEMPLATE: case HOST_NAME: case HOST_NO_MATCH: return NULL;
    default: return esk_host_operations[operation];
    }
}

/* The host knows of the first thread alone. What another one has asked for may have been done meanwhile. */
void esk_put_question(Context *first, Question *question) {
    first->host(first, question->operation, question->args, question->count, &question->result, &question->failed);
}

static void ask(Context *first, void *data) { esk_put_question(first, data); }

Value esk_answer(Context *context, const Question *question) {
    if (question->failed == HOST_RAISES) {
        esk_raise(context, question->result);
    }
    if (question->failed == HOST_EXITS) {
        esk_exit_to_host(context, question->result);
    }
    if (question->failed) {
        enum ErrorKind kind = (enum ErrorKind)(question->failed - 1);
        bool told = esk_is(question->result, TAG_STRING);
        const char *message = told ? message_bytes(context, question->result) : "the host failed";
        esk_fail(context, kind, caller(question->operation), message, 0);
    }
    return question->result;
}

Value esk_ask_host(Context *context, enum HostOperation operation, const Value *args, int64_t count) {
    const char *who = caller(operation);
    if (!context->host) {
        esk_fail(context, ERROR_SYSTEM, who, "this program was built without the compiler, which is needed here", 0);
    }
    Question question = {operation, args, count, ESK_UNSPECIFIED, 0};
    Held held;
    esk_let_go(context, &held);
    esk_on_first(context, ask, &question);
    esk_hold_again(context, &held);
    return esk_answer(context, &question);
}

typedef struct {
    Closure *closure;
    const void *entry; /* with which it was called */
    Question question;
} Unready;

/* On the first thread; another one may have asked for the same. */
static void make_ready(Context *first, void *data) {
    Unready *unready = data;
    if (__atomic_load_n(&unready->closure->entry, __ATOMIC_ACQUIRE) == unready->entry)
        esk_put_question(first, &unready->question);
}

static void make_ready_elsewhere(Context *context, Closure *closure) {
    Value procedure = esk_object(closure);
    const void *entry = __atomic_load_n(&closure->entry, __ATOMIC_ACQUIRE);
    Unready unready = {closure, entry, {HOST_MAKE_READY, &procedure, 1, ESK_UNSPECIFIED, 0}};
    esk_on_first(context, make_ready, &unready);
    esk_answer(context, &unready.question);
}

/* The arguments from the fifth on stay where they are: the host calls no Scheme code for this. */
void esk_make_ready(Context *context, Closure *closure, int64_t count) {
    Value procedure = esk_object(closure);
    context->extra_count = count > DIRECT_ARGUMENTS ? count - DIRECT_ARGUMENTS : 0;
    if (esk_is_first(context)) esk_ask_host(context, HOST_MAKE_READY, &procedure, 1);
    else make_ready_elsewhere(context, closure);
    context->extra_count = 0;
}

Value esk_syntax_datum(Context *context, Value syntax) { return esk_ask_host(context, HOST_SYNTAX_DATUM, &syntax, 1); }

#define X(name, scheme, signature, min, max, doc)                                  \
    static Value ask_##name(Context *context, const Value *args, int64_t count) { \
        return esk_ask_host(context, HOST_##name, args, count);                            \
    }
ESK_HOST_OPERATIONS(X)
#undef X

const Primitive esk_hostcalls_primitives[] = {
#define X(name, scheme, signature, min, max, doc) ESK_PRIMITIVE_N(scheme, signature, min, max, ask_##name, doc),
    ESK_HOST_OPERATIONS(X)
#undef X
    {0},
};
