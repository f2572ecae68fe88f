/* Checks of the heap, of entries and errors, and of continuations, without a code generator: C functions stand in for
 * compiled procedures. test_heap.py compiles this with those parts of the runtime and runs each check by its name. */
#define _GNU_SOURCE
#include "heap.h"
#include "python.h"
#include "threads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

const void *esk_continuation_entry; /* nothing here is compiled that could call one */
void esk_fast_free(Context *context) { (void)context; } /* no table of compiled derivatives here */
bool esk_end_threads(Context *first) { return first != NULL; } /* those that the checks start end by themselves */
void esk_note_blocked(Context *context, bool begins) { (void)context, (void)begins; }
int64_t esk_read_all(Context *context, const char *utf8, int64_t bytes, Value *out, int64_t room, int64_t literal) {
    (void)context, (void)utf8, (void)bytes, (void)out, (void)room, (void)literal; /* nor a reader */
    return 0;
}

#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);      \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

/* What other parts of the runtime would offer. */
Value esk_read_text(Context *context, const char *text, int64_t bytes) { return esk_string_utf8(context, text, bytes); }
Value esk_syntax_datum(Context *context, Value syntax) { (void)context; return syntax; }
Value esk_library_name(Value procedure) { (void)procedure; return ESK_FALSE; } /* no Python here */
Value esk_tensor_call(Context *context, const char *function, const Value *args, int64_t count) {
    (void)context, (void)function, (void)args, (void)count;
    abort();
}
Value esk_primitive_procedure(Context *context, const Primitive *row) { (void)context, (void)row; abort(); }

typedef Value Body(Context *, Closure *, const Value *, int64_t);

static void invoke(Context *context, Closure *closure, int64_t count, const Value *args, Value *result) {
    const Procedure *what = closure->procedure;
    if (count < what->min || (what->max >= 0 && count > what->max)) esk_wrong_arity(context, closure, count);
    *result = ((Body *)what->function)(context, closure, args, count);
}

#define PROCEDURE(c_name, minimum, maximum)                                                                       \
    static const Procedure c_name##_what = {.name = #c_name, .signature = "(" #c_name " x ...)", .min = minimum, \
                                            .max = maximum, .function = (const void *)c_name};                   \
    static Closure c_name##_closure = {.head = {.type = TAG_PROCEDURE}, .procedure = &c_name##_what};

