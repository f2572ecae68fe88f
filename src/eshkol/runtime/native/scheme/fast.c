/* Runs of programs that were compiled for fast derivatives: see fast.h.
 *
 * Inputs are followed to their places, checked and copied; then the program runs, which never calls Scheme; then the
 * results are built on the heap. The memory of runs is one reservation for each thread, which the system fills with
 * pages as they are used, and which is given back after large runs. Beyond what is kept between runs it counts against
 * the limit of the heap: a run may have what the heap leaves. Nothing is held while the heap is used but that,
 * so that errors may leave from there.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fast_results.h"
#include "heap.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    MAX_LANES = 16,
    MAX_VARIABLES = 8,
    MAX_STEPS_SEEN = 1 << 30,
    MOST_PASSES = 4,       /* of programs with few lanes: there are better ones */
    MOST_FULL_PASSES = 64  /* of those with all lanes: beyond that a sweep for each result is better */
};
#define KEPT ((size_t)16 << 20) /* bytes that stay committed between runs */

/* ---- memory ------------------------------------------------------------------------------------------------------ */

typedef struct { char *base; size_t size; } Reserve;

static _Thread_local Reserve reserve;
static pthread_key_t reserve_key;
static pthread_once_t reserve_once = PTHREAD_ONCE_INIT;

static void free_reserve(void *base) { munmap(base, reserve.size); }
static void make_key(void) { pthread_key_create(&reserve_key, free_reserve); }

/* This thread's, or null. Asking once for each run is enough: it costs a call. */
static const Reserve *have_reserve(void) {
    Reserve *own = &reserve;
    if (own->base) return own;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page <= 0) return NULL;
    pthread_once(&reserve_once, make_key);
    for (size_t size = (size_t)pages / 2 * (size_t)page; size >= KEPT; size /= 2) {
        void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED) continue;
        *own = (Reserve){base, size};
        pthread_setspecific(reserve_key, base);
        return own;
    }
    return NULL;
}

/* Give back what a large run used: of the tape from below, of the arena from above. */
static void trim(const Reserve *own, size_t size, size_t tape, size_t arena) {
    if (tape > KEPT) madvise(own->base + KEPT, tape - KEPT, MADV_DONTNEED);
    if (arena > KEPT) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE), from = (size - arena) / page * page;
        madvise(own->base + from, size - KEPT - from, MADV_DONTNEED);
    }
}

void esk_fast_fill(uint64_t *words, int64_t count, uint64_t bits) {
    for (int64_t i = 0; i < count; i++) words[i] = bits;
}

void esk_fast_spread(double *to, int64_t count, const double *pattern, int64_t lanes) {
    for (int64_t i = 0; i < count; i++, to += lanes) memcpy(to, pattern, 8 * (size_t)lanes);
}

int64_t esk_fast_checkpoint(FastCheckpoints *all, int64_t turn, const uint64_t *values) {
    size_t bytes = 8 * (size_t)all->words;
    if (all->count == all->room) {
        all->count /= 2;
        all->interval *= 2;
        for (int64_t i = 1; i < all->count; i++)
            memcpy(all->base + i * all->words, all->base + 2 * i * all->words, bytes);
    }
    memcpy(all->base + all->count++ * all->words, values, bytes);
    return turn + all->interval;
}

