/* Hash tables. Like Python's dictionaries they remember the order of insertion: `entries` is a vector of keys and
 * values in that order, `slots` an array with linear probing that says where an entry stands, and 32 bits of its hash.
 *
 * A deleted entry leaves a hole among the entries until they are full; then the holes are closed, or the table is built
 * anew, larger or smaller. Deleting therefore moves nothing, and a walk by index may delete what it meets. New parts
 * are whole before the table takes them: if there is no memory for them, it stays as it was.
 *
 * The library builds SRFI 69 on these primitives. Tables of kind `custom` know neither hash nor equivalence: it asks
 * for candidates by a hash that it has computed (%table-candidate) and compares the keys itself.
 */
#include "data.h"
#include "differential.h"
#include "threads.h"

#define KINDS(X) \
    X(EQ, "eq") X(EQV, "eqv") X(EQUAL, "equal") X(STRING, "string") X(STRING_CI, "string-ci") X(CUSTOM, "custom")
enum Kind {
#define X(name, word) KIND_##name,
    KINDS(X)
#undef X
};

static const char *const kind_words[] = {
#define X(name, word) word,
    KINDS(X)
#undef X
};
enum { KIND_COUNT = sizeof kind_words / sizeof *kind_words };

typedef struct {
    uint32_t entry; /* plus one; 0: free */
    uint32_t hash;
} Slot;

typedef struct {
    Value key, value; /* a hole: the key is HOLE */
} TableEntry;

typedef struct {
    Object head;    /* count: the four values; flags: FLAG_DIFFERENTIATED */
    Value entries;  /* vector of keys and values by turns, or #f before the first insertion */
    Value slots;    /* bytevector */
    Value extra[2]; /* the library's: equivalence and hash procedure of a custom table */
    uint64_t kind;
    uint32_t used;  /* entries, with the holes */
    uint32_t live;  /* entries, without them */
    uint32_t room;  /* for entries */
    uint32_t mask;  /* number of slots - 1 */
} Table;

enum { FIRST_SLOTS = 8, TABLE_VALUES = 4 };
enum { FLAG_DIFFERENTIATED = 64 }; /* a key is a differentiated number: found as its value, but not eq? to it */
#define MOST_SLOTS ((uint64_t)1 << 32)
#define HOLE esk_special(HOLE_NUMBER)
enum { HOLE_NUMBER = 0x401E }; /* no value of the language */

static inline TableEntry *entries_of(const Table *t) {
    return (TableEntry *)((Vector *)esk_pointer(t->entries))->items;
}
static inline Slot *slots_of(const Table *t) { return (Slot *)((Bytevector *)esk_pointer(t->slots))->bytes; }
static inline bool is_hole(const TableEntry *e) { return esk_is(e->key, TAG_SPECIAL) && e->key.bits == HOLE_NUMBER; }

/* Of so many slots at most five eighths are taken. */
static inline uint64_t room_of(uint64_t slots) { return slots / 8 * 5; }

static Table *need_table(Context *c, const char *who, Value v) {
    if (!esk_is(v, TAG_TABLE)) esk_wrong_type(c, who, 1, v, "a hash table");
    return esk_pointer(v);
}

/* ---- keys ------------------------------------------------------------------------------------------------------- */

/* Whether equivalence of this kind is eq? for the key. */
static inline bool is_plain(uint64_t kind, Value key) {
    enum {
        NUMBERS = 1u << TAG_FLONUM | 1u << TAG_BIGNUM | 1u << TAG_RATIONAL | 1u << TAG_COMPLEX,
        CONTENTS = 1u << TAG_STRING | 1u << TAG_PAIR | 1u << TAG_VECTOR | 1u << TAG_BYTEVECTOR | 1u << TAG_TENSOR
    };
    uint32_t others = kind == KIND_EQV ? NUMBERS : NUMBERS | CONTENTS;
    return kind == KIND_EQ || (kind <= KIND_EQUAL && !(others >> key.tag & 1));
}

