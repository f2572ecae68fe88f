/* Which procedures have compiled derivatives, and how they are found, made and given up.
 *
 * Comes in: (%fast-derivative kind procedure points checkpoint?) from the library. Goes out: what the program of that
 * kind gives (fast.h), behind 1 where it goes forward and 0 where it gives gradients; or #f: then the library computes
 * with differentiated numbers. The host is asked for a program when none that is there takes these arguments; one that
 * keeps failing is not tried again.
 */
#include "fast.h"
#include "heap.h"
#include "hostcalls.h"

#include <stdlib.h>

enum {
    MOST_POINTS = 8,
    MOST_DEPTH = 8, /* of vectors and lists in each other */
    MOST_PROGRAMS = 4, /* of one kind, for one procedure */
    MOST_REFUSALS = 3, /* so often the host may say that there is none */
    MOST_FAILURES = 3, /* so often a program may give up before it has ever come to its end */
    SELDOM = 100, /* a procedure without loops and calls is compiled when it has been differentiated so often */
    DERIVATIVE = 0, /* the kind of a derivative by one number */
    ALONG = 5,      /* along a direction */
    CHECKPOINT = 8, /* in a kind: loops keep few states, and run again */
    BUCKETS = 256
};

/* What programs are made for: the code of a procedure, that of procedures that it has captured, as one number, and a
 * kind of derivative. */
typedef struct {
    const Procedure *procedure;
    uintptr_t captured;
    int64_t kind;
} Key;

typedef struct Row {
    struct Row *next;
    Key key;
    FastCode *programs[MOST_PROGRAMS];
    int64_t failures[MOST_PROGRAMS]; /* negative once it has succeeded */
    int64_t count, refusals, calls;
} Row;

struct FastTable {
    Row *rows[BUCKETS];
    Key asked; /* what the host is asked for */
    bool off;
    int64_t limit; /* bytes for a run; 0: what the heap has */
    int64_t runs; /* that came to their end */
    int64_t used; /* bytes that the last of them used */
};

static struct FastTable *table_of(Context *context) {
    if (!context->fast) context->fast = calloc(1, sizeof *context->fast);
    return context->fast;
}

static Key key_of(Value procedure, int64_t kind) {
    const Closure *closure = esk_pointer(procedure);
    Key key = {.procedure = closure->procedure, .kind = kind};
    for (uint32_t i = 0; i < closure->head.count; i++) {
        Value v = closure->captured[i];
        if (v.tag == TAG_PROCEDURE)
            key.captured = key.captured * 31 + (uintptr_t)((Closure *)esk_pointer(v))->procedure;
    }
    return key;
}

static bool is_same(const Key *a, const Key *b) {
    return a->procedure == b->procedure && a->captured == b->captured && a->kind == b->kind;
}

static size_t bucket(const Key *key) {
    return (((uintptr_t)key->procedure ^ key->captured) >> 4) * 0x9E3779B1u % BUCKETS;
}

static Row *row_of(struct FastTable *table, const Key *key, bool make) {
    Row **place = &table->rows[bucket(key)];
    for (Row *row = *place; row; row = row->next)
        if (is_same(&row->key, key)) return row;
    Row *row = make ? calloc(1, sizeof *row) : NULL;
    if (row) {
        *row = (Row){.next = *place, .key = *key};
        *place = row;
    }
    return row;
}

/* For the host: a program for the procedure that it was asked for; null says that there is none. */
void esk_fast_add(Context *context, const Procedure *procedure, int64_t kind, FastCode *code) {
    struct FastTable *table = table_of(context);
    if (!table || table->asked.procedure != procedure || table->asked.kind != kind) return;
    Row *row = row_of(table, &table->asked, true);
    if (!row) return;
    if (!code) {
        row->refusals++;
    } else if (row->count < MOST_PROGRAMS) {
        row->programs[row->count++] = code;
    }
}

/* For the host, before code goes away: nothing that was made is used again. */
void esk_fast_forget(Context *context) {
    if (!context->fast) return;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (Row *row = context->fast->rows[i], *next; row; row = next) {
            next = row->next;
            free(row);
        }
        context->fast->rows[i] = NULL;
    }
}