static uint64_t state = 88172645463325252u;
static uint64_t random_below(uint64_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % limit;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static long resident_megabytes(void) {
    long pages = 0, total;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &total, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return pages * sysconf(_SC_PAGESIZE) >> 20;
}

static bool is_kind(Context *context, Value error, const char *kind) {
    return esk_is_error(context, error) &&
           esk_eq(((Record *)esk_pointer(error))->fields[0], esk_symbol(context, kind, (int64_t)strlen(kind)));
}

static uint64_t enter(Context *context, Closure *closure, Value argument, Value *result) {
    return esk_enter(context, esk_object(closure), &argument, 1, result);
}

/* ---- random graphs, against a model that lies outside of the heap ------------------------------------------------ */

enum { MOST_CHILDREN = 40, SLOTS = 60 };
typedef struct Node {
    int type;
    uint64_t id, bytes, seen;
    int count;
    struct Node *children[MOST_CHILDREN];
    struct Node *next;
} Node;

static Node *nodes;
static uint64_t next_id, finalized;
static Node *slot_nodes[SLOTS];
static Value *slot_values[SLOTS];

static void count_finalized(Object *object) { (void)object, finalized++; }
static const Procedure plain = {.name = "plain"};

static Value *children_of(Value value) {
    void *object = esk_pointer(value);
    switch (value.tag) {
    case TAG_VECTOR: return ((Vector *)object)->items + 1;
    case TAG_RECORD: return ((Record *)object)->fields + 1;
    case TAG_PROCEDURE: return ((Closure *)object)->captured + 1;
    default: return ((Generic *)object)->fields + 1;
    }
}

static Value id_of(Value value) {
    if (value.tag == TAG_PAIR) return esk_car(value);
    if (value.tag == TAG_STRING) return esk_fixnum(((String *)esk_pointer(value))->chars[3]);
    return children_of(value)[-1];
}

/* An object of a random type: its number, then some of what is in the slots. */
static Value make_object(Context *context, Node *node) {
    static const int types[] = {TAG_PAIR, TAG_PAIR, TAG_VECTOR, TAG_VECTOR, TAG_RECORD, TAG_PROCEDURE,
                                TAG_VALUES, TAG_TABLE, TAG_PORT, TAG_STRING};
    int type = types[random_below(10)];
    int count = (int)(type == TAG_PAIR ? 1 : type == TAG_STRING ? 0 : random_below(random_below(8) ? 6 : MOST_CHILDREN));
    uint64_t padding = type == TAG_VECTOR && !random_below(20) ? random_below(12000) : 0;
    uint64_t raw = type == TAG_PORT ? random_below(200) : type == TAG_STRING ? 10 + random_below(1000) : 0;
    *node = (Node){.type = type, .id = ++next_id, .count = count, .next = nodes};
    nodes = node;
    Value picked[MOST_CHILDREN];
    for (int i = 0; i < count; i++) {
        uint64_t slot = random_below(SLOTS);
        node->children[i] = slot_nodes[slot];
        picked[i] = slot_nodes[slot] ? *slot_values[slot] : ESK_FALSE;
    }
    Value id = esk_fixnum((int64_t)node->id), value;
    size_t fields = ((size_t)count + 1 + padding) * sizeof(Value);
    switch (type) {
    case TAG_PAIR:
        node->bytes = sizeof(Pair);
        value = esk_cons(context, id, picked[0]);
        break;
    case TAG_STRING:
        node->bytes = sizeof(String) + raw * 4;
        value = esk_make_string(context, (int64_t)raw, (uint32_t)node->id);
        break;
    case TAG_VECTOR:
        node->bytes = sizeof(Vector) + fields;
        value = esk_make_vector(context, count + 1 + (int64_t)padding, ESK_FALSE);
        break;
    default: {
        size_t head = type == TAG_RECORD ? sizeof(Record) : type == TAG_PROCEDURE ? sizeof(Closure) : sizeof(Generic);
        node->bytes = head + fields + raw;
        Object *object = esk_allocate(context, node->bytes, type);
        object->count = (uint32_t)count + 1;
        if (type == TAG_RECORD) ((Record *)object)->type = context->error_type;
        if (type == TAG_PROCEDURE) ((Closure *)object)->procedure = &plain;
        memset((char *)object + head + fields, 0x77, raw);
        value = esk_object(object);
    }
    }
    if (type != TAG_PAIR && type != TAG_STRING) {
        children_of(value)[-1] = id;
        for (int i = 0; i < count; i++) children_of(value)[i] = picked[i];
    }
    if (!random_below(4)) {
        esk_finalize(context, esk_pointer(value), count_finalized);
        node->seen |= (uint64_t)1 << 63; /* has a finalizer */
    }
    return value;
}

static void change_object(Context *context) {
    uint64_t from = random_below(SLOTS), to = random_below(SLOTS);
    Node *node = slot_nodes[from];
    if (!node || !node->count || !slot_nodes[to]) return;
    int child = (int)random_below((uint64_t)node->count);
    node->children[child] = slot_nodes[to];
    if (node->type == TAG_PAIR) esk_set_cdr(context, *slot_values[from], *slot_values[to]);
    else esk_store(context, &children_of(*slot_values[from])[child], *slot_values[to]);
}

static uint64_t epoch, reached, reached_finalizers;
typedef struct { Node *node; Value value; } Both;

/* Walks model and heap side by side; the bytes of all cells that are reached. */
static uint64_t compare(Context *context) {
    uint64_t bytes = 0, room = next_id * 2 + SLOTS + 16, depth = 0;
    (void)context;
    Both *stack = malloc(room * sizeof *stack);
    epoch++;
    reached = reached_finalizers = 0;
    for (int i = 0; i < SLOTS; i++)
        if (slot_nodes[i]) stack[depth++] = (Both){slot_nodes[i], *slot_values[i]};
    while (depth) {
        Both at = stack[--depth];
        CHECK(at.value.tag == (uint64_t)at.node->type);
        CHECK(((Object *)esk_pointer(at.value))->type == at.node->type);
        CHECK(esk_integer(id_of(at.value)) == (int64_t)at.node->id);
        if ((at.node->seen & ~((uint64_t)1 << 63)) == epoch) continue;
        at.node->seen = (at.node->seen & (uint64_t)1 << 63) | epoch;
        reached++;
        reached_finalizers += at.node->seen >> 63;
        bytes += at.node->bytes;
        for (int i = 0; i < at.node->count; i++) {
            Value child = at.node->type == TAG_PAIR ? esk_cdr(at.value) : children_of(at.value)[i];
            if (!at.node->children[i]) {
                CHECK(esk_eq(child, ESK_FALSE));
                continue;
            }
            if (depth == room) stack = realloc(stack, (room *= 2) * sizeof *stack);
            stack[depth++] = (Both){at.node->children[i], child};
        }
    }
    free(stack);
    return bytes;
}

static uint64_t finalizers;

static void forget_unreached(void) {
    Node **link = &nodes;
    while (*link) {
        Node *node = *link;
        if ((node->seen & ~((uint64_t)1 << 63)) == epoch) {
            link = &node->next;
            continue;
        }
        *link = node->next;
        free(node);
    }
}

static Value random_steps(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)count;
    for (int64_t step = 0; step < esk_integer(args[0]); step++) {
        uint64_t slot = random_below(SLOTS);
        Node *node = malloc(sizeof *node);
        Value value = make_object(context, node);
        finalizers += node->seen >> 63;
        slot_nodes[slot] = node;
        *slot_values[slot] = value;
        change_object(context);
        if (!random_below(3)) slot_nodes[random_below(SLOTS)] = NULL;
        for (int i = 0; i < SLOTS; i++)
            if (!slot_nodes[i]) *slot_values[i] = ESK_FALSE;
        if (!random_below(200)) compare(context);
    }
    return ESK_TRUE;
}
PROCEDURE(random_steps, 1, 1)

#ifndef ROUNDS
#define ROUNDS 10
#endif

