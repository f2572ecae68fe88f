/* Symbols and keywords: names that are the same object wherever they are spelled the same.
 *
 * Two tables of the heap, open addressing; a collection drops what nobody else refers to. The hash of a symbol stands
 * in it: for interned ones that of the name, for others a number of their own.
 */
#include "heap.h"
#include "utf8.h"

#include <stdio.h>
#include <stdlib.h>

#define DROPPED ((Symbol *)8) /* was here: go on looking */

static uint64_t hash_name(const char *name, int64_t count) {
    uint64_t hash = 0xCBF29CE484222325u ^ (uint64_t)count;
    for (int64_t i = 0; i < count; i++) hash = (hash ^ (uint8_t)name[i]) * 0x100000001B3u;
    hash ^= hash >> 32;
    return hash * 0x9E3779B97F4A7C15u;
}

static bool is_named(const Symbol *symbol, uint64_t hash, const char *name, int64_t count) {
    return symbol->hash == hash && symbol->head.count == (uint64_t)count && !memcmp(symbol->name, name, (size_t)count);
}

/* Where the name is, or a place that is free for it. */
static Symbol **find(const SymbolTable *table, uint64_t hash, const char *name, int64_t count) {
    Symbol **dropped = NULL;
    for (uint64_t at = hash >> 20 & table->mask;; at = (at + 1) & table->mask) {
        Symbol **slot = &table->slots[at];
        if (!*slot) return dropped ? dropped : slot;
        if (*slot == DROPPED) {
            if (!dropped) dropped = slot;
        } else if (is_named(*slot, hash, name, count)) return slot;
    }
}

/* Makes room for one more name; false where there is no memory. */
static bool grow(SymbolTable *table) {
    uint64_t room = table->slots ? table->mask + 1 : 0;
    if (room && (table->used + 1) * 4 <= room * 3) return true;
    while (!room || (table->count + 1) * 2 > room) room = room ? room * 2 : 1024;
    Symbol **slots = calloc(room, sizeof *slots);
    if (!slots) return false;
    for (uint64_t i = 0; table->slots && i <= table->mask; i++) {
        Symbol *symbol = table->slots[i];
        if (!symbol || symbol == DROPPED) continue;
        uint64_t at = symbol->hash >> 20 & (room - 1);
        while (slots[at]) at = (at + 1) & (room - 1);
        slots[at] = symbol;
    }
    free(table->slots);
    *table = (SymbolTable){slots, room - 1, table->count, table->count};
    return true;
}

static Symbol *make(Context *context, int type, const char *name, int64_t count, uint64_t hash) {
    if (count < 0 || count > INT32_MAX) esk_out_of_memory(context, (uint64_t)count);
    Symbol *symbol = esk_allocate(context, sizeof *symbol + (size_t)count + 1, type);
    symbol->head.count = (uint32_t)count;
    symbol->hash = hash;
    memcpy(symbol->name, name, (size_t)count);
    symbol->name[count] = 0;
    return symbol;
}

/* So that a collection of the young need not look at all names. */
static void note_new(Heap *heap, Symbol *symbol) {
    if (heap->new_count == heap->new_room) {
        uint64_t room = heap->new_room ? 2 * heap->new_room : 256;
        Symbol **more = realloc(heap->new_names, room * sizeof *more);
        if (!more) {
            heap->new_lost = true;
            return;
        }
        heap->new_names = more;
        heap->new_room = room;
    }
    heap->new_names[heap->new_count++] = symbol;
}

static Value intern(Context *context, SymbolTable *table, int type, const char *name, int64_t count) {
    uint64_t hash = hash_name(name, count);
    Heap *heap = context->heap;
    esk_lock(heap);
    Symbol *known = table->slots ? *find(table, hash, name, count) : NULL;
    esk_unlock(heap);
    if (known && known != DROPPED) return esk_object(known);
    Symbol *symbol = make(context, type, name, count, hash);
    esk_lock(heap);
    bool grown = grow(table); /* the table is as it was, or collections dropped some: look again */
    Symbol **slot = grown ? find(table, hash, name, count) : NULL;
    if (grown && *slot && *slot != DROPPED) symbol = *slot; /* another thread has made it */
    else if (grown) {
        table->used += *slot != DROPPED;
        table->count++;
        *slot = symbol;
        note_new(heap, symbol);
    }
    esk_unlock(heap);
    if (!grown) esk_out_of_memory(context, table->mask * sizeof(Symbol *));
    return esk_object(symbol);
}

