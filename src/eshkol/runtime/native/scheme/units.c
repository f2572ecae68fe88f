/* Units of code that are collected with the heap (code.h says which).
 *
 * Comes in: objects that the linker has put into the region of units, and, during a collection, addresses that point
 * there. Goes out: which units are alive; the numbers of those that are not any more, for the host to forget them too.
 *
 * A unit takes a slot: the same stretch of the code and of the data of the region. Slots are kept in the order of their
 * addresses, and new ones are put into the first gap that is large enough, from behind the last new one on; after a
 * collection the search begins anew. The constants of a unit are roots while it is alive, and only then: closures among
 * them do not keep their own unit. */
#define _GNU_SOURCE
#include "code.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SLOT_ALIGNMENT = 64, BEHIND_CODE = 16 /* the return address of a call at the very end is the unit's too */ };
enum { HOST_BYTES = 2048 /* that the host keeps of a unit, beside the object */ };
enum { KEPT_BYTES = 4 << 20 /* of free slots, before pages go back to the system */, LEAST_RELEASED = 64 << 10 };
#define REGION_BYTES ((size_t)128 << 20) /* of address space; memory only where there are units */

struct Unit {
    size_t start, end; /* offsets in the code, and in the data */
    uint64_t number;   /* what the host knows it by */
    uint64_t weight;   /* bytes that go with it */
    const Value *constants;
    uint64_t count;
    Procedure procedure; /* of the closure that evaluates it */
    Unit *next;          /* of those that were reached, and whose constants are not yet marked */
    bool alive;
    bool old;            /* its constants are marked as the old are */
};

struct Units {
    Region *region;
    Unit **slots; /* by address */
    size_t count, room;
    size_t at, position; /* free memory is looked for before slot `at`, from this offset on */
    size_t touched;      /* no page behind this has memory */
    size_t new_units;    /* so many are not old */
    uint64_t numbers, weight;
    Unit *reached;
    uint64_t *freed; /* numbers of units that the host has not yet been told of */
    int64_t freed_count, freed_room;
    bool unavailable;
};

static bool is_ours(const Units *units) { return units->region->owner == getpid(); }

/* ---- loading ---------------------------------------------------------------------------------------------------- */

static Units *units_of(Heap *heap) {
    if (!heap->units) heap->units = calloc(1, sizeof *heap->units);
    Units *units = heap->units;
    if (units && !units->region && !units->unavailable) {
        units->region = esk_new_region(REGION_BYTES);
        units->unavailable = !units->region;
        if (units->region) {
            heap->units_base = (uint64_t)(uintptr_t)units->region->code;
            heap->units_extent = 2 * REGION_BYTES;
        }
    }
    return units && units->region ? units : NULL;
}

Region *esk_room_for_unit(Context *context, size_t bytes) {
    Units *units = units_of(context->heap);
    if (!units || !is_ours(units)) return NULL;
    bytes += BEHIND_CODE + SLOT_ALIGNMENT;
    for (;; units->position = units->slots[units->at++]->end) {
        size_t limit = units->at < units->count ? units->slots[units->at]->start : units->region->size;
        if (limit - units->position >= bytes) break;
        if (units->at == units->count) return NULL;
    }
    units->region->code_used = units->region->data_used = units->position;
    return units->region;
}

