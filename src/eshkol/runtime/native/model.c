/* See model.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif

#include "model.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#define ALIGNMENT 64

struct eshkol_model {
    const eshkol_model_plan *plan;
    eshkol_scheduler *pool; /* NULL where no loop is split */
    int lent;               /* the pool is another's */
    atomic_flag running;
    eshkol_sequence sequence;
    eshkol_sequence_call *calls;
    uint64_t *records; /* of all calls, one behind the other */
    char *memory;      /* the arena, then the scratch memory */
};

static size_t rounded(int64_t size)
{
    return ((size_t)size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* --- the CPU --- */

#if defined(__x86_64__)
#define TILE_DATA 18 /* the part of a thread's state that Linux must be asked for before a process uses it */
#define REQUEST_PERMISSION 0x1023

static int has(const eshkol_need *need)
{
    unsigned words[4];
    if (need->word == 4) { /* the registers that the system saves: readable where CPUID says so */
        if (!__get_cpuid_count(1, 0, &words[0], &words[1], &words[2], &words[3]) || !(words[2] >> 27 & 1))
            return 0;
        uint32_t low, high;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
#ifdef __linux__
        if (need->bit == TILE_DATA && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) != 0)
            return 0;
#endif
        return low >> need->bit & 1;
    }
    if (!__get_cpuid_count(need->leaf, need->subleaf, &words[0], &words[1], &words[2], &words[3]))
        return 0;
    return words[need->word] >> need->bit & 1;
}
#elif defined(__aarch64__) && defined(__linux__)
static int has(const eshkol_need *need)
{
    return getauxval(need->leaf) >> need->bit & 1;
}
#else
static int has(const eshkol_need *need)
{
    (void)need;
    return 1;
}
#endif

int eshkol_model_check(const eshkol_model_plan *plan)
{
    for (int64_t k = 0; k < plan->need_count; k++)
        if (!has(&plan->needs[k]))
            return ESHKOL_MODEL_CPU;
    return ESHKOL_MODEL_OK;
}

/* --- state --- */

/* Sets the records to what they are before a run. */
static void reset(eshkol_model *model)
{
    const eshkol_model_plan *plan = model->plan;
    uint64_t *record = model->records;
    for (int64_t k = 0; k < plan->call_count; k++) {
        const eshkol_model_call *call = &plan->calls[k];
        memcpy(record, call->record, (size_t)call->words * sizeof *record);
        for (int64_t n = 0; n < call->inner_count; n++)
            record[call->inner[n].word] = (uint64_t)(uintptr_t)&record[call->inner[n].other];
        model->calls[k] = (eshkol_sequence_call){call->phases, call->phase_count, record, call->bindings,
                                                 call->binding_count};
        record += rounded(call->words * 8) / 8;
    }
}

/* With a pool that is lent, or one of its own. */
static eshkol_model *made(const eshkol_model_plan *plan, eshkol_scheduler *lent, int threads)
{
    eshkol_model *model = calloc(1, sizeof *model);
    if (model == NULL)
        return NULL;
    size_t words = 0;
    for (int64_t k = 0; k < plan->call_count; k++)
        words += rounded(plan->calls[k].words * 8) / 8;
    model->plan = plan;
    atomic_flag_clear(&model->running);
    model->calls = calloc((size_t)plan->call_count + 1, sizeof *model->calls);
    model->records = aligned_alloc(ALIGNMENT, words * 8 + ALIGNMENT);
    model->memory = aligned_alloc(ALIGNMENT, rounded(plan->arena) + rounded(plan->scratch) + ALIGNMENT);
    uint64_t *places = calloc((size_t)plan->place_count, sizeof *places);
    int64_t *counters = calloc((size_t)plan->counter_count + 1, sizeof *counters);
    model->lent = lent != NULL;
    if (plan->parallel)
        model->pool = lent != NULL ? lent : eshkol_scheduler_new(threads);
    model->sequence = (eshkol_sequence){plan->parallel ? &model->pool : NULL, plan->steps, plan->step_count,
                                        model->calls, places, counters, 0, plan->regions};
    if (!model->calls || !model->records || !model->memory || !places || !counters ||
        (plan->parallel && !model->pool)) {
        eshkol_model_free(model);
        return NULL;
    }
    reset(model);
    return model;
}

eshkol_model *eshkol_model_new(const eshkol_model_plan *plan, int threads)
{
    if (threads < 0 || eshkol_model_check(plan) != ESHKOL_MODEL_OK)
        return NULL;
    return made(plan, NULL, threads);
}

void eshkol_model_free(eshkol_model *model)
{
    if (model == NULL)
        return;
    if (!model->lent)
        eshkol_scheduler_free(model->pool);
    free(model->sequence.counters);
    free(model->sequence.places);
    free(model->memory);
    free(model->records);
    free(model->calls);
    free(model);
}

/* --- runs --- */

static int overlap(const void *one, int64_t size, const void *other, int64_t length)
{
    uintptr_t a = (uintptr_t)one, b = (uintptr_t)other;
    return size > 0 && length > 0 && a < b + (uintptr_t)length && b < a + (uintptr_t)size;
}

static int fits(const eshkol_operand *operand, const void *given)
{
    if (operand->size > 0 && given == NULL)
        return ESHKOL_MODEL_NULL;
    if (operand->size > 0 && (uintptr_t)given % (uintptr_t)operand->alignment != 0)
        return ESHKOL_MODEL_ALIGNMENT;
    return ESHKOL_MODEL_OK;
}

/* Whether a caller gave memory that can be worked on. */
static int check(const eshkol_model_plan *plan, const void *const *inputs, void *const *outputs)
{
    int status = ESHKOL_MODEL_OK;
    for (int64_t k = 0; k < plan->input_count && status == ESHKOL_MODEL_OK; k++)
        status = fits(&plan->inputs[k], inputs[k]);
    for (int64_t k = 0; k < plan->output_count && status == ESHKOL_MODEL_OK; k++) {
        status = fits(&plan->outputs[k], outputs[k]);
        for (int64_t n = 0; n < plan->input_count; n++)
            if (overlap(outputs[k], plan->outputs[k].size, inputs[n], plan->inputs[n].size))
                return ESHKOL_MODEL_OVERLAP;
        for (int64_t n = 0; n < k; n++)
            if (overlap(outputs[k], plan->outputs[k].size, outputs[n], plan->outputs[n].size))
                return ESHKOL_MODEL_OVERLAP;
    }
    return status;
}

/* The code of what the step that ended a run found. */
static int fault(eshkol_model *model)
{
    int64_t number = model->plan->steps[model->sequence.failed].a;
    const eshkol_model_call *call = &model->plan->calls[number];
    uint64_t site = model->calls[number].record[0] & call->fault_mask;
    return ESHKOL_MODEL_DATA + (site < (uint64_t)call->fault_count ? call->faults[site] : 0);
}

static int run(eshkol_model *model, const void *const *inputs, void *const *outputs)
{
    const eshkol_model_plan *plan = model->plan;
    uint64_t *places = model->sequence.places;
    uint64_t arena = (uint64_t)(uintptr_t)model->memory, constants = (uint64_t)(uintptr_t)plan->constants;
    places[0] = arena;
    places[plan->place_count - 1] = arena + rounded(plan->arena);
    for (int64_t k = 0; k < plan->home_count; k++)
        places[plan->homes[k].place] = arena + (uint64_t)plan->homes[k].offset;
    for (int64_t k = 0; k < plan->constant_count; k++)
        places[plan->constant_homes[k].place] = constants + (uint64_t)plan->constant_homes[k].offset;
    for (int64_t k = 0; k < plan->number_count; k++)
        places[plan->number_homes[k].place] =
            (uint64_t)(uintptr_t)plan->numbers + (uint64_t)plan->number_homes[k].offset;
    for (int64_t k = 0; k < plan->input_count; k++)
        places[plan->inputs[k].place] = (uint64_t)(uintptr_t)inputs[k];
    for (int64_t k = 0; k < plan->output_count; k++)
        if (plan->outputs[k].place >= 0)
            places[plan->outputs[k].place] = (uint64_t)(uintptr_t)outputs[k];
    int status = eshkol_sequence_run(&model->sequence);
    if (status != 0) {
        int code = status == -1 ? fault(model) : status == ENOMEM ? ESHKOL_MODEL_MEMORY : ESHKOL_MODEL_THREADS;
        reset(model); /* a record that names a fault would name it again */
        return code;
    }
    for (int64_t k = 0; k < plan->output_count; k++)
        if (plan->outputs[k].place < 0 && plan->outputs[k].size > 0)
            memcpy(outputs[k], (const void *)(uintptr_t)places[plan->outputs[k].source], (size_t)plan->outputs[k].size);
    return ESHKOL_MODEL_OK;
}

int eshkol_model_run(eshkol_model *model, const void *const *inputs, void *const *outputs)
{
    if (model == NULL)
        return ESHKOL_MODEL_NULL;
    int status = check(model->plan, inputs, outputs);
    if (status != ESHKOL_MODEL_OK)
        return status;
    if (atomic_flag_test_and_set_explicit(&model->running, memory_order_acquire))
        return ESHKOL_MODEL_BUSY;
    status = run(model, inputs, outputs);
    atomic_flag_clear_explicit(&model->running, memory_order_release);
    return status;
}

/* --- any size --- */

struct eshkol_sized_model {
    const eshkol_sized_plan *plan;
    eshkol_scheduler *pool;
    atomic_flag running;
    int64_t size; /* that the model is for */
    void *tables;
    eshkol_model *model;
};

eshkol_sized_model *eshkol_sized_model_new(const eshkol_sized_plan *plan, int threads)
{
    if (threads < 0 || eshkol_model_check(plan->about) != ESHKOL_MODEL_OK)
        return NULL;
    eshkol_sized_model *model = calloc(1, sizeof *model);
    eshkol_scheduler *pool = model == NULL ? NULL : eshkol_scheduler_new(threads);
    if (pool == NULL) {
        free(model);
        return NULL;
    }
    model->plan = plan;
    model->pool = pool;
    atomic_flag_clear(&model->running);
    return model;
}

static void forget_size(eshkol_sized_model *model)
{
    eshkol_model_free(model->model);
    free(model->tables);
    model->model = NULL;
    model->tables = NULL;
}

/* Makes it a model for a size. */
static int become(eshkol_sized_model *model, int64_t size)
{
    if (model->model != NULL && model->size == size)
        return ESHKOL_MODEL_OK;
    forget_size(model);
    for (int64_t k = 0; k < model->plan->class_count; k++) {
        const eshkol_size_class *class = &model->plan->classes[k];
        void *tables = malloc((size_t)class->bytes);
        if (tables == NULL)
            return ESHKOL_MODEL_MEMORY;
        const eshkol_model_plan *plan = class->fill(tables, size);
        if (plan == NULL) {
            free(tables);
            continue;
        }
        model->tables = tables;
        model->model = made(plan, model->pool, 0);
        model->size = size;
        return model->model == NULL ? ESHKOL_MODEL_MEMORY : ESHKOL_MODEL_OK;
    }
    return ESHKOL_MODEL_SIZE;
}

int eshkol_sized_model_run(eshkol_sized_model *model, int64_t size, const void *const *inputs, void *const *outputs)
{
    if (model == NULL)
        return ESHKOL_MODEL_NULL;
    if (atomic_flag_test_and_set_explicit(&model->running, memory_order_acquire))
        return ESHKOL_MODEL_BUSY;
    int status = become(model, size);
    if (status == ESHKOL_MODEL_OK)
        status = eshkol_model_run(model->model, inputs, outputs);
    else
        forget_size(model);
    atomic_flag_clear_explicit(&model->running, memory_order_release);
    return status;
}

void eshkol_sized_model_free(eshkol_sized_model *model)
{
    if (model == NULL)
        return;
    forget_size(model);
    eshkol_scheduler_free(model->pool);
    free(model);
}

const char *eshkol_model_error(const eshkol_model_plan *plan, int code)
{
    switch (code) {
    case ESHKOL_MODEL_OK:
        return "no error";
    case ESHKOL_MODEL_NULL:
        return "a pointer is NULL";
    case ESHKOL_MODEL_MEMORY:
        return "there is not enough memory";
    case ESHKOL_MODEL_CPU:
        return "this CPU lacks instructions that the library was compiled for";
    case ESHKOL_MODEL_ALIGNMENT:
        return "an input or output is not aligned to its elements";
    case ESHKOL_MODEL_OVERLAP:
        return "an output overlaps an input or another output";
    case ESHKOL_MODEL_BUSY:
        return "the model is running in another thread";
    case ESHKOL_MODEL_THREADS:
        return "the threads of the model are not in this process";
    case ESHKOL_MODEL_SIZE:
        return "the library was not compiled for this size";
    default:
        if (code >= ESHKOL_MODEL_DATA && code - ESHKOL_MODEL_DATA < plan->message_count)
            return plan->messages[code - ESHKOL_MODEL_DATA];
        return "there is no such error";
    }
}
