/* Small things that belong to no other part: identity and booleans, boxes, multiple values, and what is known of a
 * procedure. */
#include "value.h"
#include "python.h"
#include "reader.h"

/* ---- identity, booleans ----------------------------------------------------------------------------------------- */

static Value eq(Context *context, Value a, Value b) { (void)context; return esk_boolean(esk_eq(a, b)); }
static Value not(Context *context, Value value) { (void)context; return esk_boolean(esk_is_false(value)); }
static Value is_boolean(Context *context, Value value) {
    (void)context;
    return esk_boolean(esk_is(value, TAG_BOOLEAN));
}
static Value void_value(Context *context, const Value *args, int64_t count) {
    (void)context, (void)args, (void)count;
    return ESK_UNSPECIFIED;
}

static Value booleans_equal(Context *context, const Value *args, int64_t count) {
    bool equal = true;
    for (int64_t i = 0; i < count; i++) {
        if (!esk_is(args[i], TAG_BOOLEAN)) esk_wrong_type(context, "boolean=?", (int)i + 1, args[i], "a boolean");
        equal &= esk_eq(args[0], args[i]);
    }
    return esk_boolean(equal);
}

static Value make_object(Context *context) { return esk_object(esk_allocate(context, sizeof(Object), TAG_IDENTITY)); }

/* ---- boxes and values ------------------------------------------------------------------------------------------- */

static Value results(Context *context, Value given) { (void)context; return given; }

static Value make_box(Context *context, Value value) { return esk_box(context, value); }
static Value is_box(Context *context, Value value) { (void)context; return esk_boolean(esk_is(value, TAG_BOX)); }

static Value unbox(Context *context, Value box) {
    if (!esk_is(box, TAG_BOX)) esk_wrong_type(context, "unbox", 1, box, "a box");
    return ((Box *)esk_pointer(box))->value;
}

static Value set_box(Context *context, Value box, Value value) {
    if (!esk_is(box, TAG_BOX)) esk_wrong_type(context, "set-box!", 1, box, "a box");
    esk_store(context, &((Box *)esk_pointer(box))->value, value);
    return ESK_UNSPECIFIED;
}

/* ---- procedures ------------------------------------------------------------------------------------------------- */

static const Procedure *known(Context *context, const char *who, Value procedure) {
    if (!esk_is(procedure, TAG_PROCEDURE)) esk_wrong_type(context, who, 1, procedure, "a procedure");
    return ((Closure *)esk_pointer(procedure))->procedure;
}

static Value text_or_false(Context *context, const char *text) {
    return text ? esk_string_utf8(context, text, (int64_t)strlen(text)) : ESK_FALSE;
}

static Value is_procedure(Context *context, Value value) {
    (void)context;
    return esk_boolean(esk_is(value, TAG_PROCEDURE));
}

static Value procedure_name(Context *context, Value procedure) {
    const char *name = known(context, "procedure-name", procedure)->name;
    Value of_library = esk_library_name(procedure);
    if (!esk_is_false(of_library)) return of_library;
    return name ? esk_symbol(context, name, (int64_t)strlen(name)) : ESK_FALSE;
}

static Value procedure_arity(Context *context, Value procedure) {
    const Procedure *what = known(context, "procedure-arity", procedure);
    return esk_cons(context, esk_fixnum(what->min), what->max < 0 ? ESK_FALSE : esk_fixnum(what->max));
}

static Value procedure_source(Context *context, Value procedure) {
    const char *source = known(context, "procedure-source", procedure)->source;
    return source ? esk_read_text(context, source, (int64_t)strlen(source)) : ESK_FALSE;
}

/* Behind the lambda expression stand the names in it that are no longer those of primitives, and then those that it has
 * from the program around it, if there are any. */
static Value names_behind(Context *context, const char *who, Value procedure, int64_t place) {
    const char *source = known(context, who, procedure)->source;
    Value data[3] = {ESK_NULL, ESK_NULL, ESK_NULL};
    int64_t found = source ? esk_read_all(context, source, (int64_t)strlen(source), data, 3, 0) : 0;
    return found > place ? data[place] : ESK_NULL;
}

static Value procedure_own_names(Context *context, Value procedure) {
    return names_behind(context, "%procedure-own-names", procedure, 1);
}

static Value procedure_outer_names(Context *context, Value procedure) {
    return names_behind(context, "%procedure-outer-names", procedure, 2);
}

