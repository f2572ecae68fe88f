/* Calls of a compiled function that are like the one before: from tensors to tensors by a plan in C.
 *
 * Comes in: what does not change from call to call (tensors/again.py makes it). A call whose arguments are tensors of
 * these shapes and dtypes, with values on that machine, and where nothing else has changed either, is carried out;
 * every other is told by NotImplemented, and `jit` looks at everything. */
#include "front.h"

typedef struct {
    Object head;
    Object *wanted; /* (shape, dtype) of each argument */
    Object *device, *machine;
    Object *target; /* the machine's description, which depends on how precise products are wanted */
    Object *plan, *dtypes;
    Object *floats; /* the dtype of floats that are given none */
    Object *build;  /* what makes a structure of results; None: there is one, by itself */
    Object *numbers; /* what the plan is given behind the arguments */
} Again;

#define FIELDS(X) X(wanted) X(device) X(machine) X(target) X(plan) X(dtypes) X(floats) X(build) X(numbers)

static bool same(Object *one, Object *other)
{
    return one == other || python.PyObject_RichCompareBool(one, other, COMPARE_EQUAL) == 1;
}

/* Whether nothing has changed but perhaps the arguments. */
static bool as_before(const Again *again)
{
    if (python.PyDict_GetItemWithError(helper.machines, again->device) != again->machine) return false;
    if (!is_described_as(again->machine, again->target) || is_looked_at()) return false;
    Object *floats = python.PyObject_CallObject(helper.floats, NULL);
    bool equal = floats && same(floats, again->floats);
    dropped(floats);
    return equal;
}

enum { ARRAY_FLAGS = 64, CARRAY = 0x1 | 0x100 | 0x400 }; /* contiguous, aligned, and it may be written to */

/* The value of an argument, borrowed; NULL: it is another call. */
static Object *value_of(const Again *again, Object *tensor, Object *shape, Object *dtype)
{
    if (tensor->type != helper.tensor) return NULL;
    const Node *node = (Node *)((Handle *)tensor)->node;
    if (!node || !is_node((Object *)node) || node->data == helper.none || node->dtype != dtype) return NULL;
    if (node->scopes != helper.no_scopes || !same(node->shape, shape)) return NULL;
    if (!same(node->device, again->device)) return NULL;
    Object *value = node->data;
    if (value->type == helper.array && (*(int *)((char *)value + ARRAY_FLAGS) & CARRAY) != CARRAY) return NULL;
    return value;
}

static Object *values_of(const Again *again, Object *args)
{
    Size count = python.PyTuple_Size(again->wanted);
    Size more = python.PyTuple_Size(again->numbers);
    if (python.PyTuple_Size(args) != count) return NULL;
    Object *values = python.PyList_New(count + more);
    for (Size k = 0; values && k < count; k++) {
        Object *pair = python.PyTuple_GetItem(again->wanted, k);
        Object *value = value_of(again, python.PyTuple_GetItem(args, k), python.PyTuple_GetItem(pair, 0),
                                 python.PyTuple_GetItem(pair, 1));
        if (!value)
            become(&values, NULL);
        else
            python.PyList_SetItem(values, k, held(value));
    }
    for (Size k = 0; values && k < more; k++)
        python.PyList_SetItem(values, count + k, held(python.PyTuple_GetItem(again->numbers, k)));
    return values;
}

/* Tensors of values, in a list, which they take the places in. */
static bool wrapped(const Again *again, Object *results)
{
    Object *site = at_work.site ? at_work.site : helper.none;
    Size count = python.PyList_Size(results);
    if (python.PyList_Size(again->dtypes) != count) return complain("a plan has as many results as dtypes") != NULL;
    for (Size k = 0; k < count; k++) {
        Object *leaf = new_leaf(python.PyList_GetItem(results, k), python.PyList_GetItem(again->dtypes, k), site,
                                again->device);
        Object *tensor = leaf ? bare_handle(leaf) : NULL;
        if (!tensor) return false;
        python.PyList_SetItem(results, k, tensor);
    }
    return true;
}

/* call(args): the result, or NotImplemented where it is another call. */
static Object *call(Object *self, Object *args)
{
    const Again *again = (Again *)self;
    held(self); /* another call may take its place meanwhile */
    Object *values = as_before(again) ? values_of(again, args) : NULL, *results = NULL, *made = NULL;
    if (values)
        results = is_device_plan(again->plan) ? run_device_plan(again->plan, values)
                                              : run_plan(again->plan, values, false);
    if (results && wrapped(again, results))
        made = again->build == helper.none ? held(python.PyList_GetItem(results, 0))
                                           : python.PyObject_CallFunctionObjArgs(again->build, results, NULL);
    else if (!values && !python.PyErr_Occurred())
        made = held(helper.not_implemented);
    dropped(values);
    dropped(results);
    dropped(self);
    return made;
}

static int visit_again(Object *self, Visit visit, void *how)
{
    Again *again = (Again *)self;
#define X(field)                               \
    if (again->field) {                        \
        int status = visit(again->field, how); \
        if (status) return status;             \
    }
    FIELDS(X)
#undef X
    return visit(self->type, how);
}

static int clear_again(Object *self)
{
    Again *again = (Again *)self;
#define X(field) become(&again->field, NULL);
    FIELDS(X)
#undef X
    return 0;
}

static void deallocate_again(Object *self)
{
    Object *type = self->type;
    python.PyObject_GC_UnTrack(self);
    clear_again(self);
    python.PyObject_GC_Del(self);
    dropped(type);
}

static Object *again_type;

/* call_again(wanted, device, machine, target, plan, dtypes, floats, build, numbers) */
static Object *new_again(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 9 || python.PyList_Size(given[5]) < 1) return complain("call_again(...) takes nine arguments");
    Again *again = (Again *)python.PyType_GenericAlloc(again_type, 0);
    if (!again) return NULL;
    Object **fields[] = {
#define X(field) &again->field,
        FIELDS(X)
#undef X
    };
    for (Size k = 0; k < count; k++)
        *fields[k] = held(given[k]);
    return &again->head;
}

static Method functions[] = {
    {"call_again", new_again, FAST_CALL, "A call of a compiled function that may come again."},
    {NULL, NULL, 0, NULL},
};

bool open_calls(Object *module)
{
    static Method methods[] = {
        {"call", call, ONE_ARGUMENT, "The result for such arguments, or NotImplemented."}, {NULL, NULL, 0, NULL}};
    static TypeSlot slots[] = {
        {SLOT_DEALLOCATE, deallocate_again}, {SLOT_TRAVERSE, visit_again}, {SLOT_CLEAR, clear_again},
        {SLOT_METHODS, methods}, {0, NULL}};
    static TypeSpec spec = {"eshkol.runtime.front.Again", sizeof(Again), 0, TYPE_DEFAULT | TYPE_COLLECTED, slots};
    again_type = python.PyType_FromSpec(&spec);
    return again_type && add_methods(module, functions) == 0;
}