/* What decides about the key: for eqv? and equal?, of a differentiated number its value. */
static inline Value essence(uint64_t kind, Value key) {
    return is_differentiated(key) && (kind == KIND_EQV || kind == KIND_EQUAL) ? undifferentiated(key) : key;
}

static inline uint32_t hash_of(Context *c, const char *who, uint64_t kind, Value key) {
    key = essence(kind, key);
    if (is_plain(kind, key)) return (uint32_t)(hash_bits(key) >> 32);
    switch (kind) {
    case KIND_EQV:
        return (uint32_t)(esk_number_hash(key) >> 32);
    case KIND_EQUAL:
        if (esk_is(key, TAG_STRING)) return (uint32_t)(esk_string_hash(esk_pointer(key)) >> 32);
        return (uint32_t)(esk_equal_hash(c, key) >> 32);
    case KIND_STRING:
        return (uint32_t)(esk_string_hash(need_string(c, who, 2, key)) >> 32);
    case KIND_STRING_CI:
        return (uint32_t)(esk_string_ci_hash(need_string(c, who, 2, key)) >> 32);
    default:
        esk_fail(c, ERROR_TYPE, who, "a table with an equivalence of its own is not for this procedure", 0);
    }
}

static bool same_key(Context *c, uint64_t kind, Value a, Value b) {
    if (esk_eq(a, b)) return true;
    switch (kind) {
    case KIND_EQV:
        return esk_eqv(a, b);
    case KIND_STRING_CI:
        return !esk_string_compare_ci(esk_pointer(a), esk_pointer(b));
    default:
        if (esk_is(a, TAG_STRING))
            return esk_is(b, TAG_STRING) && esk_strings_equal(esk_pointer(a), esk_pointer(b));
        return esk_equal(c, a, b);
    }
}

/* ---- finding, adding, removing ---------------------------------------------------------------------------------- */

/* The slot of the key, or -1. */
static int64_t find(Context *c, const Table *t, Value key, uint32_t hash) {
    if (!t->live) return -1;
    const Slot *slots = slots_of(t);
    const TableEntry *entries = entries_of(t);
    uint64_t kind = t->kind;
    uint32_t mask = t->mask, i = hash & mask;
    key = essence(kind, key);
    if (is_plain(kind, key) && !(t->head.flags & FLAG_DIFFERENTIATED)) {
        for (Slot slot; (slot = slots[i]).entry; i = (i + 1) & mask)
            if (slot.hash == hash && esk_eq(entries[slot.entry - 1].key, key)) return i;
    } else {
        for (Slot slot; (slot = slots[i]).entry; i = (i + 1) & mask) {
            if (slot.hash != hash || !same_key(c, kind, entries[slot.entry - 1].key, key)) continue;
            /* the host compares tensors, and may have changed the table before it answered */
            if (t->live && slots == slots_of(t) && slots[i].entry == slot.entry) return i;
            return find(c, t, key, hash);
        }
    }
    return -1;
}

static inline void take_slot(Slot *slots, uint32_t mask, uint32_t hash, uint32_t entry) {
    uint32_t i = hash & mask;
    while (slots[i].entry) i = (i + 1) & mask;
    slots[i] = (Slot){entry + 1, hash};
}

static Value scratch_numbers(Context *c, uint32_t count) {
    return esk_make_bytevector(c, (int64_t)(count * sizeof(uint32_t)), 0);
}

/* The entries without holes, written to `to` (which may be their own place); where each went goes to `moved`. */
static uint32_t close_holes(const Table *t, TableEntry *to, uint32_t *moved) {
    const TableEntry *from = entries_of(t);
    uint32_t used = 0;
    for (uint32_t i = 0; i < t->used; i++) {
        moved[i] = used;
        if (!is_hole(&from[i])) to[used++] = from[i];
    }
    return used;
}

