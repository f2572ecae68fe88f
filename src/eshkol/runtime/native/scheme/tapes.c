/* Reverse tapes: recording, the backward sweep, and what the library asks of a tape.
 *
 * In: operations on nodes (duals.c) as entries. Out: adjoints, how much an output changes with each entry. They are
 * doubles while everything is real and values otherwise. The sweep goes over the chunks from the last to the first; it
 * stops at entries with a rule of their own (%tape-custom), which the library applies, and is then resumed.
 */
#include "numbers.h"
#include "differential.h"

enum { FIRST_ENTRIES = 16, CHUNK_BYTES = 65536 };

static const uint32_t sizes[] = {sizeof(RealEntry), sizeof(ValueEntry), sizeof(TracedEntry)};
static const uint32_t values_of_entry[] = {0, sizeof(ValueEntry) / sizeof(Value), sizeof(TracedEntry) / sizeof(Value)};

/* In place of an adjoint: nothing has flowed there. A NaN that no computation gives. */
#define UNREACHED UINT64_C(0x7FF8E5C01DEAD001)

static bool is_custom(const uint32_t parents[2]) { return !parents[0] && parents[1]; }

/* ---- recording -------------------------------------------------------------------------------------------------- */

void tape_reserve(Context *context, Tape *tape, uint32_t form) {
    enum { HEAD = offsetof(Chunk, entries) };
    uint32_t before = tape->room - tape->first, most = (CHUNK_BYTES - HEAD) / sizes[form];
    uint32_t room = before < FIRST_ENTRIES ? FIRST_ENTRIES : before > most / 2 ? most : before * 2;
    if (room > UINT32_MAX - tape->used) esk_fail(context, ERROR_MEMORY, NULL, "the tape of a derivative is full", 0);
    Chunk *chunk = esk_allocate(context, HEAD + (size_t)room * sizes[form], TAG_FOREIGN);
    chunk->head.flags = (uint8_t)form;
    chunk->head.count = CHUNK_VALUES;
    chunk->previous = tape->chunk;
    chunk->first = esk_fixnum(tape->used);
    esk_store(context, &tape->chunk, esk_object(chunk));
    tape->first = tape->used;
    tape->room = tape->used + room;
    tape->form = form;
    tape->bytes += HEAD + (int64_t)room * sizes[form];
}

Value tape_push(Context *context, Tape *tape, const char *name, Value primal, const Value factors[2],
                const uint32_t parents[2]) {
    bool real = factors[0].tag == TAG_FLONUM && (!parents[1] || factors[1].tag == TAG_FLONUM);
    uint32_t form = tape->traced ? ENTRIES_TRACED : real ? tape->form : ENTRIES_VALUES;
    Value place = tape->traced ? esk_trace(context, 32) : ESK_FALSE;
    if (tape->used == tape->room || tape->form != form) tape_reserve(context, tape, form);
    TapeNode *node = tape_node(context, tape, primal);
    Chunk *chunk = esk_pointer(tape->chunk);
    uint32_t at = tape->used - tape->first;
    if (form == ENTRIES_REAL) {
        double second = parents[1] ? esk_double(factors[1]) : 0.0;
        chunk->entries.real[at] = (RealEntry){{esk_double(factors[0]), second}, {parents[0], parents[1]}};
    } else {
        Value both = esk_make(TAG_FIXNUM, (uint64_t)parents[1] << 32 | parents[0]);
        ValueEntry entry = {{factors[0], factors[1]}, both};
        if (form == ENTRIES_VALUES) chunk->entries.values[at] = entry;
        else chunk->entries.traced[at] = (TracedEntry){entry, primal, esk_make(TAG_FIXNUM, (uintptr_t)name), place};
        chunk->head.count = CHUNK_VALUES + (at + 1) * values_of_entry[form];
        esk_written(context, chunk);
    }
    tape->used++;
    return esk_object(node);
}

/* An entry without parents that have factors. */
static Value push_source(Context *context, Tape *tape, const char *name, Value primal, bool custom) {
    Value factors[2] = {esk_flonum(0.0), esk_flonum(0.0)};
    return tape_push(context, tape, name, primal, factors, (uint32_t[2]){0, custom});
}

typedef struct { Value factors[2]; uint32_t parents[2]; } Entry;

