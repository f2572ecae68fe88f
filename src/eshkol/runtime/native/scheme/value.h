/* The contract of the Scheme runtime: values, objects, the context of a thread, and what the parts of the runtime offer
 * one another. Compiled code, the C runtime and Python agree on this file; Python and the code generator read the
 * numbers they need from `esk_layout` (layout.c), so that each stands here alone.
 *
 * A value is 16 bytes: a tag and 64 bits. Integers of 64 bits, doubles, characters, booleans and the empty list are
 * whole in it; all else is a pointer to an object on the heap. Objects never move. The collector finds roots on the
 * stack and in registers by looking at every word (interior pointers count), so C code may keep values in local
 * variables without more ado; what it keeps anywhere else must be reached from a root of the context.
 */
#ifndef ESHKOL_SCHEME_VALUE_H
#define ESHKOL_SCHEME_VALUE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- values ---------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t tag;
    uint64_t bits;
} Value;

/* X(name, number, is a pointer, what a person calls it). Numbers 0 to 13 are those of the language's first design. */
#define ESK_TAGS(X)                                     \
    X(NULL, 0, 0, "empty list")                         \
    X(FIXNUM, 1, 0, "integer")                          \
    X(FLONUM, 2, 0, "real number")                      \
    X(PAIR, 3, 1, "pair")                               \
    X(DUAL, 4, 1, "dual number")                        \
    X(AD_NODE, 5, 1, "tape node")                       \
    X(TENSOR, 6, 1, "tensor")                           \
    X(SOURCE, 7, 1, "procedure source")                 \
    X(STRING, 8, 1, "string")                           \
    X(CHAR, 9, 0, "character")                          \
    X(VECTOR, 10, 1, "vector")                          \
    X(SYMBOL, 11, 1, "symbol")                          \
    X(PROCEDURE, 12, 1, "procedure")                    \
    X(BOOLEAN, 13, 0, "boolean")                        \
    X(SPECIAL, 14, 0, "special value")                  \
    X(BIGNUM, 15, 1, "integer")                         \
    X(RATIONAL, 16, 1, "rational number")               \
    X(COMPLEX, 17, 1, "complex number")                 \
    X(BYTEVECTOR, 18, 1, "bytevector")                  \
    X(RECORD, 19, 1, "record")                          \
    X(RECORD_TYPE, 20, 1, "record type")                \
    X(BOX, 21, 1, "box")                                \
    X(VALUES, 22, 1, "multiple values")                 \
    X(TABLE, 23, 1, "hash table")                       \
    X(PORT, 24, 1, "port")                              \
    X(PROMISE, 25, 1, "promise")                        \
    X(CONTINUATION, 26, 1, "continuation")              \
    X(ENVIRONMENT, 27, 1, "environment")                \
    X(SYNTAX, 28, 1, "syntax object")                   \
    X(KEYWORD, 29, 1, "keyword")                        \
    X(FOREIGN, 30, 1, "foreign object")                 \
    X(IDENTITY, 31, 1, "object")

enum {
#define X(name, number, pointer, word) TAG_##name = number,
    ESK_TAGS(X)
#undef X
    TAG_COUNT = 32
};

#define X(name, number, pointer, word) | ((uint32_t)(pointer) << (number))
#define ESK_POINTER_MASK (0u ESK_TAGS(X))
enum { POINTER_TAGS = (int)ESK_POINTER_MASK };
#undef X

enum { SPECIAL_UNSPECIFIED = 0, SPECIAL_EOF = 1, SPECIAL_DEFAULT = 2, SPECIAL_UNDEFINED = 3 };

