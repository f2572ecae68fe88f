/* Small values at hand, computed as they are asked for: rows, and greatest and least elements. See front.h.
 *
 * To copy a few bytes, or to look at a few numbers, takes less time than to note that it is to be done. Nothing here
 * rounds: the answer is that of the general way, or the case is left to it. */
#include "front.h"

#include <string.h>

enum { ARRAY_DATA = 16, ARRAY_FLAGS = 64, CONTIGUOUS = 0x1, FEW = 1 << 12 /* bytes */ };

/* The bytes of the contiguous array that a plain tensor's node has on the host; -1 where it has none, or they are too
 * many, or a transformation is at work. */
static Size bytes_of(Node *node, Size most)
{
    Object *data = node->data;
    if (data->type != helper.array || node->scopes != helper.no_scopes || helper.heads != helper.true_) return -1;
    if (!(*(int *)((char *)data + ARRAY_FLAGS) & CONTIGUOUS) || is_transforming()) return -1;
    Object *bytes = python.PyObject_GetAttr(data, name_of.nbytes);
    Size count = bytes ? python.PyLong_AsLongLong(bytes) : -1;
    dropped(bytes);
    return count <= most ? count : -1;
}

static char *memory_of(Object *array) { return *(char **)((char *)array + ARRAY_DATA); }

/* A fresh array; takes the reference to the shape. */
static Object *empty(Object *shape, Object *dtype)
{
    Object *given = shape ? python.PyTuple_New(2) : NULL, *of_numpy = python.PyObject_GetAttr(dtype, name_of.numpy);
    if (!given || !of_numpy) {
        dropped(shape);
        dropped(given);
        dropped(of_numpy);
        return NULL;
    }
    python.PyTuple_SetItem(given, 0, shape);
    python.PyTuple_SetItem(given, 1, of_numpy);
    Object *made = python.PyObject_CallObject(helper.empty, given);
    dropped(given);
    return made;
}

static Object *leaf_of(Node *node, Object *array, Object *dtype)
{
    Object *device = node->device == helper.none ? helper.none : helper.host;
    return new_leaf(array, dtype, at_work.site ? at_work.site : helper.none, device);
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

/* The node of a row, copied; NULL, with an error or without. */
static Object *row_node(Node *node, Size place)
{
    Size axes = python.PyTuple_Size(node->shape);
    if (axes < 2) return NULL;
    Size rows = python.PyLong_AsLongLong(python.PyTuple_GetItem(node->shape, 0)), bytes = bytes_of(node, MOST_COPIED);
    if (bytes < 0 || rows < 1 || place < 0 || place >= rows) return NULL;
    Object *shape = python.PyTuple_New(axes - 1);
    for (Size k = 1; shape && k < axes; k++)
        python.PyTuple_SetItem(shape, k - 1, held(python.PyTuple_GetItem(node->shape, k)));
    Object *made = empty(shape, node->dtype), *leaf = NULL;
    if (made) {
        memcpy(memory_of(made), memory_of(node->data) + place * (bytes / rows), (size_t)(bytes / rows));
        leaf = leaf_of(node, made, node->dtype);
    }
    dropped(made);
    return leaf;
}

/* row_of_tensor(tensor, place): a row, as an index gives it. */
static Object *row(Object *self, Object *const *given, Size count)
{
    (void)self;
    if (count != 2) return complain("row_of_tensor(tensor, place)");
    Node *node = given[0]->type == helper.tensor ? (Node *)((Handle *)given[0])->node : NULL;
    if (node && is_node(&node->head) && given[1]->type == helper.int_) {
        held(&node->head);
        Object *leaf = row_node(node, python.PyLong_AsLongLong(given[1])), *made = leaf ? bare_handle(leaf) : NULL;
        dropped(&node->head);
        if (made && !look_through(made, given[0])) become(&made, NULL);
        if (made) return made;
    }
    return python.PyErr_Occurred() ? NULL : python.PyObject_GetItem(given[0], given[1]);
}

/* ---- greatest and least elements -------------------------------------------------------------------------------- */

/* Where the first greatest or least of numbers is; -1 where the general way is to say it: of what is no number, and of
 * zeros, whose sign is not told by comparing. */
#define EXTREME(name, type)                                              \
    static Size name(const type *numbers, Size count, bool least)        \
    {                                                                    \
        Size at = 0;                                                     \
        for (Size k = 0; k < count; k++) {                               \
            type x = numbers[k];                                         \
            if (x != x) return -1;                                       \
            if (least ? x < numbers[at] : x > numbers[at]) at = k;       \
        }                                                                \
        return count && numbers[at] != 0 ? at : -1;                      \
    }
EXTREME(extreme_float, float)
EXTREME(extreme_double, double)
EXTREME(extreme_long, int64_t)

/* The leaf of a greatest or least element of all, or of its place, where the value is small and at hand; NULL: the
 * general way, unless there is an error. */
Object *extreme_of(Node *node, const Known *known)
{
    bool places = known->op == helper.argmax_op || known->op == helper.argmin_op;
    bool least = known->op == helper.argmin_op || known->op == helper.min_op;
    if (!places && !least && known->op != helper.max_op) return NULL;
    Object *dtype = node->dtype;
    Size size = dtype == helper.float_dtype ? 4 : dtype == helper.double_dtype || dtype == helper.long_dtype ? 8 : 0;
    if (!size || python.PyTuple_Size(known->shape) != 0 || (!places && known->dtype != dtype)) return NULL;
    Size bytes = bytes_of(node, FEW);
    if (bytes < size || is_looked_at()) return NULL;
    const char *memory = memory_of(node->data);
    Size at = dtype == helper.float_dtype    ? extreme_float((const float *)memory, bytes / 4, least)
              : dtype == helper.double_dtype ? extreme_double((const double *)memory, bytes / 8, least)
                                             : extreme_long((const int64_t *)memory, bytes / 8, least);
    if (at < 0) return NULL;
    int64_t place = at;
    Object *made = empty(held(known->shape), known->dtype), *leaf = NULL;
    if (made) {
        memcpy(memory_of(made), places ? (const char *)&place : memory + at * size, (size_t)(places ? 8 : size));
        leaf = leaf_of(node, made, known->dtype);
    }
    dropped(made);
    return leaf;
}

static Method methods[] = {
    {"row_of_tensor", row, FAST_CALL, "A row of a tensor, as an index gives it."},
    {NULL, NULL, 0, NULL},
};

bool open_small(Object *module) { return add_methods(module, methods) == 0; }
