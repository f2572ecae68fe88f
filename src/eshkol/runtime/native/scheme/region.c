/* The beginning and the end of a heap: its address space, its sizes of cells, its limit.
 *
 * In: a limit in bytes, or none: then the variable ESHKOL_HEAP ("512M", "2G"), or three quarters of the memory. Out: a
 * heap that holds nothing yet. Two variables are for tests: with ESHKOL_GC_STRESS=N every N-th request for memory
 * collects, runs are one cell long, and slices of marking begin with one object; with that, and with ESHKOL_GC_CHECK=1,
 * the heap is checked after every collection.
 */
#define _GNU_SOURCE
#include "heap.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RESERVE = 48, LEAST_LIMIT = 64 /* blocks */ };

/* Sizes above SMALL_WORDS, in words: as many to a block as fit, so that little is lost at its end. */
static const uint16_t larger_sizes[LARGER_CLASSES] = {
    40,  48,  56,  64,  80,  96,  112, 128, 160,  192,  227,  256,  292,
    327, 390, 455, 512, 585, 682, 819, 1024, 1365, 1638, 2048, 2730, 4096};

void *esk_map(uint64_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* "512M", "2G", "65536": bytes, or 0 where it is none of these. */
static uint64_t parse_size(const char *text) {
    char *end;
    double number = strtod(text, &end);
    switch (*end) {
    case 'k': case 'K': number *= 1 << 10; end++; break;
    case 'm': case 'M': number *= 1 << 20; end++; break;
    case 'g': case 'G': number *= 1 << 30; end++; break;
    case 't': case 'T': number *= (double)(1ull << 40); end++; break;
    }
    return end == text || *end || !(number >= 1 && number < 0x1p62) ? 0 : (uint64_t)number;
}

static uint64_t default_limit(void) {
    const char *wish = getenv("ESHKOL_HEAP");
    uint64_t bytes = wish ? parse_size(wish) : 0;
    if (bytes) return bytes;
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 4 * 3 : (uint64_t)1 << 30;
}

static void set_up_classes(Heap *heap) {
    for (int i = 0; i < CLASS_COUNT; i++) {
        SizeClass *class = &heap->classes[i];
        class->words = i < SMALL_WORDS ? (uint32_t)i + 1 : larger_sizes[i - SMALL_WORDS];
        class->cells = BLOCK_GRANULES / class->words;
        class->reciprocal = (((uint64_t)1 << 32) + class->words - 1) / class->words;
        class->list = NO_BLOCK;
        for (uint32_t cell = 0; cell < class->cells; cell++) {
            uint32_t granule = cell * class->words;
            class->starts[granule / 64] |= (uint64_t)1 << (granule % 64);
        }
    }
    int class = SMALL_WORDS;
    for (uint32_t i = SMALL_WORDS / 8 + 1; i <= LARGEST_CELL / 8; i++) {
        while (heap->classes[class].words < i * 8) class++;
        heap->class_of[i] = (uint8_t)class;
    }
}

/* Twice the limit of address space, so that holes between large objects do not matter. */
static bool reserve_region(Heap *heap, uint64_t blocks) {
    uint64_t bytes = (blocks + 1) * BLOCK_BYTES;
    char *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    uint64_t skip = (uint64_t)-(intptr_t)memory & (BLOCK_BYTES - 1);
    if (skip) munmap(memory, skip);
    munmap(memory + skip + blocks * BLOCK_BYTES, BLOCK_BYTES - skip);
    heap->base = memory + skip;
    heap->capacity = blocks;
    heap->allocated = esk_map(blocks * BITMAP_WORDS * 8);
    heap->marked = esk_map(blocks * BITMAP_WORDS * 8);
    heap->reached = esk_map(blocks * BITMAP_WORDS * 8);
    heap->cards = esk_map(blocks * BLOCK_BYTES >> CARD_SHIFT);
    heap->blocks = esk_map(blocks * sizeof(Block));
    heap->free = esk_map((blocks + 63) / 64 * 8);
    return heap->allocated && heap->marked && heap->reached && heap->cards && heap->blocks && heap->free;
}

static void unmap(void *memory, uint64_t bytes) {
    if (memory) munmap(memory, bytes);
}

static void free_region(Heap *heap) {
    unmap(heap->base, heap->capacity * BLOCK_BYTES);
    unmap(heap->allocated, heap->capacity * BITMAP_WORDS * 8);
    unmap(heap->marked, heap->capacity * BITMAP_WORDS * 8);
    unmap(heap->reached, heap->capacity * BITMAP_WORDS * 8);
    unmap(heap->cards, heap->capacity * BLOCK_BYTES >> CARD_SHIFT);
    unmap(heap->blocks, heap->capacity * sizeof(Block));
    unmap(heap->free, (heap->capacity + 63) / 64 * 8);
    heap->base = NULL;
    heap->allocated = heap->marked = heap->reached = heap->free = NULL;
    heap->cards = NULL;
    heap->blocks = NULL;
}

Heap *esk_new_heap(uint64_t bytes) {
    bool may_shrink = !bytes;
    if (!bytes) bytes = default_limit();
    uint64_t most = (uint64_t)1 << 46;
    uint64_t limit = (bytes > most ? most : bytes) >> BLOCK_SHIFT;
    if (limit < LEAST_LIMIT) limit = LEAST_LIMIT;
    Heap *heap = calloc(1, sizeof *heap);
    if (!heap) return NULL;
    while (!reserve_region(heap, 2 * limit + RESERVE)) {
        free_region(heap);
        if (!may_shrink || limit / 2 < LEAST_LIMIT) {
            free(heap);
            return NULL;
        }
        limit /= 2;
    }
    heap->limit = limit;
    heap->reserve = RESERVE;
    set_up_classes(heap);
    esk_set_up_collections(heap);
    pthread_mutex_init(&heap->dropping, NULL);
    heap->room_limit = UINT64_MAX;
    const char *stress = getenv("ESHKOL_GC_STRESS");
    heap->stress = heap->until_stress = stress ? strtoull(stress, NULL, 10) : 0;
    const char *check = getenv("ESHKOL_GC_CHECK");
    heap->check = heap->stress || (check && *check && strcmp(check, "0"));
    return heap;
}

void esk_free_heap(Context *context) {
    Heap *heap = context->heap;
    esk_run_finalizers(heap, true);
    esk_free_units(heap);
    free(heap->finalizers);
    free(heap->ephemerons);
    free(heap->dropped);
    pthread_mutex_destroy(&heap->dropping);
    free(heap->symbols.slots);
    free(heap->keywords.slots);
    while (heap->roots) {
        RootChunk *next = heap->roots->next;
        free(heap->roots);
        heap->roots = next;
    }
    free(heap->new_names);
    unmap(heap->young.items, heap->young.room * sizeof *heap->young.items);
    unmap(heap->waiting.items, heap->waiting.room * sizeof *heap->waiting.items);
    free_region(heap);
    free(heap);
}
