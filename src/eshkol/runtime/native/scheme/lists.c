/* Pairs and lists: R7RS 6.4, and the procedures about lists that call no others. Lists are walked with a guard against
 * cycles: a circular list where a proper one is needed is an error, never an endless loop. */
#include "data.h"
#include "differential.h"
#include "numbers.h"

/* ---- walking ---------------------------------------------------------------------------------------------------- */

/* Brent's guard: `mark` stays at a place, twice as long each time; who comes back to it goes in circles. */
typedef struct {
    uint64_t mark, steps, patience;
} Guard;

static inline bool circular(Guard *guard, Value pair) {
    if (pair.bits == guard->mark) return true;
    if (++guard->steps == guard->patience) {
        guard->mark = pair.bits;
        guard->patience *= 2;
        guard->steps = 0;
    }
    return false;
}

#define NEW_GUARD {0, 0, 64}

int64_t esk_list_length(Value list) {
    Guard guard = NEW_GUARD;
    int64_t length = 0;
    for (; esk_is(list, TAG_PAIR); list = esk_cdr(list), length++)
        if (circular(&guard, list)) return -2;
    return esk_is(list, TAG_NULL) ? length : -1;
}

static _Noreturn void not_a_list(Context *c, const char *who, int position, Value list) {
    bool endless = esk_list_length(list) == -2;
    esk_wrong_type(c, who, position, list, endless ? "a list that ends (this one is circular)" : "a list");
}

int64_t esk_need_list(Context *c, const char *who, int position, Value list) {
    int64_t length = esk_list_length(list);
    if (length < 0) not_a_list(c, who, position, list);
    return length;
}

/* A list under construction: what is added goes to its end. */
typedef struct {
    Value first, last;
} Builder;

static inline void add(Context *c, Builder *builder, Value item) {
    Value pair = esk_cons(c, item, ESK_NULL);
    if (esk_is(builder->first, TAG_NULL)) {
        builder->first = pair;
    } else {
        esk_set_cdr(c, builder->last, pair);
    }
    builder->last = pair;
}

/* `list` before the first `count` pairs of `from`. */
static Value copy_before(Context *c, Value from, int64_t count, Value rest) {
    if (count <= 0) return rest;
    Builder copy = {ESK_NULL, ESK_NULL};
    for (; count > 0; count--, from = esk_cdr(from)) add(c, &copy, esk_car(from));
    esk_set_cdr(c, copy.last, rest);
    return copy.first;
}

/* ---- pairs ------------------------------------------------------------------------------------------------------ */

static Value need_pair(Context *c, const char *who, Value v) {
    if (!esk_is(v, TAG_PAIR)) esk_wrong_type(c, who, 1, v, "a pair");
    return v;
}

static Value pair_p(Context *c, Value v) { (void)c; return esk_boolean(esk_is(v, TAG_PAIR)); }
static Value null_p(Context *c, Value v) { (void)c; return esk_boolean(esk_is(v, TAG_NULL)); }
static Value list_p(Context *c, Value v) { (void)c; return esk_boolean(esk_list_length(v) >= 0); }
static Value cons(Context *c, Value a, Value b) { return esk_cons(c, a, b); }
static Value car(Context *c, Value pair) { return esk_car(need_pair(c, "car", pair)); }
static Value cdr(Context *c, Value pair) { return esk_cdr(need_pair(c, "cdr", pair)); }

static Value set_car(Context *c, Value pair, Value v) {
    need_mutable(c, "set-car!", need_pair(c, "set-car!", pair));
    esk_set_car(c, pair, v);
    return ESK_UNSPECIFIED;
}

static Value set_cdr(Context *c, Value pair, Value v) {
    need_mutable(c, "set-cdr!", need_pair(c, "set-cdr!", pair));
    esk_set_cdr(c, pair, v);
    return ESK_UNSPECIFIED;
}

