/* Records: objects with named fields of a type of their own. define-record-type makes its procedures of these; compiled
 * code does what %record-ref and its like do where it can, and comes here for the errors. */
#include "value.h"

#include <stdio.h>

static RecordType *check_type(Context *context, const char *who, int position, Value type) {
    if (!esk_is(type, TAG_RECORD_TYPE)) esk_wrong_type(context, who, position, type, "a record type");
    return esk_pointer(type);
}

static const char *symbol_text(Value value, const char *otherwise) {
    return esk_is(value, TAG_SYMBOL) ? ((Symbol *)esk_pointer(value))->name : otherwise;
}

static int64_t field_count(const RecordType *type) { return ((Vector *)esk_pointer(type->fields))->length; }

static Value make_record_type(Context *context, Value name, Value fields) {
    const char *who = "%make-record-type";
    if (!esk_is(name, TAG_SYMBOL)) esk_wrong_type(context, who, 1, name, "a symbol");
    if (!esk_is(fields, TAG_VECTOR)) esk_wrong_type(context, who, 2, fields, "a vector of symbols");
    Vector *names = esk_pointer(fields);
    for (int64_t i = 0; i < names->length; i++)
        if (!esk_is(names->items[i], TAG_SYMBOL)) esk_wrong_type(context, who, 2, fields, "a vector of symbols");
    Value own = esk_make_vector(context, names->length, ESK_FALSE);
    memcpy(((Vector *)esk_pointer(own))->items, names->items, (size_t)names->length * sizeof(Value));
    RecordType *type = esk_allocate(context, sizeof *type, TAG_RECORD_TYPE);
    type->name = name;
    type->fields = own;
    return esk_object(type);
}

static Value make_record(Context *context, const Value *args, int64_t count) {
    RecordType *type = check_type(context, "%record", 1, args[0]);
    if (field_count(type) != count - 1)
        esk_fail(context, ERROR_ARITY, "%record", "a record of this type has another number of fields:", 2, args[0],
                 esk_fixnum(count - 1));
    Record *record = esk_allocate(context, sizeof *record + (size_t)(count - 1) * sizeof(Value), TAG_RECORD);
    record->head.count = (uint32_t)(count - 1);
    record->type = type;
    memcpy(record->fields, args + 1, (size_t)(count - 1) * sizeof(Value));
    return esk_object(record);
}

static Value is_record_of(Context *context, Value value, Value type) {
    RecordType *wanted = check_type(context, "%record?", 2, type);
    return esk_boolean(esk_is(value, TAG_RECORD) && ((Record *)esk_pointer(value))->type == wanted);
}

/* The field that an accessor or modifier named `who` means. */
static Value *find_field(Context *context, Value object, Value type, Value index, Value who) {
    RecordType *wanted = check_type(context, symbol_text(who, "%record-ref"), 2, type);
    if (!esk_is(object, TAG_RECORD) || ((Record *)esk_pointer(object))->type != wanted) {
        char expected[256];
        snprintf(expected, sizeof expected, "a record of type %.200s", symbol_text(wanted->name, "?"));
        esk_wrong_type(context, symbol_text(who, "%record-ref"), 1, object, expected);
    }
    Record *record = esk_pointer(object);
    if (!esk_is(index, TAG_FIXNUM)) esk_wrong_type(context, symbol_text(who, "%record-ref"), 3, index, "an index");
    if (index.bits >= record->head.count)
        esk_bad_index(context, symbol_text(who, "%record-ref"), 3, index, record->head.count);
    return &record->fields[index.bits];
}

static Value record_ref(Context *context, const Value *args, int64_t count) {
    (void)count;
    return *find_field(context, args[0], args[1], args[2], args[3]);
}

static Value record_set(Context *context, const Value *args, int64_t count) {
    (void)count;
    esk_store(context, find_field(context, args[0], args[1], args[2], args[4]), args[3]);
    return ESK_UNSPECIFIED;
}

static Value is_record(Context *context, Value value) { (void)context; return esk_boolean(esk_is(value, TAG_RECORD)); }
static Value is_record_type(Context *context, Value value) {
    (void)context;
    return esk_boolean(esk_is(value, TAG_RECORD_TYPE));
}

static Value record_type_descriptor(Context *context, Value record) {
    if (!esk_is(record, TAG_RECORD)) esk_wrong_type(context, "record-type-descriptor", 1, record, "a record");
    return esk_object(((Record *)esk_pointer(record))->type);
}

static Value record_type_name(Context *context, Value type) {
    return check_type(context, "record-type-name", 1, type)->name;
}

static Value record_type_fields(Context *context, Value type) {
    Vector *fields = esk_pointer(check_type(context, "record-type-fields", 1, type)->fields);
    return esk_list(context, fields->items, fields->length);
}

const Primitive esk_records_primitives[] = {
    ESK_PRIMITIVE_2("%make-record-type", "(%make-record-type name fields)", make_record_type,
                    "A new record type with the fields that a vector of symbols names."),
    ESK_PRIMITIVE_N("%record", "(%record type value ...)", 1, -1, make_record, "A record of the type."),
    ESK_PRIMITIVE_2("%record?", "(%record? object type)", is_record_of, "Whether the object is a record of this type."),
    ESK_PRIMITIVE_N("%record-ref", "(%record-ref object type index who)", 4, 4, record_ref,
                    "The value of a field; who, a symbol, is named in errors."),
    ESK_PRIMITIVE_N("%record-set!", "(%record-set! object type index value who)", 5, 5, record_set,
                    "Changes the value of a field; who, a symbol, is named in errors."),
    ESK_PRIMITIVE_1("record?", "(record? object)", is_record, "Whether the object is a record of any type."),
    ESK_PRIMITIVE_1("record-type?", "(record-type? object)", is_record_type, "Whether the object is a record type."),
    ESK_PRIMITIVE_1("record-type-descriptor", "(record-type-descriptor record)", record_type_descriptor,
                    "The type of the record."),
    ESK_PRIMITIVE_1("record-type-name", "(record-type-name type)", record_type_name, "Its name, a symbol."),
    ESK_PRIMITIVE_1("record-type-fields", "(record-type-fields type)", record_type_fields,
                    "The names of its fields, a list of symbols."),
    {0},
};
