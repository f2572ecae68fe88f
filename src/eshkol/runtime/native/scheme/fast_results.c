/* Results of compiled derivatives as data of the heap.
 *
 * Comes in: the words that a run gave, arrays and cells of its memory, and the description of what they are. Goes out:
 * numbers, lists and vectors; and whether a derivative among them is not finite, which is seen as they pass by. Errors
 * of the heap may leave from here.
 */
#include "fast_results.h"

#include <string.h>

#define EXPONENT ((uint64_t)2047 << 52)

static Value plain(uint64_t bits) { return esk_make(TAG_FLONUM, bits); }

/* The top bit is set for what is infinite or no number. */
static uint64_t wildness(uint64_t bits) { return (bits & EXPONENT) + ((uint64_t)1 << 52); }

static Value flonum(Results *all, uint64_t bits) {
    if (all->lane != NUMBERS) all->wild |= wildness(bits);
    return plain(bits);
}

/* Behind a description. */
static const char *behind(const char *d) {
    if (!d[0] || (d[0] != '(' && d[1] != '(')) return d + (*d != 0);
    int depth = 1;
    for (d += d[0] == '(' ? 1 : 2; *d && depth; d++) depth += *d == '(' ? 1 : *d == ')' ? -1 : 0;
    return d;
}

/* Numbers that lie so many words from one another, as a vector. */
static Value flonums(Results *all, const uint64_t *from, int64_t count, int64_t step) {
    Vector *made = esk_allocate(all->context, sizeof *made + (size_t)count * sizeof(Value), TAG_VECTOR);
    uint64_t wild = 0;
    made->length = count;
    for (int64_t i = 0; i < count; i++) {
        made->items[i] = plain(from[i * step]);
        wild |= wildness(from[i * step]);
    }
    if (all->lane != NUMBERS) all->wild |= wild;
    return esk_object(made);
}

/* A list that grows at its end. */
typedef struct { Value first, last; } Queue;

static void put(Context *context, Queue *queue, Value item) {
    Value next = esk_cons(context, item, ESK_NULL);
    if (queue->last.tag == TAG_NULL) queue->first = next;
    else esk_set_cdr(context, queue->last, next);
    queue->last = next;
}

static void set_item(Context *context, Value vector, int64_t i, Value item) {
    esk_store(context, &((Vector *)esk_pointer(vector))->items[i], item);
}

/* The derivatives of one number by those of a vector, of a list, or by one. */
static Value row(Results *all, const uint64_t *derivatives) {
    if (all->rows) derivatives = all->rows + all->row * all->number++;
    derivatives += all->start;
    if (all->style == 'v') return flonums(all, derivatives, all->count, 1);
    if (all->style != 'l') return flonum(all, derivatives[0]);
    Value made = ESK_NULL;
    for (int64_t i = all->count; i-- > 0;) made = esk_cons(all->context, flonum(all, derivatives[i]), made);
    return made;
}

static Value memory(Results *, const char *d, uint64_t word);

/* An element of an array or a cell; its derivatives lie beside it. */
static Value element(Results *all, const char *d, uint64_t word, const uint64_t *beside) {
    if (*d != 'f') return memory(all, d, word);
    return all->lane == ROWS ? row(all, beside) : flonum(all, all->lane == NUMBERS ? word : beside[all->lane]);
}

