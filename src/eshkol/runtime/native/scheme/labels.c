/* Finds the parts of a datum that need labels when it is printed.
 *
 * A quick look comes first: a walk that remembers nothing and gives up after so many steps; if it reaches the end there
 * is no cycle. Otherwise the datum is searched depth first with a table of all objects seen. An object that is met
 * again while we are inside it contains itself. The pairs of a list are all "inside" until the list ends, so that a
 * list needs one frame however long it is. The search is slow for large data, which are mostly trees: when it has met
 * very many objects, it begins again after a longer quick look.
 */
#include "labels.h"

enum { QUICK_STEPS = 1 << 14, LONGER_STEPS = 1 << 24, MANY_OBJECTS = 1 << 16 };

typedef struct ObjectSlot {
    uint64_t key; /* address, or 0 */
    uint64_t state;
} ObjectSlot;

enum { STATE_INSIDE = 1, STATE_DONE = 2, STATE_LABEL = 4 };

/* ---- tables of objects ------------------------------------------------------------------------------------------ */

static ObjectSlot *find_slot(const ObjectTable *table, uint64_t key) {
    uint64_t at = (key >> 3) * 0x9E3779B97F4A7C15u >> 20 & table->mask;
    while (table->slots[at].key && table->slots[at].key != key) at = (at + 1) & table->mask;
    return &table->slots[at];
}

/* Makes room for one more. */
static void reserve(Context *context, ObjectTable *table) {
    if (table->mask && table->count * 2 < table->mask) return;
    uint64_t places = table->mask ? (table->mask + 1) * 2 : 64;
    ObjectTable larger = {.mask = places - 1, .count = table->count};
    Bytevector *bytes = esk_pointer(esk_make_bytevector(context, (int64_t)(places * sizeof(ObjectSlot)), 0));
    larger.slots = (ObjectSlot *)(void *)bytes->bytes;
    for (uint64_t i = 0; table->mask && i <= table->mask; i++)
        if (table->slots[i].key) *find_slot(&larger, table->slots[i].key) = table->slots[i];
    *table = larger;
}

static ObjectSlot *add_object(Context *context, ObjectTable *table, uint64_t key) {
    reserve(context, table);
    ObjectSlot *slot = find_slot(table, key);
    if (!slot->key) {
        slot->key = key;
        table->count++;
    }
    return slot;
}

uint64_t *esk_find_label(Labels *labels, Value value) {
    if (!labels->count || !esk_is_pointer(value)) return NULL;
    ObjectSlot *slot = find_slot(&labels->table, value.bits);
    return slot->key ? &slot->state : NULL;
}

/* ---- the stack -------------------------------------------------------------------------------------------------- */

typedef struct {
    Context *context;
    Vector *items;
    int64_t used;
} Stack;

static void push(Stack *stack, Value value) {
    if (!stack->items || stack->used == stack->items->length) {
        Vector *more = esk_pointer(esk_make_vector(stack->context, stack->used ? stack->used * 2 : 48, ESK_FALSE));
        if (stack->used) memcpy(more->items, stack->items->items, (size_t)stack->used * sizeof(Value));
        stack->items = more;
    }
    esk_store(stack->context, &stack->items->items[stack->used++], value);
}

static bool has_parts(Value value) {
    int64_t count;
    return esk_is(value, TAG_PAIR) || (esk_parts(value, &count), count > 0);
}

/* ---- the quick look --------------------------------------------------------------------------------------------- */

static bool is_tree(Context *context, Value value, int64_t limit) {
    Stack stack = {.context = context};
    int64_t steps = 0;
    for (;;) {
        while (esk_is(value, TAG_PAIR)) {
            Value car = esk_car(value);
            if (++steps > limit) return false;
            if (has_parts(car)) push(&stack, car);
            value = esk_cdr(value);
        }
        int64_t count;
        Value *parts = esk_parts(value, &count);
        if ((steps += count) > limit) return false;
        for (int64_t i = 0; i < count; i++)
            if (has_parts(parts[i])) push(&stack, parts[i]);
        if (!stack.used) return true;
        value = stack.items->items[--stack.used];
    }
}