/* X(letters between c and r, from the left). The path is followed from the right. */
#define PATHS(X)                                                                                                     \
    X(aa) X(ad) X(da) X(dd) X(aaa) X(aad) X(ada) X(add) X(daa) X(dad) X(dda) X(ddd) X(aaaa) X(aaad) X(aada) X(aadd) \
    X(adaa) X(adad) X(adda) X(addd) X(daaa) X(daad) X(dada) X(dadd) X(ddaa) X(ddad) X(ddda) X(dddd)

static inline Value follow(Context *c, const char *who, size_t letters, const char *expected, Value v) {
    Value at = v;
    for (size_t i = letters; i >= 1; i--) {
        if (!esk_is(at, TAG_PAIR)) esk_wrong_type(c, who, 1, v, expected);
        at = who[i] == 'a' ? esk_car(at) : esk_cdr(at);
    }
    return at;
}

#define X(path) \
    static Value c##path##r(Context *c, Value v) {                                             \
        return follow(c, "c" #path "r", sizeof #path - 1, "a pair that has a c" #path "r", v); \
    }
PATHS(X)
#undef X

/* ---- lists ------------------------------------------------------------------------------------------------------ */

static Value make_list(Context *c, const Value *args, int64_t count) {
    int64_t length = need_size(c, "make-list", 1, args[0]);
    Value list = ESK_NULL;
    while (length-- > 0) list = esk_cons(c, count > 1 ? args[1] : ESK_UNSPECIFIED, list);
    return list;
}

static Value list(Context *c, const Value *args, int64_t count) { return esk_list(c, args, count); }

static Value cons_star(Context *c, const Value *args, int64_t count) {
    Value list = args[count - 1];
    for (int64_t i = count - 2; i >= 0; i--) list = esk_cons(c, args[i], list);
    return list;
}

static Value length(Context *c, Value list) { return esk_fixnum(esk_need_list(c, "length", 1, list)); }

static Value append(Context *c, const Value *args, int64_t count) {
    if (!count) return ESK_NULL;
    for (int64_t i = 0; i < count - 1; i++) esk_need_list(c, "append", (int)i + 1, args[i]);
    Value list = args[count - 1];
    for (int64_t i = count - 2; i >= 0; i--) list = copy_before(c, args[i], esk_list_length(args[i]), list);
    return list;
}

static Value reverse_before(Context *c, const char *who, Value list, Value rest) {
    Guard guard = NEW_GUARD;
    Value at = list;
    for (; esk_is(at, TAG_PAIR); at = esk_cdr(at)) {
        if (circular(&guard, at)) not_a_list(c, who, 1, list);
        rest = esk_cons(c, esk_car(at), rest);
    }
    if (!esk_is(at, TAG_NULL)) not_a_list(c, who, 1, list);
    return rest;
}

static Value reverse(Context *c, Value list) { return reverse_before(c, "reverse", list, ESK_NULL); }
static Value append_reverse(Context *c, Value list, Value rest) {
    return reverse_before(c, "append-reverse", list, rest);
}

/* What is left of `list` after k pairs; an error where it has fewer, or fewer than k + 1 if a pair is needed. */
static Value tail(Context *c, const char *who, Value list, Value k, bool pair) {
    int64_t left = need_index(c, who, 2, k, INT64_MAX);
    Value at = list;
    for (; left > 0 && esk_is(at, TAG_PAIR); left--) at = esk_cdr(at);
    if (left > 0 || (pair && !esk_is(at, TAG_PAIR))) {
        int64_t length = esk_list_length(list);
        if (length < 0) esk_wrong_type(c, who, 1, list, "a list that is long enough");
        esk_bad_index(c, who, 2, k, length);
    }
    return at;
}

static Value list_tail(Context *c, Value list, Value k) { return tail(c, "list-tail", list, k, false); }
static Value list_ref(Context *c, Value list, Value k) { return esk_car(tail(c, "list-ref", list, k, true)); }

static Value list_head(Context *c, Value list, Value k) {
    tail(c, "list-head", list, k, false);
    return copy_before(c, list, esk_integer(k), ESK_NULL);
}

static Value list_set(Context *c, const Value *args, int64_t count) {
    (void)count;
    Value pair = tail(c, "list-set!", args[0], args[1], true);
    need_mutable(c, "list-set!", pair);
    esk_set_car(c, pair, args[2]);
    return ESK_UNSPECIFIED;
}