static inline Value esk_make(uint64_t tag, uint64_t bits) { return (Value){tag, bits}; }
static inline Value esk_fixnum(int64_t n) { return esk_make(TAG_FIXNUM, (uint64_t)n); }
static inline Value esk_flonum(double x) {
    Value v = {TAG_FLONUM, 0};
    memcpy(&v.bits, &x, 8);
    return v;
}
static inline double esk_double(Value v) {
    double x;
    memcpy(&x, &v.bits, 8);
    return x;
}
static inline int64_t esk_integer(Value v) { return (int64_t)v.bits; }
static inline Value esk_char(uint32_t code) { return esk_make(TAG_CHAR, code); }
static inline Value esk_boolean(bool b) { return esk_make(TAG_BOOLEAN, b); }
static inline Value esk_special(int which) { return esk_make(TAG_SPECIAL, (uint64_t)which); }
#define ESK_NULL esk_make(TAG_NULL, 0)
#define ESK_FALSE esk_make(TAG_BOOLEAN, 0)
#define ESK_TRUE esk_make(TAG_BOOLEAN, 1)
#define ESK_UNSPECIFIED esk_special(SPECIAL_UNSPECIFIED)
#define ESK_EOF esk_special(SPECIAL_EOF)
#define ESK_UNDEFINED esk_special(SPECIAL_UNDEFINED) /* a variable that has no value yet */
static inline bool esk_is(Value v, uint64_t tag) { return v.tag == tag; }
static inline bool esk_is_false(Value v) { return v.tag == TAG_BOOLEAN && v.bits == 0; }
static inline bool esk_is_pointer(Value v) { return ((uint32_t)POINTER_TAGS >> v.tag) & 1; }
static inline bool esk_eq(Value a, Value b) { return a.tag == b.tag && a.bits == b.bits; }

/* ---- objects --------------------------------------------------------------------------------------------------- */

/* The first eight bytes of every object. A pair keeps the tags of its two halves in `a` and `b`. */
typedef struct Object {
    uint8_t type; /* the tag of values that point here */
    uint8_t a, b;
    uint8_t flags;
    uint32_t count; /* of values or limbs that follow, where the type says so */
} Object;

enum {
    FLAG_LITERAL = 1,   /* a constant of a program: not to be changed */
    FLAG_NEGATIVE = 2,  /* of a bignum */
    FLAG_UNINTERNED = 4 /* of a symbol that is equal to no other */
};

typedef struct { Object head; uint64_t car, cdr; } Pair;                              /* tags in head.a and head.b */
typedef struct { Object head; int64_t length; uint32_t chars[]; } String;            /* Unicode scalar values */
typedef struct { Object head; int64_t length; Value items[]; } Vector;
typedef struct { Object head; int64_t length; uint8_t bytes[]; } Bytevector;

/* A region (arenas.c), of the type of identities: what is free of its memory, and what it handed out. */
enum { REGION_MARK = 'R' }; /* in head.a: an object that make-object gives has none */

typedef struct {
    Object head;
    Value name;
    struct RegionChunk *chunks;
    char *next, *end;     /* what is free of the chunk at hand; nothing when the region has ended */
    int64_t bytes, count; /* that were handed out */
    int64_t ended;
} RegionMemory;

/* head.count bytes of UTF-8, and a zero; keywords too */
typedef struct { Object head; uint64_t hash; char name[]; } Symbol;
/* head.count limbs, least first, no zero on top; never a fixnum's value */
typedef struct { Object head; uint64_t limbs[]; } Bignum;
/* rational: numerator, denominator; complex: real, imaginary */
typedef struct { Object head; Value first, second; } Couple;
typedef struct { Object head; Value value; } Box;
typedef struct { Object head; Value items[]; } Values;                               /* head.count values, never one */
typedef struct { Object head; Value name; Value fields; } RecordType;                /* a symbol; a vector of symbols */
typedef struct { Object head; RecordType *type; Value fields[]; } Record;            /* head.count fields */
/* syntax, environment: what the host knows by a number */
typedef struct { Object head; uint64_t number; } Handle;

/* Every other type (DUAL, AD_NODE, VALUES, TABLE, PORT, PROMISE, ENVIRONMENT, SYNTAX, FOREIGN, IDENTITY, and those
 * still to come) has this layout, which is all the collector knows of it: head.count values, then bytes that it does
 * not look at. */
