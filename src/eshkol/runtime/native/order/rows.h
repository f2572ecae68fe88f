/* What order.h says, for one kind of processor (kinds.h). Numbers become keys (keys.h), and keys items, with their
   places where those are wanted or equal numbers can be told apart (items.h; packed.h, where both are put into 8
   bytes). A few are sorted in vectors (network.h) and merged; long rows are divided in vectors (quick.h), where a
   processor can do that, and else sorted by digits, all threads sharing a very long one; of parts of an order, only the
   numbers around them are sorted. */
#define SHORT 64           /* longest row that is sorted beside others, in lanes of vectors */
#define MOST_COMPARED 544  /* pairs of places that are compared to sort so many */
#define FEW_ABREAST 4      /* rows that are worth a network for all */
#define FEW 64             /* items that are sorted rather than divided further */
#define MERGED 256         /* longest row that is merged as a whole */
#define MANY (1 << 14)     /* items from which on digits are large */
#define SMALL_DIGIT 8
#define LARGE_DIGIT 11     /* bits */
#define SAMPLE 256         /* items that are looked at to see how they are spread */
#define GLANCED 6          /* bits of them that are */
#define SHARED (1 << 16)   /* items of a row that are worth being sorted by several threads */
#define PIECE (1 << 14)    /* of such a row, what a thread does at least */
#define MOST_PARTS 64      /* that it is divided into for threads, */
#define SAMPLED 16         /* by so many items of each that are looked at */
#define AT_A_TIME 512      /* keys that are made at a time, where they become parts of larger items */

#define STRAIGHT 8         /* items that are sorted by inserting */
#define GLANCE 16          /* keys that are passed over at a time, where few can count */

/* One address or another, without a branch. */
#define EITHER(TYPE, TRUTH, ONE, OTHER)                                                                     \
    ((const TYPE *)((uintptr_t)(OTHER) ^ (((uintptr_t)(ONE) ^ (uintptr_t)(OTHER)) & -(uintptr_t)(TRUTH))))

typedef struct {
    uint64_t key;
    int64_t place;
} Placed;

/* How a walk over items is divided. */
typedef struct {
    EshkolOrder *order;
    int64_t count, size;
} Pieces;

/* What a row is sorted in. */
typedef struct {
    void *items, *spare;
    uint32_t *tallies;
    Seen *seen;
} Space;

static void out_of_memory(EshkolOrder *order)
{
    __atomic_store_n(&order->fault, 0, __ATOMIC_RELAXED);
}

static Pieces pieces_of(EshkolOrder *order, int64_t count)
{
    const int workers = count < SHARED ? 1 : eshkol_scheduler_workers(*order->pool);
    int64_t pieces = workers == 1 ? 1 : 4 * (int64_t)workers;
    pieces = pieces < count / PIECE || pieces == 1 ? pieces : count / PIECE;
    const int64_t size = (count + pieces - 1) / pieces;
    return (Pieces){order, (count + size - 1) / size, size};
}

static void each_piece(Pieces pieces, eshkol_body body, void *walk)
{
    if (pieces.count == 1)
        body(walk, 0, 1);
    else if (eshkol_parallel_for(*pieces.order->pool, body, walk, pieces.count, 1) != 0)
        out_of_memory(pieces.order); /* or a child of a fork, in which nothing of this counts */
}

static int bit_length(uint64_t number)
{
    return number == 0 ? 0 : 64 - __builtin_clzll(number);
}

/* Whether one of some ranks is to be found. */
static int is_wanted(const EshkolOrder *order, int64_t begin, int64_t end)
{
    for (int64_t k = 0; k < order->range_count; k++)
        if (order->ranges[k].begin < end && begin < order->ranges[k].end)
            return 1;
    return 0;
}

static void fill_narrow(const Row *row, int64_t from, int64_t count, uint64_t *items, Seen *seen)
{
    uint32_t keys[AT_A_TIME];
    for (int64_t done = 0; done < count; done += AT_A_TIME) {
        const int64_t now = count - done < AT_A_TIME ? count - done : AT_A_TIME;
        narrow_keys(row, from + done, now, keys, seen);
        for (int64_t i = 0; i < now; i++)
            items[done + i] = (uint64_t)keys[i] << 32 | (uint64_t)(from + done + i);
    }
}

static void fill_wide(const Row *row, int64_t from, int64_t count, Placed *items, Seen *seen)
{
    uint64_t keys[AT_A_TIME];
    for (int64_t done = 0; done < count; done += AT_A_TIME) {
        const int64_t now = count - done < AT_A_TIME ? count - done : AT_A_TIME;
        wide_keys(row, from + done, now, keys, seen);
        for (int64_t i = 0; i < now; i++)
            items[done + i] = (Placed){keys[i], from + done + i};
    }
}

