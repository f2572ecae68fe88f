/* Numbers as keys, unsigned integers of the same order, and back; and what is known of a row that is put in order. */
#ifndef ESHKOL_ORDER_KEYS_H
#define ESHKOL_ORDER_KEYS_H

#include <stddef.h>

#include "order.h"

/* Of keys: their least and greatest, and whether equal ones may stand for different bits (zeros, NaN). */
typedef struct {
    uint64_t least, greatest;
    uint64_t mixed;
} Seen;

static inline Seen seen_nothing(void)
{
    return (Seen){UINT64_MAX, 0, 0};
}

static inline void see(Seen *all, const Seen *part)
{
    all->least = part->least < all->least ? part->least : all->least;
    all->greatest = part->greatest > all->greatest ? part->greatest : all->greatest;
    all->mixed |= part->mixed;
}

/* A row, and where its results go. */
typedef struct {
    EshkolOrder *order;
    const void *elements;
    void *values;
    int64_t *places;
} Row;

static inline Row row_of(EshkolOrder *order, int64_t number)
{
    return (Row){
        order, (const char *)order->rows + number * order->length * order->size,
        order->wants & ESHKOL_ORDER_VALUES ? (char *)order->values + number * order->kept * order->size : NULL,
        order->wants & ESHKOL_ORDER_PLACES ? order->places + number * order->kept : NULL,
    };
}

/* What keys of a width are made with: float keys have their sign turned, and are turned as a whole if they are
   negative; where the greatest come first, all are. */
typedef struct {
    uint64_t top, ones, turn, flip, infinity;
    int is_float;
} Coding;

static inline Coding coding_of(const EshkolOrder *order)
{
    const uint64_t top = (uint64_t)1 << (8 * order->size - 1), ones = top | (top - 1);
    const uint64_t turn = order->descending ? ones : 0;
    return (Coding){
        top, ones, turn, (order->kind == ESHKOL_ORDER_SIGNED ? top : 0) ^ turn, order->infinity,
        order->kind == ESHKOL_ORDER_FLOAT,
    };
}

/* Whether a key may stand for different bits. */
static inline int is_mixed(const Coding *c, uint64_t key)
{
    key ^= c->turn;
    return c->is_float && (key == c->top || key == c->ones);
}

/* Loops without branches: compilers make vectors of them. */
#define KEYS(NAME, ELEMENT, KEY)                                                                            \
    static void NAME(const Row *row, int64_t from, int64_t count, KEY *keys, Seen *seen)                     \
    {                                                                                                        \
        const ELEMENT *elements = (const ELEMENT *)row->elements + from;                                     \
        const Coding c = coding_of(row->order);                                                              \
        const KEY top = (KEY)c.top, ones = (KEY)c.ones, turn = (KEY)c.turn, flip = (KEY)c.flip;              \
        const KEY infinity = (KEY)c.infinity, rest = (KEY)(top - 1);                                         \
        KEY least = (KEY)UINT64_MAX, greatest = 0, mixed = 0;                                                \
        if (!c.is_float)                                                                                     \
            for (int64_t i = 0; i < count; i++) {                                                            \
                const KEY key = (KEY)elements[i] ^ flip;                                                     \
                least = key < least ? key : least;                                                           \
                greatest = key > greatest ? key : greatest;                                                  \
                keys[i] = key;                                                                               \
            }                                                                                                \
        else                                                                                                 \
            for (int64_t i = 0; i < count; i++) {                                                            \
                const KEY bits = elements[i], magnitude = bits & rest;                                       \
                KEY key = bits & top ? ones - bits : bits | top;                                             \
                key = magnitude == 0 ? top : key;                                                            \
                key = magnitude > infinity ? ones : key;                                                     \
                mixed |= (KEY)(magnitude > infinity) | (KEY)(bits == top);                                   \
                key ^= turn;                                                                                 \
                least = key < least ? key : least;                                                           \
                greatest = key > greatest ? key : greatest;                                                  \
                keys[i] = key;                                                                               \
            }                                                                                                \
        see(seen, &(Seen){least, greatest, mixed});                                                          \
    }

KEYS(keys_8, uint8_t, uint32_t)
KEYS(keys_16, uint16_t, uint32_t)
KEYS(keys_32, uint32_t, uint32_t)
KEYS(wide_keys, uint64_t, uint64_t)

static inline void narrow_keys(const Row *row, int64_t from, int64_t count, uint32_t *keys, Seen *seen)
{
    (row->order->size == 4 ? keys_32 : row->order->size == 2 ? keys_16 : keys_8)(row, from, count, keys, seen);
}

#endif