static void test_graphs(Context *context) {
    for (int i = 0; i < SLOTS; i++) slot_values[i] = esk_root(context);
    esk_collect(context);
    uint64_t before = (uint64_t)esk_heap_statistic(context, HEAP_LIVE);
    for (int round = 0; round < ROUNDS; round++) {
        Value result;
        CHECK(enter(context, &random_steps_closure, esk_fixnum(2000), &result) == 0);
        esk_collect(context); /* no entry: no conservative roots, so that what lives is known exactly */
        uint64_t bytes = compare(context), live = (uint64_t)esk_heap_statistic(context, HEAP_LIVE) - before;
        CHECK(live >= bytes && live <= bytes + bytes / 3 + 65536 * 20); /* cells are a little larger than objects */
        CHECK(finalizers - finalized == reached_finalizers);
        forget_unreached();
    }
    for (int i = 0; i < SLOTS; i++) {
        slot_nodes[i] = NULL;
        esk_unroot(context, slot_values[i]);
    }
    esk_collect(context);
    CHECK((uint64_t)esk_heap_statistic(context, HEAP_LIVE) == before);
    CHECK(finalized == finalizers);
    compare(context);
    forget_unreached();
    CHECK(context->heap->used < 20);
    printf("%llu objects, %llu finalized, %lld collections\n", (unsigned long long)next_id, (unsigned long long)finalized,
           (long long)esk_heap_statistic(context, HEAP_COLLECTIONS));
}

/* ---- interior pointers, deep structures, a mark stack that cannot grow -------------------------------------------- */

enum { DEEP = 400000 };

static Value deep_steps(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)args, (void)count;
    Value list = ESK_NULL, nest = ESK_NULL, *root = esk_root(context);
    for (int64_t i = 0; i < DEEP; i++) {
        list = esk_cons(context, esk_box(context, esk_fixnum(i)), list);
        nest = esk_cons(context, nest, esk_fixnum(i));
    }
    Value vector = esk_make_vector(context, DEEP, ESK_NULL);
    for (int64_t i = 0; i < DEEP; i++) {
        Value pair = esk_cons(context, esk_fixnum(i), ESK_NULL);
        esk_store(context, &((Vector *)esk_pointer(vector))->items[i], pair);
    }
    *root = esk_cons(context, list, esk_cons(context, nest, vector));
    list = nest = vector = ESK_NULL;
    for (int round = 0; round < 2; round++) {
        if (round) context->heap->room_limit = 8192;
        esk_collect(context);
        for (int i = 0; i < 100; i++) esk_make_vector(context, 5000, ESK_FALSE); /* would lie where something was lost */
        Value at = esk_car(*root);
        for (int64_t i = DEEP; i-- > 0; at = esk_cdr(at))
            CHECK(esk_integer(((Box *)esk_pointer(esk_car(at)))->value) == i);
        at = esk_car(esk_cdr(*root));
        for (int64_t i = DEEP; i-- > 0; at = esk_car(at)) CHECK(esk_integer(esk_cdr(at)) == i);
        Vector *items = esk_pointer(esk_cdr(esk_cdr(*root)));
        for (int64_t i = 0; i < DEEP; i++) CHECK(esk_integer(esk_car(items->items[i])) == i);
    }
    context->heap->room_limit = UINT64_MAX;
    esk_unroot(context, root);
    return ESK_TRUE;
}
PROCEDURE(deep_steps, 0, -1)

/* Nothing but a pointer into its middle holds an object. */
static Value interior_steps(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)count;
    for (int64_t length = 1; length < 30000; length += length / 3 + 1) {
        char *volatile inside = (char *)esk_pointer(esk_make_bytevector(context, length, (uint8_t)length));
        inside += sizeof(Bytevector) + random_below((uint64_t)length);
        esk_collect(context);
        for (int i = 0; i < 10; i++) esk_make_bytevector(context, length, 0xEE);
        CHECK(*(uint8_t *)inside == (uint8_t)length);
    }
    return args[0];
}
PROCEDURE(interior_steps, 1, 1)

static void test_deep(Context *context) {
    Value result;
    CHECK(enter(context, &deep_steps_closure, ESK_NULL, &result) == 0);
    CHECK(enter(context, &interior_steps_closure, ESK_NULL, &result) == 0);
    esk_collect(context);
    CHECK(esk_heap_statistic(context, HEAP_LIVE) < 1 << 20);
}

/* ---- young and old ------------------------------------------------------------------------------------------------ */

enum { KEPT = 64, LENGTH = 20000 };

static Value numbered_list(Context *context, int64_t number) {
    Value list = ESK_NULL;
    for (int64_t i = 0; i < LENGTH; i++) list = esk_cons(context, esk_fixnum(number), list);
    return list;
}

/* Lists are replaced while the whole heap is marked in slices: all are whole afterwards, and memory is bounded. */
static Value slices_steps(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)count;
    Value *root = esk_root(context);
    int64_t numbers[KEPT], wholes = esk_heap_statistic(context, HEAP_WHOLE);
    uint64_t alive = (uint64_t)KEPT * LENGTH * sizeof(Pair);
    *root = esk_make_vector(context, KEPT, ESK_NULL);
    for (int64_t step = 0; step < esk_integer(args[0]); step++) {
        int64_t at = step < KEPT ? step : (int64_t)random_below(KEPT);
        numbers[at] = step;
        esk_store(context, &((Vector *)esk_pointer(*root))->items[at], numbered_list(context, step));
        CHECK((uint64_t)esk_heap_statistic(context, HEAP_LIVE) < 2 * alive + 4 * THRESHOLD);
    }
    CHECK(esk_heap_statistic(context, HEAP_WHOLE) >= wholes + 3); /* nobody asked for them */
    CHECK(esk_heap_statistic(context, HEAP_PAUSES) > 3);
    CHECK(esk_heap_statistic(context, HEAP_LONGEST_PAUSE) <= esk_heap_statistic(context, HEAP_PAUSED));
    for (int64_t at = 0; at < KEPT; at++) {
        Value list = ((Vector *)esk_pointer(*root))->items[at];
        for (int64_t i = 0; i < LENGTH; i++, list = esk_cdr(list)) CHECK(esk_integer(esk_car(list)) == numbers[at]);
        CHECK(list.tag == TAG_NULL);
    }
    esk_unroot(context, root);
    return ESK_TRUE;
}
PROCEDURE(slices_steps, 1, 1)