static Entry entry_at(const Chunk *chunk, uint32_t at) {
    if (chunk->head.flags == ENTRIES_REAL) {
        RealEntry entry = chunk->entries.real[at];
        return (Entry){{esk_flonum(entry.factors[0]), esk_flonum(entry.factors[1])},
                       {entry.parents[0], entry.parents[1]}};
    }
    const ValueEntry *entry =
        chunk->head.flags == ENTRIES_VALUES ? &chunk->entries.values[at] : &chunk->entries.traced[at].entry;
    uint64_t parents = entry->parents.bits;
    return (Entry){{entry->factors[0], entry->factors[1]}, {(uint32_t)parents, (uint32_t)(parents >> 32)}};
}

/* The chunk of an entry, from this one backwards. */
static Value chunk_of(Value chunk, uint32_t index) {
    while (esk_integer(((Chunk *)esk_pointer(chunk))->first) > index) chunk = ((Chunk *)esk_pointer(chunk))->previous;
    return chunk;
}

static Entry entry_of(const Tape *tape, uint32_t index) {
    const Chunk *chunk = esk_pointer(chunk_of(tape->chunk, index));
    return entry_at(chunk, index - (uint32_t)esk_integer(chunk->first));
}

/* ---- adjoints --------------------------------------------------------------------------------------------------- */

static bool are_doubles(const Tape *tape) { return esk_is(tape->adjoints, TAG_BYTEVECTOR); }
static uint64_t *doubles_of(const Tape *tape) {
    return (uint64_t *)(void *)((Bytevector *)esk_pointer(tape->adjoints))->bytes;
}
static Value *values_of(const Tape *tape) { return ((Vector *)esk_pointer(tape->adjoints))->items; }

static uint32_t adjoint_count(const Tape *tape) {
    if (are_doubles(tape)) return (uint32_t)(((Bytevector *)esk_pointer(tape->adjoints))->length / 8);
    return esk_is(tape->adjoints, TAG_VECTOR) ? (uint32_t)((Vector *)esk_pointer(tape->adjoints))->length : 0;
}

static Value adjoint_of(const Tape *tape, uint32_t index) {
    if (index >= adjoint_count(tape)) return esk_fixnum(0);
    if (!are_doubles(tape)) return values_of(tape)[index];
    uint64_t bits = doubles_of(tape)[index];
    return bits == UNREACHED ? esk_fixnum(0) : esk_make(TAG_FLONUM, bits);
}

static double double_from(uint64_t bits) { return esk_double(esk_make(TAG_FLONUM, bits)); }
static uint64_t bits_from(double x) { return esk_flonum(x).bits; }
static bool is_machine(Value v) { return v.tag == TAG_FLONUM || v.tag == TAG_FIXNUM; }

/* No adjoints, of so many entries; the sweep begins above the last. */
static void clear(Context *context, Tape *tape, uint32_t count, bool doubles) {
    if (adjoint_count(tape) < count || are_doubles(tape) != doubles) {
        tape->adjoints = ESK_FALSE; /* may be collected first */
        if (doubles) esk_store(context, &tape->adjoints, esk_make_bytevector(context, (int64_t)count * 8, 0));
        else esk_store(context, &tape->adjoints, esk_make_vector(context, count, esk_fixnum(0)));
    }
    for (uint32_t i = 0, all = adjoint_count(tape); i < all; i++) {
        if (doubles) doubles_of(tape)[i] = UNREACHED;
        else values_of(tape)[i] = esk_fixnum(0);
    }
    tape->cursor = count;
    esk_store(context, &tape->custom, tape->customs);
    esk_store(context, &tape->sweeping, tape->chunk);
}

static void change_to_values(Context *context, Tape *tape) {
    uint32_t count = adjoint_count(tape);
    Value more = esk_make_vector(context, count, esk_fixnum(0));
    for (uint32_t i = 0; i < count; i++) ((Vector *)esk_pointer(more))->items[i] = adjoint_of(tape, i);
    esk_store(context, &tape->adjoints, more);
}

static void accumulate_value(Context *context, Tape *tape, uint32_t index, Value adjoint) {
    Value before = values_of(tape)[index];
    Value after = fixnum_is(before, 0) ? adjoint : esk_add(context, before, adjoint);
    esk_store(context, &values_of(tape)[index], after);
}

static inline void accumulate_double(uint64_t *adjoints, uint32_t index, double adjoint) {
    uint64_t before = adjoints[index];
    adjoints[index] = bits_from(before == UNREACHED ? adjoint : double_from(before) + adjoint);
}

/* ---- the sweep -------------------------------------------------------------------------------------------------- */