bool esk_add_unit(Context *context, size_t object_bytes) {
    Units *units = context->heap->units;
    if (units->count == units->room) {
        size_t room = units->room ? 2 * units->room : 64;
        Unit **slots = realloc(units->slots, room * sizeof *slots);
        if (!slots) return false;
        units->slots = slots;
        units->room = room;
    }
    Unit *unit = calloc(1, sizeof *unit);
    if (!unit) return false;
    Region *region = units->region;
    size_t end = (region->code_used > region->data_used ? region->code_used : region->data_used) + BEHIND_CODE;
    unit->start = units->position;
    unit->end = units->position = (end + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
    unit->number = ++units->numbers;
    unit->weight = 2 * (unit->end - unit->start) + object_bytes + HOST_BYTES;
    memmove(units->slots + units->at + 1, units->slots + units->at, (units->count - units->at) * sizeof unit);
    units->slots[units->at++] = unit;
    units->count++;
    if (unit->end > units->touched) units->touched = unit->end;
    units->weight += unit->weight;
    units->new_units++;
    unit->alive = context->heap->marking; /* its constants are marked as those of new units are */
    context->heap->since += unit->weight;
    return true;
}

static Unit *find(const Units *units, uint64_t offset) {
    if (offset >= units->region->size) offset -= units->region->size;
    size_t low = 0, high = units->count;
    while (low < high) { /* slots below `low` begin at or before the offset */
        size_t middle = low + (high - low) / 2;
        if (units->slots[middle]->start <= offset) low = middle + 1;
        else high = middle;
    }
    return low && offset < units->slots[low - 1]->end ? units->slots[low - 1] : NULL;
}

/* A unit was loaded: its entry, the place of its constants, and what esk_load_unit_constants made, from which they are
 * copied. The procedure that evaluates it refers to it from now on. Its number; or 0 where the code is not among the
 * units, and will never be freed: then the host must keep the constants alive. */
uint64_t esk_unit_ready(Context *context, const void *entry, Value *constants, Value made, const char *name) {
    static const Procedure nameless = {.signature = "()"};
    Heap *heap = context->heap;
    Vector *vector = esk_pointer(made);
    uint64_t count = (uint64_t)vector->length - 1, offset = (uint64_t)(uintptr_t)entry - heap->units_base;
    Closure *closure = esk_pointer(vector->items[count]);
    Unit *unit = offset < heap->units_extent ? find(heap->units, offset) : NULL;
    memcpy(constants, vector->items, count * sizeof *constants);
    closure->entry = entry;
    closure->procedure = &nameless;
    if (!unit) return 0;
    size_t size = strlen(name) + 1;
    char *kept = malloc(size);
    if (kept) {
        memcpy(kept, name, size);
        unit->procedure = (Procedure){.name = kept, .signature = "()"};
        closure->procedure = &unit->procedure;
    }
    unit->constants = constants;
    unit->count = count;
    return unit->number;
}

/* ---- collections ------------------------------------------------------------------------------------------------ */

void esk_reach_unit(Heap *heap, uint64_t offset) {
    Unit *unit = find(heap->units, offset);
    if (!unit || unit->alive) return;
    unit->alive = true;
    unit->next = heap->units->reached;
    heap->units->reached = unit;
}

bool esk_next_constants(Heap *heap, const Value **constants, uint64_t *count) {
    Unit *unit = heap->units ? heap->units->reached : NULL;
    if (!unit) return false;
    heap->units->reached = unit->next;
    *constants = unit->constants;
    *count = unit->count;
    return true;
}

bool esk_new_constants(Heap *heap, uint64_t *at, const Value **constants, uint64_t *count) {
    Units *units = heap->units;
    if (!units || !units->new_units) return false;
    while (*at < units->count) {
        Unit *unit = units->slots[(*at)++];
        if (unit->old || !unit->constants) continue; /* none yet: they come with unit_ready */
        unit->old = true;
        units->new_units--;
        *constants = unit->constants;
        *count = unit->count;
        return true;
    }
    return false;
}

void esk_forget_reached(Heap *heap) {
    if (!heap->units) return;
    heap->units->reached = NULL;
    for (size_t i = 0; i < heap->units->count; i++) heap->units->slots[i]->alive = false;
}

uint64_t esk_units_weight(const Heap *heap) { return heap->units ? heap->units->weight : 0; }

static void note_freed(Units *units, uint64_t number) {
    if (units->freed_count == units->freed_room) {
        int64_t room = units->freed_room ? 2 * units->freed_room : 256;
        uint64_t *freed = realloc(units->freed, (size_t)room * sizeof *freed);
        if (!freed) return; /* the host keeps what it has of it, which does no harm */
        units->freed = freed;
        units->freed_room = room;
    }
    units->freed[units->freed_count++] = number;
}

static void free_unit(Unit *unit) {
    free((char *)(uintptr_t)unit->procedure.name);
    free(unit);
}

/* Whoever still runs there is found out at once. */
static void poison(Units *units, const Unit *unit) {
    size_t bytes = unit->end - unit->start;
    memset(units->region->writer + unit->start, 0, bytes);
    memset(units->region->code + units->region->size + unit->start, 0xee, bytes);
    __builtin___clear_cache((char *)units->region->code + unit->start, (char *)units->region->code + unit->end);
}

/* The pages of a gap go back to the system. */
static void release(Units *units, size_t from, size_t to) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    from = (from + page - 1) / page * page;
    to = to / page * page;
    if (to < from + LEAST_RELEASED) return;
    madvise(units->region->writer + from, to - from, MADV_REMOVE);
    madvise(units->region->code + units->region->size + from, to - from, MADV_DONTNEED);
}

static void release_gaps(Units *units) {
    size_t keep = KEPT_BYTES, end = 0;
    for (size_t i = 0; i <= units->count; i++) {
        size_t from = end, to = i < units->count ? units->slots[i]->start : units->touched;
        if (to > from) {
            size_t kept = to - from < keep ? to - from : keep;
            keep -= kept;
            release(units, from + kept, to);
            if (i == units->count) units->touched = from + kept;
        }
        if (i < units->count) end = units->slots[i]->end;
    }
}

uint64_t esk_sweep_units(Heap *heap) {
    Units *units = heap->units;
    if (!units || !units->region) return 0;
    size_t kept = 0;
    for (size_t i = 0; i < units->count; i++) {
        Unit *unit = units->slots[i];
        if (unit->alive) {
            unit->alive = false;
            units->slots[kept++] = unit;
            continue;
        }
        units->new_units -= !unit->old;
        note_freed(units, unit->number);
        units->weight -= unit->weight;
        if (heap->stress && is_ours(units)) poison(units, unit);
        free_unit(unit);
    }
    bool freed = kept < units->count;
    units->count = kept;
    units->at = units->position = 0;
    if (freed && is_ours(units)) release_gaps(units);
    return units->weight;
}

/* Up to `room` numbers of units that were freed; how many. */
int64_t esk_freed_units(Context *context, uint64_t *numbers, int64_t room) {
    Units *units = context->heap->units;
    if (!units) return 0;
    int64_t count = units->freed_count < room ? units->freed_count : room;
    units->freed_count -= count;
    if (count) memcpy(numbers, units->freed + units->freed_count, (size_t)count * sizeof *numbers);
    return count;
}

void esk_free_units(Heap *heap) {
    Units *units = heap->units;
    if (!units) return;
    for (size_t i = 0; i < units->count; i++) free_unit(units->slots[i]);
    if (units->region) esk_free_region(units->region);
    free(units->slots);
    free(units->freed);
    free(units);
    heap->units = NULL;
    heap->units_extent = 0;
}