/* ---- the search ------------------------------------------------------------------------------------------------- */

/* A frame is three values: the object, which of a list is its first pair; the pair we are at, of a list; and the number
 * of the next part, or -1 for a list whose last tail has been looked at. */
enum { FRAME_VALUES = 3 };

typedef struct {
    Context *context;
    bool shared;
    ObjectTable seen;
    uint64_t labels;
    Stack stack;
} Search;

/* Whether an object is new; if it is not, it may need a label. */
static bool meet(Search *search, Value value) {
    ObjectSlot *slot = add_object(search->context, &search->seen, value.bits);
    if (!slot->state) {
        slot->state = STATE_INSIDE;
        return true;
    }
    if (!(slot->state & STATE_LABEL) && (search->shared || (slot->state & STATE_INSIDE))) {
        slot->state |= STATE_LABEL;
        search->labels++;
    }
    return false;
}

static void leave(Search *search, Value value) {
    ObjectSlot *slot = find_slot(&search->seen, value.bits);
    slot->state = STATE_DONE | (slot->state & STATE_LABEL);
}

static void leave_list(Search *search, Value first, Value last) {
    while (!esk_eq(first, last)) {
        leave(search, first);
        first = esk_cdr(first);
    }
    leave(search, last);
}

static void enter(Search *search, Value value) {
    if (!has_parts(value) || !meet(search, value)) return;
    push(&search->stack, value);
    push(&search->stack, value);
    push(&search->stack, esk_fixnum(0));
}

/* One step in the innermost object. */
static void step(Search *search) {
    Value *frame = &search->stack.items->items[search->stack.used - FRAME_VALUES];
    int64_t part = esk_integer(frame[2]), count;
    if (!esk_is(frame[0], TAG_PAIR)) {
        Value *parts = esk_parts(frame[0], &count);
        if (part < count) {
            frame[2] = esk_fixnum(part + 1);
            enter(search, parts[part]);
            return;
        }
        leave(search, frame[0]);
    } else {
        if (part == 0) {
            frame[2] = esk_fixnum(1);
            enter(search, esk_car(frame[1]));
            return;
        }
        Value rest = esk_cdr(frame[1]);
        if (part == 1 && esk_is(rest, TAG_PAIR) && meet(search, rest)) {
            frame[1] = rest;
            frame[2] = esk_fixnum(0);
            return;
        }
        if (part == 1 && !esk_is(rest, TAG_PAIR)) {
            frame[2] = esk_fixnum(-1);
            enter(search, rest);
            return;
        }
        leave_list(search, frame[0], frame[1]);
    }
    search->stack.used -= FRAME_VALUES;
}

/* False: there are more objects than the limit. */
static bool search_within(Search *search, Value value, uint64_t limit) {
    enter(search, value);
    while (search->stack.used) {
        if (search->context->interrupted) esk_poll(search->context);
        if (search->seen.count > limit) return false;
        step(search);
    }
    return true;
}

void esk_find_labels(Context *context, Value value, bool shared, Labels *labels) {
    Search fresh = {.context = context, .shared = shared, .stack = {.context = context}}, search = fresh;
    *labels = (Labels){0};
    if (!has_parts(value) || (!shared && is_tree(context, value, QUICK_STEPS))) return;
    if (!search_within(&search, value, shared ? UINT64_MAX : MANY_OBJECTS)) {
        if (is_tree(context, value, LONGER_STEPS)) return;
        search = fresh;
        search_within(&search, value, UINT64_MAX);
    }
    for (uint64_t i = 0; search.labels && i <= search.seen.mask; i++)
        if (search.seen.slots[i].state & STATE_LABEL) add_object(context, &labels->table, search.seen.slots[i].key);
    labels->count = search.labels;
}