/* An improper end is kept, as R7RS asks. */
static Value list_copy(Context *c, Value list) {
    Guard guard = NEW_GUARD;
    int64_t pairs = 0;
    Value at = list;
    for (; esk_is(at, TAG_PAIR); at = esk_cdr(at), pairs++)
        if (circular(&guard, at)) not_a_list(c, "list-copy", 1, list);
    return copy_before(c, list, pairs, at);
}

static Value last_pair(Context *c, Value list) {
    Guard guard = NEW_GUARD;
    Value at = need_pair(c, "last-pair", list);
    for (Value next; next = esk_cdr(at), esk_is(next, TAG_PAIR); at = next)
        if (circular(&guard, at)) not_a_list(c, "last-pair", 1, list);
    return at;
}

/* ---- searching -------------------------------------------------------------------------------------------------- */

/* eqv? and equal? are eq? for most keys. */
static inline bool plain_for_eqv(Value v) {
    return (!esk_is_pointer(v) && !esk_is(v, TAG_FLONUM)) || esk_is(v, TAG_SYMBOL);
}

/* The bits are compared first: they differ more often than the tags. */
static inline bool same_eq(Context *c, Value a, Value b) { (void)c; return a.bits == b.bits && a.tag == b.tag; }
/* The same, and an element may be a differentiated number. */
static inline bool same_plain(Context *c, Value key, Value element) {
    (void)c;
    return same_eq(c, key, element) || (is_differentiated(element) && esk_eqv(key, element));
}
static inline bool same_eqv(Context *c, Value a, Value b) { (void)c; return esk_eqv(a, b); }

enum { UNGUARDED = 64 /* so many pairs are looked at before one asks whether the list is circular */ };

#define MEMBER(function, name, same)                                                    \
    static Value function(Context *c, Value key, Value list) {                          \
        Guard guard = NEW_GUARD;                                                        \
        Value at = list;                                                                \
        for (int i = 0; i < UNGUARDED && esk_is(at, TAG_PAIR); i++, at = esk_cdr(at))   \
            if (same(c, key, esk_car(at))) return at;                                   \
        for (; esk_is(at, TAG_PAIR); at = esk_cdr(at)) {                                \
            if (same(c, key, esk_car(at))) return at;                                   \
            if (circular(&guard, at)) break;                                            \
        }                                                                               \
        if (!esk_is(at, TAG_NULL)) not_a_list(c, name, 2, list);                        \
        return ESK_FALSE;                                                               \
    }

/* The entry of an association list, or #f. */
#define ASSOC(function, name, same)                                                                    \
    static Value function(Context *c, Value key, Value list) {                                         \
        Guard guard = NEW_GUARD;                                                                       \
        Value at = list;                                                                               \
        for (int i = 0; esk_is(at, TAG_PAIR); i++, at = esk_cdr(at)) {                                 \
            Value entry = esk_car(at);                                                                 \
            if (!esk_is(entry, TAG_PAIR)) esk_wrong_type(c, name, 2, list, "a list of pairs");         \
            if (same(c, key, esk_car(entry))) return entry;                                            \
            if (i >= UNGUARDED && circular(&guard, at)) break;                                                         \
        }                                                                                              \
        if (!esk_is(at, TAG_NULL)) not_a_list(c, name, 2, list);                                       \
        return ESK_FALSE;                                                                              \
    }

MEMBER(memq_long, "memq", same_eq)
MEMBER(member_long, "member", same_plain)
MEMBER(memv_long, "memv", same_plain)
MEMBER(memv_any, "memv", same_eqv)
MEMBER(member_any, "member", esk_equal)
ASSOC(assq, "assq", same_eq)
ASSOC(assoc_eq, "assoc", same_plain)
ASSOC(assv_eq, "assv", same_plain)
ASSOC(assv_any, "assv", same_eqv)
ASSOC(assoc_any, "assoc", esk_equal)
ASSOC(assoc_ref_any, "assoc-ref", esk_equal)

