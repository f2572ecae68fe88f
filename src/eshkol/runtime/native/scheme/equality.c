/* eqv?, equal? and the hashes that agree with them. Values come in; truth or 64 bits go out.
 *
 * equal? compares structures without recursion, on a stack of frames of its own. It ends on cyclic data and takes
 * almost linear time on shared data by the interleaving of Adams and Dybvig ("Efficient Nondestructive Equality
 * Checking for Trees and Graphs", 2008): a stretch of plain comparison, then a stretch in which pairs and vectors that
 * are being compared are joined into classes (union-find), and so on. What is in one class already needs no second
 * look, since it either is equal or a difference will be found elsewhere. Ordinary data never leaves the first stretch.
 */
#include "data.h"
#include "tensor_numbers.h"

/* ---- eqv? ------------------------------------------------------------------------------------------------------- */

enum {
    NUMBER_OBJECTS = 1u << TAG_FLONUM | 1u << TAG_BIGNUM | 1u << TAG_RATIONAL | 1u << TAG_COMPLEX,
};

static inline bool has_tag_in(Value v, uint32_t set) { return set >> v.tag & 1; }

bool esk_eqv(Value a, Value b) {
    if (esk_eq(a, b)) return true;
    a = undifferentiated(a);
    b = undifferentiated(b);
    return a.tag == b.tag && (has_tag_in(a, NUMBER_OBJECTS) ? esk_numbers_eqv(a, b) : a.bits == b.bits);
}

uint64_t esk_eqv_hash(Value v) {
    v = undifferentiated(v);
    return has_tag_in(v, NUMBER_OBJECTS) ? esk_number_hash(v) : hash_bits(v);
}

/* ---- equal? ----------------------------------------------------------------------------------------------------- */

bool esk_strings_equal(const String *a, const String *b) {
    return a->length == b->length && !memcmp(a->chars, b->chars, (size_t)a->length * sizeof(uint32_t));
}

static bool bytevectors_equal(const Bytevector *a, const Bytevector *b) {
    return a->length == b->length && !memcmp(a->bytes, b->bytes, (size_t)a->length);
}

enum { DIFFERENT, SAME, STRUCTURE /* two pairs or two vectors of one length: look inside */ };

static inline int look(Context *context, Value a, Value b) {
    if (esk_eq(a, b)) return SAME;
    if (is_differentiated(a) || is_differentiated(b)) {
        a = undifferentiated(a);
        b = undifferentiated(b);
        if (a.tag != TAG_TENSOR) return esk_eqv(a, b);
    }
    if (a.tag != b.tag) return DIFFERENT;
    switch (a.tag) {
    case TAG_PAIR:
        return STRUCTURE;
    case TAG_VECTOR:
        return ((Vector *)esk_pointer(a))->length == ((Vector *)esk_pointer(b))->length ? STRUCTURE : DIFFERENT;
    case TAG_STRING:
        return esk_strings_equal(esk_pointer(a), esk_pointer(b));
    case TAG_BYTEVECTOR:
        return bytevectors_equal(esk_pointer(a), esk_pointer(b));
    case TAG_TENSOR:
        return esk_eq(a, b) || tensors_equal(context, a, b);
    default:
        return has_tag_in(a, NUMBER_OBJECTS) && esk_numbers_eqv(a, b);
    }
}

/* Two structures of which a part is still to be compared: the cdrs of pairs, the items of vectors from `next` on. */
typedef struct {
    const Object *a, *b;
    int64_t next;
} Frame;

typedef struct {
    const Object *object;
    uint32_t parent, size;
} Node;

enum {
    FIRST_FRAMES = 24,
    FIRST_STRETCH = 4000, /* steps of the first plain stretch */
    PLAIN_STRETCH = 800,  /* of later ones, at most */
    JOIN_STRETCH = 40,    /* of those that join classes */
};

typedef struct {
    Context *context;
    Frame *frames;
    int64_t depth, room;
    int64_t plain, joining; /* steps left of the present stretch: of the one, when that is used up of the other */
    uint64_t random;
    Node *nodes;
    uint32_t *slots; /* number of a node plus one, by the hash of its object */
    uint32_t used, slot_count;
} Comparison;

