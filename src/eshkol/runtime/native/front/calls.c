/* Calls of compiled functions that are like the one before: what may have changed is looked at, and the plan is run.
 *
 * Comes in: what a call looks like whose plan is one sequence over arrays of the host (tensors/again.py, which has the
 * general way). Goes out: its result, or NotImplemented where a call is not like it. */
#include "front.h"

enum { ARRAY_FLAGS = 64, READY = 0x501 }; /* contiguous, aligned and writeable */

typedef struct {
    Object head;
    Object *plan, *wanted;                      /* shape, dtype, shape, dtype ... of the arguments */
    Object *device, *machine, *target, *floats; /* where they are; what holds there, and in this thread */
    Object *numbers;                            /* arrays that the plan takes behind them */
    Object *dtypes, *build;                     /* of the results; what makes more than a tensor of them, or None */
} Call;

#define FIELDS(X) X(plan) X(wanted) X(device) X(machine) X(target) X(floats) X(numbers) X(dtypes) X(build)

static int visit_call(Object *self, Visit visit, void *how)
{
    Call *call = (Call *)self;
#define X(field)                              \
    if (call->field) {                        \
        int status = visit(call->field, how); \
        if (status) return status;            \
    }
    FIELDS(X)
#undef X
    return visit(self->type, how);
}

static int clear_call(Object *self)
{
    Call *call = (Call *)self;
#define X(field) become(&call->field, NULL);
    FIELDS(X)
#undef X
    return 0;
}

static void deallocate_call(Object *self)
{
    Object *type = self->type;
    python.PyObject_GC_UnTrack(self);
    clear_call(self);
    python.PyObject_GC_Del(self);
    dropped(type);
}

static bool equal(Object *one, Object *other)
{
    return one == other || python.PyObject_RichCompareBool(one, other, COMPARE_EQUAL) == 1;
}

/* The array of an argument that is like the one before, borrowed; else NULL. */
static Object *value_of(const Call *call, Object *tensor, Size place)
{
    if (tensor->type != helper.tensor) return NULL;
    Node *node = (Node *)((Handle *)tensor)->node;
    if (!node || !is_node(&node->head) || node->scopes != helper.no_scopes) return NULL;
    Object *data = node->data;
    if (data->type != helper.array || (*(int *)((char *)data + ARRAY_FLAGS) & READY) != READY) return NULL;
    if (node->dtype != python.PyTuple_GetItem(call->wanted, 2 * place + 1)) return NULL;
    if (!equal(node->shape, python.PyTuple_GetItem(call->wanted, 2 * place))) return NULL;
    return equal(node->device, call->device) ? data : NULL;
}

/* Whether asking gives the same object as before; what is asked may be of Python. */
static bool gives(Object *found, Object *wanted)
{
    dropped(found);
    return found == wanted;
}

/* Whether all is at work in the usual way, as it was. */
static bool is_as_before(const Call *call)
{
    if (python.PyDict_GetItemWithError(helper.machines, call->device) != call->machine) return false;
    if (!gives(python.PyObject_GetAttr(call->machine, name_of.description), call->target)) return false;
    if (!gives(python.PyObject_GetAttr(helper.checks, name_of.on), helper.false_)) return false;
    if (!gives(python.PyObject_CallObject(helper.looks_for_nan, NULL), helper.false_)) return false;
    Object *floats = python.PyObject_CallObject(helper.floats, NULL);
    bool same = floats && equal(floats, call->floats);
    dropped(floats);
    return same;
}

/* The arrays that the plan is given: new reference; NULL, with an error or without. */
static Object *arrays_of(const Call *call, Object *args)
{
    Size count = python.PyTuple_Size(call->wanted) / 2, more = python.PyTuple_Size(call->numbers);
    if (python.PyTuple_Size(args) != count) return NULL;
    Object *arrays = python.PyList_New(count + more);
    for (Size k = 0; arrays && k < count; k++) {
        Object *value = value_of(call, python.PyTuple_GetItem(args, k), k);
        if (value)
            python.PyList_SetItem(arrays, k, held(value));
        else
            become(&arrays, NULL);
    }
    for (Size k = 0; arrays && k < more; k++)
        python.PyList_SetItem(arrays, count + k, held(python.PyTuple_GetItem(call->numbers, k)));
    return arrays;
}

static Object *tensor_of(const Call *call, Object *results, Size place)
{
    Object *site = at_work.site ? at_work.site : helper.none;
    Object *dtype = python.PyTuple_GetItem(call->dtypes, place);
    Object *leaf = new_leaf(python.PyList_GetItem(results, place), dtype, site, helper.host);
    return leaf ? bare_handle(leaf) : NULL;
}

static Object *built(const Call *call, Object *results)
{
    if (call->build == helper.none) return tensor_of(call, results, 0);
    Size count = python.PyList_Size(results);
    Object *tensors = python.PyList_New(count), *made = NULL;
    for (Size k = 0; tensors && k < count; k++) {
        Object *tensor = tensor_of(call, results, k);
        if (tensor)
            python.PyList_SetItem(tensors, k, tensor);
        else
            become(&tensors, NULL);
    }
    if (tensors) made = python.PyObject_CallFunctionObjArgs(call->build, tensors, NULL);
    dropped(tensors);
    return made;
}

/* call(args): the result for these arguments, or NotImplemented. */
static Object *call(Object *self, Object *args)
{
    const Call *before = (const Call *)self;
    Object *arrays = arrays_of(before, args);
    if (!arrays || !is_as_before(before)) {
        dropped(arrays);
        return python.PyErr_Occurred() ? NULL : held(helper.not_implemented);
    }
    held(self); /* what runs meanwhile may forget this call */
    Object *results = run_plan(before->plan, arrays, false), *made = results ? built(before, results) : NULL;
    dropped(results);
    dropped(arrays);
    dropped(self);
    return made;
}

static Object *call_type;

/* call(plan, wanted, device, machine, target, floats, numbers, dtypes, build) */
static Object *new_call(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 9) return complain("call(...) takes nine arguments");
    Call *made = (Call *)python.PyType_GenericAlloc(call_type, 0);
    if (!made) return NULL;
    Size place = 0;
#define X(field) made->field = held(given[place++]);
    FIELDS(X)
#undef X
    return &made->head;
}

static Method functions[] = {
    {"call", new_call, FAST_CALL, "A call of a compiled function, to be compared with those that follow."},
    {NULL, NULL, 0, NULL},
};

bool open_calls(Object *module)
{
    static Method methods[] = {
        {"call", call, ONE_ARGUMENT, "The result for other arguments, or NotImplemented."}, {NULL, NULL, 0, NULL}};
    static TypeSlot slots[] = {
        {SLOT_DEALLOCATE, deallocate_call}, {SLOT_TRAVERSE, visit_call}, {SLOT_CLEAR, clear_call},
        {SLOT_METHODS, methods}, {0, NULL}};
    static TypeSpec spec = {"eshkol.runtime.front.Call", sizeof(Call), 0, TYPE_DEFAULT | TYPE_COLLECTED, slots};
    call_type = python.PyType_FromSpec(&spec);
    return call_type && add_methods(module, functions) == 0;
}