/* Entries of a real chunk below `to`, downward; gives back the entry of its own rule where it stopped, or 0. */
static uint32_t sweep_doubles(uint64_t *adjoints, const Chunk *chunk, uint32_t to) {
    uint32_t first = (uint32_t)esk_integer(chunk->first);
    const RealEntry *entries = chunk->entries.real;
    for (uint32_t i = to; i-- > first;) {
        uint64_t bits = adjoints[i];
        if (bits == UNREACHED) continue;
        double adjoint = double_from(bits);
        const RealEntry *entry = &entries[i - first];
        if (entry->parents[0]) {
            accumulate_double(adjoints, entry->parents[0], entry->factors[0] * adjoint);
            if (entry->parents[1]) accumulate_double(adjoints, entry->parents[1], entry->factors[1] * adjoint);
        } else if (entry->parents[1]) return i;
    }
    return 0;
}

static uint32_t sweep_values(Context *context, Tape *tape, const Chunk *chunk, uint32_t to) {
    uint32_t first = (uint32_t)esk_integer(chunk->first);
    for (uint32_t i = to; i-- > first;) {
        Value adjoint = values_of(tape)[i];
        if (fixnum_is(adjoint, 0)) continue;
        Entry entry = entry_at(chunk, i - first);
        if (is_custom(entry.parents)) return i;
        for (int k = 0; k < 2 && entry.parents[k]; k++) {
            Value f = entry.factors[k];
            Value product = fixnum_is(f, 1) ? adjoint : esk_multiply(context, f, adjoint);
            accumulate_value(context, tape, entry.parents[k], product);
        }
    }
    return 0;
}

/* What the library needs to go on: #(procedure adjoint inputs). */
static Value custom_step(Context *context, Tape *tape, uint32_t index) {
    while (esk_integer(esk_car(esk_car(tape->custom))) > index)
        esk_store(context, &tape->custom, esk_cdr(tape->custom));
    Value row = esk_car(tape->custom), step = esk_make_vector(context, 3, ESK_FALSE);
    Value *items = ((Vector *)esk_pointer(step))->items;
    items[0] = esk_car(esk_cdr(row));
    items[1] = adjoint_of(tape, index);
    items[2] = esk_car(esk_cdr(esk_cdr(row)));
    return step;
}

static Value sweep(Context *context, Tape *tape) {
    while (tape->cursor > 1) {
        esk_store(context, &tape->sweeping, chunk_of(tape->sweeping, tape->cursor - 1));
        const Chunk *chunk = esk_pointer(tape->sweeping);
        uint32_t to = tape->cursor;
        uint32_t custom = are_doubles(tape) ? sweep_doubles(doubles_of(tape), chunk, to)
                                            : sweep_values(context, tape, chunk, to);
        tape->cursor = custom ? custom : (uint32_t)esk_integer(chunk->first);
        if (custom) return custom_step(context, tape, custom);
        if (context->interrupted) esk_poll(context);
    }
    return ESK_FALSE;
}

/* ---- primitives ------------------------------------------------------------------------------------------------- */

static Tape *need_tape(Context *context, const char *who, Value v) {
    if (!esk_is(v, TAG_FOREIGN) || !(((Object *)esk_pointer(v))->flags & FLAG_TAPE))
        esk_wrong_type(context, who, 1, v, "a tape");
    return esk_pointer(v);
}

static bool is_on(const Tape *tape, Value v) { return esk_is(v, TAG_AD_NODE) && tape_of(v) == tape; }

/* Whether a number is a node of the tape; if it is not, it must not depend on the tape's level. */
static bool need_on_or_below(Context *context, const char *who, const Tape *tape, Value v) {
    if (is_on(tape, v)) return true;
    need_below(context, who, 2, v, tape->level);
    return false;
}

static Value make_tape(Context *context, const Value *args, int64_t count) {
    int64_t level = need_level(context, "%make-tape", args[0]);
    Tape *tape = esk_allocate(context, sizeof *tape, TAG_FOREIGN);
    tape->head.flags = FLAG_TAPE;
    tape->head.count = TAPE_VALUES;
    tape->chunk = tape->adjoints = tape->sweeping = ESK_FALSE;
    tape->customs = tape->custom = ESK_NULL;
    tape->level = level;
    tape->bytes = 0;
    tape->used = tape->room = tape->first = 1;
    tape->traced = count > 1 && !esk_is_false(args[1]);
    tape->form = tape->traced ? ENTRIES_TRACED : ENTRIES_REAL;
    tape->cursor = 0;
    return esk_object(tape);
}

static Value tape_input(Context *context, Value where, Value primal) {
    Tape *tape = need_tape(context, "%tape-input", where);
    need_below(context, "%tape-input", 2, primal, tape->level);
    return push_source(context, tape, "input", primal, false);
}

