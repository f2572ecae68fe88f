/* Programs that were compiled for fast derivatives (src/eshkol/calculus): how they are described, and their runs.
 *
 * Comes in: a program's entry, where its inputs are found in the arguments of the Scheme procedure that it stands for,
 * and the types that they must have. Goes out: the value and the derivatives as Scheme data, or the reason why there
 * are none; the caller then takes the dynamic path.
 */
#ifndef ESHKOL_SCHEME_FAST_H
#define ESHKOL_SCHEME_FAST_H

#include "value.h"

enum {
    FAST_OK,
    FAST_MISMATCH, /* an input is not of the type that the program was made for */
    FAST_FAILED,   /* the program gave up: something that only the dynamic path can do, or an error that it will tell */
    FAST_FULL,     /* no memory left for the tape */
    FAST_STOPPED   /* somebody interrupts: never seen by callers */
};

/* A way from the arguments to an input, step by step. */
enum { STEP_ARGUMENT, STEP_CAPTURED, STEP_CAR, STEP_CDR, STEP_ELEMENT, STEP_FIELD, STEP_BOX };
typedef struct { int32_t kind, index; } FastStep;

/* Descriptors:
 *   f  a flonum            i  a fixnum           b  a boolean
 *   v(D) l(D)  a vector or list, copied into the run's own memory (Array, Cell)
 *   V(D) L(D)  a vector or list that is left where it is, and only checked
 *   Q(D)  a list that is left where it is, and that the program checks itself as it comes to its pairs
 *   P  a procedure whose code is `expected`      R  a record whose type is `expected`
 *   N  a vector of `expected` elements           =  the very value with the bits `expected` and the tag `tag`
 *   S  the very value that the input number `expected` finds: the program takes both for one
 * P, R, N, = and S are guards: the program has no parameter for them. A vector or list (v, l, V, L, Q) whose `expected`
 * is not zero has one element less than that. */
typedef struct {
    const Value *global;    /* where the way begins: the cell of a global variable; null: at the arguments */
    const FastStep *steps;
    int64_t step_count;
    const char *descriptor;
    uint64_t expected, tag;
    int64_t active;         /* whether it is a variable */
} FastInput;

/* What a run keeps of memory, as compiled code knows it (calculus/emit.py). */
typedef struct {
    char *tape;  /* grows upwards */
    char *arena; /* arrays and cells; grows downwards */
    char *peak;  /* the tape where the reverse sweep began */
    char *lowest; /* the arena where memory was released, at most */
} FastRun;

typedef int64_t FastEntry(Context *, FastRun *, const uint64_t *in, uint64_t *out);

typedef struct {
    FastEntry *entry;
    const FastInput *inputs;
    int64_t input_count;
    const char *result;  /* how the results are put together: a descriptor (f i v l), #(...) or (...) of such */
    int64_t lanes;       /* derivatives beside each number */
    int64_t forward;     /* 0: a gradient, 1: tangents of all leaves of the variables, 2: along the directions that
                          * stand behind the arguments */
    int64_t limit;       /* bytes for tape and arena; 0: half of the memory */
    int64_t used;        /* bytes that the last run used */
    int64_t out_words;   /* room for results */
    int64_t wild;        /* whether the derivatives of the last run are not all finite */
    int64_t arguments;   /* how many it is for, the procedure included; 0: any number */
} FastCode;

/* A gradient gives the list (value gradient ...), one for each variable, shaped like it. Tangents come as the list
 * (value tangent ...), one for each number in the variables, or the one along the directions, shaped like the value.
 * Where `whole` is asked for, the result is the derivative alone: the value's structure with a structure like the
 * variable in the place of each number; a list of such for several variables. `whole` says whether it is. */
int64_t esk_fast_run(Context *, FastCode *, const Value *args, int64_t count, Value *result, bool *whole);

/* fast_table.c: which programs there are. For the host: one more for a procedure, or null where there is none; and none
 * of those that were added is found again, which gives a generation; they may go when the oldest generation that is in
 * use is a later one. */
void esk_fast_add(Context *, const Procedure *, int64_t kind, FastCode *);
uint64_t esk_fast_forget(Context *);
uint64_t esk_fast_oldest(const Context *);
void esk_fast_free(Context *); /* with its context */

/* For compiled code. */
typedef struct { uint64_t *base; int64_t words, room, count, interval; } FastCheckpoints; /* on the tape */
/* Keep these values at a turn of a loop; where there is no room, every second checkpoint is dropped. The next turn. */
int64_t esk_fast_checkpoint(FastCheckpoints *, int64_t turn, const uint64_t *values);
void esk_fast_fill(uint64_t *words, int64_t count, uint64_t bits);
void esk_fast_spread(double *to, int64_t count, const double *pattern, int64_t lanes);
double esk_fast_sum(const double *numbers, int64_t count, double total); /* from the last to the first */

#endif
