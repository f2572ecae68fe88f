/* Characters in, tokens out: section 7.1.1 of R7RS, and [ ], keywords, #' and its kin. See lexer.h. */
#include "lexer.h"

#include <stdlib.h>
#include <string.h>

#include "lexemes.h"
#include "unicode.h"
#include "utf8.h"

/* ---- the lexer -------------------------------------------------------------------------------------------------- */

static int32_t peek(Lexer *lexer) { return lexer->peek(lexer); }

static void take(Lexer *lexer) {
    int32_t c = lexer->next(lexer);
    lexer->offset++;
    lexer->column++;
    if (c == '\n') {
        lexer->line++;
        lexer->column = 1;
    }
}

static bool add_bytes(Lexer *lexer, const char *bytes, size_t count) {
    if (lexer->room - lexer->used < count) {
        if (lexer->used + count > UINT32_MAX || !lexer->grow(lexer, lexer->used + count)) {
            lexer->no_memory = true;
            return false;
        }
    }
    memcpy(lexer->text + lexer->used, bytes, count);
    lexer->used += count;
    return true;
}

static bool add(Lexer *lexer, uint32_t code) {
    char bytes[4];
    if (code < 0x80 && lexer->used < lexer->room) {
        lexer->text[lexer->used++] = (char)code;
        return true;
    }
    return add_bytes(lexer, bytes, (size_t)esk_utf8_encode(code, bytes));
}

static bool add_folded(Lexer *lexer, uint32_t code) {
    uint32_t folded[3];
    int count = esk_char_map(code, MAP_FOLD, folded);
    bool good = true;
    for (int i = 0; i < count; i++) good &= add(lexer, folded[i]);
    return good;
}

static Token done(Lexer *lexer, Token token, enum TokenKind kind) {
    token.kind = kind;
    token.end = (uint32_t)lexer->offset;
    token.text_length = (uint32_t)(lexer->used - token.text);
    return token;
}

/* An ERROR token; `detail`, of so many bytes, is what was read, and stands behind the message. */
static Token fail_with(Lexer *lexer, Token token, const char *message, const char *detail, size_t length) {
    char copy[40];
    bool cut = length > sizeof copy;
    if (cut) {
        length = sizeof copy;
        while (length && (detail[length] & 0xC0) == 0x80) length--;
    }
    if (length) memcpy(copy, detail, length); /* it may lie where the message goes */
    lexer->used = token.text;
    if (!add_bytes(lexer, message, strlen(message)) || !add_bytes(lexer, copy, length) ||
        (cut && !add_bytes(lexer, "...", 3)))
        lexer->used = token.text;
    return done(lexer, token, TOKEN_ERROR);
}

static Token fail(Lexer *lexer, Token token, const char *message) { return fail_with(lexer, token, message, "", 0); }

static Token fail_no_memory(Lexer *lexer, Token token) {
    return fail(lexer, token, "there is no memory for so long a token");
}

static Token fail_incomplete(Lexer *lexer, Token token, const char *message) {
    lexer->incomplete = true;
    token = fail(lexer, token, message);
    if (token.end > token.start + 2) token.end = token.start + 1; /* point to where it began */
    return token;
}

static Token fail_character(Lexer *lexer, Token token, int32_t c) {
    char text[40];
    static const char digits[] = "0123456789ABCDEF";
    size_t length = 0;
    text[length++] = 'U';
    text[length++] = '+';
    for (int shift = c > 0xFFFF ? 20 : 12; shift >= 0; shift -= 4) text[length++] = digits[c >> shift & 15];
    if (c == 0xFFFD) return fail(lexer, token, "bytes that are not UTF-8 (or the replacement character U+FFFD)");
    if (c >= 0x2018 && c <= 0x201F)
        return fail_with(lexer, token, "a curly quote; write \" or ' instead: ", text, length);
    return fail_with(lexer, token, "a character that cannot stand here: ", text, length);
}

static bool skip_line(Lexer *lexer) {
    for (int32_t c; (c = peek(lexer)) != LEXER_END && c != '\n' && c != '\r';) take(lexer);
    return true;
}

/* Behind `#|`; false where the input ends first. */
static bool skip_block_comment(Lexer *lexer) {
    uint64_t depth = 1;
    int32_t before = 0;
    for (int32_t c; (c = peek(lexer)) != LEXER_END; before = c) {
        take(lexer);
        if (before == '|' && c == '#') {
            if (--depth == 0) return true;
            c = 0;
        } else if (before == '#' && c == '|') {
            depth++;
            c = 0;
        }
    }
    return false;
}

