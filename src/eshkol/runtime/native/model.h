/* A compiled plan as a library of its own: its tables, and the state in which it is run.
 *
 * `export_native` writes the tables; a library that it makes consists of them, of its kernels and constants, and of
 * model.c, sequence.c and scheduler.c.
 */
#ifndef ESHKOL_MODEL_H
#define ESHKOL_MODEL_H

#include "sequence.h"

/* What new and run may say. From ESHKOL_MODEL_DATA on: what a kernel found wrong with its data. */
enum {
    ESHKOL_MODEL_OK,
    ESHKOL_MODEL_NULL,
    ESHKOL_MODEL_MEMORY,
    ESHKOL_MODEL_CPU,
    ESHKOL_MODEL_ALIGNMENT,
    ESHKOL_MODEL_OVERLAP,
    ESHKOL_MODEL_BUSY,
    ESHKOL_MODEL_THREADS,
    ESHKOL_MODEL_SIZE,
    ESHKOL_MODEL_DATA = 16
};

/* Something the CPU must have. x86: bit `bit` of register `word` (eax, ebx, ecx, edx; 4: XCR0) of a CPUID leaf. ARM:
 * bit `bit` of the auxiliary value `leaf`. */
typedef struct {
    uint32_t leaf, subleaf, word, bit;
} eshkol_need;

/* word `word` of a record is the address of its word `other` */
typedef struct {
    int64_t word, other;
} eshkol_inner;

typedef struct {
    const eshkol_phase *phases;
    int64_t phase_count;
    const uint64_t *record; /* as it is before a run */
    int64_t words;
    const eshkol_binding *bindings;
    int64_t binding_count;
    const eshkol_inner *inner;
    int64_t inner_count;
    const int32_t *faults; /* the message of each site that the record's first word may name in its lower bits */
    int64_t fault_count;
    uint64_t fault_mask;
} eshkol_model_call;

/* Memory that a caller gives. */
typedef struct {
    int64_t place; /* -1 for an output that is a copy of the place `source` */
    int64_t source;
    int64_t size; /* in bytes */
    int64_t alignment;
} eshkol_operand;

/* A place that lies at an offset, of the arena or of the constants. */
typedef struct {
    int64_t place, offset;
} eshkol_home;

typedef struct {
    const eshkol_step *steps;
    int64_t step_count;
    const eshkol_model_call *calls;
    int64_t call_count;
    const eshkol_region *regions;
    int64_t place_count; /* the first is the arena, the last the scratch memory */
    int64_t counter_count;
    int64_t arena, scratch; /* bytes */
    const eshkol_home *homes;
    int64_t home_count;
    const char *constants;
    const eshkol_home *constant_homes;
    int64_t constant_count;
    const char *numbers; /* that follow from the size, where a library takes any */
    const eshkol_home *number_homes;
    int64_t number_count;
    const eshkol_operand *inputs;
    int64_t input_count;
    const eshkol_operand *outputs;
    int64_t output_count;
    const eshkol_need *needs;
    int64_t need_count;
    const char *const *messages;
    int64_t message_count;
    int parallel; /* whether any loop is worth more than one thread */
} eshkol_model_plan;

typedef struct eshkol_model eshkol_model;

/* ESHKOL_MODEL_OK, or ESHKOL_MODEL_CPU. */
int eshkol_model_check(const eshkol_model_plan *plan);

/* State for runs of a plan on so many threads (0: one for each CPU), or NULL. */
eshkol_model *eshkol_model_new(const eshkol_model_plan *plan, int threads);

/* One run; a model runs once at a time. */
int eshkol_model_run(eshkol_model *model, const void *const *inputs, void *const *outputs);

/* Sizes that one set of tables serves. */
typedef struct {
    int64_t bytes;                                              /* of the tables */
    const eshkol_model_plan *(*fill)(void *tables, int64_t size); /* the plan in them, or NULL for another size */
} eshkol_size_class;

/* A plan for any size of one of these classes. */
typedef struct {
    const eshkol_size_class *classes;
    int64_t class_count;
    const eshkol_model_plan *about; /* needs and messages, of all of them */
} eshkol_sized_plan;

typedef struct eshkol_sized_model eshkol_sized_model;

/* As for a plan of one size; a run is told the size. What the last size needed is kept for the next run. */
eshkol_sized_model *eshkol_sized_model_new(const eshkol_sized_plan *plan, int threads);
int eshkol_sized_model_run(eshkol_sized_model *model, int64_t size, const void *const *inputs, void *const *outputs);
void eshkol_sized_model_free(eshkol_sized_model *model);

/* What a code means. */
const char *eshkol_model_error(const eshkol_model_plan *plan, int code);

/* No run may be under way; NULL is allowed. */
void eshkol_model_free(eshkol_model *model);

#endif