/* Memory of the run: the numbers themselves, their derivatives, or rows in their places. */
static Value memory(Results *all, const char *d, uint64_t word) {
    Context *context = all->context;
    const uint64_t *at = (const uint64_t *)(uintptr_t)word;
    switch (*d) {
    case 'v': {
        if (!at) { /* nothing was stored there: an error, which the dynamic path tells */
            all->wild = (uint64_t)1 << 63;
            return ESK_FALSE;
        }
        int64_t n = (int64_t)at[0];
        if (d[2] == 'f' && all->lane == NUMBERS) return flonums(all, at + 1, n, 1);
        if (d[2] == 'f' && all->lane != ROWS) return flonums(all, at + 1 + n + all->lane, n, all->lanes);
        Value made = esk_make_vector(context, n, esk_fixnum(0));
        for (int64_t i = 0; i < n; i++)
            set_item(context, made, i, element(all, d + 2, at[1 + i], at + 1 + n + i * all->lanes));
        return made;
    }
    case 'l': {
        Queue items = {ESK_NULL, ESK_NULL};
        for (; at; at = (const uint64_t *)(uintptr_t)at[1]) put(context, &items, element(all, d + 2, at[0], at + 2));
        return items.first;
    }
    case 'b': return all->lane == NUMBERS ? esk_boolean(word & 1) : esk_fixnum(0);
    default: return all->lane == NUMBERS ? esk_fixnum((int64_t)word) : esk_fixnum(0);
    }
}

/* ---- rows in pieces ---------------------------------------------------------------------------------------------- */

static void collect_number(Results *all, const uint64_t *beside, int64_t leaf, int64_t lanes) {
    if (lanes) memcpy(all->rows + all->row * all->number + leaf, beside, 8 * (size_t)lanes);
    all->number++;
}

/* As `memory` goes through it: the order of the numbers is the same. */
static void collect_memory(Results *all, const char *d, uint64_t word, int64_t leaf, int64_t lanes) {
    const uint64_t *at = (const uint64_t *)(uintptr_t)word;
    if (*d == 'v' && at) {
        int64_t n = (int64_t)at[0];
        for (int64_t i = 0; i < n; i++) {
            if (d[2] == 'f') collect_number(all, at + 1 + n + i * all->lanes, leaf, lanes);
            else collect_memory(all, d + 2, at[1 + i], leaf, lanes);
        }
    } else if (*d == 'l') {
        for (; at; at = (const uint64_t *)(uintptr_t)at[1]) {
            if (d[2] == 'f') collect_number(all, at + 2, leaf, lanes);
            else collect_memory(all, d + 2, at[0], leaf, lanes);
        }
    }
}

int64_t esk_fast_collect(Results *all, int64_t leaf, int64_t lanes) {
    all->number = 0;
    for (const char *d = all->at; *d;) {
        if (*d == '#' || *d == '(' || *d == ')') { /* how they are put together makes no difference */
            d++;
            continue;
        }
        const uint64_t *words = all->words;
        all->words += *d == 'f' ? 1 + all->lanes : 1;
        if (*d == 'f') collect_number(all, words + 1, leaf, lanes);
        else collect_memory(all, d, words[0], leaf, lanes);
        d = behind(d);
    }
    return all->number;
}

Value esk_fast_shaped(Results *all) {
    Context *context = all->context;
    const char *d = all->at;
    if (*d == '#') {
        int64_t n = 0;
        for (const char *item = d + 2; *item && *item != ')'; item = behind(item)) n++;
        Value made = esk_make_vector(context, n, esk_fixnum(0));
        all->at = d + 2;
        for (int64_t i = 0; i < n; i++) set_item(context, made, i, esk_fast_shaped(all));
        all->at = behind(d);
        return made;
    }
    if (*d == '(') {
        Queue items = {ESK_NULL, ESK_NULL};
        all->at = d + 1;
        while (*all->at && *all->at != ')') put(context, &items, esk_fast_shaped(all));
        all->at = behind(d);
        return items.first;
    }
    all->at = behind(d);
    const uint64_t *words = all->words;
    all->words += *d == 'f' ? 1 + all->lanes : 1;
    return element(all, d, words[0], words + 1);
}

Value esk_fast_gradients(Results *all, const FastCode *code, const uint64_t *in, const uint64_t *out) {
    Queue items = {ESK_NULL, ESK_NULL};
    put(all->context, &items, plain(out[0]));
    for (int64_t k = 0, word = 0; k < code->input_count; k++) {
        const FastInput *input = &code->inputs[k];
        if (esk_fast_is_guard(input)) continue;
        if (input->active) put(all->context, &items, element(all, input->descriptor, in[word], out + 1 + word));
        word++;
    }
    return items.first;
}