enum Escape { ESCAPE_GOOD, ESCAPE_UNKNOWN, ESCAPE_HEX, ESCAPE_END, ESCAPE_MEMORY };

/* Behind `\x`: hexadecimal digits and a semicolon. */
static enum Escape take_hex_escape(Lexer *lexer) {
    uint32_t code = 0;
    int digits = 0;
    for (int digit; (digit = hex_digit(peek(lexer))) >= 0; digits++) {
        take(lexer);
        if (code <= 0x10FFFF) code = code * 16 + (uint32_t)digit;
    }
    if (peek(lexer) == LEXER_END) return ESCAPE_END;
    if (!digits || peek(lexer) != ';') return ESCAPE_HEX;
    take(lexer);
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return ESCAPE_HEX;
    return add(lexer, code) ? ESCAPE_GOOD : ESCAPE_MEMORY;
}

static bool is_blank(int32_t c) { return esk_is_lexical_space(c) && c != '\n' && c != '\r'; }

/* Takes a line ending, which may have two characters. */
static void take_line_end(Lexer *lexer) {
    bool returned = peek(lexer) == '\r';
    take(lexer);
    if (returned && peek(lexer) == '\n') take(lexer);
}

/* Behind a backslash in a string or between bars. */
static enum Escape take_escape(Lexer *lexer, bool string) {
    int32_t c = peek(lexer);
    static const char from[] = "abtnr\"\\|", to[] = "\a\b\t\n\r\"\\|";
    const char *simple = c > 0 && c < 0x80 ? strchr(from, c) : NULL;
    if (c == LEXER_END) return ESCAPE_END;
    if (simple) {
        take(lexer);
        return add(lexer, (unsigned char)to[simple - from]) ? ESCAPE_GOOD : ESCAPE_MEMORY;
    }
    if (c == 'x' || c == 'X') {
        take(lexer);
        return take_hex_escape(lexer);
    }
    if (!string || !esk_is_lexical_space(c)) return ESCAPE_UNKNOWN;
    while (is_blank(peek(lexer))) take(lexer);
    if (peek(lexer) == LEXER_END) return ESCAPE_END;
    if (peek(lexer) != '\n' && peek(lexer) != '\r') return ESCAPE_UNKNOWN;
    take_line_end(lexer);
    while (is_blank(peek(lexer))) take(lexer);
    return ESCAPE_GOOD;
}

static Token fail_escape(Lexer *lexer, Token token, enum Escape why, const char *unterminated, uint64_t start) {
    if (why == ESCAPE_END) return fail_incomplete(lexer, token, unterminated);
    if (why == ESCAPE_MEMORY) return fail_no_memory(lexer, token);
    token.start = (uint32_t)start; /* point to the escape alone */
    if (why == ESCAPE_HEX)
        return fail(lexer, token, "\\x is followed by the hexadecimal number of a Unicode scalar value and a ;");
    take(lexer);
    return fail(lexer, token, "unknown escape; \\ is followed by one of a b t n r \" \\ | x or by the end of the line");
}

/* Behind the opening `"` or `|`. */
static Token take_quoted(Lexer *lexer, Token token, int32_t close, enum TokenKind kind, const char *unterminated) {
    for (;;) {
        int32_t c = peek(lexer);
        if (c == LEXER_END) return fail_incomplete(lexer, token, unterminated);
        if (c == '\\') {
            uint64_t start = lexer->offset;
            take(lexer);
            enum Escape answer = take_escape(lexer, kind == TOKEN_STRING);
            if (answer != ESCAPE_GOOD) return fail_escape(lexer, token, answer, unterminated, start);
            continue;
        }
        if (c == '\r') {
            take_line_end(lexer);
            c = '\n';
        } else {
            take(lexer);
            if (c == close) return done(lexer, token, kind);
        }
        if (!add(lexer, (uint32_t)c)) return fail_no_memory(lexer, token);
    }
}

/* Adds characters up to a delimiter. `*escaped`: some were written \x41; and the whole is a symbol whatever it looks
 * like. False: `*answer` is the error. */
