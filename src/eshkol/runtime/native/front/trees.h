/* Arguments and results that are put together, by their outlines (tensors/pytree.py): None where a leaf is, else
 * (tuple, ...), (list, ...) or (dict, keys, ...), with the outlines of what is in it. Outlines are told to be such,
 * and of no great depth, before they come here. */
#ifndef ESHKOL_FRONT_TREES_H
#define ESHKOL_FRONT_TREES_H

#include "front.h"

/* The leaves of a value, held, of which there are `count` already and room for so many; false: it is put together
 * otherwise. What is looked into is held meanwhile: a key's own comparison may run, and change it. */
static bool gathered(Object *outline, Object *value, Object **leaves, Size *count, Size room)
{
    if (!value) return false;
    if (outline == helper.none) {
        if (*count == room) return false;
        leaves[(*count)++] = held(value);
        return true;
    }
    Object *kind = python.PyTuple_GetItem(outline, 0);
    if (value->type != kind) return false;
    const bool is_dict = kind == helper.dict, is_list = kind == helper.list;
    const Size first = is_dict ? 2 : 1, size = python.PyTuple_Size(outline) - first;
    held(value);
    bool fits = size == (is_dict   ? python.PyDict_Size(value)
                         : is_list ? python.PyList_Size(value)
                                   : python.PyTuple_Size(value));
    for (Size k = 0; fits && k < size; k++) {
        Object *item = is_dict ? python.PyDict_GetItemWithError(
                                     value, python.PyTuple_GetItem(python.PyTuple_GetItem(outline, 1), k))
                       : is_list ? python.PyList_GetItem(value, k)
                                 : python.PyTuple_GetItem(value, k);
        fits = gathered(python.PyTuple_GetItem(outline, first + k), item, leaves, count, room);
    }
    dropped(value);
    return fits;
}

/* What an outline says, around the results from `at` on; new reference. */
static Object *put_together(Object *outline, Object *results, Size *at)
{
    if (outline == helper.none) {
        Object *leaf = python.PyList_GetItem(results, (*at)++);
        return leaf ? held(leaf) : NULL;
    }
    Object *kind = python.PyTuple_GetItem(outline, 0);
    const bool is_dict = kind == helper.dict, is_list = kind == helper.list;
    const Size first = is_dict ? 2 : 1, size = python.PyTuple_Size(outline) - first;
    Object *made = is_dict ? python.PyDict_New() : is_list ? python.PyList_New(size) : python.PyTuple_New(size);
    for (Size k = 0; made && k < size; k++) {
        Object *item = put_together(python.PyTuple_GetItem(outline, first + k), results, at);
        int status = -1;
        if (item && is_dict) {
            status = python.PyDict_SetItem(made, python.PyTuple_GetItem(python.PyTuple_GetItem(outline, 1), k), item);
            dropped(item);
        } else if (item)
            status = is_list ? python.PyList_SetItem(made, k, item) : python.PyTuple_SetItem(made, k, item);
        if (status) become(&made, NULL);
    }
    return made;
}

#endif
