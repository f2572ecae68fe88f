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
#include "fast.h"
#include "heap.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_LANES = 16, MAX_VARIABLES = 8, MAX_STEPS_SEEN = 1 << 30, MOST_PASSES = 4 };
#define KEPT ((size_t)16 << 20) /* bytes that stay committed between runs */

/* ---- memory ------------------------------------------------------------------------------------------------------ */

typedef struct { char *base; size_t size; } Reserve;

static _Thread_local Reserve reserve;
static pthread_key_t reserve_key;
static pthread_once_t reserve_once = PTHREAD_ONCE_INIT;

static void free_reserve(void *base) { munmap(base, reserve.size); }
static void make_key(void) { pthread_key_create(&reserve_key, free_reserve); }

static bool have_reserve(void) {
    if (reserve.base) return true;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page <= 0) return false;
    pthread_once(&reserve_once, make_key);
    for (size_t size = (size_t)pages / 2 * (size_t)page; size >= KEPT; size /= 2) {
        void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED) continue;
        reserve = (Reserve){base, size};
        pthread_setspecific(reserve_key, base);
        return true;
    }
    return false;
}

/* Give back what a large run used: of the tape from below, of the arena from above. */
static void trim(size_t size, size_t tape, size_t arena) {
    if (tape > KEPT) madvise(reserve.base + KEPT, tape - KEPT, MADV_DONTNEED);
    if (arena > KEPT) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE), from = (size - arena) / page * page;
        madvise(reserve.base + from, size - KEPT - from, MADV_DONTNEED);
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
    int64_t variables, starts[MAX_VARIABLES + 1]; /* the first leaf of each variable, if they are few */
} Copy;

static int64_t no(Copy *copy, int64_t status) {
    if (!copy->status) copy->status = status;
    return 0;
}