typedef struct { Object head; Value fields[]; } Generic;

struct Context;
struct Closure;
struct Primitive;

/* What is known of a procedure before it runs; static data of compiled code or of the runtime. */
typedef struct Procedure {
    const char *name;
    const char *signature;  /* as in an error: "(vector-ref vector k)" */
    int32_t min, max;       /* arguments; max -1: any number */
    const void *function;   /* of a primitive: its C function */
    const char *source;     /* the lambda expression as text, or null */
    const char *doc;        /* or null */
    const char *place;      /* "file:line:column", or null */
    const void *unit;       /* of compiled code: where its unit's constants are, by which the host knows the unit */
    int32_t number;         /* of the lambda expression in its unit */
    int32_t plain;          /* whether it calls nothing but primitives, and has no loops */
} Procedure;

/* `entry` has LLVM's tailcc convention: {tag, bits} entry(context, closure, count, a.tag, a.bits, b.tag, b.bits,
 * c.tag, c.bits, d.tag, d.bits), with arguments from the fifth on in context->extra. */
typedef struct Closure {
    Object head; /* count: captured values */
    const void *entry;
    const Procedure *procedure;
    Value captured[];
} Closure;

static inline void *esk_pointer(Value v) { return (void *)(uintptr_t)v.bits; }
static inline Value esk_object(void *object) { return esk_make(((Object *)object)->type, (uint64_t)(uintptr_t)object); }
static inline Value esk_car(Value p) { Pair *o = esk_pointer(p); return esk_make(o->head.a, o->car); }
static inline Value esk_cdr(Value p) { Pair *o = esk_pointer(p); return esk_make(o->head.b, o->cdr); }

/* ---- the context of a thread ------------------------------------------------------------------------------------ */

enum { SMALL_WORDS = 32 /* objects up to so many words are allocated by compiled code itself */ };
enum { SPILL_WORDS = 1024 /* of a call of compiled code that have no register */ };
/* Whose code runs: the host's own (the expander, the compilers), Scheme code, or Python code that Scheme called. */
enum { INSIDE_HOST, INSIDE_SCHEME, INSIDE_PYTHON };
enum { DIRECT_ARGUMENTS = 4, EXTRA_ARGUMENTS = 1 << 16 /* of one call */ };
enum { ESK_MOST_HELD = 4 /* objects that a thread has for itself, one within the use of another */ };
enum { LARGER_CLASSES = 26 /* sizes of objects of more than SMALL_WORDS that share blocks */ };

/* Both are loaded at once, at every allocation: never from two cache lines. */
typedef struct { _Alignas(16) char *next; char *end; } Bump;
typedef struct { uint32_t block, position; } Area; /* where runs of a size are looked for, and from which granule on */