/* Room for new entries in a table of the right size: its holes are closed. */
static void compact(Context *c, Table *t) {
    Value memory = scratch_numbers(c, t->used);
    uint32_t *moved = (uint32_t *)((Bytevector *)esk_pointer(memory))->bytes;
    TableEntry *entries = entries_of(t);
    Slot *slots = slots_of(t);
    uint32_t used = close_holes(t, entries, moved);
    esk_all_written(c, (Value *)entries, 2 * (int64_t)used);
    for (uint32_t i = used; i < t->used; i++) entries[i] = (TableEntry){HOLE, HOLE};
    for (uint64_t i = 0; i <= t->mask; i++)
        if (slots[i].entry) slots[i].entry = moved[slots[i].entry - 1] + 1;
    t->used = used;
}

/* Parts with so many slots that hold the live entries of `from`, given to `to` (which may be the same table). */
static void build(Context *c, const Table *from, Table *to, uint64_t slot_count) {
    if (slot_count > MOST_SLOTS) esk_fail(c, ERROR_MEMORY, "hash-table-set!", "a hash table cannot be so large", 0);
    uint64_t room = room_of(slot_count);
    Value entries = esk_make_vector(c, (int64_t)(2 * room), HOLE);
    Value slots = esk_make_bytevector(c, (int64_t)(slot_count * sizeof(Slot)), 0);
    uint32_t used = from->live, mask = (uint32_t)(slot_count - 1);
    if (used) {
        const Slot *old_slots = slots_of(from);
        TableEntry *new = (TableEntry *)((Vector *)esk_pointer(entries))->items;
        Slot *new_slots = (Slot *)((Bytevector *)esk_pointer(slots))->bytes;
        uint32_t *moved = NULL;
        if (used < from->used) {
            Value memory = scratch_numbers(c, from->used);
            moved = (uint32_t *)((Bytevector *)esk_pointer(memory))->bytes;
            close_holes(from, new, moved);
        } else {
            memcpy(new, entries_of(from), used * sizeof(TableEntry));
        }
        for (uint64_t i = 0; i <= from->mask; i++) { /* in this order the new slots are taken almost in order, too */
            uint32_t entry = old_slots[i].entry;
            if (entry) take_slot(new_slots, mask, old_slots[i].hash, moved ? moved[entry - 1] : entry - 1);
        }
        esk_all_written(c, (Value *)new, 2 * (int64_t)used);
    }
    esk_store(c, &to->entries, entries);
    esk_store(c, &to->slots, slots);
    to->used = to->live = used;
    to->room = (uint32_t)room;
    to->mask = mask;
}

static uint64_t slots_for(uint64_t live) {
    uint64_t slots = FIRST_SLOTS;
    while (room_of(slots) < live + live / 2 + live / 8 + 1) slots *= 2;
    return slots;
}

static void make_room(Context *c, Table *t) {
    uint64_t slots = slots_for(t->live);
    if (t->room && slots == (uint64_t)t->mask + 1) {
        compact(c, t);
    } else {
        build(c, t, t, slots);
    }
}

static inline void add(Context *c, Table *t, Value key, uint32_t hash, Value value) {
    if (t->used == t->room) make_room(c, t);
    if (is_differentiated(key) && (t->kind == KIND_EQV || t->kind == KIND_EQUAL)) t->head.flags |= FLAG_DIFFERENTIATED;
    TableEntry *entry = &entries_of(t)[t->used];
    esk_store(c, &entry->key, key);
    esk_store(c, &entry->value, value);
    take_slot(slots_of(t), t->mask, hash, t->used++);
    t->live++;
}

static void remove_slot(Table *t, uint32_t gap) {
    Slot *slots = slots_of(t);
    TableEntry *entries = entries_of(t);
    entries[slots[gap].entry - 1] = (TableEntry){HOLE, HOLE};
    t->live--;
    while (t->used && is_hole(&entries[t->used - 1])) t->used--;
    /* no marks of deletion: what follows moves up, as far as its hash allows */
    uint32_t mask = t->mask;
    for (uint32_t i = (gap + 1) & mask; slots[i].entry; i = (i + 1) & mask) {
        if (((i - slots[i].hash) & mask) >= ((i - gap) & mask)) {
            slots[gap] = slots[i];
            gap = i;
        }
    }
    slots[gap] = (Slot){0, 0};
}