/* A vector is made old at once; what is stored in it stays alive, wherever that is. */
static Value long_steps(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)count;
    Value *root = esk_root(context), first = esk_cons(context, args[0], args[0]);
    *root = esk_make_vector(context, 1 << 17, first);
    Vector *vector = esk_pointer(*root);
    esk_make_old(context, vector);
    first = ESK_NULL;
    for (int64_t round = 0; round < 40; round++) {
        for (int64_t i = round; i < vector->length; i += 1 + (int64_t)random_below(500))
            esk_store(context, &vector->items[i], esk_cons(context, esk_fixnum(i), ESK_NULL));
        esk_step(context);
        for (int64_t i = 0; i < vector->length; i++) {
            Value car = esk_car(vector->items[i]);
            CHECK(esk_eq(car, esk_fixnum(i)) || esk_eq(car, args[0]));
        }
        if (round % 10 == 9) esk_collect(context);
    }
    esk_unroot(context, root);
    return ESK_TRUE;
}
PROCEDURE(long_steps, 1, 1)

static void test_slices(Context *context) {
    Value result;
    CHECK(enter(context, &slices_steps_closure, esk_fixnum(600), &result) == 0);
    result = ESK_NULL;
    CHECK(enter(context, &long_steps_closure, esk_fixnum(-1), &result) == 0);
    esk_collect(context);
    CHECK(esk_heap_statistic(context, HEAP_LIVE) < 1 << 20);
}

static __attribute__((noinline)) void store_badly(Context *context, Vector *vector) {
    for (int64_t i = 0; i < vector->length; i++) vector->items[i] = esk_cons(context, ESK_NULL, ESK_NULL);
}

static Value forget_steps(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)args, (void)count;
    Value *root = esk_root(context);
    *root = esk_make_vector(context, 1000, ESK_NULL);
    esk_step(context);
    store_badly(context, esk_pointer(*root));
    esk_step(context); /* does not return where collections are checked */
    return ESK_TRUE;
}
PROCEDURE(forget_steps, 0, -1)

static void test_forgotten(Context *context) {
    Value result;
    CHECK(enter(context, &forget_steps_closure, ESK_NULL, &result) == 0);
}

/* ---- limits --------------------------------------------------------------------------------------------------------- */

static Value fill_memory(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)count;
    Value list = ESK_NULL;
    while (list.tag != TAG_VECTOR)
        list = args[0].bits ? esk_cons(context, esk_make_vector(context, (int64_t)args[0].bits, ESK_FALSE), list)
                            : esk_cons(context, list, list);
    return list;
}
PROCEDURE(fill_memory, 1, 1)

static Value ask_too_much(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)count;
    switch (args[1].bits) {
    case 0: return esk_make_vector(context, esk_integer(args[0]), ESK_FALSE);
    case 1: return esk_make_string(context, esk_integer(args[0]), 'x');
    default: return esk_make_bytevector(context, esk_integer(args[0]), 0);
    }
}
PROCEDURE(ask_too_much, 2, 2)

/* Handles an error as `guard` does: by a jump to a continuation that was captured before. */
static Value throw_to(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)count;
    esk_throw(context, context->handlers, args[0]);
}
PROCEDURE(throw_to, 1, 1)

static Value guarded_fill(Context *context, Closure *self, const Value *args, int64_t count) {
    Value k = esk_capture(context);
    if (context->reentered) {
        context->reentered = 0;
        CHECK(is_kind(context, k, "out-of-memory"));
        for (int i = 0; i < 1000; i++) esk_make_vector(context, 1000, ESK_FALSE); /* 16 MB: there is room again */
        return ESK_TRUE;
    }
    context->handlers = k;
    return fill_memory(context, self, args, count);
}
PROCEDURE(guarded_fill, 1, 1)

