/* Which procedures have compiled derivatives, and how they are found, made and given up.
 *
 * Comes in: (%fast-derivative kind procedure points checkpoint?) from the library. Goes out: what the program of that
 * kind gives (fast.h), behind 1 where it goes forward and 0 where it gives gradients; or #f: then the library computes
 * with differentiated numbers. The host is asked for a program when none that is there takes these arguments; one that
 * keeps failing is not tried again.
 *
 * All threads of a heap share one table, and look things up in it without a lock: rows and programs are added at the
 * ends of what is there, by the first thread, which is the one that asks the host. What is forgotten is taken out at
 * once and given back when no thread can be using it any more. Each says of what generation the table was when it came
 * (Context.fast_generation), so what was taken out of a later one is nothing that it has seen.
 */
#include "fast.h"
#include "heap.h"
#include "hostcalls.h"
#include "threads.h"

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
    struct Row *next_retired;
    uint64_t retired; /* with which generation it went */
    FastCode *programs[MOST_PROGRAMS];
    /* What is counted may lose a step where several threads count at once. */
    int64_t failures[MOST_PROGRAMS]; /* negative once it has succeeded */
    int64_t count, refusals, calls;
} Row;

struct FastTable {
    Row *rows[BUCKETS];
    pthread_mutex_t lock; /* of who adds rows, or takes them out */
    uint64_t generation;  /* from 1 on; the next one whenever programs are forgotten */
    Row *retired;         /* rows that some thread may still be looking at */
    Key asked; /* what the host is asked for */
    bool off;
    int64_t limit; /* bytes for a run; 0: what the heap has */
};

#define LOOK(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define SET(place, value) __atomic_store_n(&(place), value, __ATOMIC_RELAXED)
#define COUNT(place) SET(place, LOOK(place) + 1)

