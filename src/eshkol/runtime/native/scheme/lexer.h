/* The one lexical grammar: of programs (Python asks esk_tokenize) and of `read` (reader.c pulls tokens from a port).
 * Characters come in through `peek` and `next`, one at a time and never earlier than needed, so that reading from a
 * terminal takes no more than a datum. The lexer
 * itself never allocates on the Scheme heap; where its text lies is the business of who uses it. */
#ifndef ESHKOL_SCHEME_LEXER_H
#define ESHKOL_SCHEME_LEXER_H

#include "lexemes.h"

/* What `text` of a token holds is said in the comment; of the others it is empty. */
#define ESK_TOKENS(X)                                                   \
    X(EOF, 0)                                                           \
    X(ERROR, 1)             /* a message for a person */                \
    X(OPEN, 2)              /* "(" or "[", or "{" */                            \
    X(CLOSE, 3)             /* ")" or "]", or "}" */                            \
    X(OPEN_VECTOR, 4)       /* #( */                                    \
    X(OPEN_BYTES, 5)        /* #u8( */                                  \
    X(DOT, 6)                                                           \
    X(QUOTE, 7)                                                         \
    X(QUASIQUOTE, 8)                                                    \
    X(UNQUOTE, 9)                                                       \
    X(UNQUOTE_SPLICING, 10)                                             \
    X(SYNTAX, 11)           /* #' */                                    \
    X(QUASISYNTAX, 12)      /* #` */                                    \
    X(UNSYNTAX, 13)         /* #, */                                    \
    X(UNSYNTAX_SPLICING, 14) /* #,@ */                                  \
    X(SYMBOL, 15)           /* the name, escapes and bars undone */     \
    X(STRING, 16)           /* the content, escapes undone */           \
    X(CHAR, 17)             /* the character */                         \
    X(NUMBER, 18)           /* as written */                            \
    X(TRUE, 19)                                                         \
    X(FALSE, 20)                                                        \
    X(KEYWORD, 21)          /* the name without its colon */            \
    X(LABEL, 22)            /* #0= : the digits */                      \
    X(REFERENCE, 23)        /* #0# : the digits */                      \
    X(DATUM_COMMENT, 24)    /* #; */

enum TokenKind {
#define X(name, number) TOKEN_##name = number,
    ESK_TOKENS(X)
#undef X
};

typedef struct Token {
    uint32_t kind;
    uint32_t start, end;        /* in characters (code points) from the beginning of the text */
    uint32_t text, text_length; /* a range of bytes (UTF-8) in the lexer's text */
} Token;

typedef struct Lexer {
    int32_t (*peek)(struct Lexer *); /* the next character, or LEXER_END; takes nothing */
    int32_t (*next)(struct Lexer *); /* takes the character that peek has shown, and returns it */
    /* Makes `room` at least so big and keeps what is there. False: there is no memory. */
    bool (*grow)(struct Lexer *, size_t room);
    struct Context *context; /* for these three: null, or who the characters are read for */
    void *source;
    char *text; /* decoded content of tokens */
    size_t used, room;
    uint64_t offset, line, column;      /* of the next character; lines and columns from 1 */
    uint64_t token_line, token_column;  /* where the last token begins */
    bool fold_case;  /* after #!fold-case */
    bool incomplete; /* the last error is that the input ended within a token */
    bool no_memory;
} Lexer;

/* The next token; its text is appended to the lexer's. After an ERROR what follows makes little sense. */
Token esk_next_token(Lexer *);

/* For Python: all tokens of a text, the last of them EOF or ERROR. */
typedef struct Tokens {
    Token *tokens;
    int64_t count;
    char *text;
    int64_t text_bytes;
    int64_t incomplete; /* whether the text ends within a token (a string, a block comment): more input may mend it */
} Tokens;

/* 0, or -1 when there is no memory. Free with esk_free_tokens whatever the answer. */
int64_t esk_tokenize(const char *utf8, int64_t bytes, Tokens *out);
void esk_free_tokens(Tokens *);

/* A source of characters in memory: what `source` points to when peek and next are those of memory. */
typedef struct TextSource {
    const uint8_t *at, *end;
} TextSource;
int32_t esk_text_peek(Lexer *);
int32_t esk_text_next(Lexer *);

#endif