Value esk_symbol(Context *context, const char *name, int64_t count) {
    return intern(context, &context->heap->symbols, TAG_SYMBOL, name, count);
}

Value esk_keyword(Context *context, const char *name, int64_t count) {
    return intern(context, &context->heap->keywords, TAG_KEYWORD, name, count);
}

Value esk_uninterned(Context *context, const char *name, int64_t count) {
    uint64_t hash = ++context->identities * 0x9E3779B97F4A7C15u;
    Symbol *symbol = make(context, TAG_SYMBOL, name, count, hash);
    symbol->head.flags |= FLAG_UNINTERNED;
    return esk_object(symbol);
}

static void drop(SymbolTable *table, Symbol **slot) {
    *slot = DROPPED;
    table->count--;
}

static void drop_dead(const Heap *heap, SymbolTable *table) {
    for (uint64_t i = 0; table->slots && i <= table->mask; i++) {
        Symbol **slot = &table->slots[i];
        if (*slot && *slot != DROPPED && !esk_is_alive(heap, *slot)) drop(table, slot);
    }
}

void esk_drop_symbols(Heap *heap, bool all) {
    if (all || heap->new_lost) {
        drop_dead(heap, &heap->symbols);
        drop_dead(heap, &heap->keywords);
    } else {
        for (uint64_t i = 0; i < heap->new_count; i++) {
            const Symbol *symbol = heap->new_names[i];
            if (esk_is_alive(heap, symbol)) continue;
            SymbolTable *table = symbol->head.type == TAG_SYMBOL ? &heap->symbols : &heap->keywords;
            drop(table, find(table, symbol->hash, symbol->name, symbol->head.count));
        }
    }
    heap->new_count = 0;
    heap->new_lost = false;
}

/* ---- primitives ------------------------------------------------------------------------------------------------- */

/* The text of a string as UTF-8: a bytevector with a zero behind its last byte. */
static Bytevector *to_utf8(Context *context, Value text) {
    const String *string = esk_pointer(text);
    Value scratch = esk_make_bytevector(context, string->length * 4 + 1, 0);
    Bytevector *bytes = esk_pointer(scratch);
    int64_t at = 0;
    for (int64_t i = 0; i < string->length; i++) at += esk_utf8_encode(string->chars[i], (char *)bytes->bytes + at);
    bytes->length = at;
    return bytes;
}

static Symbol *check(Context *context, const char *who, Value value, int tag, const char *expected) {
    if (!esk_is(value, (uint64_t)tag)) esk_wrong_type(context, who, 1, value, expected);
    return esk_pointer(value);
}

static Value text_of(Context *context, Symbol *symbol) {
    Value string = esk_string_utf8(context, symbol->name, symbol->head.count);
    ((Object *)esk_pointer(string))->flags |= FLAG_LITERAL;
    return string;
}

static Value is_symbol(Context *context, Value value) { (void)context; return esk_boolean(esk_is(value, TAG_SYMBOL)); }
static Value is_keyword(Context *context, Value value) {
    (void)context;
    return esk_boolean(esk_is(value, TAG_KEYWORD));
}

static Value symbol_to_string(Context *context, Value symbol) {
    if (esk_is(symbol, TAG_SYNTAX)) { /* in a transformer: the name of an identifier */
        symbol = esk_syntax_datum(context, symbol);
    }
    return text_of(context, check(context, "symbol->string", symbol, TAG_SYMBOL, "a symbol"));
}

static Value keyword_to_string(Context *context, Value keyword) {
    return text_of(context, check(context, "keyword->string", keyword, TAG_KEYWORD, "a keyword"));
}

static Value keyword_to_symbol(Context *context, Value keyword) {
    Symbol *name = check(context, "keyword->symbol", keyword, TAG_KEYWORD, "a keyword");
    return esk_symbol(context, name->name, name->head.count);
}

