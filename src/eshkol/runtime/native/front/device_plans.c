/* Plans that are one sequence of launches on a device with memory of its own: from values there to values there.
 *
 * Comes in: what does not change from run to run (schedule/run/native.py makes it). A run takes the values of the
 * parameters, takes memory for the results and to work in, fills in addresses and asks the device, without Python's
 * lock but with the device's. Values that are not on the device yet, Python brings there. */
#include "front.h"
#include "../launches.h"

#include <stdlib.h>

typedef struct { /* memory that a run takes for a result; all borrowed from `facts` */
    Object *shape, *dtype, *ty, *bytes;
    Size count;
} Fresh;

typedef struct { /* a result: which value it is, and as what it is seen, if as another */
    Size slot;
    Object *shape, *dtype;
} Shown;

typedef struct {
    Size place;
    uint64_t offset;
} Home;

typedef struct {
    Object head;
    Object *facts; /* what Python gave, which keeps what the rest refers to */
    Object *machine, *take, *give, *lock, *unlock, *bring, *failed, *order, *dtypes, *constants, *arena;
    eshkol_launches *launches;
    Fresh *fresh;
    Shown *shown;
    Home *homes;
    Size params, held_count, fresh_count, shown_count, home_count;
    bool inherits; /* results may lie in memory of parameters */
} DevicePlan;

bool is_resident(Object *value) { return value->type == helper.resident; }

/* The address of memory that is taken now; false with an error. */
static bool taken(const DevicePlan *plan, Object *bytes, uint64_t *address)
{
    Object *made = python.PyObject_CallFunctionObjArgs(plan->take, bytes, NULL);
    *address = made ? (uint64_t)python.PyLong_AsLongLong(made) : 0;
    dropped(made);
    return !python.PyErr_Occurred();
}

static Object *fresh_value(const DevicePlan *plan, const Fresh *fresh)
{
    uint64_t address;
    if (!taken(plan, fresh->bytes, &address)) return NULL;
    Object *stored = new_stored(plan->machine, fresh->ty, fresh->count, address);
    Object *made = stored ? new_resident(stored, fresh->shape, fresh->dtype) : NULL;
    dropped(stored);
    return made;
}

/* A parameter's value on the machine, at an address: new reference. */
static Object *brought(const DevicePlan *plan, Object *value, Size k)
{
    if (is_resident(value)) {
        const Stored *stored = (Stored *)((Resident *)value)->stored;
        if (stored->machine == plan->machine && stored->has_address) return held(value);
    }
    return python.PyObject_CallFunctionObjArgs(plan->bring, value, python.PyTuple_GetItem(plan->dtypes, k), NULL);
}

/* All values of a run: parameters, constants, and fresh ones. */
static Object *values_of(const DevicePlan *plan, Object *given)
{
    Object *own = python.PyList_New(plan->params + plan->held_count + plan->fresh_count);
    for (Size at = 0; own && at < plan->params + plan->held_count + plan->fresh_count; at++) {
        Object *value;
        if (at < plan->params)
            value = brought(plan, python.PyList_GetItem(given, at), at);
        else if (at < plan->params + plan->held_count)
            value = held(python.PyTuple_GetItem(plan->constants, at - plan->params));
        else
            value = fresh_value(plan, &plan->fresh[at - plan->params - plan->held_count]);
        if (value && !is_resident(value)) {
            dropped(value);
            value = complain("a plan of a device is given values of it");
        }
        if (!value)
            become(&own, NULL);
        else
            python.PyList_SetItem(own, at, value);
    }
    return own;
}

static void fill(const DevicePlan *plan, Object *own, uint64_t base)
{
    uint64_t *places = plan->launches->places;
    places[0] = base;
    Size count = python.PyList_Size(own);
    for (Size k = 0; k < count; k++)
        places[1 + k] = ((Stored *)((Resident *)python.PyList_GetItem(own, k))->stored)->address;
    for (Size k = 1 + count; k < plan->launches->place_count; k++)
        places[k] = 0;
    for (Size k = 0; k < plan->home_count; k++)
        places[plan->homes[k].place] = base + plan->homes[k].offset;
}

/* Call something with whatever error there is kept. */
static void called_aside(Object *function, Object *argument)
{
    Object *kind, *error, *trace;
    python.PyErr_Fetch(&kind, &error, &trace);
    Object *done = python.PyObject_CallFunctionObjArgs(function, argument, NULL);
    if (!done) python.PyErr_WriteUnraisable(function);
    dropped(done);
    python.PyErr_Restore(kind, error, trace);
}

