/* TCP: connecting and listening, with ports over sockets, for (eshkol network). While something waits, an interrupt is
 * looked for (but not while the system looks for the addresses of a host). */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#include "data.h"
#include "ports.h"
#include "threads.h"

#include <errno.h>

#if defined(_WIN32) || defined(__wasm__)

static Value missing(Context *context, const Value *args, int64_t count) {
    (void)args, (void)count;
    esk_fail(context, ERROR_SYSTEM, NULL, "this system has no POSIX sockets", 0);
}
#define ROW(name, signature, min, max, function, doc) ESK_PRIMITIVE_N(name, signature, min, max, missing, doc)

#else

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROW ESK_PRIMITIVE_N

enum {
    WAIT_MILLISECONDS = 50, /* how long an interrupt may go unnoticed while we wait */
    MOST_ADDRESSES = 16     /* of a host that are tried */
};

typedef struct {
    struct sockaddr_storage bytes;
    socklen_t length;
    int family;
} Address;

/* A socket that does not wait, closed in other processes; or -1. */
static int tame(int descriptor) {
    if (descriptor < 0) return -1;
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    int yes = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return descriptor;
}

/* A new socket that does not wait; forgotten ports may hold the descriptors that it takes. */
static int new_socket(Context *context, int family) {
    int descriptor = socket(family, SOCK_STREAM, 0);
    if (descriptor < 0 && (errno == EMFILE || errno == ENFILE)) {
        esk_collect(context);
        descriptor = socket(family, SOCK_STREAM, 0);
    }
    return tame(descriptor);
}

/* "host:port", for messages and the names of ports */
static Value spelled(Context *context, const char *host, int64_t port) {
    char text[NI_MAXHOST + 16];
    int used = snprintf(text, sizeof text, strchr(host, ':') ? "[%.1024s]:%d" : "%.1024s:%d", host, (int)port);
    return esk_string_utf8(context, text, used < (int)sizeof text ? used : (int)sizeof text - 1);
}

static int find_addresses(Context *context, const char *who, const char *host, int64_t port, int flags,
                          Address *found) {
    char service[16];
    snprintf(service, sizeof service, "%d", (int)port);
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV}, *list;
    int error = getaddrinfo(*host ? host : NULL, service, &wanted, &list);
    if (error) {
        const char *reason = error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error);
        esk_fail(context, ERROR_SYSTEM, who, reason, 1, spelled(context, host, port));
    }
    int count = 0;
    for (struct addrinfo *at = list; at && count < MOST_ADDRESSES; at = at->ai_next) {
        if (at->ai_addrlen > sizeof found->bytes) continue;
        memcpy(&found[count].bytes, at->ai_addr, at->ai_addrlen);
        found[count].length = at->ai_addrlen;
        found[count++].family = at->ai_family;
    }
    freeaddrinfo(list);
    return count;
}

static void close_quietly(int descriptor) {
    int error = errno;
    close(descriptor);
    errno = error;
}

static int64_t deadline_of(Context *context, const char *who, int position, Value v) {
    if (esk_is_false(v)) return 0;
    return esk_monotonic() + need_index(context, who, position, v, (int64_t)1 << 40) * 1000000;
}

static int64_t port_number(Context *context, const char *who, Value v) {
    return need_index(context, who, 2, v, 1 << 16);
}

/* Both ports of a connection: the socket belongs to the first, a copy of it to the second. */
static Value both_ports(Context *context, Port *in, Port *out) {
    int descriptor = in->descriptor, copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    if (copy < 0 && (errno == EMFILE || errno == ENFILE)) {
        esk_collect(context);
        copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    }
    if (copy < 0) {
        int error = errno;
        esk_close_port(context, NULL, in);
        esk_file_error(context, "tcp-connect", in->name, error);
    }
    out->descriptor = copy; /* lent, until both have their buffers */
    esk_start_port(context, in, descriptor);
    esk_start_port(context, out, copy);
    Value ports[] = {esk_object(in), esk_object(out)};
    return esk_list(context, ports, 2);
}