typedef struct Context {
    char *stack_limit;       /* a frame below it goes to esk_poll: the stack is used up, or somebody interrupts */
    Value *extra;            /* arguments from the fifth on, of the call that is being made; room for EXTRA_ARGUMENTS */
    Value handlers;          /* list of exception handlers, the innermost first */
    Value winders;           /* list of dynamic-wind's pairs, the innermost first */
    Value parameters;        /* list of (parameter . box), the innermost first */
    uint64_t reentered;      /* whether esk_capture has just returned for a second time */
    uint64_t once;           /* whether the next continuation is one that is only left to (%call/ec) */
    uint8_t *cards;          /* see esk_written; as if the table began with the card of address 0 */
    Bump bump[SMALL_WORDS + 1]; /* free memory for objects of so many words */
    uint64_t spill[SPILL_WORDS]; /* words of the call that is being made, behind those in registers */
    /* what only the runtime itself uses */
    /* the procedure that the runtime raises errors through; null before the library is there */
    Value raise;
    Value extent;            /* of the last continuation that was captured (continuation.c) */
    Value leave;             /* the library's, for a continuation that leaves or enters dynamic extents on its way */
    Value input, output, error; /* the current ports, in step with the parameters of the library; set when first used */
    Value memory_error, stack_error; /* conditions made in advance, for when there is no room to make one */
    RecordType *error_type;  /* of error objects: kind (a symbol), message (a string), irritants (a list), who (a symbol
                              * or #f), trace (a bytevector of return addresses, innermost first), cause (a Python
                              * exception, or #f) */
    struct Heap *heap;
    char *region;            /* where the heap lies, */
    uint64_t region_bytes;   /* and how large it may become */
    struct Entry *entry;     /* the innermost call from outside */
    char *stack_end;         /* the lowest address Scheme may use, whatever stack_limit says */
    volatile uint64_t interrupted;
    volatile uint64_t pressed; /* whether KeyboardInterrupt was raised in the Python code that runs */
    volatile uint64_t inside; /* whose code runs: INSIDE_... */
    uint64_t overflowing;    /* whether stack_limit was lowered for those who handle a stack overflow */
    uint64_t entries;        /* so many there have been */
    int64_t extra_count;     /* how much of extra the collector must look at */
    uint64_t identities;     /* a counter for hashes and names that must differ */
    Bump larger[LARGER_CLASSES]; /* as `bump`, for larger objects */
    Area areas[SMALL_WORDS + LARGER_CLASSES]; /* this thread's own, by size */
    bool failed; /* an error was raised for lack of memory, and nobody has escaped from it yet */
    struct FastTable *fast;  /* compiled derivatives (fast_table.c), or null; the first context's is all threads' */
    uint64_t fast_generation; /* of the table, while this thread uses what it found there; else 0 */
    int64_t fast_runs, fast_used; /* so many runs of compiled derivatives; bytes that the last of them used */
    Value *standard;         /* a root: vector of the ports that the process began with, or null before they are used */
    Value differentiated_call; /* the library's procedure for calls of Python with differentiated numbers, or #f */
    const void *python;      /* python.c's, or null before a program has asked for Python */
    void *host_data;
    /* of a heap that several threads use (stops.c, threads.c) */
    struct Context *next;    /* another context of the heap */
    uint64_t number;         /* which one it is: the first, from 0, is the one that the host enters */
    char *stopped;           /* while it is stopped: the lowest address of its stack that counts; null while it runs */
    struct Waiter *waiter;   /* what it waits for, or null */
    struct TaskFrame *tasks; /* what it runs, the innermost first (tasks.c) */
    struct Deque *deque;     /* what it has put aside for whoever has nothing to do, or null */
    Value environment;       /* the dynamic environment that was asked for last, or #f */
    Value started;           /* of a thread's context: what it begins with */
    bool in_pool;            /* whether it takes tasks from the deques */
    volatile bool cancelled; /* what it runs is to end; */
    bool cancelling;         /* and is ending */
    uint32_t serving;        /* of the first: what it does now is for others, and does not end with what it runs */
    uint32_t held_count;     /* objects that no other thread may use now (threads.h) */
    Object *held[ESK_MOST_HELD];
    jmp_buf *end;            /* of a thread's context: where the thread ends */
    void (*host)(struct Context *, int64_t operation, const Value *args, int64_t count, Value *result,
                 uint64_t *failed);
} Context;

/* ---- storing values in objects ----------------------------------------------------------------------------------- */

/* A collection of young objects looks only at those old ones that something was stored in since the last one: that it
 * was is noted for a card, which is so many bytes of the heap. An object is young until the first collection that it
 * survives, which any allocation may bring. So what fills an object before anything else is allocated just stores;
 * whoever stores later does it with esk_store, esk_set_car or esk_set_cdr, or says esk_written or esk_all_written
 * afterwards, before the next allocation. Where this was forgotten, ESHKOL_GC_CHECK=1 ends the process at the next
 * collection and names the type of the object. */
enum { CARD_SHIFT = 7 };

