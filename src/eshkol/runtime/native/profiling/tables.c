/* See profiling.h: the tables, and stacks, each of which is kept once and known by its number. */
#define _GNU_SOURCE
#include "profiling.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

enum { MOST_STACKS = 1 << 16, SLOTS = 2 * MOST_STACKS, MOST_ADDRESSES = 1 << 22 };

Profile eshkol_profile;

static uint64_t *addresses;
static ProfileStack *stacks;
static uint32_t *slots; /* numbers of stacks, from 1 on, by their hash */
static atomic_flag busy = ATOMIC_FLAG_INIT;

void *eshkol_profile_map(uint64_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_NORESERVE
    flags |= MAP_NORESERVE;
#endif
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void eshkol_profile_forget(void *memory, uint64_t bytes)
{
    if (madvise(memory, bytes, MADV_DONTNEED) != 0) memset(memory, 0, bytes);
}

uint32_t eshkol_profile_thread(void)
{
#ifdef __linux__
    static _Thread_local uint32_t known;
    if (!known) known = (uint32_t)syscall(SYS_gettid);
    return known;
#else
    return (uint32_t)getpid();
#endif
}

/* Room for what is found, all of it empty: 0, or -1 where there is no memory. */
int eshkol_profile_begin(void)
{
    if (!stacks) {
        uint64_t *first = eshkol_profile_map(MOST_ADDRESSES * sizeof *first);
        uint32_t *second = eshkol_profile_map(SLOTS * sizeof *second);
        ProfileStack *third = eshkol_profile_map(MOST_STACKS * sizeof *third);
        if (!first || !second || !third) return -1;
        addresses = first, slots = second, stacks = third;
    }
    eshkol_profile_forget(slots, SLOTS * sizeof *slots);
    eshkol_profile = (Profile){.addresses = addresses, .stacks = stacks};
    return 0;
}

/* The number of a stack. Where another thread is in the middle of this, it is waited for, or there is none: whoever
 * asks may be a handler of signals that met this very thread here. */
uint32_t eshkol_profile_stack(const uint64_t *found, int depth, uint32_t kind, bool waits)
{
    if (!stacks) return PROFILE_FULL;
    uint64_t hash = 0xcbf29ce484222325u ^ kind;
    for (int i = 0; i < depth; i++) hash = (hash ^ found[i]) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
        if (!waits) return PROFILE_FULL;
        sched_yield();
    }
    uint32_t number = PROFILE_FULL;
    for (uint64_t at = hash % SLOTS;; at = (at + 1) % SLOTS) {
        if (!slots[at]) {
            uint64_t first = eshkol_profile.address_count;
            if (eshkol_profile.stack_count == MOST_STACKS || first + (uint64_t)depth > MOST_ADDRESSES) {
                eshkol_profile.stacks_lost++;
                break;
            }
            number = (uint32_t)eshkol_profile.stack_count++;
            memcpy(addresses + first, found, (size_t)depth * sizeof *found);
            eshkol_profile.address_count += (uint64_t)depth;
            stacks[number] = (ProfileStack){hash, first, (uint32_t)depth, kind};
            slots[at] = number + 1;
            break;
        }
        const ProfileStack *known = &stacks[slots[at] - 1];
        if (known->hash == hash && known->kind == kind && known->depth == (uint32_t)depth &&
            !memcmp(addresses + known->first, found, (size_t)depth * sizeof *found)) {
            number = slots[at] - 1;
            break;
        }
    }
    atomic_flag_clear_explicit(&busy, memory_order_release);
    return number;
}