static void test_limits(Context *unused) {
    (void)unused;
    Context *context = esk_new_context(24 << 20);
    Value result;
    for (int round = 0; round < 12; round++) {
        context->raise = round % 2 ? esk_object(&throw_to_closure) : ESK_NULL;
        uint64_t size = round % 6 < 2 ? 0 : round % 6 < 4 ? 100 : 20000;
        if (round % 2) CHECK(enter(context, &guarded_fill_closure, esk_fixnum((int64_t)size), &result) == 0);
        else {
            CHECK(enter(context, &fill_memory_closure, esk_fixnum((int64_t)size), &result) == 1);
            CHECK(is_kind(context, result, "out-of-memory"));
        }
        CHECK(context->heap->used <= context->heap->limit + context->heap->reserve);
        CHECK(!context->entry);
    }
    context->raise = ESK_NULL;
    static const int64_t sizes[] = {INT64_MAX, INT64_MAX / 16, INT64_MAX / 16 - 8, (int64_t)1 << 40, 24 << 20, -1, INT64_MIN};
    for (int i = 0; i < 7; i++)
        for (int kind = 0; kind < 3; kind++) {
            Value args[] = {esk_fixnum(sizes[i]), esk_fixnum(kind)};
            CHECK(esk_enter(context, esk_object(&ask_too_much_closure), args, 2, &result) == 1);
            CHECK(is_kind(context, result, "out-of-memory"));
        }
    esk_collect(context);
    CHECK(esk_heap_statistic(context, HEAP_LIVE) < 1 << 20);
    CHECK(!context->heap->in_reserve);
    esk_free_context(context);
}

/* ---- symbols -------------------------------------------------------------------------------------------------------- */

static void test_symbols(Context *context) {
    char name[40];
    for (int round = 0; round < 20; round++) {
        Value *kept = esk_root(context);
        *kept = ESK_NULL;
        for (int i = 0; i < 5000; i++) {
            int length = snprintf(name, sizeof name, "name-%d", i);
            Value symbol = esk_symbol(context, name, length), keyword = esk_keyword(context, name, length);
            CHECK(esk_eq(symbol, esk_symbol(context, name, length)) && esk_eq(keyword, esk_keyword(context, name, length)));
            CHECK(symbol.bits != keyword.bits && !esk_eq(symbol, esk_uninterned(context, name, length)));
            if (i % 10 == round % 10) *kept = esk_cons(context, symbol, *kept);
        }
        esk_collect(context);
        CHECK(context->heap->symbols.count < 600 && context->heap->keywords.count == 0);
        int number = 4990 + round % 10;
        for (Value at = *kept; at.tag == TAG_PAIR; at = esk_cdr(at), number -= 10) {
            int length = snprintf(name, sizeof name, "name-%d", number);
            CHECK(esk_eq(esk_car(at), esk_symbol(context, name, length)));
            CHECK(!strcmp(((Symbol *)esk_pointer(esk_car(at)))->name, name));
        }
        CHECK(number < 0);
        esk_unroot(context, kept);
    }
    CHECK(context->heap->symbols.mask < 32768);
}

/* ---- continuations -------------------------------------------------------------------------------------------------- */

static Value capture_many(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)count;
    for (int64_t i = 0; i < esk_integer(args[0]); i++) {
        Value k = esk_capture(context);
        CHECK(k.tag == TAG_PROCEDURE && !context->reentered);
    }
    return ESK_TRUE;
}
PROCEDURE(capture_many, 1, 1)

/* Returns through the frame that the capture shares: what comes back must not be held by later slices. */
static __attribute__((noinline)) Value capture_one(Context *context) {
    Value k = esk_capture(context);
    CHECK(!context->reentered);
    return k;
}

static __attribute__((noinline)) int64_t return_many(Context *context, int64_t depth, int64_t times) {
    volatile int64_t check = depth;
    if (depth) return return_many(context, depth - 1, times) + check - depth;
    for (int64_t i = 0; i < times; i++) CHECK(capture_one(context).tag == TAG_PROCEDURE);
    CHECK(!context->entry->captured || context->entry->captured->head.count < 3);
    esk_collect(context);
    return esk_heap_statistic(context, HEAP_LIVE);
}

static Value return_deep(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)count;
    CHECK(return_many(context, esk_integer(args[0]), 20000) < 1 << 20);
    return ESK_TRUE;
}
PROCEDURE(return_deep, 1, 1)

/* A generator: yields 0, 1, 2 … from within a recursion, each time with the continuation to go on with. */
static Value *back, *resume;

static __attribute__((noinline)) void yield(Context *context, int64_t value) {
    Value k = esk_capture(context);
    if (context->reentered) {
        context->reentered = 0;
        return;
    }
    *resume = k;
    esk_throw(context, *back, esk_fixnum(value));
}

static __attribute__((noinline)) int64_t generate(Context *context, int64_t from, int64_t to) {
    volatile int64_t check = from * 31 + to; /* frames come back as they were */
    if (to - from == 1) yield(context, from);
    else {
        int64_t middle = (from + to) / 2;
        generate(context, from, middle);
        generate(context, middle, to);
    }
    CHECK(check == from * 31 + to);
    return check;
}

static Value use_generator(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)count;
    int64_t total = esk_integer(args[0]);
    Value *box = esk_root(context); /* what changes must not lie in a frame that is restored */
    *box = esk_box(context, esk_fixnum(0));
    *resume = ESK_FALSE;
    Value got = esk_capture(context);
    if (!context->reentered) {
        *back = got;
        generate(context, 0, total);
        abort(); /* the last yield is never resumed */
    }
    context->reentered = 0;
    Box *next = esk_pointer(*box);
    CHECK(esk_integer(got) == esk_integer(next->value));
    next->value = esk_fixnum(esk_integer(next->value) + 1);
    for (int i = 0; i < 20; i++) esk_cons(context, got, got);
    if (esk_integer(next->value) < total) esk_throw(context, *resume, ESK_FALSE);
    esk_unroot(context, box);
    return got;
}
PROCEDURE(use_generator, 1, 1)

