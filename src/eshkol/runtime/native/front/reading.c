/* Tensors read: arrays, numbers, and parts of what is there. See front.h.
 *
 * Fast are plain tensors that no transformation asks anything of, with values on the host, or that a plan computes
 * there which was kept; anything else is left to Python. */
#include "front.h"

static Object *bare_node(Object *tensor)
{
    if (tensor->type != helper.tensor || helper.heads != helper.true_) return NULL;
    Node *node = (Node *)((Handle *)tensor)->node;
    return node && is_node(&node->head) && node->scopes == helper.no_scopes ? &node->head : NULL;
}

static bool holds(Object *owner, Object *name)
{
    Object *found = python.PyObject_GetAttr(owner, name);
    bool yes = found != helper.false_;
    if (!found) python.PyErr_Clear(); /* not among the ordinary */
    dropped(found);
    return yes;
}

/* Whether more is done with plans than to run them: values are validated, or looked at. */
bool is_looked_at(void)
{
    if (helper.checks != helper.false_) return true;
    if (helper.looks_for_nan == helper.none) return false; /* nobody has ever asked for that */
    Object *looks = python.PyObject_CallObject(helper.looks_for_nan, NULL);
    dropped(looks);
    return looks != helper.false_;
}

/* Whether plans are run as they are: nothing crosses between machines, either. */
static bool is_ordinary(void) { return !holds(helper.node, name_of.crosses) && !is_looked_at(); }

static void unlock(void)
{
    Object *kind, *error, *trace; /* what went wrong meanwhile */
    python.PyErr_Fetch(&kind, &error, &trace);
    dropped(python.PyObject_CallObject(helper.unlock, NULL));
    python.PyErr_Restore(kind, error, trace);
}

/* Give a node its data; false with an error. */
static bool compute(Object *node)
{
    Object *nodes = python.PyList_New(1);
    if (!nodes) return false;
    python.PyList_SetItem(nodes, 0, held(node));
    bool done = false;
    Object *taken = python.PyObject_CallObject(helper.lock, NULL);
    if (taken) {
        if (((Node *)node)->data != helper.none)
            done = true; /* by another thread, meanwhile */
        else if (is_ordinary()) {
            Object *device = ((Node *)node)->device;
            Object *machine = python.PyDict_GetItemWithError(
                helper.machines, device == helper.none ? helper.host : device);
            done = machine && compute_kept(nodes, helper.kept, machine) == 1;
        }
        if (!done && !python.PyErr_Occurred()) {
            Object *general = python.PyObject_CallFunctionObjArgs(helper.compute, nodes, NULL);
            done = general != NULL;
            dropped(general);
        }
        unlock();
    }
    dropped(taken);
    dropped(nodes);
    return done && !python.PyErr_Occurred();
}

/* The computed array, borrowed from the node; NULL without an error: the general way. */
static Object *array_in(Object *bare)
{
    Node *node = (Node *)bare;
    if (node->data == helper.none && !compute(bare)) return NULL;
    settle_node(node);
    return node->data->type == helper.array && !python.PyErr_Occurred() ? node->data : NULL;
}

static Object *or_else(Object *found, Object *otherwise)
{
    return found || python.PyErr_Occurred() ? found : held(otherwise);
}

/* The array of a tensor: new reference; NULL, with an error or without. */
static Object *array_of(Object *tensor)
{
    Object *node = bare_node(tensor);
    if (!node) return NULL;
    held(node); /* others may run meanwhile, and give the tensor another */
    Object *array = array_in(node);
    if (array) held(array);
    dropped(node);
    return array;
}

/* array(tensor): its array, which is ours, or None. */
static Object *array(Object *self, Object *tensor)
{
    (void)self;
    return or_else(array_of(tensor), helper.none);
}

/* view(tensor): its array as users are given it, read-only, or None. */
static Object *view(Object *self, Object *tensor)
{
    (void)self;
    Object *own = array_of(tensor);
    Object *made = own ? python.PyObject_CallMethodObjArgs(own, name_of.view, NULL) : NULL;
    dropped(own);
    if (made) *(int *)((char *)made + ARRAY_FLAGS) &= ~WRITEABLE;
    return or_else(made, helper.none);
}

/* item(tensor): its one element as a number of Python's, or NotImplemented. */
static Object *item(Object *self, Object *tensor)
{
    (void)self;
    Node *node = (Node *)bare_node(tensor);
    bool single = node && node->dtype != helper.bfloat16;
    for (Size k = 0, axes = single ? python.PyTuple_Size(node->shape) : 0; k < axes && single; k++)
        single = python.PyLong_AsLongLong(python.PyTuple_GetItem(node->shape, k)) == 1;
    Object *own = single ? array_of(tensor) : NULL;
    Object *found = own ? python.PyObject_CallMethodObjArgs(own, name_of.item, NULL) : NULL;
    dropped(own);
    return or_else(found, helper.not_implemented);
}

/* ---- parts ------------------------------------------------------------------------------------------------------ */

static bool is_simple(Object *index)
{
    return index->type == helper.int_ || index->type == helper.slice || index == helper.none
           || index == helper.ellipsis;
}

static bool is_small(Object *array)
{
    enum { MOST_BYTES = 16 }; /* of an element */
    if (helper.heads == helper.true_ && elements_of(array) <= MOST_COPIED / MOST_BYTES) return true;
    Object *bytes = python.PyObject_GetAttr(array, name_of.nbytes);
    bool small = bytes && python.PyLong_AsLongLong(bytes) <= MOST_COPIED;
    dropped(bytes);
    return small;
}