/* Scratch memory is a bytevector, so that nothing is lost when an error leaves from here. */
static void *scratch(Context *context, int64_t bytes) {
    Bytevector *memory = esk_pointer(esk_make_bytevector(context, bytes, 0));
    return memory->bytes;
}

static void push(Comparison *at, const void *a, const void *b, int64_t next) {
    if (at->depth == at->room) {
        Frame *more = scratch(at->context, 2 * at->room * (int64_t)sizeof(Frame));
        memcpy(more, at->frames, (size_t)at->depth * sizeof(Frame));
        at->frames = more;
        at->room *= 2;
    }
    at->frames[at->depth++] = (Frame){a, b, next};
}

static uint32_t *slot_of(Comparison *at, const Object *object) {
    uint32_t mask = at->slot_count - 1;
    uint32_t i = (uint32_t)(hash_mix((uintptr_t)object, 0) >> 32) & mask;
    while (at->slots[i] && at->nodes[at->slots[i] - 1].object != object) i = (i + 1) & mask;
    return &at->slots[i];
}

static void grow_classes(Comparison *at) {
    uint32_t count = at->slot_count ? 2 * at->slot_count : 256;
    Node *nodes = scratch(at->context, count / 2 * (int64_t)sizeof(Node));
    uint32_t *slots = scratch(at->context, count * (int64_t)sizeof(uint32_t));
    if (at->used) memcpy(nodes, at->nodes, at->used * sizeof(Node));
    at->nodes = nodes;
    at->slots = slots;
    at->slot_count = count;
    for (uint32_t i = 0; i < at->used; i++) *slot_of(at, nodes[i].object) = i + 1;
}

static uint32_t class_of(Comparison *at, const Object *object) {
    uint32_t *slot = slot_of(at, object);
    if (!*slot) {
        at->nodes[at->used] = (Node){object, at->used, 1};
        *slot = ++at->used;
        return at->used - 1;
    }
    uint32_t i = *slot - 1;
    while (at->nodes[i].parent != i) i = at->nodes[i].parent = at->nodes[at->nodes[i].parent].parent;
    return i;
}

/* Join the classes of two objects; whether they were one already. */
static bool joined(Comparison *at, const Object *a, const Object *b) {
    if (at->used + 2 > at->slot_count / 2) grow_classes(at);
    uint32_t i = class_of(at, a), j = class_of(at, b);
    if (i == j) return true;
    if (at->nodes[i].size < at->nodes[j].size) {
        uint32_t other = i;
        i = j;
        j = other;
    }
    at->nodes[j].parent = i;
    at->nodes[i].size += at->nodes[j].size;
    return false;
}

/* One more step into two structures: whether they need not be looked at, being of one class. */
static bool known(Comparison *at, Value a, Value b) {
    if (at->plain > 0) {
        at->plain--;
        return false;
    }
    if (at->joining-- <= 0) {
        at->random = at->random * 6364136223846793005u + 1442695040888963407u;
        at->plain = (int64_t)((at->random >> 33) % PLAIN_STRETCH);
        at->joining = JOIN_STRETCH;
        return false;
    }
    if (!joined(at, esk_pointer(a), esk_pointer(b))) return false;
    at->joining = JOIN_STRETCH; /* shared or cyclic: it pays to stay */
    return true;
}