static Value *saved;
static Value save_continuation(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)args, (void)count;
    *saved = esk_capture(context);
    return ESK_FALSE;
}
PROCEDURE(save_continuation, 0, -1)

static Value throw_saved(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)args, (void)count;
    esk_throw(context, *saved, ESK_TRUE);
}
PROCEDURE(throw_saved, 0, -1)

static Value throw_across(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)args, (void)count;
    Value k = esk_capture(context), result;
    CHECK(!context->reentered);
    *saved = k;
    CHECK(enter(context, &throw_saved_closure, ESK_NULL, &result) == 1); /* the host calls back, and that throws */
    CHECK(is_kind(context, result, "control"));
    return ESK_TRUE;
}
PROCEDURE(throw_across, 0, -1)

static void test_continuations(Context *context) {
    back = esk_root(context), resume = esk_root(context), saved = esk_root(context);
    Value result;
    CHECK(enter(context, &capture_many_closure, esk_fixnum(10000), &result) == 0);
    CHECK(enter(context, &return_deep_closure, esk_fixnum(0), &result) == 0);
    CHECK(enter(context, &return_deep_closure, esk_fixnum(2000), &result) == 0);
    esk_collect(context);
    CHECK(enter(context, &use_generator_closure, esk_fixnum(512), &result) == 0 && esk_integer(result) == 511);
    CHECK(enter(context, &save_continuation_closure, ESK_NULL, &result) == 0);
    CHECK(enter(context, &throw_saved_closure, ESK_NULL, &result) == 1 && is_kind(context, result, "control"));
    CHECK(enter(context, &throw_across_closure, ESK_NULL, &result) == 0);
}

static void test_many_captures(Context *context) {
    Value result;
    CHECK(enter(context, &capture_many_closure, esk_fixnum(100000), &result) == 0);
    long before = resident_megabytes();
    double start = seconds();
    CHECK(enter(context, &capture_many_closure, esk_fixnum(1000000), &result) == 0);
    printf("%.0f ns for a capture\n", (seconds() - start) * 1e3);
    CHECK(resident_megabytes() <= before + 2);
}

/* ---- errors, the stack, interrupts ---------------------------------------------------------------------------------- */

#pragma GCC diagnostic ignored "-Winfinite-recursion"
static __attribute__((noinline)) int64_t recur(Context *context, int64_t depth) {
    volatile char frame[200];
    if ((char *)__builtin_frame_address(0) < context->stack_limit) esk_poll(context);
    frame[depth % 200] = (char)depth;
    return recur(context, depth + 1) + frame[depth % 200];
}

static Value overflow(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)args, (void)count;
    return esk_fixnum(recur(context, 0));
}
PROCEDURE(overflow, 0, -1)

static Value overflow_twice(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)args, (void)count;
    return esk_fixnum(recur(context, 0));
}
PROCEDURE(overflow_twice, 0, -1)

static Value guarded_overflows(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)args, (void)count;
    Value *done = esk_root(context);
    *done = esk_box(context, esk_fixnum(0));
    Value k = esk_capture(context);
    Box *times = esk_pointer(*done);
    if (context->reentered) {
        context->reentered = 0;
        CHECK(is_kind(context, k, "stack-overflow"));
        times->value = esk_fixnum(esk_integer(times->value) + 1);
        CHECK(!context->overflowing);
    } else *saved = k;
    context->handlers = *saved;
    if (esk_integer(times->value) < 5) recur(context, 0);
    esk_unroot(context, done);
    return ESK_TRUE;
}
PROCEDURE(guarded_overflows, 0, -1)

static Value spin(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)args, (void)count;
    for (volatile int64_t rounds = 0; rounds >= 0; rounds = rounds + 1)
        if ((char *)__builtin_frame_address(0) < *(char *volatile *)&context->stack_limit) esk_poll(context);
    return ESK_FALSE;
}
PROCEDURE(spin, 0, -1)

static Value exit_seven(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)args, (void)count;
    context->handlers = context->winders = ESK_TRUE;
    esk_exit_to_host(context, esk_fixnum(7));
}
PROCEDURE(exit_seven, 0, -1)

static Value arguments(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)args, (void)count;
    Value direct[4], list = ESK_NULL, given[7];
    for (int64_t i = 999; i >= 0; i--) list = esk_cons(context, esk_fixnum(i), list);
    for (int leading = 0; leading < 7; leading++) {
        for (int i = 0; i < leading; i++) given[i] = esk_fixnum(-i);
        given[leading] = list;
        int64_t n = esk_spread(context, given, leading + 1, direct);
        CHECK(n == 1000 + leading);
        for (int from = 0; from < 8; from++) {
            esk_spread(context, given, leading + 1, direct);
            Value rest = esk_rest(context, n, from, direct);
            for (int64_t i = from; i < n; i++, rest = esk_cdr(rest))
                CHECK(esk_integer(esk_car(rest)) == (i < leading ? -i : i - leading));
            CHECK(rest.tag == TAG_NULL);
        }
    }
    Value last = list;
    while (esk_cdr(last).tag == TAG_PAIR) last = esk_cdr(last);
    esk_set_cdr(context, last, list);
    esk_spread(context, &list, 1, direct); /* a circular list: an error */
    abort();
}
PROCEDURE(arguments, 0, -1)