static Value tape_value(Context *context, Value where, Value v) {
    Tape *tape = need_tape(context, "%tape-value", where);
    return need_on_or_below(context, "%tape-value", tape, v) ? ((TapeNode *)esk_pointer(v))->primal : v;
}

/* Adds to the adjoint of an entry. Exact adjoints of inputs, and of entries with a rule of their own, stay exact. */
static void seed(Context *context, Tape *tape, uint32_t index, Value adjoint) {
    if (!are_doubles(tape)) accumulate_value(context, tape, index, adjoint);
    else if (!is_machine(adjoint) || (esk_is(adjoint, TAG_FIXNUM) && !entry_of(tape, index).parents[0])) {
        change_to_values(context, tape);
        accumulate_value(context, tape, index, adjoint);
    } else accumulate_double(doubles_of(tape), index, real_double(context, adjoint));
}

static Value tape_backward(Context *context, const Value *args, int64_t count) {
    static const char who[] = "%tape-backward!";
    (void)count;
    Tape *tape = need_tape(context, who, args[0]);
    Value output = args[1], adjoint = args[2];
    if (!esk_is_false(output) || !esk_is_false(adjoint)) {
        bool depends = need_on_or_below(context, who, tape, output);
        need_below(context, who, 3, adjoint, tape->level);
        clear(context, tape, depends ? index_of(output) + 1 : 0, tape->form == ENTRIES_REAL);
        if (depends && !fixnum_is(adjoint, 0)) seed(context, tape, index_of(output), adjoint);
    }
    return sweep(context, tape);
}

static Value tape_accumulate(Context *context, const Value *args, int64_t count) {
    static const char who[] = "%tape-accumulate!";
    (void)count;
    Tape *tape = need_tape(context, who, args[0]);
    bool depends = need_on_or_below(context, who, tape, args[1]);
    need_below(context, who, 3, args[2], tape->level);
    if (!depends || fixnum_is(args[2], 0)) return ESK_UNSPECIFIED;
    if (index_of(args[1]) >= tape->cursor)
        esk_fail(context, ERROR_CONTROL, who, "the sweep has passed this number already", 1, args[1]);
    seed(context, tape, index_of(args[1]), args[2]);
    return ESK_UNSPECIFIED;
}

static Value tape_adjoint(Context *context, Value where, Value node) {
    Tape *tape = need_tape(context, "%tape-adjoint", where);
    if (!is_on(tape, node)) esk_wrong_type(context, "%tape-adjoint", 2, node, "a node of the tape");
    return adjoint_of(tape, index_of(node));
}

static Value tape_reset(Context *context, Value where) {
    Tape *tape = need_tape(context, "%tape-reset!", where);
    clear(context, tape, tape->used, tape->form == ENTRIES_REAL);
    return ESK_UNSPECIFIED;
}

static Value tape_custom(Context *context, const Value *args, int64_t count) {
    static const char who[] = "%tape-custom";
    (void)count;
    Tape *tape = need_tape(context, who, args[0]);
    need_below(context, who, 2, args[1], tape->level);
    if (!esk_is(args[3], TAG_PROCEDURE)) esk_wrong_type(context, who, 4, args[3], "a procedure");
    Value row[3] = {esk_fixnum(tape->used), args[3], args[2]};
    Value customs = esk_cons(context, esk_list(context, row, 3), tape->customs);
    Value node = push_source(context, tape, "custom", args[1], true);
    esk_store(context, &tape->customs, customs);
    return node;
}

static Value tape_size(Context *context, Value where) {
    Tape *tape = need_tape(context, "%tape-size", where);
    int64_t adjoints = (int64_t)adjoint_count(tape) * (are_doubles(tape) ? 8 : 16);
    return esk_fixnum((int64_t)sizeof *tape + tape->bytes + adjoints);
}

static Value tape_length(Context *context, Value where) {
    return esk_fixnum((int64_t)need_tape(context, "%tape-length", where)->used - 1);
}

static Value tape_level(Context *context, Value where) {
    return esk_fixnum(need_tape(context, "%tape-level", where)->level);
}

/* The places of the inputs of an entry with a rule of its own. */
static Value custom_parents(Context *context, const Tape *tape, uint32_t index) {
    Value rows = tape->customs, places = ESK_NULL;
    while (esk_integer(esk_car(esk_car(rows))) != index) rows = esk_cdr(rows);
    for (Value inputs = esk_car(esk_cdr(esk_cdr(esk_car(rows)))); esk_is(inputs, TAG_PAIR); inputs = esk_cdr(inputs))
        if (is_on(tape, esk_car(inputs)))
            places = esk_cons(context, esk_fixnum((int64_t)index_of(esk_car(inputs)) - 1), places);
    return places;
}