/* Waits until the connection of the port's socket is there: 0, or an error number. */
static int await_connection(Context *context, Port *port, int64_t deadline) {
    for (;;) {
        struct pollfd wait = {.fd = port->descriptor, .events = POLLOUT};
        int ready = esk_wait_for(context, &wait, 1, WAIT_MILLISECONDS);
        esk_notice(context); /* the port closes the socket when nobody refers to it */
        if (ready > 0) {
            int error = 0;
            socklen_t length = sizeof error;
            return getsockopt(port->descriptor, SOL_SOCKET, SO_ERROR, &error, &length) < 0 ? errno : error;
        }
        if (deadline && esk_monotonic() >= deadline) return ETIMEDOUT;
    }
}

static Value tcp_connect(Context *context, const Value *args, int64_t count) {
    static const char who[] = "tcp-connect";
    Address addresses[MOST_ADDRESSES];
    (void)count;
    const char *host = esk_file_name(context, who, 1, args[0]);
    int64_t number = port_number(context, who, args[1]), deadline = deadline_of(context, who, 3, args[2]);
    uint32_t flags = esk_is_false(args[3]) ? 0 : PORT_BINARY;
    Value name = spelled(context, host, number);
    signal(SIGPIPE, SIG_IGN); /* a closed connection is an error of the write, not the end of the process */
    Port *in = esk_prepare_port(context, name, PORT_INPUT | flags);
    Port *out = esk_prepare_port(context, name, PORT_OUTPUT | flags);
    int tries = find_addresses(context, who, host, number, 0, addresses), error = EADDRNOTAVAIL;
    for (int i = 0; i < tries; i++) {
        in->descriptor = new_socket(context, addresses[i].family);
        if (in->descriptor < 0) {
            error = errno;
            continue;
        }
        error = connect(in->descriptor, (struct sockaddr *)&addresses[i].bytes, addresses[i].length) < 0 ? errno : 0;
        if (error == EINPROGRESS || error == EINTR) error = await_connection(context, in, deadline);
        if (!error) return both_ports(context, in, out);
        close(in->descriptor);
        in->descriptor = -1;
        if (error == ETIMEDOUT) break;
    }
    esk_file_error(context, who, name, error);
}

/* ---- listening -------------------------------------------------------------------------------------------------- */

/* A listener is a port that can neither be read nor written, only closed. */
static Value tcp_listen(Context *context, const Value *args, int64_t count) {
    static const char who[] = "tcp-listen";
    Address addresses[MOST_ADDRESSES];
    (void)count;
    const char *host = esk_file_name(context, who, 1, args[0]);
    int64_t number = port_number(context, who, args[1]), backlog = need_index(context, who, 3, args[2], 1 << 16);
    Value name = spelled(context, host, number);
    Port *listener = esk_prepare_port(context, name, 0);
    int tries = find_addresses(context, who, host, number, AI_PASSIVE, addresses), error = EADDRNOTAVAIL;
    for (int i = 0; i < tries; i++) {
        int descriptor = new_socket(context, addresses[i].family), yes = 1;
        if (descriptor >= 0) {
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
            if (!bind(descriptor, (struct sockaddr *)&addresses[i].bytes, addresses[i].length) &&
                !listen(descriptor, (int)backlog)) {
                listener->descriptor = descriptor;
                return esk_object(listener);
            }
            close_quietly(descriptor);
        }
        error = errno;
    }
    esk_file_error(context, who, name, error);
}

static Port *socket_argument(Context *context, const char *who, Value v, bool listening) {
    Port *port = esk_is(v, TAG_PORT) ? esk_pointer(v) : NULL;
    if (port && !(port->flags & PORT_OPEN)) esk_fail(context, ERROR_FILE, who, "the port is closed", 1, v);
    if (!port || port->descriptor < 0 || (listening && (port->flags & (PORT_INPUT | PORT_OUTPUT))))
        esk_wrong_type(context, who, 1, v, listening ? "a listener" : "a port of a connection, or a listener");
    return port;
}

static Value address_of(Context *context, const char *who, Value name, const Address *address) {
    char host[NI_MAXHOST], service[NI_MAXSERV];
    int error = getnameinfo((const struct sockaddr *)&address->bytes, address->length, host, sizeof host, service,
                            sizeof service, NI_NUMERICHOST | NI_NUMERICSERV);
    if (error) esk_fail(context, ERROR_SYSTEM, who, gai_strerror(error), 1, name);
    int64_t number = 0;
    for (const char *at = service; *at >= '0' && *at <= '9'; at++) number = number * 10 + (*at - '0');
    return esk_cons(context, esk_string_utf8(context, host, (int64_t)strlen(host)), esk_fixnum(number));
}

