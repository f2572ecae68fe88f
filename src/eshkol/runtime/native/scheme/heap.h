/* How the heap is built: what heap.c (memory), collect.c (collections), mark.c (what is alive), units.c (code),
 * objects.c (constructors) and symbols.c (the table of names) share. Nobody else includes this.
 *
 * One region of address space is cut into blocks of 64 KB. A block holds cells of one size, or is part of a large
 * object, which takes whole blocks. Two bitmaps with a bit for every eight bytes of the region say where an object
 * begins: `allocated` is exact between allocations, so that a word on the stack that only looks like a pointer to a
 * free cell is known for what it is; `marked` is set for the old, which have survived a collection. What is known of a
 * block stands in an array of its own, so that blocks hold nothing but objects and the pages of empty ones can go back
 * to the system.
 *
 * Most collections are of the young: they mark those that the roots and old objects refer to, which are old then, and
 * free the others. Old objects that refer to young ones were written to since the last collection: `cards` has a byte
 * for every 128 bytes of the region that says so (value.h, esk_written). When the old have become many, all that is
 * alive is marked in a third bitmap, `reached`, in slices: one after each collection of the young, which then also
 * reaches what the roots, the young and written cards refer to. There are no young objects at that time, so nothing is
 * missed: when no object waits any more for being traced, all is marked, without another look at anything. What is not
 * reached is freed then. (The other way, to keep what was referred to when marking began, would need the old value at
 * every store; stacks, which it need not look at again, are looked at for the young in any case.)
 *
 * Memory is handed out in runs of neighbouring free cells: context->bump[words] is the run that is being used up.
 * Several threads may use one heap, each with a context and, of each size, a block of its own in which it finds its
 * runs; so it takes a lock once for a block. While one of them collects, all others stand still (stops.c). What they
 * share is changed under heap->lock, which is taken only once there are several. Nothing is swept cell by cell; a run
 * is found in the bitmaps when it is needed.
 *
 * Arenas will fit in as blocks of a further kind, taken from the same pool and cut by a bump pointer of the arena.
 * Objects in them have bits in `allocated`, so that conservative pointers find them, and the marker traces through them
 * as through others; an arena's blocks are not swept but given back as a whole when it ends. That nothing outside
 * points into an arena that has ended is for the language's rules of ownership to ensure.
 */
#ifndef ESHKOL_SCHEME_HEAP_H
#define ESHKOL_SCHEME_HEAP_H

#include "value.h"

#include <pthread.h>

enum { BLOCK_SHIFT = 16, BLOCK_BYTES = 1 << BLOCK_SHIFT };
enum { BLOCK_GRANULES = BLOCK_BYTES / 8, BITMAP_WORDS = BLOCK_GRANULES / 64 };
enum { LARGEST_CELL = 4096 /* words */, CLASS_COUNT = SMALL_WORDS + LARGER_CLASSES };
enum { NO_BLOCK = UINT32_MAX };
enum BlockKind { BLOCK_FREE, BLOCK_CELLS, BLOCK_LARGE, BLOCK_TAIL };

typedef struct {
    uint8_t kind;
    uint8_t class;    /* of cells */
    uint8_t resident; /* whether it may have pages */
    uint8_t touched;  /* whether memory of it was handed out since the last collection */
    uint32_t span;    /* of a large object: its blocks; of its tail: how many back it begins; of cells: the old */
    union {
        uint32_t next;    /* of cells: another block of the class with free cells */
        uint32_t counted; /* of a large object: whether heap->live has it */
    };
    uint32_t next_touched;
} Block;

typedef struct {
    uint32_t words, cells;
    uint64_t reciprocal; /* granule * reciprocal >> 32 is the cell's number */
    uint32_t list;       /* blocks with free cells that no thread looks for runs in */
    uint64_t starts[BITMAP_WORDS]; /* the granules where cells begin */
} SizeClass;

typedef struct { Object *object; void (*last)(Object *); } Finalizer;
typedef struct Ephemeron Ephemeron;
typedef struct RootChunk { struct RootChunk *next; Value cells[255]; } RootChunk;
typedef struct { Symbol **slots; uint64_t mask, used /* with the dropped */, count; } SymbolTable;
/* Objects to be traced; of pieces of vectors, where they begin and the vector with the lowest bit set. */
typedef struct { uintptr_t *items; uint64_t depth, room; bool overflowed; } MarkStack;
/* How much may be traced at once: so many objects in any case, and then as many as time (in nanoseconds) allows. */
typedef struct { int64_t objects; uint64_t until; } Budget;
/* Nanoseconds; of the work, those of the thread that collects; of stopping, until all others stood still. */
typedef struct { uint64_t count, total, longest, most_work, stopping; } Pauses;