/* Behind a descriptor. */
static const char *behind(const char *d) {
    if (!d[0] || d[1] != '(') return d + (*d != 0);
    int depth = 1;
    for (d += 2; *d && depth; d++) depth += *d == '(' ? 1 : *d == ')' ? -1 : 0;
    return d;
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
        int64_t n = vector_length(copy, v);
        if (n < 0) return (uint64_t)no(copy, FAST_MISMATCH);
        if (copy->directed && (along.tag != TAG_VECTOR || ((Vector *)esk_pointer(along))->length != n))
            return (uint64_t)no(copy, FAST_MISMATCH);
        size_t each = 8 * (numbers ? 1 + (size_t)copy->lanes : 1);
        uint64_t *words = (uint64_t *)(void *)arena_take(copy, 8 + (size_t)n * each);
        if (!words) return 0;
        words[0] = (uint64_t)n;
        double *beside = (double *)(void *)(words + 1 + n);
        if (numbers && !copy->directed) { /* the usual case, quickly */
            const Value *items = ((Vector *)esk_pointer(v))->items;
            uint64_t others = 0;
            for (int64_t i = 0; i < n; i++) {
                others |= items[i].tag ^ TAG_FLONUM;
                words[1 + i] = items[i].bits;
            }
            memset(beside, 0, 8 * (size_t)n * (size_t)copy->lanes);
            if (copy->seeds) {
                int64_t shift = copy->leaf - copy->base; /* of the leaves to the lanes */
                for (int64_t i = shift < 0 ? -shift : 0; i < n && i + shift < copy->lanes; i++)
                    beside[i * copy->lanes + i + shift] = 1;
                copy->leaf += n;
            }
            return others ? (uint64_t)no(copy, FAST_MISMATCH) : (uint64_t)(uintptr_t)words;
        }
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

/* Follow the way to an input; false where the data are not like that. */
static bool find(const FastInput *input, const Value *args, int64_t count, Value *found) {
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

static bool is_guard(const FastInput *input) {
    char kind = *input->descriptor;
    return kind == 'P' || kind == 'R' || kind == 'N' || kind == '=';
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
    for (int64_t k = 0; k < code->input_count; k++) {
        const FastInput *input = &code->inputs[k];
        Value v, along = ESK_FALSE;
        if (!find(input, args, plain, &v)) return FAST_MISMATCH;
        if (is_guard(input)) {
            if (!holds(input, v)) return FAST_MISMATCH;
            continue;
        }
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

/* ---- results ----------------------------------------------------------------------------------------------------- */

static Value flonum_bits(uint64_t bits) { return esk_make(TAG_FLONUM, bits); }

enum { NUMBERS = -1, ROWS = -2 }; /* instead of a lane: the numbers themselves; the derivatives of all lanes */

static Value vector_of(Context *, const char *d, const uint64_t *array, int64_t lanes, int64_t lane);

/* The derivatives of one number by those of a vector, of a list, or by one (style v, l, f). */
static Value row(Context *context, char style, const uint64_t *derivatives, int64_t count) {
    if (style == 'v') {
        Value made = esk_make_vector(context, count, esk_fixnum(0));
        for (int64_t i = 0; i < count; i++) ((Vector *)esk_pointer(made))->items[i] = flonum_bits(derivatives[i]);
        return made;
    }
    if (style != 'l') return flonum_bits(derivatives[0]);
    Value made = ESK_NULL;
    while (count > 0) made = esk_cons(context, flonum_bits(derivatives[--count]), made);
    return made;
}

/* Data of the run as Scheme data: the numbers themselves or their derivatives. */
static Value copy_out(Context *context, const char *d, uint64_t word, int64_t lanes, int64_t lane) {
    switch (*d) {
    case 'f': return flonum_bits(word);
    case 'b': return lane < 0 ? esk_boolean(word & 1) : esk_fixnum(0);
    case 'v': return vector_of(context, d, (const uint64_t *)(uintptr_t)word, lanes, lane);
    case 'l': {
        bool numbers = d[2] == 'f';
        Value first = ESK_NULL, last = ESK_NULL;
        for (const uint64_t *cell; word; word = cell[1]) {
            cell = (const uint64_t *)(uintptr_t)word;
            Value item = copy_out(context, d + 2, numbers && lane >= 0 ? cell[2 + lane] : cell[0], lanes, lane);
            Value next = esk_cons(context, item, ESK_NULL);
            if (last.tag == TAG_NULL) first = next;
            else esk_set_cdr(last, next);
            last = next;
        }
        return first;
    }
    default: return lane < 0 ? esk_fixnum((int64_t)word) : esk_fixnum(0);
    }
}

static Value vector_of(Context *context, const char *d, const uint64_t *array, int64_t lanes, int64_t lane) {
    bool numbers = d[2] == 'f';
    int64_t n = (int64_t)array[0];
    Value made = esk_make_vector(context, n, esk_fixnum(0));
    Value *items = ((Vector *)esk_pointer(made))->items;
    if (numbers) {
        const uint64_t *from = lane < 0 ? array + 1 : array + 1 + n + lane;
        int64_t step = lane < 0 ? 1 : lanes;
        for (int64_t i = 0; i < n; i++) items[i] = flonum_bits(from[i * step]);
        return made;
    }
    for (int64_t i = 0; i < n; i++) items[i] = copy_out(context, d + 2, array[1 + i], lanes, lane);
    return made;
}

/* Rows are of some derivatives, of a style. */
typedef struct {
    Context *context;
    const char *at;
    const uint64_t *words;
    int64_t lanes, lane, start, count;
    char style;
} Shape;

/* Memory of the run with rows in the place of its numbers. */
static Value rows_of(Shape *shape, const char *d, uint64_t word) {
    Context *context = shape->context;
    const uint64_t *array = (const uint64_t *)(uintptr_t)word;
    if (*d == 'v') {
        int64_t n = (int64_t)array[0];
        Value made = esk_make_vector(context, n, esk_fixnum(0));
        for (int64_t i = 0; i < n; i++)
            ((Vector *)esk_pointer(made))->items[i] =
                d[2] == 'f' ? row(context, shape->style, array + 1 + n + i * shape->lanes + shape->start, shape->count)
                            : rows_of(shape, d + 2, array[1 + i]);
        return made;
    }
    Value first = ESK_NULL, last = ESK_NULL;
    for (; array; array = (const uint64_t *)(uintptr_t)array[1]) {
        Value item = d[2] == 'f' ? row(context, shape->style, array + 2 + shape->start, shape->count)
                                 : rows_of(shape, d + 2, array[0]);
        Value next = esk_cons(context, item, ESK_NULL);
        if (last.tag == TAG_NULL) first = next;
        else esk_set_cdr(last, next);
        last = next;
    }
    return first;
}

/* Results put together as the code says: one number or structure, or several in lists and vectors. */
static Value shaped(Shape *shape) {
    Context *context = shape->context;
    const char *d = shape->at;
    if (*d == '(' || *d == '#') {
        bool vector = *d == '#';
        shape->at += vector ? 2 : 1;
        Value first = ESK_NULL, last = ESK_NULL;
        int64_t n = 0;
        for (; *shape->at && *shape->at != ')'; n++) {
            Value next = esk_cons(context, shaped(shape), ESK_NULL);
            if (last.tag == TAG_NULL) first = next;
            else esk_set_cdr(last, next);
            last = next;
        }
        if (*shape->at) shape->at++;
        if (!vector) return first;
        Value made = esk_make_vector(context, n, esk_fixnum(0));
        Value *items = ((Vector *)esk_pointer(made))->items;
        for (int64_t i = 0; i < n; i++, first = esk_cdr(first)) items[i] = esk_car(first);
        return made;
    }
    shape->at = behind(d);
    const uint64_t *words = shape->words;
    shape->words += *d == 'f' ? 1 + shape->lanes : 1;
    if (shape->lane == ROWS)
        return *d == 'f' ? row(context, shape->style, words + 1 + shape->start, shape->count)
                         : rows_of(shape, d, words[0]);
    return copy_out(context, d, *d == 'f' ? words[1 + shape->lane] : words[0], shape->lanes, shape->lane);
}

static Value gradients(Context *context, const FastCode *code, const uint64_t *in, const uint64_t *out) {
    Value first = esk_cons(context, flonum_bits(out[0]), ESK_NULL), last = first;
    for (int64_t k = 0, word = 0; k < code->input_count; k++) {
        const FastInput *input = &code->inputs[k];
        if (is_guard(input)) continue;
        if (input->active) {
            uint64_t given = *input->descriptor == 'f' ? out[1 + word] : in[word];
            Value next = esk_cons(context, copy_out(context, input->descriptor, given, 1, 0), ESK_NULL);
            esk_set_cdr(last, next);
            last = next;
        }
        word++;
    }
    return first;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

enum { MAX_WORDS = 4096 };

static size_t room(Context *context, const FastCode *code) {
    uint64_t left = esk_heap_room(context), wish = code->limit > 0 ? (uint64_t)code->limit : left < KEPT ? KEPT : left;
    return wish < reserve.size ? (size_t)wish / 4096 * 4096 : reserve.size;
}

static int64_t run_once(Context *context, FastCode *code, Copy *copy, const Value *args, int64_t count, uint64_t *in,
                        uint64_t *out) {
    size_t size = room(context, code);
    for (bool collected = false;;) {
        FastRun run = {.tape = reserve.base, .arena = reserve.base + size, .peak = reserve.base};
        *copy = (Copy){.run = &run, .lanes = code->lanes, .base = copy->base, .room = size};
        int64_t status = copy_inputs(copy, code, args, count, in);
        if (code->forward == 1 && copy->leaf > MAX_LANES && copy->leaf > MOST_PASSES * code->lanes)
            status = FAST_MISMATCH; /* there are better ones */
        if (!status) status = code->entry(context, &run, in, out);
        if (status == FAST_OK || status == FAST_MISMATCH) {
            copy->tape = (size_t)(run.peak - reserve.base);
            copy->arena = (size_t)(reserve.base + size - run.arena);
            if ((int64_t)(copy->tape + copy->arena) > code->used) code->used = (int64_t)(copy->tape + copy->arena);
            return status;
        }
        madvise(reserve.base, size, MADV_DONTNEED); /* nobody knows how far it came */
        if (status == FAST_STOPPED) {
            esk_poll(context); /* raises, or there was nothing */
            continue;
        }
        if (status != FAST_FULL || collected || size == reserve.size) return status;
        esk_collect(context);
        collected = true;
        size_t before = size;
        size = room(context, code);
        if (size <= before) return status;
    }
}

/* Whether the derivatives by each variable can be put together at once: it is a number, or a vector or list of them. */
static bool are_simple(const FastCode *code, const Copy *copy) {
    for (int64_t k = 0; k < code->input_count; k++) {
        const char *d = code->inputs[k].descriptor;
        if (code->inputs[k].active && *d != 'f' && d[2] != 'f') return false;
    }
    return copy->variables <= MAX_VARIABLES && copy->leaf <= code->lanes;
}

/* The structure of the value with the derivatives by each variable in the place of its numbers: a list, but for one. */
static Value wholes(Context *context, const FastCode *code, Copy *copy, const uint64_t *out) {
    Value found = ESK_NULL;
    int64_t end = copy->leaf, variable = copy->variables;
    for (int64_t k = code->input_count; k-- > 0;) {
        if (!code->inputs[k].active) continue;
        int64_t start = copy->starts[--variable];
        char style = *code->inputs[k].descriptor;
        Shape shape = {context, code->result, out, code->lanes, ROWS, start, end - start, style};
        Value next = shaped(&shape);
        if (copy->variables == 1) return next;
        found = esk_cons(context, next, found);
        end = start;
    }
    return found;
}

int64_t esk_fast_run(Context *context, FastCode *code, const Value *args, int64_t count, Value *result, bool *whole) {
    bool wanted = *whole;
    *whole = false;
    uint64_t in[MAX_WORDS], out[MAX_WORDS];
    if (code->lanes > MAX_LANES || code->out_words > MAX_WORDS || code->input_count * (1 + code->lanes) > MAX_WORDS)
        return FAST_MISMATCH;
    if (!have_reserve()) return FAST_FULL;
    code->used = 0;
    Copy copy = {0};
    Value first = ESK_NULL, last = ESK_NULL;
    do {
        int64_t status = run_once(context, code, &copy, args, count, in, out);
        if (status) return status;
        bool is_simple = wanted && code->forward == 1 && are_simple(code, &copy);
        if (!code->forward || is_simple) {
            *result = is_simple ? wholes(context, code, &copy, out) : gradients(context, code, in, out);
            if (wanted && !is_simple) *result = copy.variables == 1 ? esk_car(esk_cdr(*result)) : esk_cdr(*result);
            *whole = wanted;
            trim(copy.room, copy.tape, copy.arena);
            return FAST_OK;
        }
        int64_t left = code->forward == 2 ? 1 : copy.leaf - copy.base, lanes = left < code->lanes ? left : code->lanes;
        for (int64_t lane = copy.base ? 0 : NUMBERS; lane < lanes; lane++) {
            Shape shape = {context, code->result, out, code->lanes, lane, 0, 0, 0};
            Value next = esk_cons(context, shaped(&shape), ESK_NULL);
            if (last.tag == TAG_NULL) first = next;
            else esk_set_cdr(last, next);
            last = next;
        }
        trim(copy.room, copy.tape, copy.arena);
        copy.base += code->lanes;
    } while (code->forward == 1 && copy.base < copy.leaf);
    *result = first;
    return FAST_OK;
}