void esk_fast_free(Context *context) {
    esk_fast_forget(context);
    free(context->fast);
    context->fast = NULL;
}

/* Try the programs of a row from one on; a mismatch where none takes the arguments. */
static int64_t try_programs(Context *context, Row *row, int64_t from, const Value *args, int64_t count, bool whole,
                            Value *result) {
    for (int64_t i = from; i < row->count; i++) {
        FastCode *code = row->programs[i];
        if (row->failures[i] >= MOST_FAILURES) continue;
        bool is_whole = whole;
        code->limit = context->fast->limit;
        int64_t status = esk_fast_run(context, code, args, count, result, &is_whole);
        if (status == FAST_MISMATCH) {
            if (row->failures[i] >= 0) row->failures[i]++;
            continue;
        }
        /* an infinite factor times nothing is a NaN, and a zero that divides may be an exact one; differentiated
         * numbers know better */
        if (status == FAST_OK && code->wild) status = FAST_FAILED;
        if (status == FAST_OK) {
            if (!whole) *result = esk_cons(context, esk_fixnum(code->forward), *result);
            else if (!is_whole) *result = ESK_FALSE;
            row->failures[i] = -1;
            context->fast->runs++;
            context->fast->used = code->used;
        } else if (status == FAST_FAILED && row->failures[i] >= 0) {
            row->failures[i]++;
        }
        return status;
    }
    return FAST_MISMATCH;
}

/* Whether something may be an argument of a program: an inexact number, or data that begins with one. */
static bool is_suitable(Value v) {
    for (int depth = 0; depth < MOST_DEPTH; depth++) { /* data may be cyclic */
        if (v.tag == TAG_VECTOR && ((Vector *)esk_pointer(v))->length) v = ((Vector *)esk_pointer(v))->items[0];
        else if (v.tag == TAG_PAIR) v = esk_car(v);
        else return v.tag == TAG_FLONUM;
    }
    return false;
}

static Value find_derivative(Context *, int64_t kind, const Value *given, int64_t points, bool whole, bool *is_full);

/* The procedure and its points, from a list; their number, or zero where they are too many or no inexact numbers. */
static int64_t take_points(Value procedure, Value points, Value given[1 + MOST_POINTS]) {
    int64_t count = 1;
    given[0] = procedure;
    for (; points.tag == TAG_PAIR; points = esk_cdr(points)) {
        if (count > MOST_POINTS || !is_suitable(esk_car(points))) return 0;
        given[count++] = esk_car(points);
    }
    return count > 1 && procedure.tag == TAG_PROCEDURE ? count : 0;
}

static Value fast_derivative(Context *context, const Value *args, int64_t count) {
    Value given[1 + MOST_POINTS];
    if (args[0].tag != TAG_FIXNUM) esk_wrong_type(context, "%fast-derivative", 1, args[0], "a kind");
    count = take_points(args[1], args[2], given);
    int64_t kind = esk_is_false(args[3]) ? esk_integer(args[0]) : esk_integer(args[0]) | CHECKPOINT;
    if (!count) return ESK_FALSE;
    bool is_full = false;
    Value found = find_derivative(context, kind, given, count, false, &is_full);
    if (is_full && kind >= CHECKPOINT) esk_out_of_memory(context, esk_heap_room(context) + 1); /* nobody else tries */
    return found;
}

static Value find_derivative(Context *context, int64_t kind, const Value *given, int64_t points, bool whole,
                             bool *is_full) {
    if (!esk_is_first(context)) return ESK_FALSE; /* the table, and who compiles, are the first thread's */
    const Procedure *procedure = ((Closure *)esk_pointer(given[0]))->procedure;
    struct FastTable *table = table_of(context);
    if (!table || table->off || !procedure->unit || !context->host) return ESK_FALSE;
    Key key = key_of(given[0], kind);
    Row *row = row_of(table, &key, true);
    if (!row || (procedure->plain && row->calls++ < SELDOM && kind < CHECKPOINT)) return ESK_FALSE;
    Value result = ESK_FALSE;
    int64_t status = try_programs(context, row, 0, given, points, whole, &result);
    if (status == FAST_MISMATCH && row->count < MOST_PROGRAMS && row->refusals < MOST_REFUSALS) {
        int64_t before = row->count;
        Value asked[2 + MOST_POINTS] = {esk_fixnum(kind)};
        memcpy(asked + 1, given, (size_t)points * sizeof *given);
        table->asked = key;
        esk_ask_host(context, HOST_FAST_PROGRAM, asked, 1 + points);
        row = row_of(table, &key, true); /* the host may have let everything go */
        if (row && row->count > before) status = try_programs(context, row, before, given, points, whole, &result);
    }
    if (status == FAST_FULL && kind < CHECKPOINT)
        return find_derivative(context, kind | CHECKPOINT, given, points, whole, is_full);
    *is_full = status == FAST_FULL;
    return status == FAST_OK ? result : ESK_FALSE;
}