static bool take_atom(Lexer *lexer, Token *token, bool *escaped) {
    static const char unterminated[] = "a symbol that begins here ends within an escape";
    for (int32_t c; !esk_is_delimiter(c = peek(lexer));) {
        uint64_t start = lexer->offset;
        take(lexer);
        if (c == '\\') {
            enum Escape answer = ESCAPE_UNKNOWN;
            *escaped = true;
            if (lower(peek(lexer)) == 'x') {
                take(lexer);
                answer = take_hex_escape(lexer);
            } else if (peek(lexer) == LEXER_END) {
                answer = ESCAPE_END;
            }
            if (answer == ESCAPE_GOOD) continue;
            if (answer == ESCAPE_UNKNOWN) {
                token->start = (uint32_t)start;
                *token = fail(lexer, *token, "a backslash in a symbol; write it between bars: |a\\\\b|");
            } else {
                *token = fail_escape(lexer, *token, answer, unterminated, start);
            }
            return false;
        }
        if (!esk_is_symbol_char((uint32_t)c)) {
            token->start = (uint32_t)start;
            *token = fail_character(lexer, *token, c);
            return false;
        }
        if (!(lexer->fold_case ? add_folded(lexer, (uint32_t)c) : add(lexer, (uint32_t)c))) {
            *token = fail_no_memory(lexer, *token);
            return false;
        }
    }
    return true;
}

static const char *text_of(Lexer *lexer, Token token) { return lexer->text + token.text; }
static size_t length_of(Lexer *lexer, Token token) { return lexer->used - token.text; }

static bool text_is(Lexer *lexer, Token token, const char *word) {
    size_t length = strlen(word);
    if (length_of(lexer, token) != length) return false;
    for (size_t i = 0; i < length; i++)
        if (lower((unsigned char)text_of(lexer, token)[i]) != word[i]) return false;
    return true;
}

/* A symbol, keyword, number or dot. */
static Token take_word_token(Lexer *lexer, Token token) {
    bool escaped = false;
    if (peek(lexer) == ':') {
        take(lexer);
        if (peek(lexer) == '|') { /* a keyword with an odd name */
            take(lexer);
            return take_quoted(lexer, token, '|', TOKEN_KEYWORD, "a keyword that begins here never ends: | is missing");
        }
        if (peek(lexer) == ':') { /* several colons begin a symbol: ::: is a common ellipsis */
            if (!add(lexer, ':')) return fail_no_memory(lexer, token);
            return take_atom(lexer, &token, &escaped) ? done(lexer, token, TOKEN_SYMBOL) : token;
        }
        if (!esk_is_delimiter(peek(lexer)))
            return take_atom(lexer, &token, &escaped) ? done(lexer, token, TOKEN_KEYWORD) : token;
        return add(lexer, ':') ? done(lexer, token, TOKEN_SYMBOL) : fail_no_memory(lexer, token);
    }
    if (!take_atom(lexer, &token, &escaped)) return token;
    if (!escaped) {
        if (esk_looks_like_number(text_of(lexer, token), length_of(lexer, token)))
            return done(lexer, token, TOKEN_NUMBER);
        if (text_is(lexer, token, ".")) {
            lexer->used = token.text;
            return done(lexer, token, TOKEN_DOT);
        }
    }
    return done(lexer, token, TOKEN_SYMBOL);
}

/* Behind `#\`. */
static Token take_char(Lexer *lexer, Token token) {
    int32_t first = peek(lexer);
    if (first == LEXER_END) return fail_incomplete(lexer, token, "#\\ is followed by a character");
    take(lexer);
    if (!add(lexer, (uint32_t)first)) return fail_no_memory(lexer, token);
    if (first < 0x80 && !is_letter(first) && !is_digit(first)) return done(lexer, token, TOKEN_CHAR);
    uint64_t characters = 1;
    for (int32_t c; !esk_is_delimiter(c = peek(lexer)); characters++) {
        take(lexer);
        if (!add(lexer, (uint32_t)c)) return fail_no_memory(lexer, token);
    }
    if (characters == 1) return done(lexer, token, TOKEN_CHAR);
    const char *text = text_of(lexer, token);
    size_t length = length_of(lexer, token);
    int64_t code = esk_named_char(text, length);
    if (code < 0 && lower(first) == 'x') {
        code = 0;
        for (size_t i = 1; i < length && code >= 0; i++) {
            int digit = hex_digit((unsigned char)text[i]);
            code = digit < 0 ? -1 : code > 0x10FFFF ? code : code * 16 + digit;
        }
        if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
            return fail_with(lexer, token, "no Unicode scalar value has this number: #\\", text, length);
    }
    if (code < 0) return fail_with(lexer, token, "unknown character name #\\", text, length);
    lexer->used = token.text;
    return add(lexer, (uint32_t)code) ? done(lexer, token, TOKEN_CHAR) : fail_no_memory(lexer, token);
}