static inline void esk_written(Context *context, const void *place) {
    if ((uint64_t)((const char *)place - context->region) < context->region_bytes) /* it may be static */
        __atomic_store_n(&context->cards[(uintptr_t)place >> CARD_SHIFT], 1, __ATOMIC_RELAXED); /* others may, too */
}
static inline void esk_all_written(Context *context, const Value *from, int64_t count) {
    const uintptr_t step = (uintptr_t)1 << CARD_SHIFT, end = (uintptr_t)(from + count);
    if (count <= 0) return;
    for (uintptr_t at = (uintptr_t)from; at < end; at += step) esk_written(context, (const void *)at);
    esk_written(context, from + count - 1);
}
static inline void esk_store(Context *context, Value *place, Value v) {
    *place = v;
    if (esk_is_pointer(v)) esk_written(context, place);
}
static inline void esk_set_car(Context *context, Value p, Value v) {
    Pair *o = esk_pointer(p);
    o->head.a = (uint8_t)v.tag;
    o->car = v.bits;
    if (esk_is_pointer(v)) esk_written(context, o);
}
static inline void esk_set_cdr(Context *context, Value p, Value v) {
    Pair *o = esk_pointer(p);
    o->head.b = (uint8_t)v.tag;
    o->cdr = v.bits;
    if (esk_is_pointer(v)) esk_written(context, o);
}

/* ---- the heap (heap.c) ------------------------------------------------------------------------------------------ */

/* An object of so many bytes with its type set and the rest of its first eight bytes zero; what follows is not
 * initialized, and must be before the next allocation. Collects when it must; raises a condition when the heap limit
 * is reached. */
void *esk_allocate(Context *, size_t bytes, int type);
Value esk_cons(Context *, Value car, Value cdr);
Value esk_make_vector(Context *, int64_t length, Value fill);
/* a long one, of which all items are the same; from now on it is stored in as is said above */
void esk_make_old(Context *, Vector *);
Value esk_make_string(Context *, int64_t length, uint32_t fill);
Value esk_make_bytevector(Context *, int64_t length, uint8_t fill);
Value esk_string_utf8(Context *, const char *bytes, int64_t count); /* invalid UTF-8 becomes U+FFFD */
Value esk_symbol(Context *, const char *utf8, int64_t count);       /* interned; collected when nobody refers to it */
Value esk_uninterned(Context *, const char *utf8, int64_t count);
Value esk_keyword(Context *, const char *utf8, int64_t count);      /* without the colon */
Value esk_box(Context *, Value);
Value esk_values(Context *, const Value *, int64_t count);          /* one value is itself */
Value esk_list(Context *, const Value *, int64_t count);
void esk_finalize(Context *, Object *, void (*last)(Object *));     /* called once the object is unreachable */
/* a place that is looked at for ever (global variables, constants) */
Value *esk_root(Context *);
void esk_unroot(Context *, Value *);
void esk_unroot_later(Context *, Value *); /* from any thread; it is free at the next collection at the latest */
void esk_keep_static(Context *, Value *values, uint64_t count); /* one array of such places, for all time */
Value *esk_try_root(Context *);            /* null where there is no memory */
/* So many bytes elsewhere are kept alive by an object from now on. Collects when there are as many new ones as were
 * alive after the last collection, and at least 64 MB; whether it did. */
bool esk_outside(Context *, int64_t bytes);
extern _Thread_local uint64_t esk_outside_freed; /* finalizers of such objects add their bytes */
void esk_collect(Context *);
/* where bump[words] is used up: memory of one object */
void *esk_refill(Context *, uint64_t words);
/* X(name, what (heap-statistics) calls it). Bytes, or numbers of collections, or nanoseconds. */
#define ESK_HEAP_STATISTICS(X)                                                                                     \
    X(LIVE, "live-bytes") X(ALLOCATED, "allocated-bytes") X(COLLECTIONS, "collections")                            \
    X(RESIDENT, "resident-bytes") X(LIMIT, "limit-bytes") X(WHOLE, "whole-collections") X(PAUSES, "pauses")        \
    X(PAUSED, "paused-nanoseconds") X(LONGEST_PAUSE, "longest-pause-nanoseconds")                         \
    X(MOST_WORK, "longest-pause-processor-nanoseconds") X(STOPPING, "stopping-nanoseconds")