/* Which places are compared to sort so many (Batcher's merging of odd and even ones, for any number). */
static int64_t compared(int64_t count, Compared *pairs)
{
    int64_t found = 0;
    for (int64_t sorted = 1; sorted < count; sorted *= 2)
        for (int64_t apart = sorted; apart >= 1; apart /= 2)
            for (int64_t first = apart % sorted; first + apart < count; first += 2 * apart)
                for (int64_t i = first; i < first + apart && i + apart < count; i++)
                    if ((i ^ (i + apart)) < 2 * sorted) /* of the same two runs that are merged */
                        pairs[found++] = (Compared){(uint8_t)i, (uint8_t)(i + apart)};
    return found;
}

/* Keys of up to 4 bytes. */
#define NAME(x) narrow_##x
#define ITEM uint32_t
#define WORD uint32_t
#define KEY(x) (x)
#define HAS_PLACE 0
#define NETWORK narrow_network
#define COLUMNS narrow_columns
#define ABREAST NARROW_LANES
#define QUICK narrow_quick
#define DIVIDED narrow_divided
#define RUN NARROW_RUN
#define BEFORE(x, y) ((x) < (y))
#define FILL narrow_keys
#include "items.h"

/* Such a key in the upper half, its place in the lower: no two are equal. */
#define NAME(x) narrow_placed_##x
#define ITEM uint64_t
#define WORD uint32_t
#define KEY(x) ((uint32_t)((x) >> 32))
#define PLACE(x) ((x) & 0xFFFFFFFF)
#define HAS_PLACE 1
#define NETWORK wide_network
#define COLUMNS wide_columns
#define ABREAST WIDE_LANES
#define QUICK wide_quick
#define DIVIDED wide_divided
#define RUN WIDE_RUN
#define BEFORE(x, y) ((x) < (y))
#define FILL fill_narrow
#include "items.h"

/* Keys of 8 bytes. */
#define NAME(x) wide_##x
#define ITEM uint64_t
#define WORD uint64_t
#define KEY(x) (x)
#define HAS_PLACE 0
#define NETWORK wide_network
#define COLUMNS wide_columns
#define ABREAST WIDE_LANES
#define QUICK wide_quick
#define DIVIDED wide_divided
#define RUN WIDE_RUN
#define BEFORE(x, y) ((x) < (y))
#define FILL wide_keys
#include "items.h"

/* The same with places. */
#define NAME(x) wide_placed_##x
#define ITEM Placed
#define WORD uint64_t
#define KEY(x) ((x).key)
#define PLACE(x) ((x).place)
#define HAS_PLACE 1
#define RUN STRAIGHT
#define BEFORE(x, y) ((x).key < (y).key)
#define FILL fill_wide
#include "items.h"

#include "packed.h"

/* Memory for a row, all of which is freed with its `seen`. */
static Space space_for(EshkolOrder *order, Pieces pieces, size_t item)
{
    const size_t seen = (size_t)pieces.count * sizeof(Seen), items = (size_t)order->length * item;
    const size_t tallies = order->length <= MERGED ? 0 : ((size_t)pieces.count << LARGE_DIGIT) * sizeof(uint32_t);
    char *memory = eshkol_scratch_take(seen + 2 * items + tallies);
    if (memory == NULL) {
        out_of_memory(order);
        return (Space){0};
    }
    char *first = memory + seen;
    return (Space){first, first + items, (uint32_t *)(void *)(first + 2 * items), (Seen *)(void *)memory};
}

void KIND(eshkol_order_rows)(void *context, int64_t begin, int64_t end)
{
    EshkolOrder *order = context;
    const Pieces pieces = pieces_of(order, order->length);
    const int wide = order->size == 8, placed = order->wants & ESHKOL_ORDER_PLACES;
    const size_t least = wide ? 8 : 4;
    Space space = space_for(order, pieces, placed && !is_packed(order) ? 2 * least : least), larger = {0};
    Compared pairs[MOST_COMPARED];
    const int64_t abreast = order->length <= SHORT && !(wide && placed) ? compared(order->length, pairs) : 0;
    int64_t alone = begin; /* rows up to this one are sorted one by one */
    for (int64_t number = begin; number < end && space.items != NULL; number++) {
        if (abreast && number >= alone && end - number >= FEW_ABREAST) {
            const int64_t tried = (wide ? wide_abreast : placed ? narrow_placed_abreast : narrow_abreast)(
                order, number, end, pairs, abreast);
            if (tried > 0) {
                number += tried - 1;
                continue;
            }
            alone = number - tried;
        }
        const Row row = row_of(order, number);
        if (is_packed(order)) {
            packed_one_row(&row, &space, pieces);
            continue;
        }
        if (!placed && (wide ? wide_one_row : narrow_one_row)(&row, &space, pieces))
            continue;
        if (!placed && larger.items == NULL) {
            larger = space_for(order, pieces, 2 * least);
            if (larger.items == NULL)
                break;
        }
        (wide ? wide_placed_one_row : narrow_placed_one_row)(&row, placed ? &space : &larger, pieces);
    }
    eshkol_scratch_give(space.seen);
    eshkol_scratch_give(larger.seen);
}
