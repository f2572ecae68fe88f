/* The questions that Scheme code may put to its host (the expander, in Python), one row each.
 *
 * X(name, Scheme name, signature, least arguments, most arguments, doc). Python reads the Scheme names in this order
 * from esk_host_operations, and answers by name; the number of an operation is its place in the table. */
#ifndef ESHKOL_SCHEME_HOSTCALLS_H
#define ESHKOL_SCHEME_HOSTCALLS_H

#include "value.h"

#define ESK_HOST_OPERATIONS(X)                                                                                        \
    X(MATCH, "%syntax-match", "(%syntax-match value pattern)", 2, 2,                                                  \
      "The values of the pattern's variables as a vector, or #f where the value does not match.")                     \
    X(TEMPLATE, "%syntax-template", "(%syntax-template template value ...)", 1, -1,                                   \
      "The syntax that the template makes of the values of its variables.")                                           \
    X(NAME, "%syntax-name", "(%syntax-name prefix identifier)", 2, 2,                                                 \
      "The identifier with the prefix, a string, before its name.")                                                   \
    X(NO_MATCH, "%syntax-no-match", "(%syntax-no-match value)", 1, 1,                                                 \
      "Raises the error of a syntax-case none of whose clauses matches.")                                             \
    X(SYNTAX_DATUM, "syntax->datum", "(syntax->datum syntax)", 1, 1, "The data that a syntax object is made of.")     \
    X(DATUM_SYNTAX, "datum->syntax", "(datum->syntax identifier datum)", 2, 2,                                        \
      "The datum as syntax that means what it would mean where the identifier stands.")                               \
    X(IS_IDENTIFIER, "identifier?", "(identifier? value)", 1, 1, "Whether the value is a syntax object of a symbol.") \
    X(FREE_IDENTIFIER, "free-identifier=?", "(free-identifier=? a b)", 2, 2,                                          \
      "Whether two identifiers refer to the same thing.")                                                             \
    X(BOUND_IDENTIFIER, "bound-identifier=?", "(bound-identifier=? a b)", 2, 2,                                       \
      "Whether binding one identifier would bind the other.")                                                         \
    X(TEMPORARIES, "generate-temporaries", "(generate-temporaries list)", 1, 1,                                       \
      "A list of as many identifiers as the list has elements, none of which is used elsewhere.")                     \
    X(VIOLATION, "syntax-violation", "(syntax-violation who message form [subform])", 3, 4,                           \
      "Raises a syntax error about the form; for use in macros.")                                                     \
    X(SYNTAX_ERROR, "raise-syntax-error", "(raise-syntax-error who message [form [subform]])", 2, 4,                  \
      "Raises a syntax error about the form; for use in macros.")                                                     \
    X(COMPILE, "%compile", "(%compile expression environment)", 2, 2,                                                 \
      "A procedure without parameters that evaluates the expression in the environment.")                             \
    X(EXPAND, "%expand", "(%expand expression environment)", 2, 2, "The expression in core forms, as data.")          \
    X(ENVIRONMENT, "%environment", "(%environment import-sets)", 1, 1, "An environment with these bindings.")         \
    X(INTERACTION, "interaction-environment", "(interaction-environment)", 0, 0,                                      \
      "The environment in which expressions typed at the prompt are evaluated.")                                      \
    X(LOAD_OPEN, "%load-open", "(%load-open filename environment)", 2, 2,                                             \
      "Opens a file of forms to be evaluated one after the other; gives a number for %load-next.")                    \
    X(LOAD_NEXT, "%load-next", "(%load-next number)", 1, 1,                                                           \
      "A procedure that evaluates the next form of the file, or #f after the last.")                                  \
    X(FAST_PROGRAM, "%fast-program", "(%fast-program kind procedure point ...)", 3, -1,                               \
      "Whether a compiled derivative could be made for the procedure at points like these.")                          \
    X(MAKE_READY, "%make-ready", "(%make-ready procedure)", 1, 1,                                                     \
      "Compiles a procedure that is called for the first time, and gives its closure the entry.")                     \
    X(PYTHON, "%python-open", "(%python-open)", 0, 0, "Makes Python ready to be called.")                             \
    X(PLACE, "%place-of", "(%place-of trace)", 1, 1,                                                                  \
      "Where in a program the innermost of these return addresses is, \"file:line\", or #f; eight bytes each.")        \
    X(NOTE_CALL, "%note-call", "(%note-call what name values depth)", 4, 4,                                           \
      "Tells the prompt of a call whose procedure it watches; what is call, result or stop.")

enum HostOperation {
#define X(name, scheme, signature, min, max, doc) HOST_##name,
    ESK_HOST_OPERATIONS(X)
#undef X
};

/* How the host says that an operation failed: `failed` is 1 + the kind of the error and the result its message, a
 * string; or `failed` is HOST_RAISES and the result is what is to be raised, or HOST_EXITS and the result is the code
 * of an exit below it. Zero: the result is the answer. */
#define HOST_RAISES UINT64_MAX
#define HOST_EXITS (UINT64_MAX - 1)

extern const char *const esk_host_operations[]; /* their Scheme names; the last is null */
typedef struct {
    enum HostOperation operation;
    const Value *args;
    int64_t count;
    Value result;
    uint64_t failed;
} Question;
void esk_put_question(Context *first, Question *); /* on the first thread; raises nothing */
Value esk_answer(Context *, const Question *);     /* what the host answered, or the condition that it raised */
Value esk_ask_host(Context *, enum HostOperation, const Value *args, int64_t count); /* raises what the host raises */
void esk_make_ready(Context *, Closure *, int64_t count); /* before a call with so many arguments; entries.ll */

#endif