static void *interrupt_soon(void *context) {
    usleep(20000);
    esk_interrupt(context);
    return NULL;
}

static void test_control(Context *context) {
    char here;
    saved = esk_root(context);
    esk_set_stack(context, (char *)((uintptr_t)&here - (4 << 20)));
    Value result;
    for (int i = 0; i < 3; i++) {
        CHECK(enter(context, &overflow_closure, ESK_NULL, &result) == 1 && is_kind(context, result, "stack-overflow"));
        Bytevector *trace = esk_pointer(((Record *)esk_pointer(result))->fields[4]);
        CHECK(trace->length == 128 * 8);
    }
    context->raise = esk_object(&overflow_twice_closure); /* a handler that needs more stack than there is */
    CHECK(enter(context, &overflow_closure, ESK_NULL, &result) == 1 && is_kind(context, result, "stack-overflow"));
    context->raise = esk_object(&throw_to_closure);
    CHECK(enter(context, &guarded_overflows_closure, ESK_NULL, &result) == 0);
    context->raise = ESK_NULL;
    CHECK(!context->overflowing && context->stack_limit == context->stack_end + (256 << 10));

    pthread_t other;
    for (int i = 0; i < 3; i++) {
        pthread_create(&other, NULL, interrupt_soon, context);
        CHECK(enter(context, &spin_closure, ESK_NULL, &result) == 1 && is_kind(context, result, "interrupt"));
        pthread_join(other, NULL);
    }
    CHECK(enter(context, &exit_seven_closure, ESK_NULL, &result) == 2 && esk_integer(result) == 7);
    CHECK(context->handlers.tag == TAG_NULL && context->winders.tag == TAG_NULL && !context->entry);
    CHECK(enter(context, &arguments_closure, ESK_NULL, &result) == 1 && is_kind(context, result, "range"));
    CHECK(enter(context, &ask_too_much_closure, ESK_NULL, &result) == 1 && is_kind(context, result, "wrong-arity"));
    CHECK(esk_enter(context, ESK_TRUE, NULL, 0, &result) == 1 && is_kind(context, result, "wrong-type"));
}

/* ---- figures -------------------------------------------------------------------------------------------------------- */

static Value allocate_pairs(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)count;
    Value list = ESK_NULL;
    for (int64_t i = 0; i < esk_integer(args[0]); i++) {
        list = esk_cons(context, esk_fixnum(i), list);
        if (i % 1000 == 0) list = ESK_NULL;
    }
    return ESK_TRUE;
}
PROCEDURE(allocate_pairs, 1, 1)

static Value allocate_mixture(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)count;
    Value keep = esk_make_vector(context, 1000, ESK_FALSE);
    for (int64_t goal = esk_integer(args[0]); esk_heap_statistic(context, HEAP_ALLOCATED) < goal;)
        for (int i = 0; i < 1000; i++) {
            Value object = random_below(50) ? esk_make_vector(context, (int64_t)random_below(40), ESK_FALSE)
                                            : esk_make_bytevector(context, (int64_t)random_below(100000), 0);
            esk_store(context, &((Vector *)esk_pointer(keep))->items[random_below(1000)], object);
        }
    return ESK_TRUE;
}
PROCEDURE(allocate_mixture, 1, 1)

static Value build_tree(Context *context, int64_t depth) {
    if (!depth) return ESK_NULL;
    Value left = build_tree(context, depth - 1);
    return esk_cons(context, left, build_tree(context, depth - 1));
}

static Value mark_tree(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)count;
    Value tree = build_tree(context, esk_integer(args[0]));
    double start = seconds();
    for (int i = 0; i < 5; i++) esk_collect(context);
    double each = (seconds() - start) / 5;
    int64_t live = esk_heap_statistic(context, HEAP_LIVE);
    printf("a collection with %lld MB alive: %.1f ms, %.1f ns a pair\n", (long long)(live >> 20), each * 1e3,
           each * 1e9 / ((double)live / 24));
    return tree;
}
PROCEDURE(mark_tree, 1, 1)

static void test_figures(Context *context) {
    Value result;
    double start = seconds();
    CHECK(enter(context, &allocate_pairs_closure, esk_fixnum(100000000), &result) == 0);
    double took = seconds() - start;
    printf("%.0f million pairs a second, resident %ld MB\n", 100 / took, resident_megabytes());
    CHECK(resident_megabytes() < 60);
    CHECK(enter(context, &allocate_mixture_closure, esk_fixnum((int64_t)10 << 30), &result) == 0);
    printf("10 GB allocated in %.1f s, resident %ld MB, %lld collections\n", seconds() - start, resident_megabytes(),
           (long long)esk_heap_statistic(context, HEAP_COLLECTIONS));
    CHECK(resident_megabytes() < 200);
    CHECK(enter(context, &mark_tree_closure, esk_fixnum(22), &result) == 0);
    result = ESK_NULL;
    for (int k = 0; k < 8; k++) esk_collect(context); /* each lets go of an eighth of what was in use */
    CHECK(resident_megabytes() < 60);
}

/* ---- several threads ------------------------------------------------------------------------------------------------ */

enum { THREADS = 4, SHARED = 64, DEPTH = 7 };

typedef struct { Context *context; int64_t number; pthread_t thread; } Runner;
static Value *shared;             /* a root: a vector that all write to, each to places of its own */
static uint64_t finished, turn;   /* how many have come to the end; whose turn it is */