static Value new_table(Context *c, uint64_t kind) {
    Table *t = esk_allocate(c, sizeof(Table), TAG_TABLE);
    t->head.count = TABLE_VALUES;
    t->entries = t->slots = t->extra[0] = t->extra[1] = ESK_FALSE;
    t->kind = kind;
    t->used = t->live = t->room = t->mask = 0;
    return esk_object(t);
}

/* ---- several threads -------------------------------------------------------------------------------------------- */

/* One thread at a time uses a table; where it is none, that is an error anyway. */
static bool hold(Context *c, Value table) {
    if (!c->heap->several || !esk_is(table, TAG_TABLE)) return false;
    esk_hold_slowly(c, esk_pointer(table));
    return true;
}

static Value released(Context *c, bool held, Value result) {
    if (held) esk_release(c);
    return result;
}

/* ---- primitives ------------------------------------------------------------------------------------------------- */

static Value make_table(Context *c, const Value *args, int64_t count) {
    Value kind = args[0];
    if (!esk_is_false(args[1]))
        esk_fail(c, ERROR_USER, "make-hash-table", "there are no weak hash tables; this one would keep its keys", 0);
    int64_t size = count > 2 ? need_size(c, "make-hash-table", 3, args[2]) : 0;
    for (int i = 0; esk_is(kind, TAG_SYMBOL) && i < KIND_COUNT; i++) {
        if (strcmp(((Symbol *)esk_pointer(kind))->name, kind_words[i])) continue;
        Value table = new_table(c, (uint64_t)i);
        if (size) build(c, esk_pointer(table), esk_pointer(table), slots_for((uint64_t)size));
        return table;
    }
    esk_wrong_type(c, "make-hash-table", 1, kind, "one of eq, eqv, equal, string, string-ci and custom");
}

static Value table_p(Context *c, Value v) {
    (void)c;
    return esk_boolean(esk_is(v, TAG_TABLE));
}

static Value table_kind(Context *c, Value v) {
    const char *word = kind_words[need_table(c, "hash-table-kind", v)->kind];
    return esk_symbol(c, word, (int64_t)strlen(word));
}

static Value table_ref(Context *c, const Value *args, int64_t count) {
    (void)count;
    Table *t = need_table(c, "hash-table-ref", args[0]);
    int64_t slot = find(c, t, args[1], hash_of(c, "hash-table-ref", t->kind, args[1]));
    return slot < 0 ? args[2] : entries_of(t)[slots_of(t)[slot].entry - 1].value;
}

static Value table_set(Context *c, const Value *args, int64_t count) {
    (void)count;
    Table *t = need_table(c, "hash-table-set!", args[0]);
    uint32_t hash = hash_of(c, "hash-table-set!", t->kind, args[1]);
    int64_t slot = find(c, t, args[1], hash);
    if (slot < 0) {
        add(c, t, args[1], hash, args[2]);
    } else {
        esk_store(c, &entries_of(t)[slots_of(t)[slot].entry - 1].value, args[2]);
    }
    return ESK_UNSPECIFIED;
}

static Value table_delete(Context *c, Value table, Value key) {
    Table *t = need_table(c, "hash-table-delete!", table);
    int64_t slot = find(c, t, key, hash_of(c, "hash-table-delete!", t->kind, key));
    if (slot >= 0) remove_slot(t, (uint32_t)slot);
    return esk_boolean(slot >= 0);
}

static Value table_contains(Context *c, Value table, Value key) {
    Table *t = need_table(c, "hash-table-contains?", table);
    return esk_boolean(find(c, t, key, hash_of(c, "hash-table-contains?", t->kind, key)) >= 0);
}

static Value table_count(Context *c, Value v) { return esk_fixnum(need_table(c, "hash-table-size", v)->live); }