static Value traced_row(Context *context, const Tape *tape, const Chunk *chunk, uint32_t index) {
    const TracedEntry *entry = &chunk->entries.traced[index - (uint32_t)esk_integer(chunk->first)];
    const char *name = (const char *)(uintptr_t)entry->name.bits;
    uint64_t parents = entry->entry.parents.bits;
    bool custom = is_custom((uint32_t[2]){(uint32_t)parents, (uint32_t)(parents >> 32)});
    Value list = custom ? custom_parents(context, tape, index) : ESK_NULL, row;
    if ((uint32_t)parents && parents >> 32) list = esk_cons(context, esk_fixnum((int64_t)(parents >> 32) - 1), list);
    if ((uint32_t)parents) list = esk_cons(context, esk_fixnum((int64_t)(uint32_t)parents - 1), list);
    Value operation = esk_symbol(context, name, (int64_t)strlen(name));
    row = esk_make_vector(context, 5, list);
    Value *items = ((Vector *)esk_pointer(row))->items;
    items[0] = operation;
    items[1] = entry->primal;
    items[2] = adjoint_of(tape, index);
    items[4] = entry->place;
    return row;
}

static Value tape_nodes(Context *context, Value where) {
    Tape *tape = need_tape(context, "%tape-nodes", where);
    if (!tape->traced) esk_wrong_type(context, "%tape-nodes", 1, where, "a tape that is traced");
    uint32_t used = tape->used;
    Value rows = esk_make_vector(context, (int64_t)used - 1, ESK_FALSE), chunk = tape->chunk;
    for (uint32_t i = used; i-- > 1;) {
        chunk = chunk_of(chunk, i);
        Value row = traced_row(context, tape, esk_pointer(chunk), i);
        esk_store(context, &((Vector *)esk_pointer(rows))->items[i - 1], row);
    }
    return rows;
}

const Primitive esk_tapes_primitives[] = {
    ESK_PRIMITIVE_N("%make-tape", "(%make-tape level [traced?])", 1, 2, make_tape,
                    "A tape that records what is computed from its inputs, for derivatives of that level."),
    ESK_PRIMITIVE_2("%tape-input", "(%tape-input tape z)", tape_input, "The number z as an input of the tape."),
    ESK_PRIMITIVE_2("%tape-value", "(%tape-value tape z)", tape_value, "The number z without what it has of the tape."),
    ESK_PRIMITIVE_N("%tape-backward!", "(%tape-backward! tape output adjoint)", 3, 3, tape_backward,
                    "Finds the adjoints of all that output depends on. #f when done; #(procedure adjoint inputs) at an "
                    "entry with a rule of its own. With #f for output and adjoint it goes on from there, or, after "
                    "%tape-reset! and %tape-accumulate!, from the last entry."),
    ESK_PRIMITIVE_N("%tape-accumulate!", "(%tape-accumulate! tape z adjoint)", 3, 3, tape_accumulate,
                    "Adds to the adjoint of a node; of a number that is not on the tape, nothing."),
    ESK_PRIMITIVE_2("%tape-adjoint", "(%tape-adjoint tape node)", tape_adjoint,
                    "How the output changes with the node; exact 0 where it does not depend on it."),
    ESK_PRIMITIVE_1("%tape-reset!", "(%tape-reset! tape)", tape_reset, "Forgets the adjoints."),
    ESK_PRIMITIVE_N("%tape-custom", "(%tape-custom tape z inputs procedure)", 4, 4, tape_custom,
                    "The number z, computed from the inputs, as a node; the procedure knows how adjoints go to them."),
    ESK_PRIMITIVE_1("%tape-size", "(%tape-size tape)", tape_size, "The memory of the tape, in bytes."),
    ESK_PRIMITIVE_1("%tape-length", "(%tape-length tape)", tape_length, "How many entries the tape has."),
    ESK_PRIMITIVE_1("%tape-level", "(%tape-level tape)", tape_level, "The level whose derivatives it is for."),
    ESK_PRIMITIVE_1("%tape-nodes", "(%tape-nodes tape)", tape_nodes,
                    "Of a traced tape, a vector of #(operation value adjoint parents place), one for each entry; "
                    "parents are places in that vector, place the return addresses of the calls under way."),
    {0}};