typedef struct Unit Unit;
typedef struct Units Units;

typedef struct Heap {
    char *base;
    uint64_t extent;        /* bytes of the region that have ever been used: what is beyond is no object */
    uint64_t top;           /* the same in blocks */
    uint64_t committed, capacity; /* blocks that may be touched; blocks of the region */
    uint64_t used, limit, reserve; /* blocks in use, allowed, and allowed beyond for the handlers of out-of-memory */
    uint64_t lowest_free;   /* no block below is free */
    uint64_t *allocated, *marked, *reached;
    uint64_t *alive;        /* marked or reached, whichever the last marking was about */
    uint8_t *cards;
    Block *blocks;
    uint64_t *free;         /* bitmap of free blocks below top */
    SizeClass classes[CLASS_COUNT];
    uint8_t class_of[LARGEST_CELL / 8 + 1]; /* by words / 8, rounded up, above SMALL_WORDS */

    uint64_t since, threshold; /* bytes handed out since the last collection; how many cause the next */
    uint64_t share;         /* of the threshold: less where collections of the young take long */
    uint32_t touched;       /* a list of blocks */
    uint64_t whole_at;      /* bytes alive, and of code, that cause a collection of all */
    bool marking;           /* one is under way: marking in slices, of which there were so many */
    uint64_t slices, wholes; /* collections of all that are done */
    Pauses pauses;          /* of collections that nobody asked for */
    bool check;             /* after every collection, that no store was forgotten */
    uint64_t recent; /* blocks in use when the last collections began; each earlier one counts 1/8 less */
    uint64_t live, handed_out, collections, stress, until_stress;
    int64_t paused;
    bool in_reserve, collecting;
    bool forced;            /* the last collection, because the limit was reached */

    MarkStack young, waiting; /* what is to be traced: by the collection of the young; by slices */
    uint64_t room_limit;

    RootChunk *roots;
    Value *free_root;
    Value *statics;         /* values in static memory, of a program that was built ahead of time */
    uint64_t static_count;
    pthread_mutex_t dropping; /* roots that other threads let go of, until they are freed here */
    Value **dropped;
    uint64_t dropped_count, dropped_room;
    uint64_t outside, outside_since, outside_threshold; /* bytes elsewhere that objects here keep alive */
    Finalizer *finalizers;
    uint64_t finalizer_count, finalizer_room, finalizers_old /* so many are of old objects */;
    Ephemeron **ephemerons;
    uint64_t ephemeron_count, ephemeron_room, ephemerons_old;
    RecordType *ephemeron_type; /* null before there is one */
    SymbolTable symbols, keywords;
    Symbol **new_names;     /* in the tables, and young */
    uint64_t new_count, new_room;
    bool new_lost;          /* no memory for some of them: the tables tell */

    Units *units;           /* code that is collected (units.c), or null, */
    uint64_t units_base, units_extent; /* and where it lies, with its data */
    const RecordType *error_type; /* the context's; errors have return addresses in their trace */

    /* threads (stops.c). `several`: whether there ever was more than one, so that locks must be taken. */
    bool several;
    volatile bool stopping; /* all but one are to stop */
    volatile bool ending;   /* all but the first are to end */
    int64_t fast_runs;      /* of compiled derivatives, on threads that have ended */
    uint64_t levels;        /* so many uses of derivative operators there have been (duals.c) */
    Context *first;         /* the contexts of this heap, beginning with the host's */
    struct Heap *next_shared; /* another heap of several threads (stops.c) */
    uint64_t contexts, contexts_made; /* how many there are, and have been */
    int64_t running;        /* how many are not stopped */
    uint64_t processors;    /* of the machine */
    pthread_mutex_t lock;   /* of memory, roots and names. Who holds it neither stops nor waits for anything. */
    pthread_mutex_t world;  /* of the contexts, and of stopping; taken after `waits` and before nothing */
    pthread_cond_t stopped, resumed;
    pthread_mutex_t waits;  /* of what threads wait for (waits.c), in the order in which they came: */
    struct Waiter *waiters, *last_waiter;
    struct Request *requests, *last_request; /* what others want done on the first thread (requests.c) */
    struct Pool *pool;      /* threads that run tasks (tasks.c), or null */
    volatile bool exiting;  /* another thread has called exit, with this code */
    Value exit_code;
} Heap;