/* Where a device has several queues: let this one wait for what values need, or note what it was asked for. */
static bool ordered(const DevicePlan *plan, Object *own, bool after)
{
    if (!plan->launches->device->queues) return true;
    Object *done = python.PyObject_CallFunctionObjArgs(plan->order, own, after ? helper.true_ : helper.none, NULL);
    dropped(done);
    return done != NULL;
}

static bool launched(const DevicePlan *plan, Object *own, uint64_t base)
{
    Object *locked = python.PyObject_CallObject(plan->lock, NULL);
    if (!locked) return false;
    dropped(locked);
    fill(plan, own, base);
    int status = -1;
    bool asked = ordered(plan, own, false);
    if (asked) {
        void *state = python.PyEval_SaveThread();
        status = eshkol_launches_run(plan->launches);
        python.PyEval_RestoreThread(state);
        if (!ordered(plan, own, true)) {
            asked = false;
            status = -1;
        }
    }
    if (asked && status) {
        Object *code = python.PyLong_FromLongLong(status);
        if (code) dropped(python.PyObject_CallFunctionObjArgs(plan->failed, code, NULL));
        dropped(code);
        if (!python.PyErr_Occurred()) complain("a failure that is none");
    }
    called_aside(plan->unlock, NULL);
    return !status;
}

static Object *results_of(const DevicePlan *plan, Object *own)
{
    Object *results = python.PyList_New(plan->shown_count);
    for (Size k = 0; results && k < plan->shown_count; k++) {
        const Shown *shown = &plan->shown[k];
        Resident *value = (Resident *)python.PyList_GetItem(own, shown->slot);
        Stored *stored = (Stored *)value->stored;
        if (plan->inherits) become(&stored->array, held(helper.none)); /* the host may have the parameter's value */
        Object *seen = shown->shape ? new_resident(&stored->head, shown->shape, shown->dtype) : held(&value->head);
        if (seen)
            python.PyList_SetItem(results, k, seen);
        else
            become(&results, NULL);
    }
    return results;
}

/* The results, where the parameters have these values: a list of both. */
Object *run_device_plan(Object *self, Object *given)
{
    const DevicePlan *plan = (DevicePlan *)self;
    if (python.PyList_Size(given) != plan->params)
        return python.PyErr_Occurred() ? NULL : complain("a plan is given as many values as it has parameters");
    held(self);
    uint64_t base = 0;
    Object *own = values_of(plan, given), *results = NULL;
    bool works = plan->arena != helper.none;
    if (own && (!works || taken(plan, plan->arena, &base))) {
        if (launched(plan, own, base)) results = results_of(plan, own);
        Object *address = works ? python.PyLong_FromLongLong((long long)base) : NULL;
        if (address) called_aside(plan->give, address);
        dropped(address);
    }
    dropped(own);
    dropped(self);
    return results;
}

/* ---- the type --------------------------------------------------------------------------------------------------- */

static int visit_plan(Object *self, Visit visit, void *how)
{
    DevicePlan *plan = (DevicePlan *)self;
    int status = plan->facts ? visit(plan->facts, how) : 0;
    return status ? status : visit(self->type, how);
}

static int clear_plan(Object *self)
{
    become(&((DevicePlan *)self)->facts, NULL);
    return 0;
}

static void deallocate_plan(Object *self)
{
    Object *type = self->type;
    DevicePlan *plan = (DevicePlan *)self;
    python.PyObject_GC_UnTrack(self);
    clear_plan(self);
    free(plan->fresh);
    free(plan->shown);
    free(plan->homes);
    python.PyObject_GC_Del(self);
    dropped(type);
}

static Size number_in(Object *tuple, Size place)
{
    Object *item = python.PyTuple_GetItem(tuple, place);
    return item ? python.PyLong_AsLongLong(item) : -1;
}

