/* Blocks of a device's memory that were given back, by their size: most memory that is asked for is found here.
 *
 * Comes in: sizes, and addresses of what is not needed any more. Goes out: addresses. What is not here, Python asks the
 * driver for (backends/cuda/memory.py). A block serves a request that is not much smaller. A device with several queues
 * has a pool for each, to which blocks that were taken for it return: what is still under way there may use them. Of
 * blocks of a size the lowest is taken: who asks for the same again finds it where it was, in whatever order blocks
 * came back, and what a graph of launches was told of addresses still holds. */
#include "front.h"

#include <stdlib.h>
#include <string.h>

#define POOLS 33 /* as many as backends/cuda/streams.py has streams, and one */

typedef struct {
    uint64_t size;
    uint64_t *kept; /* addresses, as a heap: the lowest first */
    Size count, room;
} Shelf;

typedef struct {
    uint64_t address, size; /* 0: an empty place */
    Size pool;
} Lent;

typedef struct {
    Shelf *shelves; /* sorted by their size */
    Size shelf_count, shelf_room;
} Pool;

typedef struct {
    Object head;
    Object *fresh;                       /* a function of Python's: the address of a block that the driver gives */
    uint64_t grain, small, large, waste; /* what sizes are multiples of; a block's size over what it does not serve */
    Pool pools[POOLS];
    Size pool;  /* from which blocks are taken now */
    Lent *lent; /* by address; as many places as a power of two */
    uint64_t lent_room, lent_count;
    uint64_t used, most, takes;
} Blocks;

/* ---- what is lent ----------------------------------------------------------------------------------------------- */

static uint64_t place_of(const Blocks *all, uint64_t address)
{
    uint64_t at = (address >> 8) * 0x9E3779B97F4A7C15u >> 32 & (all->lent_room - 1);
    while (all->lent[at].address && all->lent[at].address != address)
        at = (at + 1) & (all->lent_room - 1);
    return at;
}

static bool lend(Blocks *all, uint64_t address, uint64_t size)
{
    if (2 * (all->lent_count + 1) > all->lent_room) {
        Blocks larger = *all;
        larger.lent_room = all->lent_room ? 2 * all->lent_room : 64;
        larger.lent = calloc(larger.lent_room, sizeof *larger.lent);
        if (!larger.lent) return false;
        for (uint64_t k = 0; k < all->lent_room; k++)
            if (all->lent[k].address) larger.lent[place_of(&larger, all->lent[k].address)] = all->lent[k];
        free(all->lent);
        all->lent = larger.lent;
        all->lent_room = larger.lent_room;
    }
    all->lent[place_of(all, address)] = (Lent){address, size, all->pool};
    all->lent_count++;
    return true;
}

/* A block that is not lent any more; of size 0 where it was not. */
static Lent returned(Blocks *all, uint64_t address)
{
    if (!all->lent_room || !address) return (Lent){0, 0, 0};
    uint64_t at = place_of(all, address), mask = all->lent_room - 1;
    Lent found = all->lent[at];
    if (!found.address) return found;
    all->lent[at] = (Lent){0, 0, 0};
    all->lent_count--;
    for (uint64_t next = (at + 1) & mask; all->lent[next].address; next = (next + 1) & mask) {
        Lent moved = all->lent[next]; /* which may have stood aside for the one that left */
        all->lent[next] = (Lent){0, 0, 0};
        all->lent[place_of(all, moved.address)] = moved;
    }
    return found;
}

/* ---- what is kept ----------------------------------------------------------------------------------------------- */

