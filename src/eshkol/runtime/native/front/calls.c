/* Calls of compiled functions: those like the one before go from tensors to tensors without a step of Python's.
 *
 * Comes in: what does not change from call to call (tensors/again.py makes it). A call whose arguments are tensors of
 * these shapes and dtypes, with values on that machine, and where nothing else has changed either (what the function
 * reads beside its arguments, how floats are kept, what is asked of the machine), is carried out; every other is made
 * by `jit`, which looks at everything. */
#include "front.h"
#include "trees.h"

#include <stdlib.h>

enum { FEW = 32 };

typedef struct {
    Object head;
    Object *wanted; /* a list: shape, dtype, shape, dtype ... of the arguments */
    Object *device, *machine;
    Object *target; /* the machine's description, which depends on how precise products are wanted */
    Object *plan, *dtypes;
    Object *floats; /* the dtype of floats that are given none */
    Object *outline; /* how arguments are put together (trees.h); None: each is a tensor */
    Object *build; /* how results are: their outline, or a function of all; None: there is one, by itself */
    Object *numbers; /* what the plan is given behind the arguments and the needs */
    Object *places, *values, *tensors, *contents; /* what it reads beside its arguments: see `is_unchanged` */
    Object *needs;  /* nodes among that, whose values the plan is given behind the arguments */
} Again;

#define FIELDS(X)                                                                                          \
    X(wanted) X(device) X(machine) X(target) X(plan) X(dtypes) X(floats) X(outline) X(build) X(numbers) X(places) \
    X(values) X(tensors) X(contents) X(needs)

static bool same(Object *one, Object *other)
{
    return one == other || python.PyObject_RichCompareBool(one, other, COMPARE_EQUAL) == 1;
}

/* ---- what a function reads beside its arguments ----------------------------------------------------------------- */

/* What stands at a place (tensors/captures.py `Place`): new reference; None where there is nothing. */
static Object *standing_at(Object *place)
{
    const bool by_key = python.PyTuple_GetItem(place, 0) == helper.true_;
    Object *found = held(python.PyTuple_GetItem(place, 1));
    for (Size k = 2, count = python.PyTuple_Size(place); found && k < count; k++) {
        Object *name = python.PyTuple_GetItem(place, k), *next;
        if (by_key && k == 2) {
            next = python.PyDict_GetItemWithError(found, name);
            if (next) held(next);
        } else {
            next = python.PyObject_GetAttr(found, name);
            if (!next && (name == name_of.cell_contents || python.PyErr_ExceptionMatches(helper.attribute_error)))
                python.PyErr_Clear(); /* a variable that is not assigned, or an attribute that was taken away */
        }
        if (!next && !python.PyErr_Occurred()) next = held(helper.none);
        become(&found, next);
    }
    return found;
}

/* Whether a list has these items still; or a dict these keys and values, in turn. */
static bool holds(Object *container, Object *items)
{
    const Size size = python.PyTuple_Size(items);
    if (container->type == helper.list) {
        bool same_items = python.PyList_Size(container) == size;
        for (Size k = 0; same_items && k < size; k++)
            same_items = python.PyList_GetItem(container, k) == python.PyTuple_GetItem(items, k);
        return same_items;
    }
    if (2 * python.PyDict_Size(container) != size) return false;
    Object *key, *value;
    for (Size at = 0, k = 0; python.PyDict_Next(container, &at, &key, &value); k += 2)
        if (key != python.PyTuple_GetItem(items, k) || value != python.PyTuple_GetItem(items, k + 1)) return false;
    return true;
}

/* Whether the same objects stand at all places, containers hold what they held, and tensors have the nodes that they
 * had; -1 with an error. */
static int is_unchanged(Object *places, Object *values, Object *tensors, Object *contents)
{
    for (Size k = 0, count = python.PyList_Size(places); k < count; k++) {
        Object *now = standing_at(python.PyList_GetItem(places, k));
        if (!now) return -1;
        const bool is_same = now == python.PyList_GetItem(values, k);
        dropped(now);
        if (!is_same) return 0;
    }
    for (Size k = 0, count = python.PyList_Size(tensors); k < count; k++) {
        Object *pair = python.PyList_GetItem(tensors, k);
        if (((Handle *)python.PyTuple_GetItem(pair, 0))->node != python.PyTuple_GetItem(pair, 1)) return 0;
    }
    for (Size k = 0, count = python.PyList_Size(contents); k < count; k++) {
        Object *pair = python.PyList_GetItem(contents, k);
        if (!holds(python.PyTuple_GetItem(pair, 0), python.PyTuple_GetItem(pair, 1))) return 0;
    }
    return 1;
}