static bool structures_equal(Comparison *at, Value a, Value b) {
    for (;;) { /* a and b are structures of one kind */
        bool inside = false;
        if (!known(at, a, b)) {
            if (esk_is(a, TAG_PAIR)) {
                Value x = esk_car(a), y = esk_car(b);
                int seen = look(at->context, x, y);
                if (seen == DIFFERENT) return false;
                if (seen == STRUCTURE) {
                    push(at, esk_pointer(a), esk_pointer(b), 0);
                    a = x;
                    b = y;
                } else {
                    a = esk_cdr(a);
                    b = esk_cdr(b);
                    seen = look(at->context, a, b);
                    if (seen == DIFFERENT) return false;
                }
                inside = seen == STRUCTURE;
            } else {
                push(at, esk_pointer(a), esk_pointer(b), 0);
            }
        }
        while (!inside) { /* go on with what is left of the innermost frame */
            if (!at->depth) return true;
            Frame *top = &at->frames[at->depth - 1];
            int seen = SAME;
            if (top->a->type == TAG_PAIR) {
                Pair *x = (Pair *)top->a, *y = (Pair *)top->b;
                at->depth--;
                a = esk_make(x->head.b, x->cdr);
                b = esk_make(y->head.b, y->cdr);
                seen = look(at->context, a, b);
            } else {
                Vector *x = (Vector *)top->a, *y = (Vector *)top->b;
                int64_t i = top->next, length = x->length;
                for (; i < length && seen == SAME; i++) {
                    a = x->items[i];
                    b = y->items[i];
                    seen = look(at->context, a, b);
                }
                if (i < length) {
                    top->next = i;
                } else {
                    at->depth--;
                }
            }
            if (seen == DIFFERENT) return false;
            inside = seen == STRUCTURE;
        }
    }
}

bool esk_equal(Context *context, Value a, Value b) {
    int seen = look(context, a, b);
    if (seen != STRUCTURE) return seen == SAME;
    Frame first[FIRST_FRAMES];
    Comparison at = {.context = context, .frames = first, .room = FIRST_FRAMES, .plain = FIRST_STRETCH, .random = 1};
    at.joining = JOIN_STRETCH;
    /* what hangs on a and b is known to the scratch memory alone while the stack is worked off: keep both in sight */
    volatile Value roots[2];
    roots[0] = a;
    roots[1] = b;
    bool equal = structures_equal(&at, a, b);
    (void)roots[0].bits;
    (void)roots[1].bits;
    return equal;
}

/* ---- hashes ----------------------------------------------------------------------------------------------------- */

uint64_t esk_string_hash(const String *string) {
    const uint32_t *chars = string->chars;
    int64_t length = string->length, i = 0;
    uint64_t hash = hash_mix((uint64_t)length, TAG_STRING), word;
    for (; i + 2 <= length; i += 2) {
        memcpy(&word, chars + i, 8);
        hash = hash_mix(hash, word);
    }
    return i < length ? hash_mix(hash, chars[i]) : hash;
}

static uint64_t bytes_hash(const Bytevector *bytes) {
    int64_t i = 0;
    uint64_t hash = hash_mix((uint64_t)bytes->length, TAG_BYTEVECTOR), word = 0;
    for (; i + 8 <= bytes->length; i += 8) {
        memcpy(&word, bytes->bytes + i, 8);
        hash = hash_mix(hash, word);
    }
    word = 0;
    memcpy(&word, bytes->bytes + i, (size_t)(bytes->length - i));
    return hash_mix(hash, word);
}

enum { HASHED_NODES = 256 };

/* The budget bounds the work and the depth of this recursion. What is visited depends on nothing but what equal? sees:
 * cyclic lists and the longer cyclic lists that are equal to them have one hash. */
static uint64_t structure_hash(Context *context, Value v, int *budget) {
    v = undifferentiated(v);
    uint64_t hash = v.tag;
    while (esk_is(v, TAG_PAIR)) {
        if (--*budget < 0) return hash;
        hash = hash_mix(hash, structure_hash(context, esk_car(v), budget));
        v = esk_cdr(v);
    }
    if (--*budget < 0) return hash;
    switch (v.tag) {
    case TAG_VECTOR: {
        Vector *vector = esk_pointer(v);
        hash = hash_mix(hash, (uint64_t)vector->length + TAG_VECTOR);
        for (int64_t i = 0; i < vector->length && *budget > 0; i++)
            hash = hash_mix(hash, structure_hash(context, vector->items[i], budget));
        return hash;
    }
    case TAG_STRING:
        return hash_mix(hash, esk_string_hash(esk_pointer(v)));
    case TAG_BYTEVECTOR:
        return hash_mix(hash, bytes_hash(esk_pointer(v)));
    case TAG_TENSOR:
        return hash_mix(hash, tensor_hash(context, v));
    case TAG_SYMBOL:
    case TAG_KEYWORD:
        return hash_mix(hash, hash_mix(((Symbol *)esk_pointer(v))->hash, v.tag));
    default:
        return hash_mix(hash, esk_eqv_hash(v));
    }
}

