/* Plans that are one sequence over arrays of the host: a run from arrays to arrays without a step of Python's between.
 *
 * Comes in: what does not change from run to run (schedule/run/native.py makes it). A run takes the arrays of the
 * parameters, makes those of the results, fills in addresses and runs the sequence without Python's lock. Records are
 * written meanwhile, so each run has a sequence for itself; those that are done are kept for the next. */
#include "front.h"
#include "../sequence.h"

#include <stdlib.h>

enum { SPARES = 4, FEW = 32, MOST_AXES = 64 };

typedef struct {
    eshkol_sequence *sequence;
    Object *owner;
} Ready;

typedef struct { /* an array that a run makes; all borrowed */
    Object *make, *args;
    Object *dtype; /* of NumPy's, where its own function makes the array; else NULL */
    int axes;
    const Size *extents;
} Fresh;

typedef struct { /* borrowed, too */
    Size number;   /* among parameters, constants and fresh arrays */
    Object *seen;  /* the shape under which it is seen, if that is another than the array's; else NULL */
    Object *shape; /* the shape that it has then, where that is known; else NULL */
} Result;

typedef struct {
    Size place, offset; /* in the arena */
} Home;

typedef struct {
    Object head;
    Object *make, *failed, *scratch;           /* a sequence; an error of one; memory to work in, or None */
    Object *constants;                         /* arrays */
    Object *fresh_of, *arena;                  /* (function, arguments) of arrays that a run makes, and of its arena */
    Object *results_of;                        /* (number among parameters, constants and fresh ones, shape or None) */
    Size params, places, arena_bytes;
    Size constant_count, fresh_count, result_count, home_count;
    Fresh *fresh; /* these three and the extents are one piece of memory */
    Result *results;
    Home *homes;
    bool brief; /* it takes no longer than to let others have Python's lock */
    Ready spares[SPARES];
    int spare_count;
} Plan;

#define FIELDS(X) X(make) X(failed) X(scratch) X(constants) X(fresh_of) X(arena) X(results_of)

static int visit_plan(Object *self, Visit visit, void *how)
{
    Plan *plan = (Plan *)self;
#define X(field)                              \
    if (plan->field) {                        \
        int status = visit(plan->field, how); \
        if (status) return status;            \
    }
    FIELDS(X)
#undef X
    return visit(self->type, how);
}

static int clear_plan(Object *self)
{
    Plan *plan = (Plan *)self;
    while (plan->spare_count)
        dropped(plan->spares[--plan->spare_count].owner);
#define X(field) become(&plan->field, NULL);
    FIELDS(X)
#undef X
    return 0;
}

static void deallocate_plan(Object *self)
{
    Object *type = self->type;
    python.PyObject_GC_UnTrack(self);
    clear_plan(self);
    free(((Plan *)self)->fresh);
    python.PyObject_GC_Del(self);
    dropped(type);
}

static uint64_t address_of(Object *array) { return *(uint64_t *)((char *)array + ARRAY_DATA); }

static bool number_at(Object *tuple, Size place, Size *number)
{
    Object *item = python.PyTuple_GetItem(tuple, place);
    *number = item ? python.PyLong_AsLongLong(item) : -1;
    return !python.PyErr_Occurred();
}

/* A sequence that nothing else uses. */
static bool taken(Plan *plan, Ready *ready)
{
    if (plan->spare_count) {
        *ready = plan->spares[--plan->spare_count];
        return true;
    }
    ready->owner = python.PyObject_CallObject(plan->make, NULL);
    if (!ready->owner) return false;
    Object *address = python.PyObject_GetAttr(ready->owner, name_of.address);
    ready->sequence = address ? (eshkol_sequence *)(uintptr_t)python.PyLong_AsLongLong(address) : NULL;
    dropped(address);
    if (ready->sequence) return true;
    dropped(ready->owner);
    return false;
}

/* Made by NumPy's own function, whose address Python looks up (schedule/run/memory.py `new_array`). */
typedef Object *(*NewArray)(Object *type, Object *dtype, int axes, const Size *extents, const Size *strides, void *data,
                            int flags, Object *like);
static NewArray new_array;

static Object *made(const Fresh *fresh)
{
    if (!fresh->dtype) return python.PyObject_CallObject(fresh->make, fresh->args);
    return new_array(helper.array, held(fresh->dtype), fresh->axes, fresh->extents, NULL, NULL, 0, NULL);
}