/* read_place(place) */
static Object *read_place(Object *self, Object *place)
{
    (void)self;
    if (place->type != helper.plain_tuple || python.PyTuple_Size(place) < 2) return complain("read_place(place)");
    return standing_at(place);
}

static bool are_places(Object *places, Object *values, Object *tensors, Object *contents)
{
    Size count = python.PyList_Size(places);
    if (count < 0 || python.PyList_Size(values) != count) return false;
    for (Size k = 0; k < count; k++) {
        Object *place = python.PyList_GetItem(places, k);
        if (place->type != helper.plain_tuple || python.PyTuple_Size(place) < 2) return false;
    }
    for (Size k = 0, more = python.PyList_Size(tensors); k < more; k++) {
        Object *pair = python.PyList_GetItem(tensors, k);
        if (pair->type != helper.plain_tuple || python.PyTuple_Size(pair) != 2) return false;
        if (!is_tensor(python.PyTuple_GetItem(pair, 0))) return false;
    }
    for (Size k = 0, more = python.PyList_Size(contents); k < more; k++) {
        Object *pair = python.PyList_GetItem(contents, k);
        if (pair->type != helper.plain_tuple || python.PyTuple_Size(pair) != 2) return false;
        Object *container = python.PyTuple_GetItem(pair, 0);
        if (container->type != helper.list && container->type != helper.dict) return false;
        if (python.PyTuple_GetItem(pair, 1)->type != helper.plain_tuple) return false;
    }
    return !python.PyErr_Occurred();
}

/* unchanged(places, values, tensors, contents) */
static Object *unchanged(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 4 || !are_places(given[0], given[1], given[2], given[3]))
        return python.PyErr_Occurred() ? NULL : complain("unchanged(places, values, tensors, contents) takes lists");
    int status = is_unchanged(given[0], given[1], given[2], given[3]);
    return status < 0 ? NULL : python.PyBool_FromLong(status);
}

/* ---- whether a call is like the one before ---------------------------------------------------------------------- */

static uint64_t changes_of_floats = 1;

/* Whether floats without a dtype are kept in this one. A thread asks Python once after each change. */
static bool floats_are(Object *name)
{
    static _Thread_local struct {
        Object *name;
        uint64_t when;
    } known;
    if (known.when != changes_of_floats) {
        uint64_t when = changes_of_floats;
        Object *now = python.PyObject_CallObject(helper.floats, NULL);
        if (!now) return false;
        become(&known.name, now);
        known.when = when;
    }
    return same(known.name, name);
}

/* floats_changed(): in some thread; every other is asked again, too. */
static Object *floats_changed(Object *self, Object *const *given, Size count)
{
    (void)self, (void)given, (void)count;
    changes_of_floats++;
    return held(helper.none);
}

/* Whether nothing has changed but perhaps the arguments. */
static bool as_before(const Again *again)
{
    if (python.PyDict_GetItemWithError(helper.machines, again->device) != again->machine) return false;
    if (!is_described_as(again->machine, again->target) || is_looked_at() || !floats_are(again->floats)) return false;
    return is_unchanged(again->places, again->values, again->tensors, again->contents) == 1;
}

enum { CARRAY = CONTIGUOUS | ALIGNED | WRITEABLE };

/* The value that a node has on the machine, borrowed; NULL: it has none that a plan takes as it is. `placed` becomes
 * true if it belongs to the machine: what belongs to none is taken on the host, and does not say where to compute. */
static Object *value_in(const Again *again, const Node *node, bool *placed)
{
    Object *value = node->data;
    if (value == helper.none) return NULL;
    if (node->device != helper.none) {
        if (!same(node->device, again->device)) return NULL;
        *placed = true;
    } else if (value->type != helper.array || !same(again->device, helper.host))
        return NULL;
    if (value->type == helper.array && (flags_of(value) & CARRAY) != CARRAY) return NULL;
    return value;
}

/* Whether new tensors are made on the machine now. */
static bool is_default(const Again *again)
{
    Object *device = python.PyObject_CallObject(helper.device_now, NULL);
    bool yes = device && same(device, again->device);
    dropped(device);
    return yes;
}