/* Behind `#` and before a digit: a datum label. */
static Token take_label(Lexer *lexer, Token token) {
    while (is_digit(peek(lexer))) {
        if (!add(lexer, (uint32_t)peek(lexer))) return fail_no_memory(lexer, token);
        take(lexer);
    }
    int32_t c = peek(lexer);
    if (c != '=' && c != '#')
        return fail(lexer, token, "a datum label is written #0= where it is set and #0# where it is used");
    take(lexer);
    return done(lexer, token, c == '=' ? TOKEN_LABEL : TOKEN_REFERENCE);
}

/* At a letter behind `#`: booleans, bytevectors, numbers with a prefix. */
static Token take_sharp_word(Lexer *lexer, Token token) {
    bool escaped = false;
    if (!add(lexer, '#')) return fail_no_memory(lexer, token);
    if (!take_atom(lexer, &token, &escaped)) return token;
    enum TokenKind kind = TOKEN_ERROR;
    if (text_is(lexer, token, "#t") || text_is(lexer, token, "#true")) kind = TOKEN_TRUE;
    if (text_is(lexer, token, "#f") || text_is(lexer, token, "#false")) kind = TOKEN_FALSE;
    if (text_is(lexer, token, "#u8") && peek(lexer) == '(') {
        take(lexer);
        kind = TOKEN_OPEN_BYTES;
    }
    if (kind != TOKEN_ERROR) {
        lexer->used = token.text;
        return done(lexer, token, kind);
    }
    const char *text = text_of(lexer, token);
    size_t length = length_of(lexer, token);
    if (!escaped && esk_is_number_text(text, length, 10)) return done(lexer, token, TOKEN_NUMBER);
    if (length > 1 && strchr("bodxei", lower(text[1]))) return fail_with(lexer, token, "not a number: ", text, length);
    return fail_with(lexer, token, "no datum begins with ", text, length);
}

/* Behind `#!`. True: it was skipped. */
static bool take_directive(Lexer *lexer, Token *token) {
    bool escaped = false;
    int32_t c = peek(lexer);
    if (lexer->offset == 2 && (c == '/' || c == ' ')) return skip_line(lexer); /* the first line of a script */
    if (!take_atom(lexer, token, &escaped)) return false;
    bool fold = text_is(lexer, *token, "fold-case");
    if (fold || text_is(lexer, *token, "no-fold-case")) {
        lexer->fold_case = fold;
        lexer->used = token->text;
        return true;
    }
    if (text_is(lexer, *token, "eof")) {
        lexer->used = token->text;
        *token = done(lexer, *token, TOKEN_EOF);
        return false;
    }
    *token = fail_with(lexer, *token, "unknown directive #!", text_of(lexer, *token), length_of(lexer, *token));
    return false;
}

static Token take_one(Lexer *lexer, Token token, enum TokenKind kind) {
    take(lexer);
    return done(lexer, token, kind);
}

/* At what follows `#`. True: it was a comment or a directive, and is skipped. */
static bool take_sharp(Lexer *lexer, Token *token) {
    int32_t c = peek(lexer);
    switch (c) {
    case '(': *token = take_one(lexer, *token, TOKEN_OPEN_VECTOR); return false;
    case ';': *token = take_one(lexer, *token, TOKEN_DATUM_COMMENT); return false;
    case '\'': *token = take_one(lexer, *token, TOKEN_SYNTAX); return false;
    case '`': *token = take_one(lexer, *token, TOKEN_QUASISYNTAX); return false;
    case ',':
        take(lexer);
        *token = peek(lexer) == '@' ? take_one(lexer, *token, TOKEN_UNSYNTAX_SPLICING)
                                    : done(lexer, *token, TOKEN_UNSYNTAX);
        return false;
    case '\\':
        take(lexer);
        *token = take_char(lexer, *token);
        return false;
    case '|':
        take(lexer);
        if (skip_block_comment(lexer)) return true;
        *token = fail_incomplete(lexer, *token, "a comment that begins here never ends: |# is missing");
        return false;
    case '!':
        take(lexer);
        return take_directive(lexer, token);
    default:
        if (c == LEXER_END) {
            *token = fail_incomplete(lexer, *token, "the text ends behind #");
        } else {
            *token = is_digit(c) ? take_label(lexer, *token)
                     : is_letter(c) ? take_sharp_word(lexer, *token)
                                    : fail(lexer, *token, "no datum begins like this");
        }
        return false;
    }
}