/* What is found by its words is looked for word by word: programs spend their time in this. Null where there is more to
 * be seen than cars that are others, up to the end. */
static inline const Pair *find_words(uint64_t tag, uint64_t bits, const Pair *pair, bool duals, bool *ended) {
    for (int i = 0; i < UNGUARDED; i++) {
        uint32_t car = pair->head.a;
        if (pair->car == bits && car == tag) return pair;
        if (duals && (car | 1) == TAG_AD_NODE) break;
        if (pair->head.b != TAG_PAIR) {
            *ended = pair->head.b == TAG_NULL;
            break;
        }
        pair = (const Pair *)(uintptr_t)pair->cdr;
    }
    return NULL;
}

#define FIND_WORDS(key, list, duals, otherwise)                                                                  \
    if (esk_is(list, TAG_PAIR)) {                                                                                \
        bool ended = false;                                                                                      \
        const Pair *found = find_words(key.tag, key.bits, esk_pointer(list), duals, &ended);                     \
        if (found) return esk_make(TAG_PAIR, (uint64_t)(uintptr_t)found);                                        \
        if (ended) return ESK_FALSE;                                                                             \
    }                                                                                                            \
    return otherwise

/* As words: compilers put values together in memory before they pass them on. */
__attribute__((noinline)) static Value search(Context *c, uint64_t tag, uint64_t bits, uint64_t list_tag,
                                                    uint64_t list, Value (*how)(Context *, Value, Value)) {
    return how(c, esk_make(tag, bits), esk_make(list_tag, list));
}
#define SEARCH(how) search(c, key.tag, key.bits, list.tag, list.bits, how)

static Value memq(Context *c, Value key, Value list) { FIND_WORDS(key, list, false, SEARCH(memq_long)); }

static Value memv(Context *c, Value key, Value list) {
    if (!plain_for_eqv(key)) return SEARCH(memv_any);
    FIND_WORDS(key, list, true, SEARCH(memv_long));
}

static Value member(Context *c, Value key, Value list) {
    if (!plain_for_eqv(key)) return SEARCH(member_any);
    FIND_WORDS(key, list, true, SEARCH(member_long));
}

static Value assv(Context *c, Value key, Value list) {
    return plain_for_eqv(key) ? assv_eq(c, key, list) : assv_any(c, key, list);
}

static Value assoc(Context *c, Value key, Value list) {
    return plain_for_eqv(key) ? assoc_eq(c, key, list) : assoc_any(c, key, list);
}

static Value assoc_ref(Context *c, Value list, Value key) {
    Value entry = assoc_ref_any(c, key, list);
    return esk_is(entry, TAG_PAIR) ? esk_cdr(entry) : ESK_FALSE;
}

/* ---- iota ------------------------------------------------------------------------------------------------------- */

static Value iota(Context *c, const Value *args, int64_t count) {
    int64_t length = need_size(c, "iota", 1, args[0]);
    Value start = count > 1 ? args[1] : esk_fixnum(0), step = count > 2 ? args[2] : esk_fixnum(1);
    for (int position = 2; position <= count; position++)
        need_any_number(c, "iota", position, args[position - 1]);
    Value list = ESK_NULL;
    for (int64_t i = length - 1; i >= 0; i--) { /* start + i * step: no errors add up */
        int64_t product, sum;
        Value item;
        if (esk_is(start, TAG_FIXNUM) && esk_is(step, TAG_FIXNUM) &&
            !__builtin_mul_overflow(i, esk_integer(step), &product) &&
            !__builtin_add_overflow(product, esk_integer(start), &sum)) {
            item = esk_fixnum(sum);
        } else {
            item = esk_add(c, start, esk_multiply(c, esk_fixnum(i), step));
        }
        list = esk_cons(c, item, list);
    }
    return list;
}