Object *empty_array(Object *shape, Object *dtype)
{
    Object *of_numpy = python.PyObject_GetAttr(dtype, name_of.numpy), *array = NULL;
    const Size axes = python.PyTuple_Size(shape);
    if (of_numpy && new_array && axes <= MOST_AXES) {
        Size extents[MOST_AXES];
        for (Size k = 0; k < axes; k++)
            extents[k] = python.PyLong_AsLongLong(python.PyTuple_GetItem(shape, k));
        return new_array(helper.array, of_numpy, (int)axes, extents, NULL, NULL, 0, NULL); /* takes the reference */
    }
    if (of_numpy) array = python.PyObject_CallFunctionObjArgs(helper.empty, shape, of_numpy, NULL);
    dropped(of_numpy);
    return array;
}

/* All arrays of a run: those of the parameters, the constants, and fresh ones; new references to all, or to none. */
static bool arrays_of(const Plan *plan, Object *const *given, Object **own)
{
    for (Size k = 0; k < plan->params; k++)
        *own++ = held(given[k]);
    for (Size k = 0; k < plan->constant_count; k++)
        *own++ = held(python.PyTuple_GetItem(plan->constants, k));
    for (Size k = 0; k < plan->fresh_count; k++) {
        Object *array = made(&plan->fresh[k]);
        if (!array) {
            for (Size before = plan->params + plan->constant_count + k; before > 0; before--)
                dropped(*--own);
            return false;
        }
        *own++ = array;
    }
    return true;
}

static bool results_of(const Plan *plan, Object *const *own, Object **results)
{
    for (Size k = 0; k < plan->result_count; k++) {
        const Result *result = &plan->results[k];
        Object *array = own[result->number];
        array = result->seen ? python.PyObject_CallFunctionObjArgs(helper.reshape, array, result->seen, NULL)
                             : held(array);
        if (!array) {
            while (k > 0)
                dropped(results[--k]);
            return false;
        }
        results[k] = array;
    }
    return true;
}

/* Where the arena of a run begins; what frees it again goes to `small` or `large`. */
static bool arena_of(const Plan *plan, void **small, Object **large, uint64_t *base)
{
    if (!plan->arena_bytes) return true;
    if (plan->arena != helper.none) {
        Object *make = python.PyTuple_GetItem(plan->arena, 0);
        *large = python.PyObject_CallObject(make, python.PyTuple_GetItem(plan->arena, 1));
        if (!*large) return false;
        *base = address_of(*large);
        return true;
    }
    *small = aligned_alloc(64, (size_t)(plan->arena_bytes + 63) / 64 * 64);
    *base = (uint64_t)(uintptr_t)*small;
    if (!*small) python.PyErr_NoMemory();
    return *small != NULL;
}

/* The sequence over these arrays; false with an error, unless that is to be told by someone else. */
static bool run_over(const Plan *plan, const Ready *ready, Object *const *own, bool quietly)
{
    Object *arena = NULL, *scratch = NULL;
    void *small = NULL;
    uint64_t base = 0, *places = ready->sequence->places;
    bool whole = arena_of(plan, &small, &arena, &base);
    if (whole && plan->scratch != helper.none) {
        scratch = python.PyObject_CallObject(plan->scratch, NULL);
        Object *address = scratch ? python.PyObject_GetAttr(scratch, name_of.address) : NULL;
        if (address) places[plan->places] = (uint64_t)python.PyLong_AsLongLong(address);
        whole = address != NULL;
        dropped(address);
    }
    if (whole) {
        places[0] = base;
        for (Size k = 0, count = plan->params + plan->constant_count + plan->fresh_count; k < count; k++)
            places[1 + k] = address_of(own[k]);
        for (Size k = 0; k < plan->home_count; k++)
            places[plan->homes[k].place] = base + (uint64_t)plan->homes[k].offset;
        void *state = plan->brief ? NULL : python.PyEval_SaveThread();
        int status = eshkol_sequence_run(ready->sequence);
        if (state) python.PyEval_RestoreThread(state);
        whole = !status;
        Object *code = whole || quietly ? NULL : python.PyLong_FromLongLong(status);
        if (code) dropped(python.PyObject_CallFunctionObjArgs(plan->failed, ready->owner, code, NULL));
        dropped(code);
    }
    free(small);
    dropped(arena);
    dropped(scratch);
    return whole;
}