/* The value of an argument, borrowed; NULL: it is another call. */
static Object *value_of(const Again *again, Object *tensor, Size number, bool *placed)
{
    if (tensor->type != helper.tensor) return NULL;
    const Node *node = (Node *)((Handle *)tensor)->node;
    if (!node || !is_node((Object *)node) || node->scopes != helper.no_scopes) return NULL;
    if (node->dtype != python.PyList_GetItem(again->wanted, 2 * number + 1)) return NULL;
    if (node->shape != python.PyList_GetItem(again->wanted, 2 * number)) {
        if (!same(node->shape, python.PyList_GetItem(again->wanted, 2 * number))) return NULL;
        python.PyList_SetItem(again->wanted, 2 * number, held(node->shape)); /* most likely it comes again */
    }
    return value_in(again, node, placed);
}

/* What the plan is given, borrowed; false: it is another call. */
static bool values_of(const Again *again, Object *const *tensors, Size count, Object **values, bool *placed)
{
    bool any = false;
    for (Size k = 0; k < count; k++)
        if (!(*values++ = value_of(again, tensors[k], k, placed))) return false;
    for (Size k = 0, more = python.PyTuple_Size(again->needs); k < more; k++)
        if (!(*values++ = value_in(again, (Node *)python.PyTuple_GetItem(again->needs, k), &any))) return false;
    for (Size k = 0, more = python.PyTuple_Size(again->numbers); k < more; k++)
        *values++ = python.PyTuple_GetItem(again->numbers, k);
    return true;
}

/* ---- carrying it out -------------------------------------------------------------------------------------------- */

static Object *tensor_of(const Again *again, Object *value, Object *shape, Size number)
{
    Object *site = at_work.site ? at_work.site : helper.none, *dtype = python.PyList_GetItem(again->dtypes, number);
    Object *leaf = shape ? new_shaped_leaf(value, shape, dtype, site, again->device)
                         : new_leaf(value, dtype, site, again->device);
    return leaf ? bare_handle(leaf) : NULL;
}

/* Tensors of values, in a list, which they take the places in. */
static bool wrapped(const Again *again, Object *results)
{
    Size count = python.PyList_Size(results);
    if (python.PyList_Size(again->dtypes) != count) return complain("a plan has as many results as dtypes") != NULL;
    for (Size k = 0; k < count; k++) {
        Object *tensor = tensor_of(again, python.PyList_GetItem(results, k), NULL, k);
        if (!tensor) return false;
        python.PyList_SetItem(results, k, tensor);
    }
    return true;
}

/* The result of a plan whose results are several, or on a device. */
static Object *of_several(const Again *again, Object *const *values, Size count)
{
    Object *given = python.PyList_New(count), *results = NULL, *made = NULL;
    for (Size k = 0; given && k < count; k++)
        python.PyList_SetItem(given, k, held(values[k]));
    if (given)
        results = is_device_plan(again->plan) ? run_device_plan(again->plan, given)
                                              : run_plan_on(again->plan, given, false);
    Size first = 0;
    if (results && wrapped(again, results))
        made = again->build == helper.none || again->build->type == helper.plain_tuple
                   ? put_together(again->build, results, &first)
                   : python.PyObject_CallFunctionObjArgs(again->build, results, NULL);
    dropped(given);
    dropped(results);
    return made;
}

static Object *of_one(const Again *again, Object *const *values, Size count)
{
    Object *result;
    if (!run_plan(again->plan, values, count, false, &result)) return NULL;
    Object *made = tensor_of(again, result, plan_shape(again->plan, 0), 0);
    dropped(result);
    return made;
}

/* The tensors that are given, held; how many there are, or -1: it is another call. */
static Size tensors_of(const Again *again, Object *args, Object **tensors, Size room)
{
    Size count = 0;
    bool fits = true;
    if (again->outline != helper.none)
        fits = gathered(again->outline, args, tensors, &count, room);
    else if (python.PyTuple_Size(args) == room)
        for (; count < room; count++)
            tensors[count] = held(python.PyTuple_GetItem(args, count));
    if (fits && count == room) return count;
    while (count > 0)
        dropped(tensors[--count]);
    return -1;
}