static Value table_clear(Context *c, Value v) {
    Table *t = need_table(c, "hash-table-clear!", v);
    t->entries = t->slots = ESK_FALSE;
    t->used = t->live = t->room = t->mask = 0;
    return ESK_UNSPECIFIED;
}

static Value table_copy(Context *c, Value v) {
    Table *from = need_table(c, "hash-table-copy", v);
    Value copy = new_table(c, from->kind);
    Table *to = esk_pointer(copy);
    to->extra[0] = from->extra[0];
    to->extra[1] = from->extra[1];
    to->head.flags |= from->head.flags & FLAG_DIFFERENTIATED;
    if (from->live) build(c, from, to, slots_for(from->live));
    return copy;
}

/* ---- for the conversions from and to Python --------------------------------------------------------------------- */

Value esk_new_equal_table(Context *c) { return new_table(c, KIND_EQUAL); }

void esk_table_put(Context *c, Value table, Value key, Value value) {
    Value args[] = {table, key, value};
    bool held = hold(c, table);
    released(c, held, table_set(c, args, 3));
}

int64_t esk_table_size(Value table) { return ((Table *)esk_pointer(table))->live; }

bool esk_table_next(Value table, int64_t *index, Value *key, Value *value) {
    const Table *t = esk_pointer(table);
    while (*index < t->used && is_hole(&entries_of(t)[*index])) ++*index;
    if (*index >= t->used) return false;
    *key = entries_of(t)[*index].key;
    *value = entries_of(t)[(*index)++].value;
    return true;
}

/* ---- walking ---------------------------------------------------------------------------------------------------- */

enum { WALK_KEYS, WALK_VALUES, WALK_BOTH };

/* From the back, so that the list comes in the order of insertion. */
static Value as_list(Context *c, const char *who, Value v, int what) {
    Table *t = need_table(c, who, v);
    Value list = ESK_NULL;
    for (uint32_t i = t->used; i > 0; i--) {
        TableEntry *e = &entries_of(t)[i - 1];
        if (is_hole(e)) continue;
        Value item = what == WALK_KEYS ? e->key : what == WALK_VALUES ? e->value : esk_cons(c, e->key, e->value);
        list = esk_cons(c, item, list);
    }
    return list;
}

static Value table_keys(Context *c, Value v) { return as_list(c, "hash-table-keys", v, WALK_KEYS); }
static Value table_values(Context *c, Value v) { return as_list(c, "hash-table-values", v, WALK_VALUES); }
static Value table_to_alist(Context *c, Value v) { return as_list(c, "hash-table->alist", v, WALK_BOTH); }

static Value entry_limit(Context *c, Value v) { return esk_fixnum(need_table(c, "hash-table-walk", v)->used); }

static Value entry_next(Context *c, Value v, Value index) {
    Table *t = need_table(c, "hash-table-walk", v);
    uint64_t i = (uint64_t)need_index(c, "hash-table-walk", 2, index, INT64_MAX);
    while (i < t->used && is_hole(&entries_of(t)[i])) i++;
    return i < t->used ? esk_fixnum((int64_t)i) : ESK_FALSE;
}

static TableEntry *need_entry(Context *c, Value v, Value index) {
    Table *t = need_table(c, "hash-table-walk", v);
    int64_t i = need_index(c, "hash-table-walk", 2, index, t->used);
    TableEntry *e = &entries_of(t)[i];
    if (is_hole(e)) esk_fail(c, ERROR_RANGE, "hash-table-walk", "the entry was deleted in the meantime", 1, index);
    return e;
}

static Value entry_key(Context *c, Value v, Value index) { return need_entry(c, v, index)->key; }
static Value entry_value(Context *c, Value v, Value index) { return need_entry(c, v, index)->value; }

static Value entry_set(Context *c, const Value *args, int64_t count) {
    (void)count;
    esk_store(c, &need_entry(c, args[0], args[1])->value, args[2]);
    return ESK_UNSPECIFIED;
}

/* ---- tables whose equivalence the library knows ----------------------------------------------------------------- */