uint64_t esk_equal_hash(Context *context, Value v) {
    int budget = HASHED_NODES;
    return structure_hash(context, v, &budget);
}

/* ---- primitives ------------------------------------------------------------------------------------------------- */

static Value eqv_p(Context *c, Value a, Value b) {
    (void)c;
    return esk_boolean(esk_eqv(a, b));
}

static Value equal_p(Context *c, Value a, Value b) { return esk_boolean(esk_equal(c, a, b)); }

/* A hash as users see it: below the bound, if they gave one, else any nonnegative fixnum. */
static Value bounded(Context *c, const char *who, uint64_t hash, const Value *args, int64_t count) {
    hash &= INT64_MAX;
    if (count < 2) return esk_fixnum((int64_t)hash);
    Value bound = args[1];
    if (esk_is(bound, TAG_FIXNUM) && esk_integer(bound) > 0) return esk_fixnum((int64_t)(hash % bound.bits));
    if (esk_is(bound, TAG_BIGNUM) && !(((Object *)esk_pointer(bound))->flags & FLAG_NEGATIVE))
        return esk_fixnum((int64_t)hash);
    esk_wrong_type(c, who, 2, bound, "a positive exact integer");
}

#define HASH_PRIMITIVE(function, name, hash)                                  \
    static Value function(Context *c, const Value *args, int64_t count) {     \
        return bounded(c, name, hash, args, count);                           \
    }

HASH_PRIMITIVE(equal_hash, "equal-hash", esk_equal_hash(c, args[0]))
HASH_PRIMITIVE(eq_hash, "eq-hash", hash_bits(args[0]))
HASH_PRIMITIVE(eqv_hash, "eqv-hash", esk_eqv_hash(args[0]))
HASH_PRIMITIVE(general_hash, "hash", esk_equal_hash(c, args[0]))
HASH_PRIMITIVE(identity_hash, "hash-by-identity", hash_bits(args[0]))
HASH_PRIMITIVE(string_hash, "string-hash", esk_string_hash(need_string(c, "string-hash", 1, args[0])))
HASH_PRIMITIVE(string_ci_hash, "string-ci-hash", esk_string_ci_hash(need_string(c, "string-ci-hash", 1, args[0])))

const Primitive esk_equality_primitives[] = {
    ESK_PRIMITIVE_2("eqv?", "(eqv? a b)", eqv_p,
                    "Like eq?, and numbers of the same exactness and value are the same."),
    ESK_PRIMITIVE_2("equal?", "(equal? a b)", equal_p,
                    "Whether a and b look the same: pairs, vectors, strings, bytevectors and tensors by content, all "
                    "else as by eqv?. Ends on cyclic data."),
    ESK_PRIMITIVE_N("equal-hash", "(equal-hash object [bound])", 1, 2, equal_hash,
                    "A nonnegative integer, below the bound if there is one, that is the same for equal? objects."),
    ESK_PRIMITIVE_N("eqv-hash", "(eqv-hash object [bound])", 1, 2, eqv_hash,
                    "A nonnegative integer, below the bound if there is one, that is the same for eqv? objects."),
    ESK_PRIMITIVE_N("eq-hash", "(eq-hash object [bound])", 1, 2, eq_hash,
                    "A nonnegative integer, below the bound if there is one, that is the same for eq? objects."),
    ESK_PRIMITIVE_N("hash", "(hash object [bound])", 1, 2, general_hash, "The same as equal-hash."),
    ESK_PRIMITIVE_N("hash-by-identity", "(hash-by-identity object [bound])", 1, 2, identity_hash,
                    "The same as eq-hash."),
    ESK_PRIMITIVE_N("string-hash", "(string-hash string [bound])", 1, 2, string_hash,
                    "A nonnegative integer, below the bound if there is one, that is the same for string=? strings."),
    ESK_PRIMITIVE_N("string-ci-hash", "(string-ci-hash string [bound])", 1, 2, string_ci_hash,
                    "A nonnegative integer, below the bound if there is one, the same for string-ci=? strings."),
    {0}};