/* The result of a call; NULL without an error: it is another. */
static Object *called_again(Object *self, Object *args)
{
    const Again *again = (Again *)self;
    const Size count = python.PyList_Size(again->wanted) / 2;
    const Size all = count + python.PyTuple_Size(again->needs) + python.PyTuple_Size(again->numbers);
    Object *few[2 * FEW], **values = all <= FEW ? few : malloc(2 * (size_t)all * sizeof *values), *made = NULL;
    if (!values) return python.PyErr_NoMemory();
    held(self); /* another call may take its place meanwhile */
    Object **tensors = values + all;
    bool placed = false;
    /* What is borrowed must not be let go of: Python's code runs before, and they are read again where it ran after. */
    if (as_before(again) && tensors_of(again, args, tensors, count) >= 0) {
        if (values_of(again, tensors, count, values, &placed)
            && (placed || (is_default(again) && values_of(again, tensors, count, values, &placed))))
            made = again->build == helper.none && !is_device_plan(again->plan) ? of_one(again, values, all)
                                                                               : of_several(again, values, all);
        for (Size k = 0; k < count; k++)
            dropped(tensors[k]);
    }
    dropped(self);
    if (values != few) free(values);
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

/* call_again(wanted, device, machine, target, plan, dtypes, floats, outline, build, numbers, places, values, tensors,
 * contents, needs) */
static Object *new_again(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 15 || python.PyList_Size(given[5]) < 1 || !are_places(given[10], given[11], given[12], given[13]))
        return python.PyErr_Occurred() ? NULL : complain("call_again(...) takes fifteen arguments");
    for (Size k = 0, needs = python.PyTuple_Size(given[14]); k < needs; k++)
        if (!is_node(python.PyTuple_GetItem(given[14], k))) return complain("what a call needs are nodes");
    if (!is_device_plan(given[4]) && given[8] == helper.none && plan_results(given[4]) != 1)
        return complain("a plan has as many results as dtypes");
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

/* ---- functions under jit ---------------------------------------------------------------------------------------- */

typedef struct { /* what Python's `jit` stands on */
    Object head;
    Object *again; /* an Again, or what Python has instead; None, or NULL: nothing */
} Compiled;

static Object *call_compiled(Object *self, Object *args, Object *named)
{
    Object *again = ((Compiled *)self)->again;
    const bool plain = !named || python.PyDict_Size(named) == 0;
    if (plain && again && again->type == again_type) {
        Object *made = called_again(again, args);
        if (made || python.PyErr_Occurred()) return made;
    }
    Object *given = plain ? python.PyDict_New() : held(named);
    Object *made = given ? python.PyObject_CallMethodObjArgs(self, name_of._called, args, given, NULL) : NULL;
    dropped(given);
    return made;
}

static int visit_compiled(Object *self, Visit visit, void *how)
{
    Object *again = ((Compiled *)self)->again;
    int status = again ? visit(again, how) : 0;
    return status ? status : visit(self->type, how);
}

static int clear_compiled(Object *self)
{
    become(&((Compiled *)self)->again, NULL);
    return 0;
}

static void deallocate_compiled(Object *self)
{
    Object *type = self->type;
    python.PyObject_GC_UnTrack(self);
    clear_compiled(self);
    python.PyObject_GC_Del(self);
    dropped(type);
}

static Member compiled_members[] = {
    {"_again", MEMBER_OR_NONE, offsetof(Compiled, again), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static Method functions[] = {
    {"call_again", new_again, FAST_CALL, "A call of a compiled function that may come again."},
    {"read_place", read_place, ONE_ARGUMENT, "What stands at a place that a function reads."},
    {"unchanged", unchanged, FAST_CALL, "Whether what a function reads is as it was."},
    {"floats_changed", floats_changed, FAST_CALL, "Have the dtype of floats that are given none asked for again."},
    {NULL, NULL, 0, NULL},
};

bool open_calls(Object *module)
{
    static TypeSlot slots[] = {
        {SLOT_DEALLOCATE, deallocate_again}, {SLOT_TRAVERSE, visit_again}, {SLOT_CLEAR, clear_again}, {0, NULL}};
    static TypeSpec spec = {"eshkol.runtime.front.Again", sizeof(Again), 0, TYPE_DEFAULT | TYPE_COLLECTED, slots};
    static TypeSlot compiled_slots[] = {
        {SLOT_DEALLOCATE, deallocate_compiled}, {SLOT_TRAVERSE, visit_compiled}, {SLOT_CLEAR, clear_compiled},
        {SLOT_MEMBERS, compiled_members}, {SLOT_CALL, call_compiled}, {0, NULL}};
    const unsigned how = TYPE_DEFAULT | TYPE_BASE | TYPE_COLLECTED;
    static TypeSpec compiled_spec = {"eshkol.runtime.front.CallBase", sizeof(Compiled), 0, how, compiled_slots};
    again_type = python.PyType_FromSpec(&spec);
    if (!again_type || add_to(module, "CallBase", python.PyType_FromSpec(&compiled_spec))) return false;
    return add_methods(module, functions) == 0;
}