static Value tcp_accept(Context *context, const Value *args, int64_t count) {
    static const char who[] = "tcp-accept";
    (void)count;
    Port *listener = socket_argument(context, who, args[0], true);
    int64_t deadline = deadline_of(context, who, 2, args[1]);
    uint32_t flags = esk_is_false(args[2]) ? 0 : PORT_BINARY;
    signal(SIGPIPE, SIG_IGN);
    Port *in = esk_prepare_port(context, listener->name, PORT_INPUT | flags);
    Port *out = esk_prepare_port(context, listener->name, PORT_OUTPUT | flags);
    for (bool collected = false;;) {
        int descriptor = accept(listener->descriptor, NULL, NULL);
        if (descriptor >= 0) {
            in->descriptor = tame(descriptor);
            return both_ports(context, in, out);
        }
        if ((errno == EMFILE || errno == ENFILE) && !collected) { /* forgotten ports hold descriptors */
            collected = true;
            esk_collect(context);
            continue;
        }
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ECONNABORTED)
            esk_file_error(context, who, listener->name, errno);
        if (deadline && esk_monotonic() >= deadline) return ESK_FALSE;
        struct pollfd wait = {.fd = listener->descriptor, .events = POLLIN};
        esk_wait_for(context, &wait, 1, WAIT_MILLISECONDS);
        esk_notice(context);
        socket_argument(context, who, args[0], true); /* a handler may have closed it */
    }
}

static Value tcp_address(Context *context, const Value *args, int64_t count) {
    static const char who[] = "tcp-address";
    (void)count;
    Port *port = socket_argument(context, who, args[0], false);
    Address address = {.length = sizeof address.bytes};
    struct sockaddr *at = (struct sockaddr *)&address.bytes;
    bool peer = !esk_is_false(args[1]);
    if ((peer ? getpeername : getsockname)(port->descriptor, at, &address.length) < 0)
        esk_file_error(context, who, port->name, errno);
    return address_of(context, who, port->name, &address);
}

/* Tells the other side that nothing more comes, while it may still answer. */
static Value tcp_shutdown(Context *context, const Value *args, int64_t count) {
    (void)count;
    Port *port = esk_is(args[0], TAG_PORT) ? esk_pointer(args[0]) : NULL;
    if (!port || port->descriptor < 0 || !(port->flags & PORT_OUTPUT))
        esk_wrong_type(context, "tcp-end-output", 1, args[0], "an open output port of a connection");
    esk_port_flush(context, "tcp-end-output", port);
    if (shutdown(port->descriptor, SHUT_WR) < 0) esk_file_error(context, "tcp-end-output", port->name, errno);
    return ESK_UNSPECIFIED;
}

#endif

static Value set_deadline(Context *context, Value v, Value milliseconds) {
    static const char who[] = "port-deadline!";
    if (!esk_is(v, TAG_PORT)) esk_wrong_type(context, who, 1, v, "a port");
    Port *port = esk_pointer(v);
    port->deadline = esk_is_false(milliseconds)
                         ? 0
                         : esk_monotonic() + need_index(context, who, 2, milliseconds, (int64_t)1 << 40) * 1000000;
    return ESK_UNSPECIFIED;
}

const Primitive esk_network_primitives[] = {
    ROW("%tcp-connect", "(%tcp-connect host port milliseconds binary?)", 4, 4, tcp_connect,
        "The input and the output port of a new connection, in a list."),
    ROW("%tcp-listen", "(%tcp-listen host port backlog)", 3, 3, tcp_listen, "A listener at an address of ours."),
    ROW("%tcp-accept", "(%tcp-accept listener milliseconds binary?)", 3, 3, tcp_accept,
        "The ports of the next connection, in a list; #f where none comes in that time."),
    ROW("%tcp-address", "(%tcp-address port peer?)", 2, 2, tcp_address,
        "The address of our end (or the other) of a connection: a pair of a numeric host and a port."),
    ROW("%tcp-end-output", "(%tcp-end-output port)", 1, 1, tcp_shutdown,
        "Tells the other side that nothing more comes."),
    ESK_PRIMITIVE_2("%port-deadline!", "(%port-deadline! port milliseconds)", set_deadline,
                    "After so many milliseconds from now, waiting for the port is an error; with #f never."),
    {0},
};