/* Tables of the plan as C reads them; false with an error. */
static bool tabled(DevicePlan *plan, Object *fresh, Object *shown, Object *homes)
{
    plan->fresh_count = python.PyTuple_Size(fresh);
    plan->shown_count = python.PyTuple_Size(shown);
    plan->home_count = python.PyTuple_Size(homes);
    if (python.PyErr_Occurred()) return false;
    plan->fresh = calloc((size_t)plan->fresh_count + 1, sizeof *plan->fresh);
    plan->shown = calloc((size_t)plan->shown_count + 1, sizeof *plan->shown);
    plan->homes = calloc((size_t)plan->home_count + 1, sizeof *plan->homes);
    if (!plan->fresh || !plan->shown || !plan->homes) {
        python.PyErr_NoMemory();
        return false;
    }
    for (Size k = 0; k < plan->fresh_count; k++) {
        Object *row = python.PyTuple_GetItem(fresh, k);
        plan->fresh[k] = (Fresh){python.PyTuple_GetItem(row, 0), python.PyTuple_GetItem(row, 1),
                                 python.PyTuple_GetItem(row, 2), python.PyTuple_GetItem(row, 4), number_in(row, 3)};
    }
    Size values = plan->params + plan->held_count + plan->fresh_count;
    for (Size k = 0; k < plan->shown_count; k++) {
        Object *row = python.PyTuple_GetItem(shown, k), *shape = python.PyTuple_GetItem(row, 1);
        if (!shape) return false;
        if (shape == helper.none) shape = NULL;
        plan->shown[k] = (Shown){number_in(row, 0), shape, python.PyTuple_GetItem(row, 2)};
        if (plan->shown[k].slot < 0 || plan->shown[k].slot >= values) complain("a result is none of the values");
    }
    for (Size k = 0; k < plan->home_count; k++) {
        Object *row = python.PyTuple_GetItem(homes, k);
        plan->homes[k] = (Home){number_in(row, 0), (uint64_t)number_in(row, 1)};
        if (plan->homes[k].place < 0 || plan->homes[k].place >= plan->launches->place_count)
            complain("a place is none of the sequence's");
    }
    if (1 + values > plan->launches->place_count) complain("a sequence has fewer places than its plan");
    return !python.PyErr_Occurred();
}

static Object *plan_type;

/* device_plan(machine, take, give, lock, unlock, bring, failed, launches, owner, dtypes, constants, fresh, arena,
 * homes, shown, inherits, order): `launches` is the address of what `owner` holds; of `fresh`, each is (shape, dtype,
 * type, count, bytes); of `homes` (place, offset), of `shown` (number, shape or None, dtype); `arena` is a size, or
 * None; `order(values, after)` is asked where the device has several queues. */
static Object *new_plan(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 17) return complain("device_plan(...) takes seventeen arguments");
    DevicePlan *plan = (DevicePlan *)python.PyType_GenericAlloc(plan_type, 0);
    if (!plan) return NULL;
    plan->facts = python.PyTuple_New(count);
    for (Size k = 0; plan->facts && k < count; k++)
        python.PyTuple_SetItem(plan->facts, k, held(given[k]));
    Object **fields[] = {&plan->machine, &plan->take, &plan->give, &plan->lock, &plan->unlock, &plan->bring,
                         &plan->failed};
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
        *fields[k] = given[k];
    plan->launches = (eshkol_launches *)(uintptr_t)python.PyLong_AsLongLong(given[7]);
    plan->dtypes = given[9];
    plan->constants = given[10];
    plan->arena = given[12];
    plan->inherits = given[15] == helper.true_;
    plan->order = given[16];
    plan->params = python.PyTuple_Size(given[9]);
    plan->held_count = python.PyTuple_Size(given[10]);
    if (plan->facts && !python.PyErr_Occurred() && tabled(plan, given[11], given[14], given[13])) return &plan->head;
    dropped(&plan->head);
    return NULL;
}

bool is_device_plan(Object *object) { return object->type == plan_type; }

static Method functions[] = {
    {"device_plan", new_plan, FAST_CALL, "A plan that is one sequence of launches on a device."},
    {NULL, NULL, 0, NULL},
};

bool open_device_plans(Object *module)
{
    static Method methods[] = {
        {"run", run_device_plan, ONE_ARGUMENT, "The results, where the parameters have these values."},
        {NULL, NULL, 0, NULL}};
    static TypeSlot slots[] = {
        {SLOT_DEALLOCATE, deallocate_plan}, {SLOT_TRAVERSE, visit_plan}, {SLOT_CLEAR, clear_plan},
        {SLOT_METHODS, methods}, {0, NULL}};
    static TypeSpec spec = {
        "eshkol.runtime.front.DevicePlan", sizeof(DevicePlan), 0, TYPE_DEFAULT | TYPE_COLLECTED, slots};
    plan_type = python.PyType_FromSpec(&spec);
    return plan_type && add_methods(module, functions) == 0;
}