bool run_plan(Object *self, Object *const *given, Size count, bool quietly, Object **results)
{
    Plan *plan = (Plan *)self;
    if (count != plan->params) return complain("a plan is given as many arrays as it has parameters") != NULL;
    for (Size k = 0; k < count; k++)
        if (given[k]->type != helper.array) return complain("a plan is given arrays") != NULL;
    const Size all = count + plan->constant_count + plan->fresh_count;
    Object *few[FEW], **own = all <= FEW ? few : malloc((size_t)all * sizeof *own);
    if (!own) return python.PyErr_NoMemory() != NULL;
    Ready ready;
    bool done = false;
    if (arrays_of(plan, given, own)) {
        if (taken(plan, &ready)) {
            done = run_over(plan, &ready, own, quietly);
            if (done && plan->spare_count < SPARES)
                plan->spares[plan->spare_count++] = ready;
            else
                dropped(ready.owner); /* a sequence that has failed is not used again */
            done = done && results_of(plan, own, results);
        }
        for (Size k = 0; k < all; k++)
            dropped(own[k]);
    }
    if (own != few) free(own);
    return done;
}

Size plan_results(Object *plan) { return ((Plan *)plan)->result_count; }
Object *plan_shape(Object *plan, Size number) { return ((Plan *)plan)->results[number].shape; }

Object *run_plan_on(Object *self, Object *given, bool quietly)
{
    const Plan *plan = (Plan *)self;
    const Size count = python.PyList_Size(given), most = count > plan->result_count ? count : plan->result_count;
    if (count < 0) return NULL;
    Object *few[FEW], **values = most <= FEW ? few : malloc((size_t)most * sizeof *values), *results = NULL;
    if (!values) return python.PyErr_NoMemory();
    for (Size k = 0; k < count; k++)
        values[k] = python.PyList_GetItem(given, k);
    if (run_plan(self, values, count, quietly, values)) { /* which has read what was given before it writes */
        results = python.PyList_New(plan->result_count);
        for (Size k = 0; k < plan->result_count; k++)
            if (results)
                python.PyList_SetItem(results, k, values[k]);
            else
                dropped(values[k]);
    }
    if (values != few) free(values);
    return results;
}

static Object *run(Object *self, Object *given) { return run_plan_on(self, given, false); }

/* ---- making one ------------------------------------------------------------------------------------------------- */

static bool is_plain(Object *shape)
{
    if (shape->type != helper.plain_tuple || python.PyTuple_Size(shape) > MOST_AXES) return false;
    for (Size k = 0, axes = python.PyTuple_Size(shape); k < axes; k++)
        if (python.PyTuple_GetItem(shape, k)->type != helper.int_) return false;
    return true;
}

/* What a run needs to know of tuples, read from them once. */
static bool read_fresh(Plan *plan, Size *extents)
{
    for (Size k = 0; k < plan->fresh_count; k++) {
        Object *pair = python.PyTuple_GetItem(plan->fresh_of, k), *args = python.PyTuple_GetItem(pair, 1);
        Fresh *fresh = &plan->fresh[k];
        fresh->make = python.PyTuple_GetItem(pair, 0);
        fresh->args = args;
        Object *shape = python.PyTuple_GetItem(args, 0);
        if (!new_array || fresh->make != helper.empty || !is_plain(shape)) continue;
        fresh->dtype = python.PyTuple_GetItem(args, 1);
        fresh->axes = (int)python.PyTuple_Size(shape);
        fresh->extents = extents;
        for (Size axis = 0; axis < fresh->axes; axis++)
            *extents++ = python.PyLong_AsLongLong(python.PyTuple_GetItem(shape, axis));
    }
    return !python.PyErr_Occurred();
}

static bool read_results(Plan *plan)
{
    const Size before = plan->params + plan->constant_count;
    for (Size k = 0; k < plan->result_count; k++) {
        Object *pair = python.PyTuple_GetItem(plan->results_of, k), *shape = python.PyTuple_GetItem(pair, 1);
        Result *result = &plan->results[k];
        if (!number_at(pair, 0, &result->number)) return false;
        if (result->number < 0 || result->number >= before + plan->fresh_count)
            return complain("a result of a plan is one of its arrays") != NULL;
        if (shape != helper.none)
            result->seen = result->shape = shape;
        else if (result->number >= before)
            result->shape = python.PyTuple_GetItem(plan->fresh[result->number - before].args, 0);
        if (result->shape && result->shape->type != helper.plain_tuple) result->shape = NULL;
    }
    return true;
}