static Value full_tree(Context *context, int64_t depth, int64_t leaf) {
    if (!depth) return esk_fixnum(leaf);
    Value left = full_tree(context, depth - 1, leaf);
    return esk_cons(context, left, full_tree(context, depth - 1, leaf));
}

static int64_t sum_of(Value tree) {
    return tree.tag == TAG_FIXNUM ? esk_integer(tree) : sum_of(esk_car(tree)) + sum_of(esk_cdr(tree));
}

/* Trees are made, kept in an old vector and looked at; names are interned; memory is asked for in all sizes. */
static Value threads_steps(Context *context, Closure *self, const Value *args, int64_t count) {
    (void)self, (void)count;
    int64_t number = esk_integer(args[0]);
    char name[40];
    Value kept[8];
    for (int i = 0; i < 8; i++) kept[i] = ESK_NULL;
    for (int64_t round = 0; round < ROUNDS * 30; round++) {
        Value tree = full_tree(context, DEPTH, number);
        int64_t place = number * (SHARED / THREADS) + round % (SHARED / THREADS);
        esk_store(context, &((Vector *)esk_pointer(*shared))->items[place], tree);
        int length = snprintf(name, sizeof name, "name-%d", (int)(round % 50));
        kept[round % 8] = esk_symbol(context, name, length);
        CHECK(esk_eq(kept[round % 8], esk_symbol(context, name, length)));
        Value vector = esk_make_vector(context, 1 + (round * 37) % 3000, tree);
        CHECK(sum_of(((Vector *)esk_pointer(vector))->items[0]) == number << DEPTH);
        for (int i = 0; i < SHARED / THREADS; i++) {
            Value seen = ((Vector *)esk_pointer(*shared))->items[number * (SHARED / THREADS) + i];
            CHECK(seen.tag == TAG_NULL || sum_of(seen) == number << DEPTH);
        }
        if (round % 20 == 7) { /* one after the other */
            uint64_t now = __atomic_load_n(&turn, __ATOMIC_SEQ_CST);
            if (now % THREADS != (uint64_t)number && __atomic_load_n(&finished, __ATOMIC_SEQ_CST) == 0)
                esk_wait(context, &turn, now, (int64_t)esk_now() + 1000000);
            __atomic_add_fetch(&turn, 1, __ATOMIC_SEQ_CST);
            esk_wake(context->heap, &turn, THREADS);
        }
        if (round % 50 == number) esk_collect(context);
    }
    return esk_fixnum(number);
}
PROCEDURE(threads_steps, 1, 1)

static void *run_thread(void *data) {
    Runner *runner = data;
    Value result;
    esk_come_back(runner->context);
    CHECK(enter(runner->context, &threads_steps_closure, esk_fixnum(runner->number), &result) == 0);
    CHECK(esk_integer(result) == runner->number);
    __atomic_add_fetch(&finished, 1, __ATOMIC_SEQ_CST);
    esk_remove_context(runner->context);
    esk_free_thread_context(runner->context);
    return NULL;
}

static void join_threads(void *data) {
    Runner *runners = data;
    for (int i = 1; i < THREADS; i++) pthread_join(runners[i].thread, NULL);
}

static void test_threads(Context *context) {
    Runner runners[THREADS];
    Value result;
    shared = esk_root(context);
    *shared = esk_make_vector(context, SHARED, ESK_NULL);
    for (int i = 1; i < THREADS; i++) {
        runners[i] = (Runner){.context = esk_new_thread_context(context), .number = i};
        CHECK(runners[i].context);
    }
    for (int i = 1; i < THREADS; i++) CHECK(pthread_create(&runners[i].thread, NULL, run_thread, &runners[i]) == 0);
    CHECK(enter(context, &threads_steps_closure, esk_fixnum(0), &result) == 0);
    esk_apart(context, join_threads, runners);
    CHECK(context->heap->contexts == 1 && context->heap->running == 1 && !context->heap->waiters);
    for (int i = 0; i < SHARED; i++)
        CHECK(sum_of(((Vector *)esk_pointer(*shared))->items[i]) == (int64_t)(i / (SHARED / THREADS)) << DEPTH);
    *shared = ESK_NULL;
    esk_collect(context);
    CHECK(esk_heap_statistic(context, HEAP_LIVE) < 1 << 20);
}

int main(int count, char **args) {
    static const struct { const char *name; void (*run)(Context *); } tests[] = {
        {"graphs", test_graphs}, {"deep", test_deep}, {"limits", test_limits}, {"symbols", test_symbols},
        {"continuations", test_continuations}, {"captures", test_many_captures}, {"control", test_control},
        {"figures", test_figures}, {"slices", test_slices}, {"forgotten", test_forgotten},
        {"threads", test_threads},
    };
    esk_invoke = invoke;
    for (int i = 1; i < count; i++)
        for (size_t j = 0; j < sizeof tests / sizeof *tests; j++)
            if (!strcmp(args[i], tests[j].name)) {
                Context *context = esk_new_context(0);
                CHECK(context);
                if (i == 1 && count > 2 && args[2][0] >= '0' && args[2][0] <= '9') state += strtoull(args[2], NULL, 10);
                tests[j].run(context);
                esk_free_context(context);
                printf("%s: right\n", args[i]);
            }
    return 0;
}