static Value procedure_doc(Context *context, Value procedure) {
    const Procedure *what = known(context, "procedure-doc", procedure);
    Value name = esk_library_name(procedure);
    if (!esk_is_false(name)) return esk_tensor_call(context, "names:doc", &name, 1);
    return text_or_false(context, what->doc);
}

static Value procedure_signature(Context *context, Value procedure) {
    const Procedure *what = known(context, "procedure-signature", procedure);
    Value name = esk_library_name(procedure);
    if (!esk_is_false(name)) return esk_tensor_call(context, "names:signature", &name, 1);
    return text_or_false(context, what->signature);
}

static Value procedure_place(Context *context, Value procedure) {
    return text_or_false(context, known(context, "%procedure-place", procedure)->place);
}

static Value first_of_two(Context *context, Value object, Value proof) {
    (void)context;
    (void)proof;
    return object;
}

const Primitive esk_basics_primitives[] = {
    ESK_PRIMITIVE_2("eq?", "(eq? a b)", eq, "Whether both are the same object, or equal small numbers or characters."),
    ESK_PRIMITIVE_1("not", "(not object)", not, "#t for #f, and #f for everything else."),
    ESK_PRIMITIVE_1("boolean?", "(boolean? object)", is_boolean, "Whether the object is #t or #f."),
    ESK_PRIMITIVE_N("boolean=?", "(boolean=? boolean1 boolean2 ...)", 1, -1, booleans_equal,
                    "Whether all are #t or all are #f."),
    ESK_PRIMITIVE_N("void", "(void object ...)", 0, -1, void_value, "The unspecified value."),
    ESK_PRIMITIVE_0("make-object", "(make-object)", make_object, "A new object, the same as no other."),
    ESK_PRIMITIVE_1("make-box", "(make-box object)", make_box, "A box that holds the object."),
    ESK_PRIMITIVE_1("box", "(box object)", make_box, "A box that holds the object."),
    ESK_PRIMITIVE_1("box?", "(box? object)", is_box, "Whether the object is a box."),
    ESK_PRIMITIVE_1("unbox", "(unbox box)", unbox, "What the box holds."),
    ESK_PRIMITIVE_2("set-box!", "(set-box! box object)", set_box, "Makes the box hold the object."),
    ESK_PRIMITIVE_N("values", "(values object ...)", 0, -1, esk_values, "Returns all of its arguments as values."),
    ESK_PRIMITIVE_1("%results", "(%results object)", results,
                    "Its argument, which may be several values: a variable keeps them together."),
    ESK_PRIMITIVE_N("%proof", "(%proof proposition object ...)", 1, -1, void_value,
                    "What the form proof is until the checker of types has looked at it, and nothing afterwards."),
    ESK_PRIMITIVE_2("%cast-shape", "(%cast-shape object proof)", first_of_two,
                    "What the form cast-shape is until the checker of types has looked at it; the object afterwards."),
    ESK_PRIMITIVE_1("procedure?", "(procedure? object)", is_procedure, "Whether the object is a procedure."),
    ESK_PRIMITIVE_1("procedure-name", "(procedure-name procedure)", procedure_name,
                    "The name that the procedure was defined with, a symbol, or #f."),
    ESK_PRIMITIVE_1("procedure-arity", "(procedure-arity procedure)", procedure_arity,
                    "A pair: the least number of arguments, and the largest or #f where there is none."),
    ESK_PRIMITIVE_1("procedure-source", "(procedure-source procedure)", procedure_source,
                    "The lambda expression that made the procedure, as data, or #f."),
    ESK_PRIMITIVE_1("%procedure-own-names", "(%procedure-own-names procedure)", procedure_own_names,
                    "The names of primitives that mean something else in its source, a list."),
    ESK_PRIMITIVE_1("%procedure-outer-names", "(%procedure-outer-names procedure)", procedure_outer_names,
                    "The names in its source that are those of the program around it, a list."),
    ESK_PRIMITIVE_1("procedure-doc", "(procedure-doc procedure)", procedure_doc, "Its doc string, or #f."),
    ESK_PRIMITIVE_1("procedure-signature", "(procedure-signature procedure)", procedure_signature,
                    "How it is called, a string like \"(vector-ref vector k)\", or #f."),
    ESK_PRIMITIVE_1("%procedure-place", "(%procedure-place procedure)", procedure_place,
                    "Where it was written, \"file:line:column\", or #f."),
    {0},
};
