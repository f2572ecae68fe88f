/* Small values at hand, computed as they are asked for: rows, axes in another order, greatest and least elements. See
 * front.h.
 *
 * To copy a few bytes, or to look at a few numbers, takes less time than to note that it is to be done. Nothing here
 * rounds: the answer is that of the general way, or the case is left to it. */
#include "front.h"
#include "../order/search.h"

#include <string.h>

enum { FEW = 1 << 12 /* bytes */, MOST_TURNED = 8 /* axes */ };

/* Whether a plain tensor's node has a contiguous array on the host, and no transformation is at work. */
static bool is_at_hand(Node *node)
{
    Object *data = node->data;
    if (data->type != helper.array || node->scopes != helper.no_scopes || helper.heads != helper.true_) return false;
    return flags_of(data) & CONTIGUOUS && !is_transforming();
}

/* Its bytes; -1 where it has none, or they are too many. */
static Size bytes_of(Node *node, Size most)
{
    if (!is_at_hand(node)) return -1;
    Object *bytes = python.PyObject_GetAttr(node->data, name_of.nbytes);
    Size count = bytes ? python.PyLong_AsLongLong(bytes) : -1;
    dropped(bytes);
    return count <= most ? count : -1;
}

static char *memory_of(Object *array) { return *(char **)((char *)array + ARRAY_DATA); }

static Object *leaf_of(Node *node, Object *array, Object *shape, Object *dtype)
{
    Object *device = node->device == helper.none ? helper.none : helper.host;
    return new_shaped_leaf(array, shape, dtype, at_work.site ? at_work.site : helper.none, device);
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
    Object *made = shape ? empty_array(shape, node->dtype) : NULL, *leaf = NULL;
    if (made) {
        memcpy(memory_of(made), memory_of(node->data) + place * (bytes / rows), (size_t)(bytes / rows));
        leaf = leaf_of(node, made, shape, node->dtype);
    }
    dropped(shape);
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

/* ---- axes in another order -------------------------------------------------------------------------------------- */

typedef struct { /* of the result */
    Size axes, extents[MOST_TURNED], strides[MOST_TURNED]; /* strides in the source, in bytes */
} Turned;

/* Where the next goes. */
static char *copy_turned(const Turned *turned, Size axis, const char *from, char *to, Size size)
{
    const Size extent = turned->extents[axis], stride = turned->strides[axis];
#define COPIES(bytes)                                             \
    case bytes:                                                   \
        for (Size k = 0; k < extent; k++, to += bytes)            \
            memcpy(to, from + k * stride, bytes);                 \
        break;
    switch (axis + 1 == turned->axes ? size : 0) {
        COPIES(1) COPIES(2) COPIES(4) COPIES(8) COPIES(16)
    default:
        for (Size k = 0; k < extent; k++)
            to = copy_turned(turned, axis + 1, from + k * stride, to, size);
    }
#undef COPIES
    return to;
}

/* The leaf of a value with its axes in another order, copied; NULL: the general way, unless there is an error. */
Object *turned_of(Node *node, const Known *known)
{
    if (known->op != helper.permute_op) return NULL;
    Object *way = python.PyTuple_GetItem(known->attrs, 0);
    Turned turned = {.axes = python.PyTuple_Size(known->shape)};
    const Size bytes = bytes_of(node, MOST_COPIED), axes = turned.axes;
    if (bytes <= 0 || axes < 1 || axes > MOST_TURNED || known->shape->type != helper.plain_tuple) return NULL;
    const Size size = bytes / elements_of(node->data), *extents = *(Size **)((char *)node->data + ARRAY_EXTENTS);
    if (size > 16 || size & (size - 1)) return NULL;
    for (Size k = 0; k < axes; k++) {
        const Size axis = python.PyLong_AsLongLong(python.PyTuple_GetItem(way, k));
        turned.extents[k] = extents[axis];
        turned.strides[k] = size;
        for (Size after = axis + 1; after < axes; after++)
            turned.strides[k] *= extents[after];
    }
    Object *made = empty_array(known->shape, node->dtype), *leaf = NULL;
    if (made) {
        copy_turned(&turned, 0, memory_of(node->data), memory_of(made), size);
        leaf = leaf_of(node, made, known->shape, node->dtype);
    }
    dropped(made);
    return leaf;
}

/* ---- greatest and least elements -------------------------------------------------------------------------------- */

/* Where the first greatest or least of numbers is; -1 where the general way is to say it: of what is no number, and of
 * zeros, whose sign is not told by comparing. */
static Size extreme_place(const char *memory, Object *dtype, Size count, bool least)
{
    const int type = dtype == helper.float_dtype    ? ESHKOL_SEARCH_FLOAT32
                     : dtype == helper.double_dtype ? ESHKOL_SEARCH_FLOAT64
                                                    : ESHKOL_SEARCH_INT64;
    int64_t at;
    EshkolExtreme extreme = {UINT64_MAX, 0, &at, memory, NULL, count, type, least}; /* too few for a pool */
    eshkol_order_extreme(&extreme, 0, 1);
    if (type == ESHKOL_SEARCH_INT64) return ((const int64_t *)memory)[at] != 0 ? at : -1;
    const double x = type == ESHKOL_SEARCH_FLOAT32 ? ((const float *)memory)[at] : ((const double *)memory)[at];
    return x == x && x != 0 ? at : -1;
}

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
    if (!is_at_hand(node) || is_looked_at()) return NULL;
    const char *memory = memory_of(node->data);
    const Size count = elements_of(node->data);
    if (count < 1 || count * size > FEW) return NULL;
    int64_t place = extreme_place(memory, dtype, count, least);
    if (place < 0) return NULL;
    Object *made = empty_array(known->shape, known->dtype), *leaf = NULL;
    if (made) {
        memcpy(memory_of(made), places ? (const char *)&place : memory + place * size, (size_t)(places ? 8 : size));
        leaf = leaf_of(node, made, known->shape, known->dtype);
    }
    dropped(made);
    return leaf;
}

static Method methods[] = {
    {"row_of_tensor", row, FAST_CALL, "A row of a tensor, as an index gives it."},
    {NULL, NULL, 0, NULL},
};

bool open_small(Object *module) { return add_methods(module, methods) == 0; }