/* The same without options, and quickly: the derivative alone. */
static Value fast_at(Context *context, const Value *args, int64_t count) {
    Value given[1 + MOST_POINTS];
    if (args[0].tag != TAG_FIXNUM) esk_wrong_type(context, "%fast-at", 1, args[0], "a kind");
    count = take_points(args[1], args[2], given);
    bool by_one = count == 2 && given[1].tag == TAG_FLONUM;
    if (!count || (esk_integer(args[0]) == DERIVATIVE && !by_one)) return ESK_FALSE; /* an error, which others raise */
    bool is_full;
    return find_derivative(context, esk_integer(args[0]), given, count, true, &is_full);
}

/* The value and the derivative along a direction, as a pair. */
static Value fast_along(Context *context, const Value *args, int64_t count) {
    (void)count;
    Value given[4] = {args[0], args[1], args[0], args[2]};
    if (args[0].tag != TAG_PROCEDURE || !is_suitable(args[1]) || !is_suitable(args[2])) return ESK_FALSE;
    bool is_full;
    Value found = find_derivative(context, ALONG, given, 4, false, &is_full);
    if (found.tag != TAG_PAIR) return ESK_FALSE;
    Value both = esk_cdr(found);
    return esk_cons(context, esk_car(both), esk_car(esk_cdr(both)));
}

static Value fast_derivatives(Context *context, const Value *args, int64_t count) {
    struct FastTable *table = table_of(context->heap->first);
    bool before = table && !table->off;
    if (table && count) table->off = esk_is_false(args[0]);
    return esk_boolean(before);
}

static Value fast_limit(Context *context, const Value *args, int64_t count) {
    struct FastTable *table = table_of(context->heap->first);
    int64_t before = table ? table->limit : 0;
    if (count && args[0].tag != TAG_FIXNUM) esk_wrong_type(context, "%fast-limit", 1, args[0], "a number of bytes");
    if (table && count) table->limit = esk_integer(args[0]);
    return esk_fixnum(before);
}

static Value fast_statistics(Context *context) {
    struct FastTable *table = table_of(context->heap->first);
    return esk_cons(context, esk_fixnum(table ? table->runs : 0), esk_fixnum(table ? table->used : 0));
}

const Primitive esk_fast_table_primitives[] = {
    ESK_PRIMITIVE_N("%fast-derivative", "(%fast-derivative kind procedure points checkpoint?)", 4, 4, fast_derivative,
                    "What the compiled derivative of this kind gives, or #f where there is none."),
    ESK_PRIMITIVE_N("%fast-at", "(%fast-at kind procedure points)", 3, 3, fast_at,
                    "The derivative of this kind at these points, by compiled code, or #f where there is none."),
    ESK_PRIMITIVE_N("%fast-along", "(%fast-along procedure point direction)", 3, 3, fast_along,
                    "A pair, the value and the derivative along a direction, by compiled code; #f where none is."),
    ESK_PRIMITIVE_N("%fast-derivatives", "(%fast-derivatives [use?])", 0, 1, fast_derivatives,
                    "Whether compiled derivatives were used; from now on they are if use? is true."),
    ESK_PRIMITIVE_N("%fast-limit", "(%fast-limit [bytes])", 0, 1, fast_limit,
                    "The bytes that a run of a compiled derivative may use, from now on bytes; 0: what the heap has."),
    ESK_PRIMITIVE_0("%fast-statistics", "(%fast-statistics)", fast_statistics,
                    "A pair: how many runs of compiled derivatives there were, and the bytes that the last one used."),
    {0}};
