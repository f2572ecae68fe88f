/* Opening the front door: functions of Python's and helpers by name, types and functions as a dict. See front.h. */
#include "front.h"

#include <string.h>

PythonAbi python;
Helpers helper;
Names name_of;

const char *const eshkol_front_functions[] = {
#define X(result, name, parameters) #name,
    FRONT_FUNCTIONS(X)
#undef X
    NULL,
};

static const char *const helper_names[] = {
#define X(name) #name,
    FRONT_HELPERS(X)
#undef X
};
enum { HELPERS = sizeof helper_names / sizeof *helper_names };

/* give(name, object): one of the helpers, which lives for ever. */
static Object *give(Object *self, Object *const *given, Size count)
{
    (void)self;
    const char *name = count == 2 ? python.PyUnicode_AsUTF8AndSize(given[0], NULL) : NULL;
    for (int k = 0; name && k < HELPERS; k++)
        if (!strcmp(name, helper_names[k])) {
            become((Object **)&helper + k, held(given[1]));
            return held(helper.none);
        }
    return python.PyErr_Occurred() ? NULL : complain("give(name, object): there is no such helper");
}

/* missing(): the names of helpers that were not given. */
static Object *missing(Object *self, Object *const *given, Size count)
{
    (void)self, (void)given, (void)count;
    Object *found = python.PyList_New(0);
    for (int k = 0; found && k < HELPERS; k++)
        if (!((Object **)&helper)[k]) {
            Object *name = python.PyUnicode_InternFromString(helper_names[k]);
            if (!name || python.PyList_Append(found, name)) become(&found, NULL);
            dropped(name);
        }
    return found;
}

int add_to(Object *module, const char *name, Object *made)
{
    Object *key = made ? python.PyUnicode_InternFromString(name) : NULL;
    int status = key ? python.PyDict_SetItem(module, key, made) : -1;
    dropped(key);
    dropped(made);
    return status;
}

int add_methods(Object *module, Method *methods)
{
    for (; methods->name; methods++)
        if (add_to(module, methods->name, python.PyCFunction_NewEx(methods, NULL, NULL))) return -1;
    return 0;
}

static Method methods[] = {
    {"give", give, FAST_CALL, "Give a helper by its name."},
    {"missing", missing, FAST_CALL, "The helpers that were not given."},
    {NULL, NULL, 0, NULL},
};

/* Fill a dict with types and functions; the helpers `none` and `type_error` come first, as all else needs them. */
int eshkol_front_open(void *const *functions, Object *module, Object *none, Object *type_error)
{
    memcpy(&python, functions, sizeof python);
    helper.none = held(none);
    helper.type_error = held(type_error);
#define X(name) name_of.name = python.PyUnicode_InternFromString(#name);
    FRONT_NAMES(X)
#undef X
    if (add_to(module, "LONGEST", python.PyLong_FromLongLong(LONGEST))) return -1;
    if (add_to(module, "COUNTED", python.PyLong_FromLongLong(COUNTED))) return -1;
    bool open = add_methods(module, methods) == 0 && open_nodes(module) && open_operators(module);
    open = open && open_structure(module) && open_plans(module);
    open = open && open_templates(module) && open_reading(module) && open_small(module) && open_updating(module);
    return open && open_blocks(module) && open_residents(module) && open_device_plans(module) && open_calls(module)
               ? 0
               : -1;
}