double esk_fast_sum(const double *numbers, int64_t count, double total) {
    while (count > 0) total += numbers[--count];
    return total;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

typedef struct {
    FastRun *run;
    int64_t lanes, base, leaf; /* the first leaf of this pass, and the next one */
    int64_t seen;              /* elements looked at: data may share parts and so be larger than they are */
    bool seeds, directed;
    int64_t status;
    size_t room;        /* bytes that the run may use */
    size_t tape, arena; /* bytes used, once the program has run */
    size_t kept;        /* bytes from the beginning that earlier passes have filled with rows */
    int64_t variables, starts[MAX_VARIABLES + 1]; /* the first leaf of each variable, if they are few */
} Copy;

static int64_t no(Copy *copy, int64_t status) {
    if (!copy->status) copy->status = status;
    return 0;
}

static char *arena_take(Copy *copy, size_t bytes) {
    FastRun *run = copy->run;
    if ((size_t)(run->arena - run->tape) < bytes) {
        no(copy, FAST_FULL);
        return NULL;
    }
    return run->arena -= bytes;
}

/* The length of a proper list, -1 for anything else. */
static int64_t list_length(Copy *copy, Value v) {
    int64_t n = 0;
    Value slow = v;
    for (; v.tag == TAG_PAIR; n++) {
        v = esk_cdr(v);
        if (n & 1) {
            slow = esk_cdr(slow);
            if (esk_eq(slow, v) && v.tag == TAG_PAIR) return -1;
        }
    }
    copy->seen += n;
    return v.tag == TAG_NULL && copy->seen <= MAX_STEPS_SEEN ? n : -1;
}

static int64_t vector_length(Copy *copy, Value v) {
    if (v.tag != TAG_VECTOR) return -1;
    int64_t n = ((Vector *)esk_pointer(v))->length;
    copy->seen += n;
    return copy->seen <= MAX_STEPS_SEEN ? n : -1;
}

static Value vector_item(Value v, int64_t i) { return ((Vector *)esk_pointer(v))->items[i]; }

static bool check(Copy *copy, const char *d, Value v) {
    switch (*d) {
    case 'f': return v.tag == TAG_FLONUM;
    case 'i': return v.tag == TAG_FIXNUM;
    case 'b': return v.tag == TAG_BOOLEAN;
    case 'V': {
        int64_t n = vector_length(copy, v);
        if (d[2] == 'f' && n >= 0) { /* the usual case, quickly */
            uint64_t others = 0;
            for (int64_t i = 0; i < n; i++) others |= vector_item(v, i).tag ^ TAG_FLONUM;
            return !others;
        }
        for (int64_t i = 0; i < n; i++)
            if (!check(copy, d + 2, vector_item(v, i))) return false;
        return n >= 0;
    }
    case 'Q': return v.tag == TAG_PAIR || v.tag == TAG_NULL;
    case 'L':
        if (list_length(copy, v) < 0) return false;
        for (; v.tag == TAG_PAIR; v = esk_cdr(v))
            if (!check(copy, d + 2, esk_car(v))) return false;
        return true;
    default: return false;
    }
}

/* The derivatives beside a number that is a leaf of a variable. */
static void seed(Copy *copy, double *derivatives, Value along) {
    for (int64_t k = 0; k < copy->lanes; k++) derivatives[k] = 0;
    if (!copy->seeds) return;
    if (copy->directed) {
        if (along.tag == TAG_FLONUM) derivatives[0] = esk_double(along);
        else if (along.tag == TAG_FIXNUM) derivatives[0] = (double)esk_integer(along);
        else no(copy, FAST_MISMATCH);
    } else if (copy->leaf >= copy->base && copy->leaf < copy->base + copy->lanes)
        derivatives[copy->leaf - copy->base] = 1;
    copy->leaf++;
}

/* A vector of numbers, which is the usual case, quickly. */
static uint64_t copy_numbers(Copy *copy, Value v) {
    int64_t n = vector_length(copy, v), lanes = copy->lanes;
    if (n < 0) return (uint64_t)no(copy, FAST_MISMATCH);
    uint64_t *words = (uint64_t *)(void *)arena_take(copy, 8 * (size_t)(1 + n + n * lanes));
    if (!words) return 0;
    const Value *items = ((Vector *)esk_pointer(v))->items;
    uint64_t others = 0;
    words[0] = (uint64_t)n;
    for (int64_t i = 0; i < n; i++) {
        others |= items[i].tag ^ TAG_FLONUM;
        words[1 + i] = items[i].bits;
    }
    double *beside = (double *)(void *)(words + 1 + n);
    memset(beside, 0, 8 * (size_t)(n * lanes));
    if (copy->seeds) {
        int64_t shift = copy->leaf - copy->base; /* of the leaves to the lanes */
        for (int64_t i = shift < 0 ? -shift : 0; i < n && i + shift < lanes; i++) beside[i * lanes + i + shift] = 1;
        copy->leaf += n;
    }
    return others ? (uint64_t)no(copy, FAST_MISMATCH) : (uint64_t)(uintptr_t)words;
}

/* A value as a word of the program; what is copied goes to the arena. `along` is the direction, where there is one. */
static uint64_t copy_in(Copy *copy, const char *d, Value v, Value along, double *derivatives) {
    if (copy->status) return 0;
    bool numbers = d[0] && d[1] == '(' && d[2] == 'f';
    switch (*d) {
    case 'f':
        if (v.tag != TAG_FLONUM) return (uint64_t)no(copy, FAST_MISMATCH);
        seed(copy, derivatives, along);
        return v.bits;
    case 'v': {
        if (numbers && !copy->directed) return copy_numbers(copy, v);
        int64_t n = vector_length(copy, v);
        if (n < 0) return (uint64_t)no(copy, FAST_MISMATCH);
        if (copy->directed && (along.tag != TAG_VECTOR || ((Vector *)esk_pointer(along))->length != n))
            return (uint64_t)no(copy, FAST_MISMATCH);
        size_t each = 8 * (numbers ? 1 + (size_t)copy->lanes : 1);
        uint64_t *words = (uint64_t *)(void *)arena_take(copy, 8 + (size_t)n * each);
        if (!words) return 0;
        words[0] = (uint64_t)n;
        double *beside = (double *)(void *)(words + 1 + n);
        for (int64_t i = 0; i < n && !copy->status; i++)
            words[1 + i] = copy_in(copy, d + 2, vector_item(v, i), copy->directed ? vector_item(along, i) : v,
                                   numbers ? beside + i * copy->lanes : NULL);
        return (uint64_t)(uintptr_t)words;
    }
    case 'l': {
        if (list_length(copy, v) < 0 || (copy->directed && list_length(copy, along) < 0))
            return (uint64_t)no(copy, FAST_MISMATCH);
        uint64_t first = 0, *place = &first;
        for (; v.tag == TAG_PAIR && !copy->status; v = esk_cdr(v)) {
            if (copy->directed && along.tag != TAG_PAIR) return (uint64_t)no(copy, FAST_MISMATCH);
            size_t bytes = 16 + (numbers ? 8 * (size_t)copy->lanes : 0);
            uint64_t *cell = (uint64_t *)(void *)arena_take(copy, bytes);
            if (!cell) return 0;
            cell[0] = copy_in(copy, d + 2, esk_car(v), copy->directed ? esk_car(along) : v,
                              numbers ? (double *)(void *)(cell + 2) : NULL);
            cell[1] = 0;
            *place = (uint64_t)(uintptr_t)cell;
            place = cell + 1;
            if (copy->directed) along = esk_cdr(along);
        }
        if (copy->directed && along.tag != TAG_NULL) return (uint64_t)no(copy, FAST_MISMATCH);
        return first;
    }
    default:
        if (!check(copy, d, v)) return (uint64_t)no(copy, FAST_MISMATCH);
        return v.bits; /* of the empty list: 0 */
    }
}

static bool has_length(Copy *copy, const FastInput *input, Value v) {
    int64_t n = v.tag == TAG_VECTOR ? ((Vector *)esk_pointer(v))->length : list_length(copy, v);
    return (uint64_t)n + 1 == input->expected;
}

/* Follow the way to an input; false where the data are not like that. */
static inline bool find(const FastInput *input, const Value *args, int64_t count, Value *found) {
    Value v = input->global ? *input->global : ESK_FALSE;
    for (int64_t k = 0; k < input->step_count; k++) {
        int64_t i = input->steps[k].index;
        switch (input->steps[k].kind) {
        case STEP_ARGUMENT:
            if (i >= count) return false;
            v = args[i];
            break;
        case STEP_CAPTURED: {
            Closure *closure = esk_pointer(v);
            if (v.tag != TAG_PROCEDURE || i >= closure->head.count) return false;
            v = closure->captured[i];
            break;
        }
        case STEP_BOX: /* a variable that is set */
            if (v.tag != TAG_BOX) return false;
            v = ((Box *)esk_pointer(v))->value;
            break;
        case STEP_CAR:
        case STEP_CDR:
            if (v.tag != TAG_PAIR) return false;
            v = input->steps[k].kind == STEP_CAR ? esk_car(v) : esk_cdr(v);
            break;
        case STEP_ELEMENT:
            if (v.tag != TAG_VECTOR || i >= ((Vector *)esk_pointer(v))->length) return false;
            v = vector_item(v, i);
            break;
        case STEP_FIELD: {
            Record *record = esk_pointer(v);
            if (v.tag != TAG_RECORD || i >= record->head.count) return false;
            v = record->fields[i];
            break;
        }
        default: return false;
        }
    }
    *found = v;
    return true;
}

static bool holds(const FastInput *input, Value v) {
    switch (*input->descriptor) {
    case 'P': return v.tag == TAG_PROCEDURE && (uintptr_t)((Closure *)esk_pointer(v))->procedure == input->expected;
    case 'R': return v.tag == TAG_RECORD && (uintptr_t)((Record *)esk_pointer(v))->type == input->expected;
    case 'N': return v.tag == TAG_VECTOR && (uint64_t)((Vector *)esk_pointer(v))->length == input->expected;
    default: return v.tag == input->tag && v.bits == input->expected;
    }
}

/* Words of inputs: in a forward sweep each F64 is followed by its derivatives. */
static int64_t copy_inputs(Copy *copy, const FastCode *code, const Value *args, int64_t count, uint64_t *in) {
    int64_t plain = code->forward == 2 ? count / 2 : count;
    if (code->arguments && code->arguments != plain) return FAST_MISMATCH; /* of another clause, or with another rest */
    for (int64_t k = 0; k < code->input_count; k++) {
        const FastInput *input = &code->inputs[k];
        Value v, along = ESK_FALSE;
        if (!find(input, args, plain, &v)) return FAST_MISMATCH;
        if (*input->descriptor == 'S') {
            Value other;
            if (!find(&code->inputs[input->expected], args, plain, &other) || !esk_eq(v, other)) return FAST_MISMATCH;
            continue;
        }
        if (esk_fast_is_guard(input)) {
            if (!holds(input, v)) return FAST_MISMATCH;
            continue;
        }
        if (input->expected && !has_length(copy, input, v)) return FAST_MISMATCH;
        copy->seeds = code->forward && input->active;
        if (input->active && copy->variables <= MAX_VARIABLES) copy->starts[copy->variables++] = copy->leaf;
        copy->directed = code->forward == 2 && input->active;
        if (copy->directed && !find(input, args + plain, plain, &along)) return FAST_MISMATCH;
        double derivatives[MAX_LANES];
        *in++ = copy_in(copy, input->descriptor, v, along, derivatives);
        if (copy->status) return copy->status;
        if (code->forward && *input->descriptor == 'f') {
            memcpy(in, derivatives, 8 * (size_t)code->lanes);
            in += code->lanes;
        }
    }
    return FAST_OK;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

enum { MAX_WORDS = 4096 };

static size_t room(Context *context, const Reserve *own, const FastCode *code) {
    uint64_t left = esk_heap_room(context), wish = code->limit > 0 ? (uint64_t)code->limit : left < KEPT ? KEPT : left;
    return wish < own->size ? (size_t)wish / 4096 * 4096 : own->size;
}

static int64_t run_once(Context *context, const Reserve *own, FastCode *code, Copy *copy, const Value *args,
                        int64_t count, uint64_t *in, uint64_t *out) {
    size_t size = room(context, own, code);
    for (bool collected = false;;) {
        size_t kept = copy->kept;
        if (size <= kept) return FAST_FULL;
        FastRun run = {.tape = own->base + kept, .arena = own->base + size, .peak = own->base + kept};
        run.lowest = run.arena;
        *copy = (Copy){.run = &run, .lanes = code->lanes, .base = copy->base, .room = size, .kept = kept};
        int64_t status = copy_inputs(copy, code, args, count, in);
        int64_t passes = code->lanes == MAX_LANES ? MOST_FULL_PASSES : MOST_PASSES;
        if (code->forward == 1 && copy->leaf > MAX_LANES && copy->leaf > passes * code->lanes) status = FAST_MISMATCH;
        if (!status) status = code->entry(context, &run, in, out);
        if (status == FAST_OK || status == FAST_MISMATCH) {
            copy->tape = (size_t)(run.peak - own->base);
            copy->arena = (size_t)(own->base + size - (run.lowest < run.arena ? run.lowest : run.arena));
            if ((int64_t)(copy->tape + copy->arena) > code->used) code->used = (int64_t)(copy->tape + copy->arena);
            return status;
        }
        if (!kept) madvise(own->base, size, MADV_DONTNEED); /* nobody knows how far it came */
        if (status == FAST_STOPPED) {
            esk_poll(context); /* raises, or there was nothing */
            continue;
        }
        if (status != FAST_FULL || collected || kept || size == own->size) return status;
        esk_collect(context);
        collected = true;
        size_t before = size;
        size = room(context, own, code);
        if (size <= before) return status;
    }
}

/* Whether the derivatives by each variable can be put together at once: it is a number, or a vector or list of them. */
static bool are_simple(const FastCode *code, const Copy *copy) {
    for (int64_t k = 0; k < code->input_count; k++) {
        const char *d = code->inputs[k].descriptor;
        if (code->inputs[k].active && *d != 'f' && d[2] != 'f') return false;
    }
    return copy->variables <= MAX_VARIABLES;
}

/* Take the derivatives of a pass, so many for each number of the results, into rows that have one for each leaf. The
 * rows lie where a forward run needs no tape; FAST_OK unless there is no room for them. */
static int64_t collect(const Reserve *own, Results *all, const FastCode *code, Copy *copy, const uint64_t *out,
                       int64_t lanes) {
    all->rows = NULL;
    all->at = code->result;
    all->words = out;
    int64_t count = esk_fast_collect(all, 0, 0);
    size_t bytes = (size_t)count * (size_t)copy->leaf * 8;
    if (bytes >= copy->room - copy->arena) return FAST_FULL;
    if (copy->kept && copy->kept != bytes) return FAST_FAILED;
    copy->kept = bytes;
    all->rows = (uint64_t *)(void *)own->base;
    all->row = copy->leaf;
    all->at = code->result;
    all->words = out;
    esk_fast_collect(all, copy->base, lanes);
    return FAST_OK;
}

/* The structure of the value with the derivatives by each variable in the place of its numbers: a list, but for one. */
static Value wholes(Results *all, const FastCode *code, const Copy *copy) {
    Value found = ESK_NULL;
    const uint64_t *out = all->words;
    int64_t end = copy->leaf, variable = copy->variables;
    all->lane = ROWS;
    for (int64_t k = code->input_count; k-- > 0;) {
        if (!code->inputs[k].active) continue;
        all->at = code->result;
        all->words = out;
        all->start = copy->starts[--variable];
        all->count = end - all->start;
        all->style = *code->inputs[k].descriptor;
        all->number = 0;
        end = all->start;
        Value next = esk_fast_shaped(all);
        if (copy->variables == 1) return next;
        found = esk_cons(all->context, next, found);
    }
    return found;
}

int64_t esk_fast_run(Context *context, FastCode *code, const Value *args, int64_t count, Value *result, bool *whole) {
    bool wanted = *whole;
    *whole = false;
    uint64_t in[MAX_WORDS], out[MAX_WORDS];
    if (code->lanes > MAX_LANES || code->out_words > MAX_WORDS || code->input_count * (1 + code->lanes) > MAX_WORDS)
        return FAST_MISMATCH;
    const Reserve *own = have_reserve();
    if (!own) return FAST_FULL;
    code->used = 0;
    Copy copy;
    copy.base = 0;
    copy.kept = 0;
    Results all = {.context = context, .lanes = code->lanes};
    Value first = ESK_NULL, last = ESK_NULL;
    do {
        int64_t status = run_once(context, own, code, &copy, args, count, in, out);
        if (status) return status;
        bool is_simple = wanted && code->forward == 1 && are_simple(code, &copy);
        all.words = out;
        if (is_simple && copy.leaf > code->lanes) { /* the rows come in pieces */
            int64_t left = copy.leaf - copy.base, lanes = left < code->lanes ? left : code->lanes;
            status = collect(own, &all, code, &copy, out, lanes);
            if (status) return status;
            copy.base += code->lanes;
            if (copy.base < copy.leaf) continue;
            copy.tape = copy.kept;
            all.words = out;
        }
        if (!code->forward || is_simple) {
            *result = is_simple ? wholes(&all, code, &copy) : esk_fast_gradients(&all, code, in, out);
            if (wanted && !is_simple) *result = copy.variables == 1 ? esk_car(esk_cdr(*result)) : esk_cdr(*result);
            *whole = wanted;
            trim(own, copy.room, copy.tape, copy.arena);
            code->wild = (int64_t)(all.wild >> 63);
            return FAST_OK;
        }
        int64_t left = code->forward == 2 ? 1 : copy.leaf - copy.base, lanes = left < code->lanes ? left : code->lanes;
        for (all.lane = copy.base ? 0 : NUMBERS; all.lane < lanes; all.lane++) {
            all.at = code->result;
            all.words = out;
            Value next = esk_cons(context, esk_fast_shaped(&all), ESK_NULL);
            if (last.tag == TAG_NULL) first = next;
            else esk_set_cdr(context, last, next);
            last = next;
        }
        trim(own, copy.room, copy.tape, copy.arena);
        copy.base += code->lanes;
    } while (code->forward == 1 && copy.base < copy.leaf);
    *result = first;
    code->wild = (int64_t)(all.wild >> 63);
    return FAST_OK;
}
