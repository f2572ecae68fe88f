/* Boxes and vectors of small integers that several threads change at once, each change as a whole.
 *
 * The library keeps what is changed in a box (of any value) or in a vector (of small integers), which programs do not
 * see. A value of two words is changed under one of some spin locks, chosen by its address; an integer by the
 * processor's own instructions.
 */
#include "heap.h"

#include <sched.h>

enum { LOCKS = 64, PATIENCE = 100 };

static struct { _Alignas(64) uint8_t taken; } locks[LOCKS];

/* Nothing is allocated and nothing is waited for until it is unlocked. */
static uint8_t *lock(const void *place) {
    uint8_t *taken = &locks[((uintptr_t)place >> 4) * 0x9E3779B97F4A7C15u >> 58].taken;
    for (int turn = 0; __atomic_exchange_n(taken, 1, __ATOMIC_ACQUIRE); turn++)
        if (turn >= PATIENCE) sched_yield();
    return taken;
}

static void unlock(uint8_t *taken) { __atomic_store_n(taken, 0, __ATOMIC_RELEASE); }

static Value *content(Context *context, const char *who, Value box) {
    if (!esk_is(box, TAG_BOX)) esk_wrong_type(context, who, 1, box, "a box");
    return &((Box *)esk_pointer(box))->value;
}

static Value box_load(Context *context, Value box) {
    Value *place = content(context, "%atomic-load", box);
    uint8_t *taken = lock(place);
    Value found = *place;
    unlock(taken);
    return found;
}

static Value box_swap(Context *context, Value box, Value new) {
    Value *place = content(context, "%atomic-swap!", box);
    uint8_t *taken = lock(place);
    Value old = *place;
    esk_store(context, place, new);
    unlock(taken);
    return old;
}

/* (box expected new): what was there; it was changed if that is the same object as what was expected. */
static Value box_compare(Context *context, const Value *args, int64_t count) {
    (void)count;
    Value *place = content(context, "%atomic-cas!", args[0]);
    uint8_t *taken = lock(place);
    Value old = *place;
    if (esk_eq(old, args[1])) esk_store(context, place, args[2]);
    unlock(taken);
    return old;
}

static int64_t integer(Context *context, const char *who, int position, Value value) {
    if (!esk_is(value, TAG_FIXNUM)) esk_wrong_type(context, who, position, value, "an exact integer of 64 bits");
    return esk_integer(value);
}

/* The vector belongs to the library, which put nothing but small integers there. */
static int64_t *element(Context *context, const char *who, Value vector, Value index) {
    if (!esk_is(vector, TAG_VECTOR)) esk_wrong_type(context, who, 1, vector, "a vector");
    Vector *object = esk_pointer(vector);
    if (!esk_is(index, TAG_FIXNUM) || index.bits >= (uint64_t)object->length)
        esk_bad_index(context, who, 2, index, object->length);
    if (!esk_is(object->items[index.bits], TAG_FIXNUM)) esk_wrong_type(context, who, 1, vector, "a vector of integers");
    return (int64_t *)&object->items[index.bits].bits;
}

static Value fx_load(Context *context, Value vector, Value index) {
    return esk_fixnum(__atomic_load_n(element(context, "atomic-fxvector-ref", vector, index), __ATOMIC_SEQ_CST));
}

static Value fx_swap(Context *context, const Value *args, int64_t count) {
    (void)count;
    int64_t *place = element(context, "atomic-fxvector-swap!", args[0], args[1]);
    int64_t new = integer(context, "atomic-fxvector-swap!", 3, args[2]);
    return esk_fixnum(__atomic_exchange_n(place, new, __ATOMIC_SEQ_CST));
}

static Value fx_compare(Context *context, const Value *args, int64_t count) {
    (void)count;
    const char *who = "atomic-fxvector-compare-and-swap!";
    int64_t *place = element(context, who, args[0], args[1]), old = integer(context, who, 3, args[2]);
    int64_t new = integer(context, who, 4, args[3]);
    __atomic_compare_exchange_n(place, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return esk_fixnum(old);
}

/* Adds where the sum has 64 bits; else it is an error, and nothing is changed. */
static Value fx_add(Context *context, const Value *args, int64_t count) {
    (void)count;
    int64_t *place = element(context, "atomic-fxvector+/fetch!", args[0], args[1]);
    int64_t n = integer(context, "atomic-fxvector+/fetch!", 3, args[2]), old = __atomic_load_n(place, __ATOMIC_SEQ_CST);
    for (;;) {
        int64_t sum;
        if (__builtin_add_overflow(old, n, &sum))
            esk_fail(context, ERROR_RANGE, "atomic-fxvector+/fetch!", "the sum needs more than 64 bits:", 2,
                     esk_fixnum(old), args[2]);
        if (__atomic_compare_exchange_n(place, &old, sum, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return esk_fixnum(old);
    }
}

enum { AND, OR, XOR };

static Value fx_bits(Context *context, const Value *args, int64_t count) {
    (void)count;
    int64_t *place = element(context, "atomic-fxvector", args[0], args[1]);
    int64_t n = integer(context, "atomic-fxvector", 3, args[2]);
    switch (integer(context, "atomic-fxvector", 4, args[3])) {
    case AND: return esk_fixnum(__atomic_fetch_and(place, n, __ATOMIC_SEQ_CST));
    case OR: return esk_fixnum(__atomic_fetch_or(place, n, __ATOMIC_SEQ_CST));
    default: return esk_fixnum(__atomic_fetch_xor(place, n, __ATOMIC_SEQ_CST));
    }
}

static Value fence(Context *context) {
    (void)context;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return ESK_UNSPECIFIED;
}

const Primitive esk_atomics_primitives[] = {
    ESK_PRIMITIVE_1("%atomic-load", "(%atomic-load box)", box_load, "What is in a box that several threads change."),
    ESK_PRIMITIVE_2("%atomic-swap!", "(%atomic-swap! box new)", box_swap, "Changes it, and gives what was there."),
    ESK_PRIMITIVE_N("%atomic-cas!", "(%atomic-cas! box expected new)", 3, 3, box_compare,
                    "Changes it if what is there is eq? to what was expected; gives what was there."),
    ESK_PRIMITIVE_2("%atomic-fx-load", "(%atomic-fx-load vector k)", fx_load,
                    "An integer that several threads change."),
    ESK_PRIMITIVE_N("%atomic-fx-swap!", "(%atomic-fx-swap! vector k new)", 3, 3, fx_swap,
                    "Changes it, and gives the old one."),
    ESK_PRIMITIVE_N("%atomic-fx-cas!", "(%atomic-fx-cas! vector k expected new)", 4, 4, fx_compare,
                    "Changes it if it is what was expected; gives the old one."),
    ESK_PRIMITIVE_N("%atomic-fx-add!", "(%atomic-fx-add! vector k n)", 3, 3, fx_add, "Adds to it; gives the old one."),
    ESK_PRIMITIVE_N("%atomic-fx-bits!", "(%atomic-fx-bits! vector k n operation)", 4, 4, fx_bits,
                    "Combines its bits with those of n: 0 and, 1 or, 2 exclusive or; gives the old one."),
    ESK_PRIMITIVE_0("atomic-fence", "(atomic-fence)", fence,
                    "What was stored before is seen by other threads before what is stored behind."),
    {0},
};