static struct FastTable *table_of(const Context *context) {
    Context *first = context->heap->first;
    struct FastTable *found = __atomic_load_n(&first->fast, __ATOMIC_ACQUIRE), *made;
    if (found || !(made = calloc(1, sizeof *made))) return found;
    pthread_mutex_init(&made->lock, NULL);
    made->generation = 1;
    if (__atomic_compare_exchange_n(&first->fast, &found, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return made;
    free(made);
    return found;
}

/* ---- who uses the table ------------------------------------------------------------------------------------------ */

/* What this thread finds from now on stays until it says that it has done with it. Gives what it had said before: on
 * the first thread, what others ask for may run within a derivative. */
static uint64_t begin_use(Context *context, const struct FastTable *table) {
    uint64_t before = context->fast_generation;
    if (before) return before;
    uint64_t now = __atomic_load_n(&table->generation, __ATOMIC_SEQ_CST);
    if (context->heap->several) __atomic_store_n(&context->fast_generation, now, __ATOMIC_SEQ_CST);
    else SET(context->fast_generation, now); /* nobody looks but this thread */
    return before;
}

/* The oldest generation that any thread may be using; none: the greatest number. For the host, too. */
uint64_t esk_fast_oldest(const Context *context) {
    Heap *heap = context->heap;
    uint64_t oldest = UINT64_MAX;
    pthread_mutex_lock(&heap->world);
    for (Context *each = heap->first; each; each = each->next) {
        uint64_t own = __atomic_load_n(&each->fast_generation, __ATOMIC_SEQ_CST);
        if (own && own < oldest) oldest = own;
    }
    pthread_mutex_unlock(&heap->world);
    return oldest;
}

static void free_retired(struct FastTable *table, uint64_t oldest) {
    Row **place = &table->retired;
    while (*place) {
        Row *row = *place;
        if (row->retired >= oldest) {
            place = &row->next_retired;
            continue;
        }
        *place = row->next_retired;
        free(row);
    }
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

static Row *find_row(Row **place, const Key *key) {
    Row *row = __atomic_load_n(place, __ATOMIC_SEQ_CST);
    while (row && !is_same(&row->key, key)) row = row->next;
    return row;
}

/* The row of a key, which is made where there is none; null where there is no memory. */
static Row *row_of(struct FastTable *table, const Key *key) {
    Row **place = &table->rows[bucket(key)], *row = find_row(place, key);
    if (row) return row;
    pthread_mutex_lock(&table->lock);
    row = find_row(place, key);
    if (!row && (row = calloc(1, sizeof *row))) {
        *row = (Row){.next = *place, .key = *key};
        __atomic_store_n(place, row, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(&table->lock);
    return row;
}

static int64_t programs_of(const Row *row) { return __atomic_load_n(&row->count, __ATOMIC_ACQUIRE); }

/* For the host: a program for the procedure that it was asked for; null says that there is none. */
void esk_fast_add(Context *context, const Procedure *procedure, int64_t kind, FastCode *code) {
    struct FastTable *table = table_of(context);
    if (!table || table->asked.procedure != procedure || table->asked.kind != kind) return;
    Row *row = row_of(table, &table->asked);
    if (!row) return;
    int64_t count = row->count;
    if (!code) {
        COUNT(row->refusals);
    } else if (count < MOST_PROGRAMS) {
        row->programs[count] = code;
        __atomic_store_n(&row->count, count + 1, __ATOMIC_RELEASE);
    }
}

/* For the host, before code goes away: what was made is found no more. Gives its generation: it may go when
 * esk_fast_oldest gives a later one. */
uint64_t esk_fast_forget(Context *context) {
    struct FastTable *table = context->fast;
    if (!table) return 0;
    pthread_mutex_lock(&table->lock);
    uint64_t generation = table->generation;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (Row *row = table->rows[i]; row; row = row->next) {
            row->retired = generation;
            row->next_retired = table->retired;
            table->retired = row;
        }
        __atomic_store_n(&table->rows[i], NULL, __ATOMIC_SEQ_CST);
    }
    __atomic_store_n(&table->generation, generation + 1, __ATOMIC_SEQ_CST); /* behind them: who has it sees none */
    free_retired(table, esk_fast_oldest(context));
    pthread_mutex_unlock(&table->lock);
    return generation;
}

void esk_fast_free(Context *context) {
    struct FastTable *table = context->fast;
    if (!table) return;
    esk_fast_forget(context);
    free_retired(table, UINT64_MAX);
    pthread_mutex_destroy(&table->lock);
    free(table);
    context->fast = NULL;
}

static void count_failure(int64_t *failures) {
    if (LOOK(*failures) >= 0) COUNT(*failures);
}

/* Try the programs of a row from one on; a mismatch where none takes the arguments. */
static int64_t try_programs(Context *context, const struct FastTable *table, Row *row, int64_t from, const Value *args,
                            int64_t count, bool whole, Value *result) {
    for (int64_t i = from; i < programs_of(row); i++) {
        int64_t *failures = &row->failures[i];
        if (LOOK(*failures) >= MOST_FAILURES) continue;
        FastCode code = *row->programs[i]; /* this run's own, with what it says of itself */
        bool is_whole = whole;
        code.limit = LOOK(table->limit);
        int64_t status = esk_fast_run(context, &code, args, count, result, &is_whole);
        if (status == FAST_MISMATCH) {
            count_failure(failures);
            continue;
        }
        /* an infinite factor times nothing is a NaN, and a zero that divides may be an exact one; differentiated
         * numbers know better */
        if (status == FAST_OK && code.wild) status = FAST_FAILED;
        if (status == FAST_OK) {
            if (!whole) *result = esk_cons(context, esk_fixnum(code.forward), *result);
            else if (!is_whole) *result = ESK_FALSE;
            if (LOOK(*failures) != -1) SET(*failures, -1);
            COUNT(context->fast_runs);
            SET(context->fast_used, code.used);
        } else if (status == FAST_FAILED) count_failure(failures);
        return status;
    }
    return FAST_MISMATCH;
}

/* ---- asking the host --------------------------------------------------------------------------------------------- */

typedef struct {
    struct FastTable *table;
    Key key;
    int64_t before; /* so many programs were there when somebody missed one */
    Question question;
} Wanted;

/* On the first thread. Another may have asked for the same meanwhile. */
static void ask_for_program(Context *first, void *data) {
    Wanted *wanted = data;
    const Row *row = row_of(wanted->table, &wanted->key);
    if (!row || row->count > wanted->before) return;
    wanted->table->asked = wanted->key;
    esk_put_question(first, &wanted->question);
}

/* Not where the first thread is in Python: that would have to end before, and may itself wait for this thread. */
static bool may_ask(Context *context) {
    const Context *first = context->heap->first;
    if (first == context) return true;
    pthread_mutex_lock(&context->heap->world);
    bool may = first->stopped || __atomic_load_n(&first->inside, __ATOMIC_RELAXED) == INSIDE_SCHEME;
    pthread_mutex_unlock(&context->heap->world);
    return may;
}

static void have_program(Context *context, struct FastTable *table, const Key *key, int64_t before, const Value *given,
                         int64_t points) {
    Value asked[2 + MOST_POINTS] = {esk_fixnum(key->kind)};
    memcpy(asked + 1, given, (size_t)points * sizeof *given);
    Wanted wanted = {table, *key, before, {HOST_FAST_PROGRAM, asked, 1 + points, ESK_UNSPECIFIED, 0}};
    Held held;
    esk_let_go(context, &held);
    esk_on_first(context, ask_for_program, &wanted);
    esk_hold_again(context, &held);
    esk_answer(context, &wanted.question);
}

/* ---- derivatives ------------------------------------------------------------------------------------------------- */

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
    const Procedure *procedure = ((Closure *)esk_pointer(given[0]))->procedure;
    struct FastTable *table = table_of(context);
    if (!table || LOOK(table->off) || !procedure->unit || !context->host) return ESK_FALSE;
    Key key = key_of(given[0], kind);
    uint64_t outside = begin_use(context, table);
    Value result = ESK_FALSE;
    int64_t status = FAST_MISMATCH, programs = 0;
    Row *row = row_of(table, &key);
    bool wanted = false;
    if (row) {
        bool seldom = procedure->plain && LOOK(row->calls) < SELDOM;
        if (seldom) COUNT(row->calls);
        if (!seldom || kind >= CHECKPOINT) {
            programs = programs_of(row);
            status = try_programs(context, table, row, 0, given, points, whole, &result);
            wanted = status == FAST_MISMATCH && programs < MOST_PROGRAMS && LOOK(row->refusals) < MOST_REFUSALS;
        }
    }
    esk_end_fast(context, outside);
    if (wanted && may_ask(context)) {
        have_program(context, table, &key, programs, given, points);
        outside = begin_use(context, table);
        row = row_of(table, &key); /* the host may have let everything go */
        if (row && programs_of(row) > programs)
            status = try_programs(context, table, row, programs, given, points, whole, &result);
        esk_end_fast(context, outside);
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
    struct FastTable *table = table_of(context);
    bool before = table && !LOOK(table->off);
    if (table && count) SET(table->off, esk_is_false(args[0]));
    return esk_boolean(before);
}

static Value fast_limit(Context *context, const Value *args, int64_t count) {
    struct FastTable *table = table_of(context);
    int64_t before = table ? LOOK(table->limit) : 0;
    if (count && args[0].tag != TAG_FIXNUM) esk_wrong_type(context, "%fast-limit", 1, args[0], "a number of bytes");
    if (table && count) SET(table->limit, esk_integer(args[0]));
    return esk_fixnum(before);
}

static Value fast_statistics(Context *context) {
    Heap *heap = context->heap;
    pthread_mutex_lock(&heap->world);
    int64_t runs = heap->fast_runs;
    for (Context *each = heap->first; each; each = each->next) runs += LOOK(each->fast_runs);
    pthread_mutex_unlock(&heap->world);
    return esk_cons(context, esk_fixnum(runs), esk_fixnum(LOOK(context->fast_used)));
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
                    "A pair: how many runs of compiled derivatives there were, and the bytes of this thread's last."),
    {0}};