static uint32_t custom_hash(Context *c, Value hash) {
    if (!esk_is(hash, TAG_FIXNUM) && !esk_is(hash, TAG_BIGNUM))
        esk_wrong_type(c, "hash-table-ref", 2, hash, "a hash function whose result is an exact integer");
    return (uint32_t)(esk_eqv_hash(hash) >> 32);
}

/* The slot of an entry, or -1 where the entry has another hash. */
static int64_t slot_of_entry(const Table *t, uint32_t hash, uint64_t entry) {
    if (!t->live) return -1;
    const Slot *slots = slots_of(t);
    uint32_t i = hash & t->mask;
    while (slots[i].entry && slots[i].entry != entry + 1) i = (i + 1) & t->mask;
    return slots[i].entry ? (int64_t)i : -1;
}

static Value table_candidate(Context *c, const Value *args, int64_t count) {
    (void)count;
    Table *t = need_table(c, "hash-table-ref", args[0]);
    uint32_t hash = custom_hash(c, args[1]);
    if (!t->live) return ESK_FALSE;
    uint32_t i = hash & t->mask;
    if (!esk_is_false(args[2])) {
        int64_t slot = slot_of_entry(t, hash, (uint64_t)need_index(c, "hash-table-ref", 3, args[2], INT64_MAX));
        if (slot < 0) return ESK_FALSE;
        i = ((uint32_t)slot + 1) & t->mask;
    }
    const Slot *slots = slots_of(t);
    for (; slots[i].entry; i = (i + 1) & t->mask)
        if (slots[i].hash == hash) return esk_fixnum((int64_t)slots[i].entry - 1);
    return ESK_FALSE;
}

static Value table_add(Context *c, const Value *args, int64_t count) {
    (void)count;
    Table *t = need_table(c, "hash-table-set!", args[0]);
    if (t->kind != KIND_CUSTOM) esk_wrong_type(c, "hash-table-set!", 1, args[0], "a table of kind custom");
    add(c, t, args[2], custom_hash(c, args[1]), args[3]);
    return ESK_UNSPECIFIED;
}

static Value table_remove(Context *c, const Value *args, int64_t count) {
    (void)count;
    Table *t = need_table(c, "hash-table-delete!", args[0]);
    need_entry(c, args[0], args[2]);
    int64_t slot = slot_of_entry(t, custom_hash(c, args[1]), args[2].bits);
    if (slot >= 0) remove_slot(t, (uint32_t)slot);
    return esk_boolean(slot >= 0);
}

static Value table_extra(Context *c, Value v, Value which) {
    return need_table(c, "hash-table-equivalence-function", v)
        ->extra[need_index(c, "hash-table-equivalence-function", 2, which, 2)];
}

static Value set_table_extra(Context *c, const Value *args, int64_t count) {
    (void)count;
    Table *t = need_table(c, "make-hash-table", args[0]);
    esk_store(c, &t->extra[need_index(c, "make-hash-table", 2, args[1], 2)], args[2]);
    return ESK_UNSPECIFIED;
}

/* ---- the primitives, for several threads ------------------------------------------------------------------ */

#define HELD_1(name)                                   \
    static Value held_##name(Context *c, Value table) { \
        bool held = hold(c, table);                    \
        return released(c, held, name(c, table));      \
    }
#define HELD_2(name)                                                \
    static Value held_##name(Context *c, Value table, Value other) { \
        bool held = hold(c, table);                                 \
        return released(c, held, name(c, table, other));            \
    }
#define HELD_N(name)                                                          \
    static Value held_##name(Context *c, const Value *args, int64_t count) { \
        bool held = hold(c, args[0]);                                         \
        return released(c, held, name(c, args, count));                       \
    }
