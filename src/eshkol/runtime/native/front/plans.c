/* Plans that are one sequence over arrays of the host: a run from arrays to arrays without a step of Python's between.
 *
 * Comes in: what does not change from run to run (schedule/run/native.py makes it). A run takes the arrays of the
 * parameters, makes those of the results, fills in addresses and runs the sequence without Python's lock. Records are
 * written meanwhile, so each run has a sequence for itself; those that are done are kept for the next. */
#include "front.h"
#include "../sequence.h"

#include <stdlib.h>

enum { SPARES = 4, ARRAY_DATA = 16 };

typedef struct {
    eshkol_sequence *sequence;
    Object *owner;
} Ready;

typedef struct {
    Object head;
    Object *make, *failed, *scratch;           /* a sequence; an error of one; memory to work in, or None */
    Object *constants;                         /* arrays */
    Object *fresh, *arena;                     /* (function, arguments) of arrays that a run makes, and of its arena */
    Object *homes;                             /* place, offset in the arena, place, offset ... */
    Object *results;                           /* (number among parameters, constants and fresh ones, shape or None) */
    Size params, places, arena_bytes;
    Ready spares[SPARES];
    int spare_count;
} Plan;

#define FIELDS(X) X(make) X(failed) X(scratch) X(constants) X(fresh) X(arena) X(homes) X(results)

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

/* All arrays of a run: those of the parameters, the constants, and fresh ones. */
static Object *arrays_of(Plan *plan, Object *given)
{
    Size constants = python.PyTuple_Size(plan->constants), fresh = python.PyTuple_Size(plan->fresh);
    Object *own = python.PyList_New(plan->params + constants + fresh);
    if (!own) return NULL;
    for (Size k = 0; k < plan->params; k++)
        python.PyList_SetItem(own, k, held(python.PyList_GetItem(given, k)));
    for (Size k = 0; k < constants; k++)
        python.PyList_SetItem(own, plan->params + k, held(python.PyTuple_GetItem(plan->constants, k)));
    for (Size k = 0; k < fresh; k++) {
        Object *pair = python.PyTuple_GetItem(plan->fresh, k);
        Object *array = python.PyObject_CallObject(python.PyTuple_GetItem(pair, 0), python.PyTuple_GetItem(pair, 1));
        if (!array) {
            dropped(own);
            return NULL;
        }
        python.PyList_SetItem(own, plan->params + constants + k, array);
    }
    return own;
}

static Object *results_of(Plan *plan, Object *own)
{
    Size count = python.PyTuple_Size(plan->results);
    Object *results = python.PyList_New(count);
    for (Size k = 0; results && k < count; k++) {
        Object *pair = python.PyTuple_GetItem(plan->results, k), *shape = python.PyTuple_GetItem(pair, 1);
        Size number;
        Object *array = number_at(pair, 0, &number) ? python.PyList_GetItem(own, number) : NULL;
        if (array)
            array = shape == helper.none ? held(array)
                                         : python.PyObject_CallFunctionObjArgs(helper.reshape, array, shape, NULL);
        if (array)
            python.PyList_SetItem(results, k, array);
        else
            become(&results, NULL);
    }
    return results;
}

static void fill(Plan *plan, uint64_t *places, uint64_t base, Object *own)
{
    Size count = python.PyList_Size(own), homes = python.PyTuple_Size(plan->homes);
    places[0] = base;
    for (Size k = 0; k < count; k++)
        places[1 + k] = address_of(python.PyList_GetItem(own, k));
    for (Size k = 0; k + 1 < homes; k += 2) {
        Size place, offset;
        if (number_at(plan->homes, k, &place) && number_at(plan->homes, k + 1, &offset))
            places[place] = base + (uint64_t)offset;
    }
}

/* The results, where the parameters have these values. */
Object *run_plan(Object *self, Object *given, bool quietly)
{
    Plan *plan = (Plan *)self;
    if (python.PyList_Size(given) != plan->params)
        return python.PyErr_Occurred() ? NULL : complain("a plan is given as many arrays as it has parameters");
    for (Size k = 0; k < plan->params; k++)
        if (python.PyList_GetItem(given, k)->type != helper.array) return complain("a plan is given arrays");
    Ready ready;
    if (!taken(plan, &ready)) return NULL;
    Object *own = arrays_of(plan, given), *arena = NULL, *scratch = NULL, *results = NULL;
    void *small = NULL;
    uint64_t base = 0;
    bool whole = own != NULL;
    if (whole && plan->arena_bytes) {
        if (plan->arena != helper.none) {
            Object *make = python.PyTuple_GetItem(plan->arena, 0);
            arena = python.PyObject_CallObject(make, python.PyTuple_GetItem(plan->arena, 1));
            whole = arena != NULL;
            if (whole) base = address_of(arena);
        } else {
            small = aligned_alloc(64, (size_t)(plan->arena_bytes + 63) / 64 * 64);
            whole = small != NULL;
            base = (uint64_t)(uintptr_t)small;
            if (!whole) python.PyErr_NoMemory();
        }
    }
    if (whole && plan->scratch != helper.none) {
        scratch = python.PyObject_CallObject(plan->scratch, NULL);
        Object *address = scratch ? python.PyObject_GetAttr(scratch, name_of.address) : NULL;
        if (address) ready.sequence->places[plan->places] = (uint64_t)python.PyLong_AsLongLong(address);
        whole = address != NULL;
        dropped(address);
    }
    if (whole) {
        fill(plan, ready.sequence->places, base, own);
        void *state = python.PyEval_SaveThread();
        int status = eshkol_sequence_run(ready.sequence);
        python.PyEval_RestoreThread(state);
        if (!status)
            results = results_of(plan, own);
        else { /* it is told, and a sequence that has failed is not used again */
            Object *code = quietly ? NULL : python.PyLong_FromLongLong(status);
            if (code) dropped(python.PyObject_CallFunctionObjArgs(plan->failed, ready.owner, code, NULL));
            dropped(code);
            whole = false;
        }
    }
    if (whole && plan->spare_count < SPARES)
        plan->spares[plan->spare_count++] = ready;
    else
        dropped(ready.owner);
    free(small);
    dropped(own);
    dropped(arena);
    dropped(scratch);
    return results;
}

static Object *run(Object *self, Object *given) { return run_plan(self, given, false); }

static Object *plan_type;

/* plan(make, failed, scratch, places, params, constants, fresh, arena, arena_bytes, homes, results) */
static Object *new_plan(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 11) return complain("plan(...) takes eleven arguments");
    Plan *plan = (Plan *)python.PyType_GenericAlloc(plan_type, 0);
    if (!plan) return NULL;
    plan->make = held(given[0]);
    plan->failed = held(given[1]);
    plan->scratch = held(given[2]);
    plan->places = python.PyLong_AsLongLong(given[3]);
    plan->params = python.PyLong_AsLongLong(given[4]);
    plan->constants = held(given[5]);
    plan->fresh = held(given[6]);
    plan->arena_bytes = python.PyLong_AsLongLong(given[8]);
    plan->arena = held(plan->arena_bytes >= COUNTED ? given[7] : helper.none);
    plan->homes = held(given[9]);
    plan->results = held(given[10]);
    if (!python.PyErr_Occurred()) return &plan->head;
    dropped(&plan->head);
    return NULL;
}

static Method functions[] = {
    {"plan", new_plan, FAST_CALL, "A plan that is one sequence over arrays of the host."},
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