static bool read_all(Plan *plan, Object *homes)
{
    plan->constant_count = python.PyTuple_Size(plan->constants);
    plan->fresh_count = python.PyTuple_Size(plan->fresh_of);
    plan->result_count = python.PyTuple_Size(plan->results_of);
    plan->home_count = python.PyTuple_Size(homes) / 2;
    if (python.PyErr_Occurred()) return false;
    Size axes = 0;
    for (Size k = 0; k < plan->fresh_count; k++) {
        Object *args = python.PyTuple_GetItem(python.PyTuple_GetItem(plan->fresh_of, k), 1);
        Object *shape = args ? python.PyTuple_GetItem(args, 0) : NULL;
        if (!shape) return false;
        axes += is_plain(shape) ? python.PyTuple_Size(shape) : 0;
    }
    const size_t fresh = (size_t)plan->fresh_count * sizeof(Fresh);
    const size_t results = (size_t)plan->result_count * sizeof(Result);
    const size_t home_bytes = (size_t)plan->home_count * sizeof(Home);
    char *memory = calloc(1, fresh + results + home_bytes + (size_t)axes * sizeof(Size) + 1);
    if (!memory) return python.PyErr_NoMemory() != NULL;
    plan->fresh = (Fresh *)(void *)memory;
    plan->results = (Result *)(void *)(memory + fresh);
    plan->homes = (Home *)(void *)(memory + fresh + results);
    for (Size k = 0; k < plan->home_count; k++)
        if (!number_at(homes, 2 * k, &plan->homes[k].place) || !number_at(homes, 2 * k + 1, &plan->homes[k].offset))
            return false;
    return read_fresh(plan, (Size *)(void *)(memory + fresh + results + home_bytes)) && read_results(plan);
}

static Object *plan_type;

/* plan(make, failed, scratch, places, params, constants, fresh, arena, arena_bytes, homes, results, brief) */
static Object *new_plan(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 12) return complain("plan(...) takes twelve arguments");
    Plan *plan = (Plan *)python.PyType_GenericAlloc(plan_type, 0);
    if (!plan) return NULL;
    plan->make = held(given[0]);
    plan->failed = held(given[1]);
    plan->scratch = held(given[2]);
    plan->places = python.PyLong_AsLongLong(given[3]);
    plan->params = python.PyLong_AsLongLong(given[4]);
    plan->constants = held(given[5]);
    plan->fresh_of = held(given[6]);
    plan->arena_bytes = python.PyLong_AsLongLong(given[8]);
    plan->arena = held(plan->arena_bytes >= COUNTED ? given[7] : helper.none);
    plan->results_of = held(given[10]);
    plan->brief = python.PyObject_IsTrue(given[11]) == 1;
    if (!python.PyErr_Occurred() && read_all(plan, given[9])) return &plan->head;
    dropped(&plan->head);
    return NULL;
}

/* arrays_by(address): NumPy's function that makes an array; 0: there is none that is known. */
static Object *arrays_by(Object *self, Object *address)
{
    (void)self;
    long long where = python.PyLong_AsLongLong(address);
    if (python.PyErr_Occurred()) return NULL;
    new_array = (NewArray)(uintptr_t)where;
    return held(helper.none);
}

static Method functions[] = {
    {"plan", new_plan, FAST_CALL, "A plan that is one sequence over arrays of the host."},
    {"arrays_by", arrays_by, ONE_ARGUMENT, "Where NumPy has its function that makes an array."},
    {NULL, NULL, 0, NULL},
};

bool open_plans(Object *module)
{
    static Method methods[] = {
        {"run", run, ONE_ARGUMENT, "The results, where the parameters have these values."}, {NULL, NULL, 0, NULL}};
    static TypeSlot slots[] = {
        {SLOT_DEALLOCATE, deallocate_plan}, {SLOT_TRAVERSE, visit_plan}, {SLOT_CLEAR, clear_plan},
        {SLOT_METHODS, methods}, {0, NULL}};
    static TypeSpec spec = {"eshkol.runtime.front.Plan", sizeof(Plan), 0, TYPE_DEFAULT | TYPE_COLLECTED, slots};
    plan_type = python.PyType_FromSpec(&spec);
    return plan_type && add_methods(module, functions) == 0;
}