static inline void esk_lock(Heap *heap) {
    if (heap->several) pthread_mutex_lock(&heap->lock);
}
static inline void esk_unlock(Heap *heap) {
    if (heap->several) pthread_mutex_unlock(&heap->lock);
}
static inline bool esk_is_first(const Context *context) { return context->heap->first == context; }

/* Where a program can go on (continuation.c): frames from `low` up to where the parent's begin, or to the entry,
 * and what the registers must be there. Shared ones stand on the stack until they are returned to; FLAG_OWN: one
 * that is only a continuation's, FLAG_ONCE: and without frames, which are there as long as it is used; FLAG_PART:
 * shared frames behind others, of which it is not known what else they need, so that none goes on there. An object
 * of type TAG_CONTINUATION that no program ever sees. */
enum { FLAG_OWN = 128, FLAG_ONCE = 64, FLAG_PART = 32 };
#if defined(__aarch64__)
enum { CALLEE_SAVED = 19 };
#else
enum { CALLEE_SAVED = 6 };
#endif
typedef struct Segment {
    Object head;            /* count: the depth, one more than the parent's */
    struct Segment *parent; /* or null */
    const char *back;       /* where to go on: the return address to the lowest of these frames, */
    char *low;              /* with this stack pointer */
    uint64_t registers[CALLEE_SAVED]; /* and with these registers, the frame pointer last */
    uint64_t place;         /* of its entry */
    uint64_t bytes;
    char frames[];
} Segment;

/* A continuation is a closure: what was in force when it was captured (lists, as a Values), and where to go on. */
enum { CONTINUED_EXTENT, CONTINUED_SEGMENT, CONTINUATION_PARTS };
enum { EXTENT_HANDLERS, EXTENT_WINDERS, EXTENT_PARAMETERS, EXTENT_PARTS };
extern const void *esk_continuation_entry; /* of such closures: compiled code */

/* What an entry from outside leaves on the stack (control.c). */
typedef struct Entry {
    struct Entry *outer;
    char *base;             /* the frames of this entry lie below */
    uint64_t place;         /* a number that no other entry has, or where the frames of one begin that is a form's: the
                             * next form, whose begin there too, can go on with its continuations */
    const Value *args;
    int64_t count;
    Segment *captured;      /* the innermost shared frames that are on the stack as they were captured */
    Context *before;        /* esk_current outside */
    char *left;             /* the frame that calls the host, where what the host calls is an entry of its own */
    bool unwinds;           /* what leaves it by a condition runs the outstanding thunks of dynamic-wind */
    bool form;              /* what was typed at a prompt: the next may go on with its continuations */
    bool protects;          /* of esk_protect: its frames count as those of the entry outside */
    uint64_t fast_generation; /* of the context when it began */
    Value handlers, winders, parameters, outcome, raise;
    jmp_buf escape;
} Entry;

/* Tasks that a context has put aside (tasks.c): items[first … end) */
typedef struct Deque {
    pthread_mutex_t lock;
    Value *items;
    uint64_t first, end, room;
} Deque;

/* region.c */
Heap *esk_new_heap(uint64_t limit); /* null where there is no memory */
void esk_free_heap(Context *);
void *esk_map(uint64_t bytes); /* zeroed memory of the system, lazily there; null where there is none */

/* heap.c */
static inline uint64_t *esk_bitmap(uint64_t *bitmap, uint64_t block) { return bitmap + block * BITMAP_WORDS; }
void esk_give_blocks(Heap *, uint64_t first, uint64_t count);
void esk_release_pages(Heap *, uint64_t most /* blocks */);
void esk_drop_runs(Context *); /* what is left of them is free again */
void esk_drop_areas(Context *); /* nor does it look for runs in its blocks any more */
const HeapWatcher *esk_watcher(void); /* who watches the heap, or null */
void esk_free_dropped(Context *);
_Noreturn void esk_out_of_memory(Context *, uint64_t bytes);
uint64_t esk_heap_room(Context *); /* bytes that the limit leaves, beside the blocks in use */