HELD_1(table_count) HELD_1(table_clear) HELD_1(table_copy) HELD_1(table_keys)
HELD_1(table_values) HELD_1(table_to_alist) HELD_1(entry_limit)
HELD_2(table_delete) HELD_2(table_contains) HELD_2(entry_next) HELD_2(entry_key) HELD_2(entry_value) HELD_2(table_extra)
HELD_N(table_ref) HELD_N(table_set) HELD_N(entry_set) HELD_N(table_candidate) HELD_N(table_add)
HELD_N(table_remove) HELD_N(set_table_extra)

const Primitive esk_tables_primitives[] = {
    ESK_PRIMITIVE_1("hash-table?", "(hash-table? object)", table_p, "Whether object is a hash table."),
    ESK_PRIMITIVE_N("%make-table", "(%make-table kind weak? [size])", 2, 3, make_table,
                    "A new table of the kind eq, eqv, equal, string, string-ci or custom, with room for size entries."),
    ESK_PRIMITIVE_1("%table-kind", "(%table-kind table)", table_kind, "The kind of table, a symbol."),
    ESK_PRIMITIVE_N("%table-ref", "(%table-ref table key default)", 3, 3, held_table_ref,
                    "The value of key in table, or default."),
    ESK_PRIMITIVE_N("%table-set!", "(%table-set! table key value)", 3, 3, held_table_set,
                    "Make value the value of key."),
    ESK_PRIMITIVE_2("%table-delete!", "(%table-delete! table key)", held_table_delete,
                    "Remove key and its value; whether it was there."),
    ESK_PRIMITIVE_2("%table-contains?", "(%table-contains? table key)", held_table_contains,
                    "Whether key is in table."),
    ESK_PRIMITIVE_1("%table-count", "(%table-count table)", held_table_count, "How many keys are in table."),
    ESK_PRIMITIVE_1("%table-clear!", "(%table-clear! table)", held_table_clear, "Remove all keys."),
    ESK_PRIMITIVE_1("%table-copy", "(%table-copy table)", held_table_copy,
                    "A new table with the same keys and values."),
    ESK_PRIMITIVE_1("%table-keys", "(%table-keys table)", held_table_keys,
                    "The list of keys, in the order of insertion."),
    ESK_PRIMITIVE_1("%table-values", "(%table-values table)", held_table_values,
                    "The list of values, in the order of keys."),
    ESK_PRIMITIVE_1("%table->alist", "(%table->alist table)", held_table_to_alist,
                    "The list of pairs of key and value."),
    ESK_PRIMITIVE_1("%table-entry-limit", "(%table-entry-limit table)", held_entry_limit,
                    "The indices of entries are below this."),
    ESK_PRIMITIVE_2("%table-entry-next", "(%table-entry-next table index)", held_entry_next,
                    "The index of the first entry from index on, or #f."),
    ESK_PRIMITIVE_2("%table-entry-key", "(%table-entry-key table index)", held_entry_key, "The key of an entry."),
    ESK_PRIMITIVE_2("%table-entry-value", "(%table-entry-value table index)", held_entry_value,
                    "The value of an entry."),
    ESK_PRIMITIVE_N("%table-entry-set!", "(%table-entry-set! table index value)", 3, 3, held_entry_set,
                    "Make value the value of an entry."),
    ESK_PRIMITIVE_N("%table-candidate", "(%table-candidate table hash after)", 3, 3, held_table_candidate,
                    "The index of an entry with this hash; of the next one, where after is such an index and not #f."),
    ESK_PRIMITIVE_N("%table-add!", "(%table-add! table hash key value)", 4, 4, held_table_add,
                    "Add an entry to a custom table that does not have the key."),
    ESK_PRIMITIVE_N("%table-remove!", "(%table-remove! table hash index)", 3, 3, held_table_remove,
                    "Remove an entry of a custom table; whether it had this hash."),
    ESK_PRIMITIVE_2("%table-extra", "(%table-extra table k)", held_table_extra,
                    "What the library keeps with table; k: 0 or 1."),
    ESK_PRIMITIVE_N("%set-table-extra!", "(%set-table-extra! table k object)", 3, 3, held_set_table_extra,
                    "Keep object with table; k: 0 or 1."),
    {0}};