enum {
#define X(name, word) HEAP_##name,
    ESK_HEAP_STATISTICS(X)
#undef X
    HEAP_STATISTICS
};
int64_t esk_heap_statistic(Context *, int64_t which);
/* While it is above zero nothing is collected: for a host that holds values where the collector does not look. Without
 * an entry (below) nothing is collected either, unless asked for. */
void esk_pause_collection(Context *, int64_t change);

/* ---- calls and errors (control.c) ------------------------------------------------------------------------------- */

enum ErrorKind { /* X(name, the symbol that (error-object-kind e) gives) */
#define ESK_ERRORS(X) \
    X(USER, "error") X(TYPE, "wrong-type") X(ARITY, "wrong-arity") X(RANGE, "range") X(UNBOUND, "unbound") \
    X(ARITHMETIC, "arithmetic") X(FILE, "file-error") X(READ, "read-error") X(MEMORY, "out-of-memory") \
    X(STACK, "stack-overflow") X(INTERRUPT, "interrupt") X(CONTROL, "control") X(SYNTAX, "syntax") X(SYSTEM, "system") \
    X(PYTHON, "python")
#define X(name, symbol) ERROR_##name,
    ESK_ERRORS(X)
#undef X
};

/* Raise a condition; never return. `who` is the name of the procedure as the user wrote it, or null. */
/* Values */
_Noreturn void esk_fail(Context *, enum ErrorKind, const char *who, const char *message, int irritants, ...);
/* position from 1 */
_Noreturn void esk_wrong_type(Context *, const char *who, int position, Value got, const char *expected);
_Noreturn void esk_bad_index(Context *, const char *who, int position, Value index, int64_t length);
_Noreturn void esk_raise(Context *, Value condition);
void esk_poll(Context *); /* behind stack_limit: raises what is to be raised, or returns */
Value esk_call(Context *, Value procedure, const Value *args, int64_t count); /* from C; the procedure may escape */
bool esk_is_error(Context *, Value);                             /* an error object: a record of context->error_type */
/* with a trace; not raised */
void esk_set_cause(Context *, Value error, Value exception); /* the exception of Python's that it stands for, */
Value esk_cause(Value error);                     /* or #f */
Value esk_make_error(Context *, enum ErrorKind, Value who, Value message, Value irritants);

/* For the host. A context has one heap of so many bytes (0: what ESHKOL_HEAP says, or 3/4 of the memory) and belongs to
 * one thread. esk_enter calls a procedure from outside: 0 and its value, 1 and the condition that nobody handled, or 2
 * and what `exit` was given. No continuation crosses an entry; after 2 the host leaves its own frames and hands the
 * code on through esk_exit_to_host where it was itself called from Scheme. */
Context *esk_new_context(uint64_t heap_limit);
void esk_free_context(Context *);
void esk_set_stack(Context *, char *lowest); /* of the thread that enters; frames end 320 KB above */
uint64_t esk_enter(Context *, Value procedure, const Value *args, int64_t count, Value *result);
uint64_t esk_enter_form(Context *, Value procedure, Value *result); /* typed at a prompt: see continuation.c */
/* The same, but what leaves it by a condition runs the outstanding thunks of dynamic-wind, as it does in an entry that
 * is within another one. */
uint64_t esk_enter_unwinding(Context *, Value procedure, const Value *args, int64_t count, Value *result);
uint64_t esk_enter_primitive(Context *, const struct Primitive *, const Value *args, int64_t count, Value *result);
/* For who watches a program (profiling/): the return addresses of the frames here, of those waiting on this thread for
 * a call of Python, or of those of a thread that a signal has met, innermost first; `room` is 128 at least. */
