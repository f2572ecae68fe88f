/* Where processor time goes: threads are asked where they are, some hundred times a second of their own time.
 *
 * A thread of this module sleeps for moments of uneven length, so that nothing keeps step with it, and looks how much
 * processor time the watched threads have taken. One that has taken some gets a signal, and its handler takes down the
 * frames of Scheme procedures (scheme/errors.c). A sample counts for the processor time since the one before; so what a
 * busy machine does with the moments makes no difference, and a thread that waits for something gets no signals.
 *
 * Threads of Python's own have no frames that could be walked here: the signal is handed on to the handler that was
 * there before, which is Python's.
 */
#define _GNU_SOURCE
#include "profiling.h"
#include "../scheme/value.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#include <ucontext.h>

enum { MOST_THREADS = 64, MOST_SAMPLES = 1 << 21 };

typedef struct {
    _Atomic uint32_t thread; /* 0: nobody */
    Context *context;        /* null: a thread of Python's */
    uint64_t asked, seen;    /* its processor time when it was asked last, and when it answered */
    atomic_bool waiting;
} Watched;

static Watched watched[MOST_THREADS];
static ProfileSample *samples;
static _Atomic uint64_t taken;
static atomic_bool running;
static pthread_t sampler;
static pid_t process; /* which the sampler is a thread of: a forked one has it no more */
static uint64_t period;
static struct sigaction before;

/* As the kernel has it. */
static clockid_t clock_of(uint32_t thread) { return (clockid_t)(~(clockid_t)thread << 3 | 6); }

/* At the first instruction of a procedure, or behind its last, its caller is not yet, or not any more, in a frame that
 * can be seen: 0, or the address that it returns to. */
static uint64_t frameless(const ucontext_t *at, uint64_t pc)
{
#if defined(__x86_64__)
    const uint8_t *code = (const uint8_t *)pc;
    const uint64_t *stack = (const uint64_t *)at->uc_mcontext.gregs[REG_RSP];
    if (code[0] == 0x55 || code[0] == 0xc3 || code[0] == 0xc2) return stack[0]; /* push %rbp; ret */
    if (code[0] == 0x48 && code[1] == 0x89 && code[2] == 0xe5 && code[-1] == 0x55) return stack[1];
    return 0;
#elif defined(__aarch64__)
    const uint32_t *code = (const uint32_t *)pc;
    const bool begins = (code[0] & 0xffc07fff) == 0xa9807bfd; /* stp x29, x30, [sp, #-…]! */
    const bool begun = code[0] == 0x910003fd && (code[-1] & 0xffc07fff) == 0xa9807bfd;
    return begins || begun || code[0] == 0xd65f03c0 ? at->uc_mcontext.regs[30] : 0;
#else
    (void)at, (void)pc;
    return 0;
#endif
}

static void take(Watched *one, const ucontext_t *at)
{
    uint64_t found[PROFILE_FRAMES + 2];
    uint64_t spent = profile_now(CLOCK_THREAD_CPUTIME_ID);
    uint64_t weight = spent - one->seen;
    one->seen = spent;
#if defined(__x86_64__)
    uint64_t pc = (uint64_t)at->uc_mcontext.gregs[REG_RIP], frame = (uint64_t)at->uc_mcontext.gregs[REG_RBP];
    uint64_t low = (uint64_t)at->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    uint64_t pc = at->uc_mcontext.pc, frame = at->uc_mcontext.regs[29], low = at->uc_mcontext.sp;
#else
    uint64_t pc = 0, frame = 0, low = 0;
#endif
    uint32_t kind;
    int depth = esk_interrupted_frames(one->context, frame, low, found + 2, PROFILE_FRAMES, &kind);
    uint64_t *first = found + 2;
    if (kind == ESK_IN_SCHEME) {
        uint64_t back = frameless(at, pc);
        if (back) *--first = back, depth++;
        *--first = pc + 1; /* as if it were where a call returns to */
        depth++;
    }
    uint64_t number = atomic_load(&taken);
    uint32_t stack = number < MOST_SAMPLES ? eshkol_profile_stack(first, depth, kind, false) : PROFILE_FULL;
    if (stack != PROFILE_FULL && (number = atomic_fetch_add(&taken, 1)) < MOST_SAMPLES)
        samples[number] = (ProfileSample){profile_now(CLOCK_MONOTONIC), weight, stack, atomic_load(&one->thread)};
    else
        __atomic_fetch_add(&eshkol_profile.samples_lost, 1, __ATOMIC_RELAXED);
}