/* stops.c */
void esk_set_up_threads(Context *first);
void esk_add_context(Context *from, Context *made); /* which is stopped until esk_come_back */
void esk_forget_sharing(Heap *);     /* it goes */
void esk_remove_context(Context *); /* by its own thread, which does not use the heap any more */
void esk_come_back(Context *);      /* runs again, when nobody collects */
void esk_remain_stopped(Context *); /* from here on until esk_come_back; without an entry */
void esk_stop_here(Context *);      /* while somebody collects */
/* All others are stopped: true. Or another thread has collected meanwhile: false. */
bool esk_stop_others(Context *, char *stack_low);
void esk_let_others_go(Context *);
bool esk_is_wanted(const Context *); /* whether esk_poll has something to do */
void esk_want(Context *);            /* another thread's comes to esk_poll soon */
void esk_attend(Context *);          /* what esk_poll has to do for other threads */
void esk_let_go_of_all(Context *);   /* objects that this thread held (waits.c) */

/* collect.c */
enum { THRESHOLD = 8 << 20, LEAST_OUTSIDE = 64 << 20 /* bytes */ };
void esk_set_up_collections(Heap *);
uint64_t esk_now(void); /* nanoseconds */
void esk_run_finalizers(Heap *, bool all);
void esk_clear_stack(void);           /* below the caller's frame, of what frames that ended left there */
void esk_step(Context *);             /* a collection of the young, and a slice of one of all when that is due */
bool esk_collect_at_limit(Context *); /* of all; false where that freed so little that the next would come at once */
void esk_collect_when_due(Context *); /* also without an entry */
static inline bool esk_may_collect(const Context *context) {
    return context->entry && !__atomic_load_n(&context->heap->paused, __ATOMIC_RELAXED) && !context->heap->collecting;
}
static inline bool esk_is_alive(const Heap *heap, const void *object) { /* after marking */
    uint64_t offset = (uint64_t)((const char *)object - heap->base);
    return offset >= heap->extent || (heap->alive[offset >> 9] >> (offset >> 3 & 63) & 1);
}
static inline void esk_touch(Heap *heap, uint32_t block) {
    if (heap->blocks[block].touched) return;
    heap->blocks[block].touched = 1;
    heap->blocks[block].next_touched = heap->touched;
    heap->touched = block;
}

/* mark.c */
void esk_clear_cards(Heap *);
void esk_mark_young(Context *, char *stack_low);
bool esk_mark_slice(Heap *, Budget *); /* whether all is marked */
void esk_mark_all(Context *, char *stack_low);

/* units.c. An address counts as the distance from units_base, and lies within units_extent. */
void esk_reach_unit(Heap *, uint64_t offset);
bool esk_next_constants(Heap *, const Value **, uint64_t *count); /* of a unit that was reached; false: of none */
/* of the next unit that is new, from 0 on */
bool esk_new_constants(Heap *, uint64_t *unit, const Value **, uint64_t *count);
void esk_forget_reached(Heap *);       /* none was reached */
uint64_t esk_units_weight(const Heap *); /* bytes that go with them */
uint64_t esk_sweep_units(Heap *); /* the same of those that are alive */
void esk_free_units(Heap *);

/* ephemerons.c */
const Value *esk_ephemeron_parts(const Ephemeron *); /* its key and its datum */
/* what must be marked since the key is, or null */
const Value *esk_ephemeron_due(const Heap *, const Ephemeron *);
void esk_sweep_ephemerons(Heap *, bool all); /* after marking */

/* errors.c: the fields of error objects, and the return addresses that are kept for the host. */
enum { FIELD_KIND, FIELD_MESSAGE, FIELD_IRRITANTS, FIELD_WHO, FIELD_TRACE, FIELD_CAUSE, FIELD_COUNT };
const uint64_t *esk_uncaught_addresses(int64_t *count);

/* control.c */
Context *esk_new_thread_context(Context *from); /* another of the same heap; null where there is no memory */
void esk_free_thread_context(Context *);
_Noreturn void esk_end_task(Context *, const char *why); /* the innermost entry ends, whatever handlers there are */
void esk_stack_restored(Context *, char *low); /* the stack will end at `low` again: may overflow anew */

/* fast_table.c: this thread uses nothing of the table of derivatives any more but what it did before that. */
static inline void esk_end_fast(Context *context, uint64_t before) {
    __atomic_store_n(&context->fast_generation, before, __ATOMIC_RELEASE);
}

/* continuation.c */
extern __thread Context *esk_current; /* whose entry this thread runs */
extern const char esk_underflow[];    /* the return address in place of those to shared frames */
void esk_wipe(char *from, char *to); /* frames that will never be returned to */

/* symbols.c */
void esk_drop_symbols(Heap *, bool all); /* after marking: all of them, or the young */

#endif