static Value symbol_to_keyword(Context *context, Value symbol) {
    Symbol *name = check(context, "symbol->keyword", symbol, TAG_SYMBOL, "a symbol");
    return esk_keyword(context, name->name, name->head.count);
}

static Value string_to_symbol(Context *context, Value string) {
    check(context, "string->symbol", string, TAG_STRING, "a string");
    Bytevector *name = to_utf8(context, string);
    return esk_symbol(context, (char *)name->bytes, name->length);
}

static Value string_to_keyword(Context *context, Value string) {
    check(context, "string->keyword", string, TAG_STRING, "a string");
    Bytevector *name = to_utf8(context, string);
    return esk_keyword(context, (char *)name->bytes, name->length);
}

static Value string_to_uninterned(Context *context, Value string) {
    check(context, "string->uninterned-symbol", string, TAG_STRING, "a string");
    Bytevector *name = to_utf8(context, string);
    return esk_uninterned(context, (char *)name->bytes, name->length);
}

static Value generate_symbol(Context *context, const Value *args, int64_t count) {
    const char *prefix = "g";
    if (count && esk_is(args[0], TAG_STRING)) prefix = (char *)to_utf8(context, args[0])->bytes;
    else if (count) prefix = check(context, "generate-symbol", args[0], TAG_SYMBOL, "a string or symbol")->name;
    char name[256];
    int length = snprintf(name, sizeof name, "%.200s%llu", prefix, (unsigned long long)++context->identities);
    return esk_uninterned(context, name, length);
}

static Value symbols_equal(Context *context, const Value *args, int64_t count) {
    bool equal = true;
    for (int64_t i = 0; i < count; i++) {
        if (!esk_is(args[i], TAG_SYMBOL)) esk_wrong_type(context, "symbol=?", (int)i + 1, args[i], "a symbol");
        equal &= esk_eq(args[0], args[i]);
    }
    return esk_boolean(equal);
}

static Value is_interned(Context *context, Value symbol) {
    Symbol *name = check(context, "symbol-interned?", symbol, TAG_SYMBOL, "a symbol");
    return esk_boolean(!(name->head.flags & FLAG_UNINTERNED));
}

const Primitive esk_symbols_primitives[] = {
    ESK_PRIMITIVE_1("symbol?", "(symbol? object)", is_symbol, "Whether the object is a symbol."),
    ESK_PRIMITIVE_N("symbol=?", "(symbol=? symbol1 symbol2 ...)", 1, -1, symbols_equal,
                    "Whether all are the same symbol."),
    ESK_PRIMITIVE_1("symbol->string", "(symbol->string symbol)", symbol_to_string,
                    "The symbol's name, a string that must not be changed."),
    ESK_PRIMITIVE_1("string->symbol", "(string->symbol string)", string_to_symbol, "The symbol of this name."),
    ESK_PRIMITIVE_1("string->uninterned-symbol", "(string->uninterned-symbol string)", string_to_uninterned,
                    "A new symbol of this name, the same as no other."),
    ESK_PRIMITIVE_1("symbol-interned?", "(symbol-interned? symbol)", is_interned,
                    "Whether reading the symbol's name gives the same symbol."),
    ESK_PRIMITIVE_N("generate-symbol", "(generate-symbol [prefix])", 0, 1, generate_symbol,
                    "A new symbol, the same as no other, with a name that no other generated one has."),
    ESK_PRIMITIVE_1("keyword?", "(keyword? object)", is_keyword, "Whether the object is a keyword like :axis."),
    ESK_PRIMITIVE_1("keyword->symbol", "(keyword->symbol keyword)", keyword_to_symbol,
                    "The symbol with the keyword's name, which has no colon."),
    ESK_PRIMITIVE_1("symbol->keyword", "(symbol->keyword symbol)", symbol_to_keyword, "The keyword of this name."),
    ESK_PRIMITIVE_1("keyword->string", "(keyword->string keyword)", keyword_to_string,
                    "The keyword's name without its colon."),
    ESK_PRIMITIVE_1("string->keyword", "(string->keyword string)", string_to_keyword, "The keyword of this name."),
    {0},
};