enum { ESK_IN_SCHEME, ESK_IN_PYTHON, ESK_IN_HOST, ESK_IN_COLLECTOR };
typedef struct {
    uint64_t (*cells)(uint64_t bytes); /* how many objects of so many bytes come before the next that is looked at */
    void (*allocated)(Context *, const void *object, uint64_t bytes); /* the first of them */
    void (*collecting)(Context *);
    void (*collected)(Context *);
} HeapWatcher;
extern const HeapWatcher *esk_heap_watcher; /* null: nobody */
bool esk_is_allocated(const Context *, const void *object); /* what lies there, right after a collection */
int esk_frames(Context *, uint64_t *addresses, int room);
int esk_waiting_frames(uint64_t *addresses, int room);
int esk_interrupted_frames(const Context *, uint64_t frame, uint64_t low, uint64_t *addresses, int room,
                           uint32_t *kind);
/* From this frame the host is called, until the frame that this gives is set again: for backtraces through the host. */
char *esk_leave(Context *, char *frame);
/* Calls `work`, which may allocate but not call Scheme. False: it raised a condition, which is the result and which no
 * handler has seen. */
bool esk_protect(Context *, Value (*work)(Context *, void *data), void *data, Value *result);
void esk_interrupt(Context *);               /* from any thread or signal handler */
void esk_need_stack(Context *, int64_t bytes); /* a condition now rather than a crash later */
_Noreturn void esk_uncaught(Context *, Value condition);
void esk_note_uncaught(Context *, Value condition); /* remembers for the host where that was: */
int64_t esk_left_trace(Context *, uint64_t *addresses, int64_t room); /* where the host was called */
int64_t esk_uncaught_trace(uint64_t *addresses, int64_t room); /* as in the trace of an error object; how many */
_Noreturn void esk_exit_to_host(Context *, Value code);

/* Set by the code generator: calls a closure with C's convention. */
extern void (*esk_invoke)(Context *, struct Closure *, int64_t count, const Value *args, Value *result);

/* For compiled code. */
_Noreturn void esk_wrong_arity(Context *, struct Closure *, int64_t count);
_Noreturn void esk_unforeseen(Context *, struct Closure *);
_Noreturn void esk_not_procedure(Context *, Value);
_Noreturn void esk_unbound(Context *, const char *name);
_Noreturn void esk_used_early(Context *, const char *name);
_Noreturn void esk_wrong_values(Context *, int64_t wanted, Value got);
/* arguments from..count as a list */
Value esk_rest(Context *, int64_t count, int64_t from, const Value direct[DIRECT_ARGUMENTS]);
/* apply: the last is a list */
int64_t esk_spread(Context *, const Value *args, int64_t count, Value direct[DIRECT_ARGUMENTS]);

/* continuation.c: esk_capture returns a continuation; and again, with context->reentered set, each time a value is
 * thrown to it. esk_call_cc is compiled code's (entries.ll); so is esk_continue, which comes back where a continuation
 * cannot be gone on with at once. */
Value esk_capture(Context *);
extern const char esk_call_cc[];
void esk_continue(Context *, const Closure *continuation, Value);
_Noreturn void esk_throw(Context *, Value continuation, Value value);

extern const char *const esk_tag_words[];     /* layout.c: what a person calls each type */
extern const char *const esk_error_symbols[]; /* of the kinds of errors */

/* ---- what other parts offer ------------------------------------------------------------------------------------- */

