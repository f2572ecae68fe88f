/* What takes memory in Scheme's heap, by the lines that ask for it; and what collections take.
 *
 * Allocation is a few instructions of compiled code, which nothing here touches. What is looked at is one object of a
 * run of free memory that is handed out (scheme/heap.c); the runs are of uneven length while somebody looks, so that
 * it stands for all of its run. Those that a collection leaves alive stay on a list: what holds memory, and what
 * held it when there was most.
 */
#include "profiling.h"
#include "../scheme/value.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { MOST_SITES = 1 << 16, MOST_COLLECTIONS = 1 << 16, MOST_OBJECTS = 1 << 20 };
enum { MEAN_BYTES = 16 << 10 };
enum { MOMENT = 1000000 /* nanoseconds between two points of the timeline */ };

typedef struct {
    const void *object;
    const Context *context;
    uint64_t bytes;
    uint32_t stack;
} Sampled;

static ProfileSite *sites;
static ProfileCollection *collections;
static Sampled *objects;
static uint64_t object_count, begun, before, last_point, alive /* of the sampled */;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t cells(uint64_t bytes)
{
    static _Thread_local uint64_t state;
    if (!state) state = profile_now(CLOCK_MONOTONIC) | 1;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return 1 + state % (2 * MEAN_BYTES / bytes + 1);
}

static void point(Context *context, uint64_t begin, uint64_t end, uint64_t from, uint64_t to)
{
    last_point = end;
    if (eshkol_profile.collection_count < MOST_COLLECTIONS)
        collections[eshkol_profile.collection_count++] =
            (ProfileCollection){begin, end, from, to, (uint64_t)(uintptr_t)context};
}

static void at_peak(void)
{
    if (alive <= eshkol_profile.heap_peak) return;
    eshkol_profile.heap_peak = alive;
    for (uint64_t i = 0; i < eshkol_profile.stack_count; i++) sites[i].at_peak = sites[i].live;
}

static void allocated(Context *context, const void *object, uint64_t bytes)
{
    uint64_t found[PROFILE_FRAMES];
    int depth = esk_frames(context, found, PROFILE_FRAMES);
    uint32_t stack = eshkol_profile_stack(found, depth, ESK_IN_SCHEME, true);
    uint64_t time = profile_now(CLOCK_MONOTONIC);
    pthread_mutex_lock(&lock);
    if (stack == PROFILE_FULL) eshkol_profile.objects_lost++;
    else {
        sites[stack].handed_out += bytes;
        if (object_count < MOST_OBJECTS) {
            objects[object_count++] = (Sampled){object, context, bytes, stack};
            sites[stack].live += bytes;
            alive += bytes;
        } else
            eshkol_profile.objects_lost++;
    }
    if (time - last_point > MOMENT) point(context, time, time, alive, alive);
    pthread_mutex_unlock(&lock);
}

static void collecting(Context *context)
{
    (void)context;
    pthread_mutex_lock(&lock);
    before = alive;
    begun = profile_now(CLOCK_MONOTONIC);
    pthread_mutex_unlock(&lock);
}

static void collected(Context *context)
{
    pthread_mutex_lock(&lock);
    uint64_t end = profile_now(CLOCK_MONOTONIC), kept = 0;
    for (uint64_t i = 0; i < object_count; i++) {
        const Sampled one = objects[i];
        if (one.context != context || esk_is_allocated(context, one.object)) objects[kept++] = one;
        else {
            sites[one.stack].live -= one.bytes;
            alive -= one.bytes;
        }
    }
    object_count = kept;
    if (begun) point(context, begun, end, before, alive);
    at_peak();
    pthread_mutex_unlock(&lock);
}

static const HeapWatcher watcher = {cells, allocated, collecting, collected};

/* Begins to watch all heaps, or, unless `anew`, goes on: 0, or an errno value. */
int eshkol_heaps_start(int anew)
{
    if (!sites) {
        ProfileSite *first = eshkol_profile_map(MOST_SITES * sizeof *first);
        collections = first ? eshkol_profile_map(MOST_COLLECTIONS * sizeof *collections) : NULL;
        objects = collections ? eshkol_profile_map(MOST_OBJECTS * sizeof *objects) : NULL;
        if (!objects) return ENOMEM;
        sites = first;
    }
    if (anew) {
        eshkol_profile_forget(sites, MOST_SITES * sizeof *sites);
        object_count = begun = before = alive = 0;
        last_point = profile_now(CLOCK_MONOTONIC);
    }
    eshkol_profile.sites = sites;
    eshkol_profile.collections = collections;
    __atomic_store_n(&esk_heap_watcher, &watcher, __ATOMIC_RELEASE);
    return 0;
}

/* Ends it. Where nothing was ever collected, all that was handed out counts as alive. */
void eshkol_heaps_stop(void)
{
    __atomic_store_n(&esk_heap_watcher, NULL, __ATOMIC_RELEASE);
    pthread_mutex_lock(&lock);
    if (!eshkol_profile.heap_peak) at_peak();
    pthread_mutex_unlock(&lock);
}

/* A context's heap is about to be freed. */
void eshkol_heaps_forget(const Context *context)
{
    pthread_mutex_lock(&lock);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < object_count; i++)
        if (objects[i].context != context) objects[kept++] = objects[i];
    object_count = kept;
    pthread_mutex_unlock(&lock);
}