static void on_signal(int number, siginfo_t *info, void *at)
{
    int error = errno;
    uint32_t self = (uint32_t)syscall(SYS_gettid);
    Watched *one = NULL;
    for (int i = 0; i < MOST_THREADS && !one; i++)
        if (atomic_load(&watched[i].thread) == self) one = &watched[i];
    if (one && atomic_exchange(&one->waiting, false) && one->context) {
        if (atomic_load(&running)) take(one, at);
    } else if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, at);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    errno = error;
}

static void *sample(void *nothing)
{
    uint64_t state = profile_now(CLOCK_MONOTONIC) | 1;
    while (atomic_load(&running)) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        uint64_t moment = period / 2 + state % period;
        struct timespec pause = {(time_t)(moment / 1000000000u), (long)(moment % 1000000000u)};
        nanosleep(&pause, NULL);
        for (int i = 0; i < MOST_THREADS; i++) {
            Watched *one = &watched[i];
            uint32_t thread = atomic_load(&one->thread);
            struct timespec spent;
            if (!thread || atomic_load(&one->waiting) || clock_gettime(clock_of(thread), &spent) != 0) continue;
            uint64_t now = (uint64_t)spent.tv_sec * 1000000000u + (uint64_t)spent.tv_nsec;
            if (now - one->asked < period / 4) continue;
            one->asked = now;
            atomic_store(&one->waiting, true);
            if (syscall(SYS_tgkill, getpid(), thread, SIGPROF) != 0) atomic_store(&one->waiting, false);
        }
    }
    return nothing;
}

/* Begins to sample, a thread every `nanoseconds` of its processor time, or, unless `anew`, goes on: 0, or an errno
 * value. */
int eshkol_sampler_start(uint64_t nanoseconds, int anew)
{
    if (atomic_load(&running)) return EBUSY;
    if (!samples && !(samples = eshkol_profile_map(MOST_SAMPLES * sizeof *samples))) return ENOMEM;
    if (anew) atomic_store(&taken, 0);
    period = nanoseconds;
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_RESTART};
    ours.sa_sigaction = on_signal;
    sigfillset(&ours.sa_mask);
    if (sigaction(SIGPROF, &ours, &before) != 0) return errno;
    sigset_t all, old; /* signals are for others than the sampler */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    process = getpid();
    atomic_store(&running, true);
    int status = pthread_create(&sampler, NULL, sample, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (status) {
        atomic_store(&running, false);
        sigaction(SIGPROF, &before, NULL);
    }
    return status;
}

/* Ends it. Signals on their way are dropped before the old handler, which may be to end the process, is back. */
void eshkol_sampler_stop(void)
{
    if (!atomic_exchange(&running, false)) return;
    if (getpid() == process) pthread_join(sampler, NULL);
    struct sigaction ignored = {.sa_handler = SIG_IGN};
    sigaction(SIGPROF, &ignored, NULL);
    sigaction(SIGPROF, &before, NULL);
    for (int i = 0; i < MOST_THREADS; i++) atomic_store(&watched[i].thread, 0);
    uint64_t count = atomic_load(&taken);
    eshkol_profile.samples = samples;
    eshkol_profile.sample_count = count < MOST_SAMPLES ? count : MOST_SAMPLES;
}

/* A thread is sampled from now on, which runs Scheme in a context or is one of Python's (null): 0, or errno. */
int eshkol_sampler_watch(uint32_t thread, Context *context)
{
    struct timespec spent;
    if (clock_gettime(clock_of(thread), &spent) != 0) return errno;
    for (int pass = 0; pass < 2; pass++) /* the same thread may have got another context */
        for (int i = 0; i < MOST_THREADS; i++) {
            Watched *one = &watched[i];
            if (atomic_load(&one->thread) != (pass ? 0 : thread)) continue;
            atomic_store(&one->thread, 0);
            one->context = context;
            one->asked = one->seen = (uint64_t)spent.tv_sec * 1000000000u + (uint64_t)spent.tv_nsec;
            atomic_store(&one->waiting, false);
            atomic_store(&one->thread, thread);
            return 0;
        }
    return EAGAIN;
}

/* Threads that ran Scheme in a context are not looked at any more; it is about to be freed. */
void eshkol_sampler_unwatch(const Context *context)
{
    for (int i = 0; i < MOST_THREADS; i++)
        if (watched[i].context == context) atomic_store(&watched[i].thread, 0);
}

#else /* other systems tell the processor time of a thread in other ways */
int eshkol_sampler_start(uint64_t nanoseconds, int anew) { (void)nanoseconds, (void)anew; return ENOSYS; }
void eshkol_sampler_stop(void) {}
int eshkol_sampler_watch(uint32_t thread, Context *context) { (void)thread, (void)context; return ENOSYS; }
void eshkol_sampler_unwatch(const Context *context) { (void)context; }
#endif
