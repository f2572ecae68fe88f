/* What watches a program at work: its stacks (sampler.c), kernels (kernels.c), heap (heaps.c), calls of Python
 * (callbacks.c). Nothing of it runs before it is asked for; the hooks are pointers that are null until then. All that
 * is found lies in tables of one struct, which the host reads when the watching has ended.
 */
#ifndef ESHKOL_PROFILING_H
#define ESHKOL_PROFILING_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { PROFILE_FRAMES = 128 };          /* of a stack, the innermost */
enum { PROFILE_FULL = UINT32_MAX };     /* the number of a stack for which there was no room */

/* Frames that were met together, innermost first: addresses[first] .. addresses[first + depth - 1]. */
typedef struct {
    uint64_t hash, first;
    uint32_t depth, kind; /* ESK_IN_... */
} ProfileStack;

typedef struct {
    uint64_t time, weight; /* nanoseconds: when, and processor time since the sample before */
    uint32_t stack, thread;
} ProfileSample;

/* A step of a sequence: how often it ran, and how long. */
typedef struct {
    uint64_t sequence, step, stack /* of Scheme, or PROFILE_FULL */, count, total, least, most;
} ProfileKernel;

typedef struct {
    uint64_t sequence, begin, end;
    uint32_t step, stack, thread, unused;
} ProfileCall;

/* A collection, or a moment between two: what was alive, as far as is known. */
typedef struct {
    uint64_t begin, end, before, after, context;
} ProfileCollection;

/* Objects that were handed out where a stack was, by bytes: in all, alive at the last collection, and at the one at
 * which most was alive. */
typedef struct {
    uint64_t handed_out, live, at_peak;
} ProfileSite;

typedef struct {
    uint64_t function, count, total;
} ProfileCallback;

/* Tables: where they lie, how many rows they have, and what found no room. */
typedef struct {
    const uint64_t *addresses;
    const ProfileStack *stacks;
    const ProfileSample *samples;
    const ProfileKernel *kernels;
    const ProfileCall *calls;
    const ProfileCollection *collections;
    const ProfileSite *sites; /* by the number of their stack */
    const ProfileCallback *callbacks;
    uint64_t address_count, stack_count, sample_count, kernel_count, call_count, collection_count, callback_count;
    uint64_t samples_lost, calls_lost, objects_lost, stacks_lost;
    uint64_t heap_peak; /* bytes that were alive where `at_peak` was taken down */
} Profile;

extern Profile eshkol_profile;

/* tables.c: memory of the system that is there when it is written to; null where there is none. It stays mapped: a
 * handler of signals may be about to write to it. */
void *eshkol_profile_map(uint64_t bytes);
void eshkol_profile_forget(void *memory, uint64_t bytes); /* its pages are given back, and are zeros again */
uint32_t eshkol_profile_stack(const uint64_t *addresses, int depth, uint32_t kind, bool waits);
uint32_t eshkol_profile_thread(void); /* the system's number of this thread */

static inline uint64_t profile_now(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
