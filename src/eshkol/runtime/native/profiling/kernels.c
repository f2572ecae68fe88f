/* What kernels take: every call of a sequence (sequence.h), summed up by its step and the stack of Scheme around it,
 * and the first million one by one. */
#include "profiling.h"
#include "../scheme/value.h"
#include "../sequence.h"

#include <errno.h>
#include <pthread.h>

enum { MOST_KERNELS = 1 << 16, ROOM = MOST_KERNELS * 3 / 4, MOST_CALLS = 1 << 20 };

static ProfileKernel *kernels; /* by a hash of sequence and step; a free one has no sequence */
static ProfileCall *calls;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void called(const eshkol_sequence *sequence, int64_t step, uint64_t begin, uint64_t end)
{
    const uint64_t key = (uint64_t)(uintptr_t)sequence, took = end - begin;
    uint64_t found[PROFILE_FRAMES];
    int depth = esk_waiting_frames(found, PROFILE_FRAMES);
    uint32_t stack = depth ? eshkol_profile_stack(found, depth, ESK_IN_PYTHON, true) : PROFILE_FULL;
    uint64_t at = (key ^ ((uint64_t)step << 20 | stack) * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu >> 48;
    pthread_mutex_lock(&lock);
    while (kernels[at].sequence &&
           !(kernels[at].sequence == key && kernels[at].step == (uint64_t)step && kernels[at].stack == stack))
        at = (at + 1) % MOST_KERNELS;
    ProfileKernel *row = &kernels[at];
    if (row->sequence || eshkol_profile.kernel_count < ROOM) {
        if (!row->sequence) {
            *row = (ProfileKernel){.sequence = key, .step = (uint64_t)step, .stack = stack, .least = took};
            eshkol_profile.kernel_count++;
        }
        row->count++;
        row->total += took;
        if (took < row->least) row->least = took;
        if (took > row->most) row->most = took;
    }
    if (eshkol_profile.call_count < MOST_CALLS)
        calls[eshkol_profile.call_count++] =
            (ProfileCall){key, begin, end, (uint32_t)step, stack, eshkol_profile_thread(), 0};
    else
        eshkol_profile.calls_lost++;
    pthread_mutex_unlock(&lock);
}

/* Begins to watch kernels, or, unless `anew`, goes on: 0, or an errno value. The table has MOST_KERNELS rows, of
 * which those without a sequence are free. */
int eshkol_kernels_start(int anew)
{
    if (!kernels) {
        ProfileKernel *rows = eshkol_profile_map(MOST_KERNELS * sizeof *rows);
        calls = rows ? eshkol_profile_map(MOST_CALLS * sizeof *calls) : NULL;
        if (!calls) return ENOMEM;
        kernels = rows;
    }
    if (anew) eshkol_profile_forget(kernels, MOST_KERNELS * sizeof *kernels);
    eshkol_profile.kernels = kernels;
    eshkol_profile.calls = calls;
    __atomic_store_n(&eshkol_sequence_watcher, called, __ATOMIC_RELEASE);
    return 0;
}

/* Ends it, and gives the number of rows. Runs that are under way may still end. */
int64_t eshkol_kernels_stop(void)
{
    __atomic_store_n(&eshkol_sequence_watcher, NULL, __ATOMIC_RELEASE);
    return MOST_KERNELS;
}