Token esk_next_token(Lexer *lexer) {
    lexer->incomplete = false;
    for (;;) {
        int32_t c = peek(lexer);
        Token token = {TOKEN_EOF, (uint32_t)lexer->offset, 0, (uint32_t)lexer->used, 0};
        lexer->token_line = lexer->line;
        lexer->token_column = lexer->column;
        if (c == LEXER_END) return done(lexer, token, TOKEN_EOF);
        if (esk_is_lexical_space(c) || (c == 0xFEFF && lexer->offset == 0)) {
            take(lexer);
            continue;
        }
        switch (c) {
        case ';': skip_line(lexer); continue;
        case '#':
            take(lexer);
            if (take_sharp(lexer, &token)) continue;
            return token;
        case '(': case '[': case '{': case ')': case ']': case '}': /* in braces: propositions, of types alone */
            take(lexer);
            if (!add(lexer, (uint32_t)c)) return fail_no_memory(lexer, token);
            return done(lexer, token, c == '(' || c == '[' || c == '{' ? TOKEN_OPEN : TOKEN_CLOSE);
        case '\'': return take_one(lexer, token, TOKEN_QUOTE);
        case '`': return take_one(lexer, token, TOKEN_QUASIQUOTE);
        case ',':
            take(lexer);
            return peek(lexer) == '@' ? take_one(lexer, token, TOKEN_UNQUOTE_SPLICING)
                                      : done(lexer, token, TOKEN_UNQUOTE);
        case '"':
            take(lexer);
            return take_quoted(lexer, token, '"', TOKEN_STRING, "a string that begins here never ends: \" is missing");
        case '|':
            take(lexer);
            return take_quoted(lexer, token, '|', TOKEN_SYMBOL, "a symbol that begins here never ends: | is missing");
        default:
            if (esk_is_symbol_char((uint32_t)c) || c == '\\') return take_word_token(lexer, token);
            take(lexer);
            return fail_character(lexer, token, c);
        }
    }
}

/* ---- a whole text at once --------------------------------------------------------------------------------------- */

/* Python writes a lone surrogate, one character to it, as three bytes; it is one U+FFFD here, so that offsets agree. */
static int decode_text(const TextSource *source, uint32_t *code) {
    const uint8_t *at = source->at;
    int64_t left = source->end - at;
    if (at[0] == 0xED && left >= 3 && (at[1] & 0xE0) == 0xA0 && (at[2] & 0xC0) == 0x80) {
        *code = 0xFFFD;
        return 3;
    }
    int bytes = esk_utf8_decode(at, source->end, code);
    return bytes ? bytes : (int)left;
}

int32_t esk_text_peek(Lexer *lexer) {
    TextSource *source = lexer->source;
    uint32_t code;
    if (source->at >= source->end) return LEXER_END;
    if (*source->at < 0x80) return *source->at;
    decode_text(source, &code);
    return (int32_t)code;
}

int32_t esk_text_next(Lexer *lexer) {
    TextSource *source = lexer->source;
    uint32_t code;
    if (*source->at < 0x80) return *source->at++;
    source->at += decode_text(source, &code);
    return (int32_t)code;
}

static bool grow_by_malloc(Lexer *lexer, size_t room) {
    size_t wanted = room * 2 < 1024 ? 1024 : room * 2;
    char *text = realloc(lexer->text, wanted);
    if (!text) return false;
    lexer->text = text;
    lexer->room = wanted;
    return true;
}

int64_t esk_tokenize(const char *utf8, int64_t bytes, Tokens *out) {
    TextSource source = {(const uint8_t *)utf8, (const uint8_t *)utf8 + bytes};
    Lexer lexer = {.peek = esk_text_peek, .next = esk_text_next, .grow = grow_by_malloc, .source = &source};
    lexer.line = lexer.column = 1;
    int64_t room = 0;
    *out = (Tokens){0};
    if (bytes < 0 || bytes >= INT32_MAX) return -1;
    for (Token token = {.kind = TOKEN_OPEN}; token.kind != TOKEN_EOF && token.kind != TOKEN_ERROR;) {
        token = esk_next_token(&lexer);
        out->text = lexer.text;
        if (lexer.no_memory) return -1;
        if (out->count == room) {
            room = room ? room * 2 : 256;
            Token *more = realloc(out->tokens, (size_t)room * sizeof *more);
            if (!more) return -1;
            out->tokens = more;
        }
        out->tokens[out->count++] = token;
    }
    out->text_bytes = (int64_t)lexer.used;
    out->incomplete = lexer.incomplete;
    return 0;
}

void esk_free_tokens(Tokens *tokens) {
    free(tokens->tokens);
    free(tokens->text);
    *tokens = (Tokens){0};
}