bool esk_eqv(Value, Value);                        /* equality.c */
bool esk_equal(Context *, Value, Value);           /* ends on cyclic data */
uint64_t esk_equal_hash(Context *, Value);
Value esk_utf8_of(Context *, Value string);        /* strings.c: a bytevector, with a zero behind its last byte */
Value esk_string_foldcase(Context *, Value string);
/* numbers.c: same exactness and value; NaN is itself, -0.0 is not 0.0 */
bool esk_numbers_eqv(Value, Value);
uint64_t esk_number_hash(Value);
bool esk_is_number(Value);
Value esk_parse_number(Context *, const char *utf8, int64_t count, int radix); /* #f where it is none */
Value esk_number_text(Context *, Value number, int radix);                     /* a string */
Value esk_read_text(Context *, const char *utf8, int64_t bytes); /* reader.c: the first datum */
/* printer.c: 0 display, 1 write, 2 write-shared, 3 write-simple; a string */
Value esk_write_text(Context *, Value, int style);

/* tables.c: a table by equal?, and its entries in the order of insertion, from *index (0 at first) on */
Value esk_new_equal_table(Context *);
void esk_table_put(Context *, Value table, Value key, Value value);
int64_t esk_table_size(Value table);
bool esk_table_next(Value table, int64_t *index, Value *key, Value *value);

/* hostcalls.c: objects of the host (the expander, in Python), known to it by a number. The host asks now and then which
 * numbers nobody refers to any more: esk_released stores up to `room` of them and says how many. */
Value esk_handle(Context *, int tag, uint64_t number);
uint64_t esk_handle_number(Value);
int64_t esk_released(uint64_t *numbers, int64_t room);
Value esk_syntax_datum(Context *, Value syntax);

/* ---- primitives ------------------------------------------------------------------------------------------------- */

/* One row for each procedure that is written in C; everything else about it is derived from the row. Functions of
 * CALL_0, CALL_1 and CALL_2 take the context and that many values; those of CALL_N take (Context *, const Value *,
 * int64_t count). The number of arguments is checked before they are called; types they check themselves. Those of
 * CALL_ENTRY are compiled code: the code generator has an entry of that name. */
enum { CALL_0, CALL_1, CALL_2, CALL_N, CALL_ENTRY };

typedef struct Primitive {
    const char *name;      /* the Scheme name; those that users should not see begin with % */
    const char *signature; /* "(vector-ref vector k)" */
    int32_t min, max;      /* max -1: any number */
    int32_t convention;
    const void *function;
    const char *doc;       /* one or two sentences */
} Primitive;

#define ESK_PRIMITIVE_0(name, signature, function, doc) {name, signature, 0, 0, CALL_0, (const void *)(function), doc}
#define ESK_PRIMITIVE_1(name, signature, function, doc) {name, signature, 1, 1, CALL_1, (const void *)(function), doc}
#define ESK_PRIMITIVE_2(name, signature, function, doc) {name, signature, 2, 2, CALL_2, (const void *)(function), doc}
#define ESK_PRIMITIVE_N(name, signature, min, max, function, doc) \
    {name, signature, min, max, CALL_N, (const void *)(function), doc}

/* Each C file with primitives ends with `const Primitive esk_FILE_primitives[] = {..., {0}};` and is named here. */
#define ESK_PRIMITIVE_FILES(X) \
    X(heap) X(control) X(calls) X(errors) X(basics) X(continuation) X(numbers) X(arithmetic) X(integers) \
    X(transcendental) X(hyperbolic) X(duals) X(tapes) X(jets) X(number_text) X(strings) X(string_case) \
    X(string_search) X(chars) X(bytevectors) X(vectors) X(lists) \
    X(symbols) X(tables) X(equality) X(records) X(ephemerons) X(arenas) X(ports) X(reader) X(printer) X(system) \
    X(hostcalls) X(fast_table) X(python) X(packing) X(files) X(processes) X(network) X(digests) X(waits) X(tasks) \
    X(atomics)

int64_t esk_primitive_count(void);
const Primitive *esk_primitive(int64_t index);
extern const void *esk_primitive_entries[4]; /* set by the code generator: closure entries by convention */
void esk_set_primitive_entry(const Primitive *, const void *entry); /* of a CALL_ENTRY */
Value esk_primitive_procedure(Context *, const Primitive *); /* static: the same for all contexts */

#endif