const Primitive esk_lists_primitives[] = {
    ESK_PRIMITIVE_1("pair?", "(pair? object)", pair_p, "Whether object is a pair."),
    ESK_PRIMITIVE_1("null?", "(null? object)", null_p, "Whether object is the empty list."),
    ESK_PRIMITIVE_1("list?", "(list? object)", list_p, "Whether object is a list: it ends, and with the empty list."),
    ESK_PRIMITIVE_2("cons", "(cons a b)", cons, "A new pair of a and b."),
    ESK_PRIMITIVE_1("car", "(car pair)", car, "The first half of pair; of a list, its first element."),
    ESK_PRIMITIVE_1("cdr", "(cdr pair)", cdr, "The second half of pair; of a list, what follows the first element."),
    ESK_PRIMITIVE_2("set-car!", "(set-car! pair object)", set_car, "Make object the first half of pair."),
    ESK_PRIMITIVE_2("set-cdr!", "(set-cdr! pair object)", set_cdr, "Make object the second half of pair."),
#define X(path)                                                      \
    ESK_PRIMITIVE_1("c" #path "r", "(c" #path "r pair)", c##path##r, \
                    "car and cdr one after another, read from the right."),
    PATHS(X)
#undef X
    ESK_PRIMITIVE_N("make-list", "(make-list k [fill])", 1, 2, make_list, "A new list of k elements, each fill."),
    ESK_PRIMITIVE_N("list", "(list object ...)", 0, -1, list, "A new list of the objects."),
    ESK_PRIMITIVE_N("cons*", "(cons* object ... tail)", 1, -1, cons_star,
                    "A new list of the objects, followed by tail: (cons* 1 2 '(3)) is (1 2 3)."),
    ESK_PRIMITIVE_N("list*", "(list* object ... tail)", 1, -1, cons_star, "The same as cons*."),
    ESK_PRIMITIVE_1("length", "(length list)", length, "How many elements list has."),
    ESK_PRIMITIVE_N("append", "(append list ... tail)", 0, -1, append,
                    "A list of the elements of all lists. The last argument is shared, not copied; of any kind."),
    ESK_PRIMITIVE_1("reverse", "(reverse list)", reverse, "A new list of the same elements, the last first."),
    ESK_PRIMITIVE_2("append-reverse", "(append-reverse list tail)", append_reverse,
                    "The elements of list, the last first, followed by tail."),
    ESK_PRIMITIVE_2("list-tail", "(list-tail list k)", list_tail, "What follows the first k elements of list."),
    ESK_PRIMITIVE_2("list-head", "(list-head list k)", list_head, "A new list of the first k elements of list."),
    ESK_PRIMITIVE_2("list-ref", "(list-ref list k)", list_ref, "Element k of list, counted from 0."),
    ESK_PRIMITIVE_N("list-set!", "(list-set! list k object)", 3, 3, list_set, "Make object element k of list."),
    ESK_PRIMITIVE_1("list-copy", "(list-copy object)", list_copy,
                    "A new list of the same elements; what is no pair is returned as it is."),
    ESK_PRIMITIVE_1("last-pair", "(last-pair list)", last_pair, "The last pair of list."),
    ESK_PRIMITIVE_2("memq", "(memq object list)", memq,
                    "The part of list that begins with an element eq? to object, or #f."),
    ESK_PRIMITIVE_2("memv", "(memv object list)", memv,
                    "The part of list that begins with an element eqv? to object, or #f."),
    ESK_PRIMITIVE_2("member", "(member object list)", member,
                    "The part of list that begins with an element equal? to object, or #f."),
    ESK_PRIMITIVE_2("assq", "(assq key alist)", assq, "The first pair of alist whose car is eq? to key, or #f."),
    ESK_PRIMITIVE_2("assv", "(assv key alist)", assv, "The first pair of alist whose car is eqv? to key, or #f."),
    ESK_PRIMITIVE_2("assoc", "(assoc key alist)", assoc, "The first pair of alist whose car is equal? to key, or #f."),
    ESK_PRIMITIVE_2("assoc-ref", "(assoc-ref alist key)", assoc_ref,
                    "The cdr of the first pair of alist whose car is equal? to key, or #f."),
    ESK_PRIMITIVE_N("iota", "(iota count [start step])", 1, 3, iota,
                    "The list start, start + step, ... of count numbers; from 0 by 1 where nothing else is said."),
    {0}};