/* A leaf of an array that was made of a node's; of this shape, if it is known. */
static Object *leaf_like(Node *node, Object *array, Object *shape)
{
    Object *device = node->device == helper.none ? helper.none : helper.host;
    Object *site = at_work.site ? at_work.site : helper.none;
    return shape ? new_shaped_leaf(array, shape, node->dtype, site, device)
                 : new_leaf(array, node->dtype, site, device);
}

bool is_transforming(void)
{
    Object *stack = python.PyObject_GetAttr(helper.scopes_at_work, name_of.stack);
    bool any = !stack || python.PyList_Size(stack) != 0;
    dropped(stack);
    return any;
}

/* A small part of an array, copied; NULL, with an error or without. */
static Object *part_of(Object *data, Object *index)
{
    Object *exact = index->type == helper.int_ ? python.PyTuple_New(2) : held(index);
    if (!exact) return NULL;
    if (exact != index) { /* with an ellipsis, an element is an array, too */
        python.PyTuple_SetItem(exact, 0, held(index));
        python.PyTuple_SetItem(exact, 1, held(helper.ellipsis));
    }
    Object *seen = python.PyObject_GetItem(data, exact), *made = NULL;
    dropped(exact);
    if (!seen) {
        python.PyErr_Clear(); /* the general way says what is wrong */
        return NULL;
    }
    if (seen->type == helper.array) {
        if (is_small(seen)) made = python.PyObject_CallMethodObjArgs(seen, name_of.copy, NULL);
    } else
        made = python.PyObject_CallFunctionObjArgs(helper.as_array, seen, NULL);
    dropped(seen);
    return made;
}

/* A value under another shape, in the same memory. */
Object *seen_as(Node *node, const Known *known)
{
    Object *data = node->data;
    if (known->op != helper.reshape_op) return NULL;
    if (data->type != helper.array || node->scopes != helper.no_scopes || helper.heads != helper.true_) return NULL;
    if (!(flags_of(data) & CONTIGUOUS) || !is_small(data) || is_transforming()) return NULL;
    held(data);
    Object *seen = python.PyObject_CallFunctionObjArgs(helper.reshape, data, known->shape, NULL);
    Object *leaf = seen ? leaf_like(node, seen, known->shape->type == helper.plain_tuple ? known->shape : NULL) : NULL;
    dropped(seen);
    dropped(data);
    return leaf;
}

/* What a tensor chooses of an array, copied: by a mask, or by integers that are there; NULL, perhaps with an error. */
static Object *chosen_of(Object *data, Object *index)
{
    Node *by = (Node *)bare_node(index);
    if (!by || python.PyTuple_Size(by->shape) == 0 || !is_small(data)) return NULL;
    bool is_mask = by->dtype == helper.bool_dtype;
    if (!is_mask && (by->dtype != helper.long_dtype || by->data->type != helper.array)) return NULL;
    Object *places = array_of(index);
    if (!places) return NULL;
    Object *made = is_small(places) ? python.PyObject_GetItem(data, places) : NULL;
    dropped(places);
    if (!made) python.PyErr_Clear(); /* the general way says what is wrong */
    if (made && (made->type != helper.array || !is_small(made))) become(&made, NULL);
    return made;
}

/* part(tensor, index): a part that is small and at hand, or NotImplemented. */
static Object *part(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 2) return complain("part(tensor, index)");
    Node *node = (Node *)bare_node(given[0]);
    Object *index = given[1];
    bool chosen = index->type == helper.tensor, simple = node && node->data->type == helper.array;
    if (simple && index->type == helper.plain_tuple)
        for (Size k = 0, length = python.PyTuple_Size(index); k < length && simple; k++)
            simple = is_simple(python.PyTuple_GetItem(index, k));
    else
        simple = simple && (chosen || is_simple(index));
    Object *made = NULL;
    if (simple && !is_transforming()) {
        held(&node->head);
        Object *data = held(node->data), *copy = chosen ? chosen_of(data, index) : part_of(data, index);
        Object *leaf = copy ? leaf_like(node, copy, NULL) : NULL;
        dropped(copy);
        dropped(data);
        dropped(&node->head);
        if (leaf) made = bare_handle(leaf);
        if (made && !chosen && !look_through(made, given[0])) become(&made, NULL);
    }
    return or_else(made, helper.not_implemented);
}

/* detached(tensor): another handle of a value that has no history, or NotImplemented. */
static Object *detached(Object *self, Object *tensor)
{
    (void)self;
    Object *node = bare_node(tensor), *made = node ? bare_handle(held(node)) : NULL;
    if (made && !look_through(made, tensor)) become(&made, NULL);
    return or_else(made, helper.not_implemented);
}

static Method methods[] = {
    {"array", array, ONE_ARGUMENT, "The array of a tensor, or None."},
    {"view", view, ONE_ARGUMENT, "The array of a tensor, read-only, or None."},
    {"item", item, ONE_ARGUMENT, "The one element of a tensor, or NotImplemented."},
    {"part", part, FAST_CALL, "A part of a tensor that is small and at hand, or NotImplemented."},
    {"detached", detached, ONE_ARGUMENT, "Another handle of a value without history, or NotImplemented."},
    {NULL, NULL, 0, NULL},
};

bool open_reading(Object *module) { return add_methods(module, methods) == 0; }