/* The first shelf of blocks that are no smaller. */
static Size shelf_at(const Pool *all, uint64_t size)
{
    Size low = 0, high = all->shelf_count;
    while (low < high) {
        Size middle = (low + high) / 2;
        if (all->shelves[middle].size < size)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static Shelf *shelf_of(Pool *all, uint64_t size)
{
    Size at = shelf_at(all, size);
    if (at < all->shelf_count && all->shelves[at].size == size) return &all->shelves[at];
    if (all->shelf_count == all->shelf_room) {
        Size room = all->shelf_room ? 2 * all->shelf_room : 16;
        Shelf *shelves = realloc(all->shelves, (size_t)room * sizeof *shelves);
        if (!shelves) return NULL;
        all->shelves = shelves;
        all->shelf_room = room;
    }
    memmove(&all->shelves[at + 1], &all->shelves[at], (size_t)(all->shelf_count - at) * sizeof *all->shelves);
    all->shelf_count++;
    all->shelves[at] = (Shelf){size, NULL, 0, 0};
    return &all->shelves[at];
}

/* Without memory for its address a block is lost, which the device can bear sooner than the host this. */
static void keep(Blocks *all, uint64_t address, uint64_t size, Size pool)
{
    Shelf *shelf = shelf_of(&all->pools[pool], size);
    if (shelf && shelf->count == shelf->room) {
        Size room = shelf->room ? 2 * shelf->room : 4;
        uint64_t *kept = realloc(shelf->kept, (size_t)room * sizeof *kept);
        if (!kept) return;
        shelf->kept = kept;
        shelf->room = room;
    }
    if (!shelf) return;
    Size at = shelf->count++;
    for (; at && shelf->kept[(at - 1) / 2] > address; at = (at - 1) / 2)
        shelf->kept[at] = shelf->kept[(at - 1) / 2];
    shelf->kept[at] = address;
}

/* The lowest address of a shelf, which is taken from it. */
static uint64_t lowest(Shelf *shelf)
{
    uint64_t found = shelf->kept[0], last = shelf->kept[--shelf->count];
    Size at = 0;
    for (Size next = 1; next < shelf->count; next = 2 * at + 1) {
        if (next + 1 < shelf->count && shelf->kept[next + 1] < shelf->kept[next]) next++;
        if (shelf->kept[next] >= last) break;
        shelf->kept[at] = shelf->kept[next];
        at = next;
    }
    if (shelf->count) shelf->kept[at] = last;
    return found;
}

/* A kept block that is not much larger; its size, or 0. */
static uint64_t again(Blocks *all, uint64_t wanted, uint64_t *address)
{
    const Pool *pool = &all->pools[all->pool];
    for (Size at = shelf_at(pool, wanted); at < pool->shelf_count; at++) {
        Shelf *shelf = &pool->shelves[at];
        if (shelf->size != wanted && shelf->size * (all->waste - 1) > wanted * all->waste) return 0;
        if (!shelf->count) continue;
        *address = lowest(shelf);
        return shelf->size;
    }
    return 0;
}

static uint64_t asked_of_driver(const Blocks *all, uint64_t wanted)
{
    Object *size = python.PyLong_FromLongLong((long long)wanted);
    Object *made = size ? python.PyObject_CallFunctionObjArgs(all->fresh, size, NULL) : NULL;
    uint64_t address = made ? (uint64_t)python.PyLong_AsLongLong(made) : 0;
    dropped(size);
    dropped(made);
    return python.PyErr_Occurred() ? 0 : address;
}

/* take(size): the address of a block of at least so many bytes; of none, 0. */
static Object *take(Object *self, Object *given)
{
    Blocks *all = (Blocks *)self;
    long long size = python.PyLong_AsLongLong(given);
    if (size <= 0) {
        if (python.PyErr_Occurred()) return NULL;
        return size == 0 ? python.PyLong_FromLongLong(0) : complain("take(size): a number of bytes is not negative");
    }
    uint64_t grain = (uint64_t)size <= all->small ? all->grain : all->large;
    uint64_t wanted = ((uint64_t)size + grain - 1) / grain * grain, address = 0;
    all->takes++;
    uint64_t found = again(all, wanted, &address);
    if (!found) {
        address = asked_of_driver(all, wanted);
        found = wanted;
    }
    if (!address) return python.PyErr_Occurred() ? NULL : complain("the driver gave no address");
    if (!lend(all, address, found)) {
        keep(all, address, found, all->pool);
        return python.PyErr_NoMemory();
    }
    all->used += found;
    if (all->used > all->most) all->most = all->used;
    return python.PyLong_FromLongLong((long long)address);
}

/* give(address): keep a block for whoever needs one next. */
static Object *give(Object *self, Object *given)
{
    Blocks *all = (Blocks *)self;
    uint64_t address = (uint64_t)python.PyLong_AsLongLong(given);
    if (python.PyErr_Occurred()) return NULL;
    if (!address) return held(helper.none);
    const Lent block = returned(all, address);
    if (!block.size) return complain("give(address): no block that is lent begins there");
    all->used -= block.size;
    keep(all, address, block.size, block.pool);
    return held(helper.none);
}

/* release(): the addresses of all kept blocks, which are not kept any more. */
static Object *release(Object *self, Object *const *given, Size count)
{
    (void)given, (void)count;
    Blocks *all = (Blocks *)self;
    Object *found = python.PyList_New(0);
    for (Pool *pool = all->pools; pool < all->pools + POOLS; pool++)
        for (Size at = 0; found && at < pool->shelf_count; at++) {
            Shelf *shelf = &pool->shelves[at];
            while (found && shelf->count) {
                Object *address = python.PyLong_FromLongLong((long long)shelf->kept[shelf->count - 1]);
                if (!address || python.PyList_Append(found, address))
                    become(&found, NULL);
                else
                    shelf->count--;
                dropped(address);
            }
        }
    return found;
}

/* use(pool): take blocks from this pool from now on. */
static Object *use(Object *self, Object *given)
{
    long long pool = python.PyLong_AsLongLong(given);
    if (python.PyErr_Occurred()) return NULL;
    if (pool < 0 || pool >= POOLS) return complain("use(pool): there is no such pool");
    ((Blocks *)self)->pool = (Size)pool;
    return held(helper.none);
}

/* pool_of(address): the pool that a block which is lent was taken from; -1 of others. */
static Object *pool_of(Object *self, Object *given)
{
    const Blocks *all = (Blocks *)self;
    uint64_t address = (uint64_t)python.PyLong_AsLongLong(given);
    if (python.PyErr_Occurred()) return NULL;
    const Lent *found = all->lent_room && address ? &all->lent[place_of(all, address)] : NULL;
    return python.PyLong_FromLongLong(found && found->address ? (long long)found->pool : -1);
}

/* counts(): bytes in use, bytes kept, the most ever used, blocks asked for. */
static Object *counts(Object *self, Object *const *given, Size count)
{
    (void)given, (void)count;
    const Blocks *all = (Blocks *)self;
    uint64_t kept = 0;
    for (const Pool *pool = all->pools; pool < all->pools + POOLS; pool++)
        for (Size at = 0; at < pool->shelf_count; at++)
            kept += pool->shelves[at].size * (uint64_t)pool->shelves[at].count;
    const uint64_t told[] = {all->used, kept, all->most, all->takes};
    Object *made = python.PyTuple_New(4);
    for (Size k = 0; made && k < 4; k++)
        python.PyTuple_SetItem(made, k, python.PyLong_FromLongLong((long long)told[k]));
    return made;
}

/* ---- the type --------------------------------------------------------------------------------------------------- */

static int visit_blocks(Object *self, Visit visit, void *how)
{
    int status = ((Blocks *)self)->fresh ? visit(((Blocks *)self)->fresh, how) : 0;
    return status ? status : visit(self->type, how);
}

static int clear_blocks(Object *self)
{
    become(&((Blocks *)self)->fresh, NULL);
    return 0;
}

static void deallocate_blocks(Object *self)
{
    Object *type = self->type;
    Blocks *all = (Blocks *)self;
    python.PyObject_GC_UnTrack(self);
    clear_blocks(self);
    for (Pool *pool = all->pools; pool < all->pools + POOLS; pool++) {
        for (Size at = 0; at < pool->shelf_count; at++)
            free(pool->shelves[at].kept);
        free(pool->shelves);
    }
    free(all->lent);
    python.PyObject_GC_Del(self);
    dropped(type);
}

static Object *blocks_type;

/* blocks(fresh, grain, small, large, waste): sizes are multiples of `grain` up to `small`, and of `large` above. */
static Object *new_blocks(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 5) return complain("blocks(fresh, grain, small, large, waste)");
    uint64_t numbers[4];
    for (Size k = 0; k < 4; k++) {
        long long number = python.PyLong_AsLongLong(given[k + 1]);
        if (number <= 0) return python.PyErr_Occurred() ? NULL : complain("blocks(...) takes numbers above zero");
        numbers[k] = (uint64_t)number;
    }
    Blocks *made = (Blocks *)python.PyType_GenericAlloc(blocks_type, 0);
    if (!made) return NULL;
    made->fresh = held(given[0]);
    made->grain = numbers[0];
    made->small = numbers[1];
    made->large = numbers[2];
    made->waste = numbers[3];
    return &made->head;
}

static Method functions[] = {
    {"blocks", new_blocks, FAST_CALL, "Blocks of memory that are used again."},
    {NULL, NULL, 0, NULL},
};

bool open_blocks(Object *module)
{
    static Method methods[] = {
        {"take", take, ONE_ARGUMENT, "The address of a block of at least so many bytes."},
        {"give", give, ONE_ARGUMENT, "Keep a block for whoever needs one next."},
        {"release", release, FAST_CALL, "The addresses of kept blocks, which are not kept any more."},
        {"use", use, ONE_ARGUMENT, "Take blocks from a pool from now on."},
        {"pool_of", pool_of, ONE_ARGUMENT, "The pool that a lent block was taken from; -1 of others."},
        {"counts", counts, FAST_CALL, "Bytes in use, bytes kept, the most ever used, blocks asked for."},
        {NULL, NULL, 0, NULL}};
    static TypeSlot slots[] = {
        {SLOT_DEALLOCATE, deallocate_blocks}, {SLOT_TRAVERSE, visit_blocks}, {SLOT_CLEAR, clear_blocks},
        {SLOT_METHODS, methods}, {0, NULL}};
    static TypeSpec spec = {"eshkol.runtime.front.Blocks", sizeof(Blocks), 0, TYPE_DEFAULT | TYPE_COLLECTED, slots};
    blocks_type = python.PyType_FromSpec(&spec);
    return blocks_type && add_methods(module, functions) == 0;
}
